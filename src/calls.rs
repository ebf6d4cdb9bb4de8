//! Calls to other services over HTTP: how they are made, bounded and told about.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, redirect};

const CONNECT: Duration = Duration::from_secs(5);

/// A client whose calls take at most so long as a whole. It goes straight to the configured
/// address: proxies named in the environment do not apply, redirects are not followed.
pub fn client(whole: Duration) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("matrix-elicit/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(whole)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .build()
}

/// Why a call did not come to an answer: the innermost cause, and never the URL, whose query may
/// hold a secret.
pub fn cause(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let connecting = error.is_connect();
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if connecting {
        format!("no connection: {cause}")
    } else {
        cause.to_string()
    }
}

/// How long the other side asks to be left alone, if it says so in seconds.
pub fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Why the body of a response could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// It is longer than it may be.
    #[error("the answer has more than {0} bytes")]
    TooLong(usize),
    /// It broke off.
    #[error("{0}")]
    Broken(String),
}

/// The body of a response, of which never more than `limit` bytes are kept, whatever it says of
/// its length.
pub async fn body_of(mut response: Response, limit: usize) -> Result<Vec<u8>, BodyFault> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(body),
            Ok(Some(chunk)) if chunk.len() <= limit - body.len() => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(BodyFault::TooLong(limit)),
            Err(error) => return Err(BodyFault::Broken(cause(error))),
        }
    }
}
