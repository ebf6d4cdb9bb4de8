//! The agents' side: JSON over HTTP, one resource a file, thin over [`Service`].
//!
//! ```text
//! POST   /v1/elicitations            ask; 201 new, 200 repeated
//! GET    /v1/elicitations            list the agent's own
//! GET    /v1/elicitations/{id}       read one, with ?wait= until it is closed
//! DELETE /v1/elicitations/{id}       withdraw one
//! GET    /v1/events                  server-sent events, resumable
//! POST   /v1/sessions               begin a session; GET lists the agent's own
//! …      /v1/sessions/{id}          GET reads it, DELETE ends it at once
//! …      /v1/sessions/{id}/activities   GET what was said, POST what the agent says
//! POST   /v1/boards/{id}/push        where a board pushes its questions, signed
//! …      /v1/operator/deliveries    what agents have not taken, for the operator's token
//! GET    /healthz /readyz /metrics   for whoever runs it, without a token
//! ```
//!
//! Every error has one shape, [`ApiError`]. Nothing is kept here between
//! requests but a small memory of failed tokens, and of whom `/metrics` has
//! named: a restart forgets only that.

mod auth;
mod boards;
mod deliveries;
mod elicitations;
mod error;
mod events;
mod failures;
mod health;
mod places;
mod query;
mod request;
mod serve;
mod sessions;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post, put};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::service::Service;
use auth::Tokens;
use failures::Failures;

pub use error::ApiError;
pub use health::metrics_recorder;
pub use serve::{serve, serve_waiting};

/// The largest request body, in bytes.
pub const MAX_BODY: usize = 256 * 1024;

/// What every handler has at hand.
#[derive(Clone)]
struct Api {
    service: Arc<Service>,
    tokens: Arc<Tokens>,
    failures: Arc<Mutex<Failures>>,
    metrics: PrometheusHandle,
    /// The agents whose deliveries were counted in `metrics`, which forgets nobody.
    shown: Arc<Mutex<BTreeSet<String>>>,
    stopping: watch::Receiver<bool>,
    /// Places for those who wait: long polls and event streams.
    waiters: Arc<Semaphore>,
    /// When agents asked for digests.
    asked: Arc<streams::Asked>,
}

/// How long whoever finds no place to wait is told to stay away.
const RETRY_WAITING: Duration = Duration::from_secs(5);

impl Api {
    /// A place to wait in, until it is dropped.
    fn waiter(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.waiters)
            .try_acquire_owned()
            .map_err(|_| ApiError::Busy {
                retry_after: RETRY_WAITING,
            })
    }
}

/// The routes of the API. `metrics` is the handle of the installed recorder ([`metrics_recorder`]);
/// streams end when `stopping` becomes true; at most `waiters` long polls and streams are kept.
pub fn router(
    service: Arc<Service>,
    metrics: PrometheusHandle,
    stopping: watch::Receiver<bool>,
    waiters: usize,
) -> Router {
    let tokens = Tokens::of(service.config());
    let api = Api {
        service,
        tokens: Arc::new(tokens),
        failures: Arc::default(),
        metrics,
        shown: Arc::default(),
        stopping,
        waiters: Arc::new(Semaphore::new(waiters)),
        asked: Arc::default(),
    };
    Router::new()
        .route(
            "/v1/elicitations",
            get(elicitations::list).post(elicitations::ask),
        )
        .route(
            "/v1/elicitations/{id}",
            get(elicitations::read).delete(elicitations::withdraw),
        )
        .route("/v1/events", get(events::listen))
        .route("/v1/sessions", get(sessions::list).post(sessions::begin))
        .route(
            "/v1/sessions/{id}",
            get(sessions::read).delete(sessions::end),
        )
        .route(
            "/v1/sessions/{id}/activities",
            get(sessions::activities).post(sessions::act),
        )
        .route("/v1/boards/{board}/push", post(boards::push))
        .route("/v1/operator/deliveries", get(deliveries::list))
        .route("/v1/operator/deliveries/retry", post(deliveries::retry))
        .route(
            "/v1/operator/deliveries/drop",
            post(deliveries::drop_parked),
        )
        .route("/api/v1/rooms/{room}/digest", get(streams::digest))
        .route(
            "/v1/operator/streams/{stream}/digest",
            get(streams::digest_for_operator),
        )
        .route(
            "/v1/operator/streams/{stream}/silenced",
            get(streams::silenced),
        )
        .route(
            "/v1/operator/streams/{stream}/silenced/{user}",
            put(streams::silence).delete(streams::unsilence),
        )
        .layer(middleware::map_response(never_stored))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(async || ApiError::UnknownPath)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(middleware::from_fn(log))
        .with_state(api)
}

/// What is served while there is no service yet: the process is alive, not ready for this reason,
/// and everything else may be asked again later.
fn waiting_router(why: &str) -> Router {
    let reasons = health::not_ready(&[why.to_owned()]);
    let later = || ApiError::Unavailable("the service is not ready yet".to_owned());
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(async || reasons))
        .fallback(async move || later())
}

/// Answers are a person's words: no cache on the way keeps them.
async fn never_stored(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// One line and one count per request. The path has no query and no headers: tokens are in neither
/// line nor label.
async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "other".to_owned(), |matched| matched.as_str().to_owned());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let took_ms = crate::clock::millis(started.elapsed());
    tracing::debug!(
        http.method = %method,
        http.path = %path,
        http.status = status,
        took_ms,
        "{method} {path:?} answered with {status} in {took_ms} ms"
    );
    metrics::counter!(health::REQUESTS, "route" => route, "status" => status.to_string())
        .increment(1);
    response
}
