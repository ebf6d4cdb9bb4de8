use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::places::Limits;
use super::super::serve::accept;
use super::*;

/// Serves nothing within these limits; gives the address and what stops it.
async fn within(limits: Limits) -> (std::net::SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(accept(axum::Router::new(), listener, stopping, limits));
    (address, stop)
}

#[tokio::test]
async fn a_connection_that_says_its_header_too_slowly_is_let_go() {
    let header = Duration::from_millis(300);
    let (address, _stop) = within(Limits {
        header,
        connections: 8,
        waiters: 8,
    })
    .await;
    for begun in ["", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let started = Instant::now();
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        assert!(
            started.elapsed() >= Duration::from_millis(200),
            "{:?}",
            started.elapsed()
        );
    }
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let header = Duration::from_secs(30);
    let (address, _stop) = within(Limits {
        header,
        connections: 2,
        waiters: 1,
    })
    .await;
    let mut silent = Vec::new();
    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let mut answer = [0; 12];
    soon(silent[2].read_exact(&mut answer)).await.unwrap();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 12];
        soon(stream.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 404");
        // It stays connected and says no more.
        silent.push(stream);
    }
    // Whoever was idle the longest has gone.
    let mut rest = Vec::new();
    let _ = soon(silent[0].read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn waiting_readers_and_listeners_are_let_go_at_once() {
    let api = Api::start().await;
    api.asked("e1").await;
    let mut events = api.request(Method::GET, "/v1/events").send().await.unwrap();
    let begun = Instant::now();
    let (waited, ()) = tokio::join!(api.get("/v1/elicitations/e1?wait=55"), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        api.stop.send_replace(true);
    });
    assert_eq!((waited.0, &waited.1["state"]), (200, &json!("queued")));
    soon(async { while events.chunk().await.unwrap().is_some() {} }).await;
    soon(api.serving).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_request_that_never_ends_does_not_hold_the_end_up() {
    let api = Api::start().await;
    let address = api.base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/elicitations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BUILDER}\r\nContent-Length: 99\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    api.stop.send_replace(true);
    soon(api.serving).await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn after_the_end_nothing_is_accepted() {
    let api = Api::start().await;
    api.stop.send_replace(true);
    soon(api.serving).await.unwrap();
    let refused = api.client.get(format!("{}/healthz", api.base)).send().await;
    assert!(refused.unwrap_err().is_connect());
}

/// Reads one answer of a connection: its status and its body.
async fn read_answer(stream: &mut TcpStream) -> (u16, Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        soon(stream.read_exact(&mut byte)).await.unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
    soon(stream.read_exact(&mut body)).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

fn head_of_a_body(length: usize, more: &str) -> String {
    format!(
        "POST /v1/elicitations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BUILDER}\r\n{more}Content-Length: {length}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_body_over_the_limit_leaves_the_connection_as_it_was() {
    let api = Api::start().await;
    let too_large = refused(413, "PAYLOAD_TOO_LARGE", "the body is larger than 256 KiB");
    let mut stream = TcpStream::connect(api.base.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    for length in [256 * 1024 + 1, 4 * 1024 * 1024] {
        let request = format!("{}{}", head_of_a_body(length, ""), " ".repeat(length));
        stream.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(read_answer(&mut stream).await, too_large, "{length}");
    }
    let body = r#"{"room": "!deploys:x.org", "prompt": "Ship it?"}"#;
    let request = format!("{}{body}", head_of_a_body(body.len(), ""));
    stream.write_all(request.as_bytes()).await.unwrap();
    let (status, object) = read_answer(&mut stream).await;
    assert_eq!((status, &object["state"]), (201, &json!("queued")));
}

#[tokio::test]
async fn a_body_over_the_limit_that_asks_first_is_not_sent_at_all() {
    let api = Api::start().await;
    let mut stream = TcpStream::connect(api.base.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let head = head_of_a_body(50 * 1024 * 1024, "Expect: 100-continue\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(
        read_answer(&mut stream).await,
        refused(413, "PAYLOAD_TOO_LARGE", "the body is larger than 256 KiB")
    );
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}
