//! A line to the homeserver that can be slow in chosen places: what a real homeserver does when
//! it is busy or far away, on demand.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::support::SOON;

/// What is done to requests whose path holds one of some parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// They are answered with `{}` at once, and carried out when the lag ends.
    Behind,
    /// They are carried out at once, and their answer never comes; nor that of those which are
    /// on their way already.
    Unanswered,
}

struct Kept {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

struct Inner {
    homeserver: String,
    http: reqwest::Client,
    lag: Mutex<Option<(Lag, Vec<String>)>>,
    kept: Mutex<Vec<Kept>>,
    /// The paths of those that lagged.
    lagged: watch::Sender<Vec<String>>,
}

/// The line, for as long as this lives.
pub struct Relay {
    url: String,
    inner: Arc<Inner>,
    server: JoinHandle<()>,
}

impl Relay {
    /// A line to this homeserver without any lag.
    pub async fn start(homeserver: &str) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()
            .unwrap();
        let inner = Arc::new(Inner {
            homeserver: homeserver.to_owned(),
            http,
            lag: Mutex::default(),
            kept: Mutex::default(),
            lagged: watch::Sender::new(Vec::new()),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass_on).with_state(inner.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, inner, server }
    }

    /// Its near end, to be used as the homeserver's address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on, requests whose path holds one of these parts lag.
    pub fn lag(&self, lag: Lag, parts: &[&str]) {
        let parts = parts.iter().map(|&part| part.to_owned()).collect();
        *self.inner.lag.lock().unwrap() = Some((lag, parts));
    }

    /// Waits until so many requests have lagged since the start whose path holds this part.
    pub async fn lagged(&self, part: &str, count: usize) {
        let mut lagged = self.inner.lagged.subscribe();
        let enough =
            |paths: &Vec<String>| paths.iter().filter(|path| path.contains(part)).count() >= count;
        let waited = tokio::time::timeout(SOON, lagged.wait_for(enough)).await;
        assert!(waited.is_ok(), "waited in vain for {count} slow {part}");
    }

    /// Ends the lag, and carries out what it held back.
    pub async fn catch_up(&self) {
        *self.inner.lag.lock().unwrap() = None;
        let kept = std::mem::take(&mut *self.inner.kept.lock().unwrap());
        for request in kept {
            let (status, _, _) = self.inner.ask(request).await.unwrap();
            assert!(status.is_success(), "{status}");
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Inner {
    async fn ask(&self, request: Kept) -> reqwest::Result<(StatusCode, HeaderMap, Vec<u8>)> {
        let url = format!("{}{}", self.homeserver, request.path);
        let answer = self
            .http
            .request(request.method, url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        Ok((status, headers, answer.bytes().await?.to_vec()))
    }

    /// Whether a request lags in this way now.
    fn lags(&self, path: &str, how: Lag) -> bool {
        let lag = self.lag.lock().unwrap();
        let lags = lag.as_ref().is_some_and(|(lag, parts)| {
            *lag == how && parts.iter().any(|part| path.contains(part.as_str()))
        });
        if lags {
            self.lagged.send_modify(|paths| paths.push(path.to_owned()));
        }
        lags
    }
}

async fn pass_on(State(line): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut headers = parts.headers;
    // These belong to one connection, not to the request.
    let of_the_connection = [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::ACCEPT_ENCODING,
    ];
    for name in of_the_connection {
        headers.remove(name);
    }
    let request = Kept {
        method: parts.method,
        path: parts.uri.to_string(),
        headers,
        body: to_bytes(body, usize::MAX).await.unwrap().to_vec(),
    };
    let path = request.path.clone();
    if line.lags(&path, Lag::Behind) {
        line.kept.lock().unwrap().push(request);
        return Response::new(Body::from("{}"));
    }
    let answer = line.ask(request).await;
    if line.lags(&path, Lag::Unanswered) {
        return std::future::pending().await;
    }
    let mut response = Response::new(Body::empty());
    match answer {
        Ok((status, headers, body)) => {
            *response.status_mut() = status;
            if let Some(kind) = headers.get(header::CONTENT_TYPE) {
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, kind.clone());
            }
            *response.body_mut() = Body::from(body);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    response
}
