use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::serve::{Limits, accept};
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
async fn connections_over_the_limit_wait_for_a_place() {
    let header = Duration::from_secs(30);
    let (address, _stop) = within(Limits {
        header,
        connections: 1,
    })
    .await;
    let first = TcpStream::connect(address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    let early = tokio::time::timeout(Duration::from_millis(300), second.read_exact(&mut answer));
    assert!(early.await.is_err());
    drop(first);
    soon(second.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.0 404");
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
    soon(api.serving).await.unwrap().unwrap();
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
    soon(api.serving).await.unwrap().unwrap();
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn after_the_end_nothing_is_accepted() {
    let api = Api::start().await;
    api.stop.send_replace(true);
    soon(api.serving).await.unwrap().unwrap();
    let refused = api.client.get(format!("{}/healthz", api.base)).send().await;
    assert!(refused.unwrap_err().is_connect());
}
