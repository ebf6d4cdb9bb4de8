//! `/healthz`, `/readyz` and `/metrics`, for whoever runs the service.
//!
//! | metric | kind | labels | meaning |
//! | --- | --- | --- | --- |
//! | `elicit_ready` | gauge | | 1 when `/readyz` answers 200, else 0 |
//! | `elicit_elicitations_queued` | gauge | | questions stored and not yet in their room |
//! | `elicit_elicitations_open` | gauge | | questions waiting for a person |
//! | `elicit_oldest_open_seconds` | gauge | | how long the oldest open question waits; 0 without one |
//! | `elicit_deliveries_pending` | gauge | | webhook deliveries not taken yet |
//! | `elicit_deliveries_parked` | gauge | | webhook deliveries given up |
//! | `elicit_delivery_attempts_total` | counter | `outcome`: `delivered`, `retried`, `parked` | webhook calls by how they ended |
//! | `elicit_http_requests_total` | counter | `route`, `status` | requests answered |
//!
//! The gauges are read from the ledger when they are asked for; the counters
//! begin at 0 with the process.

use std::sync::OnceLock;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::{Value, json};

use super::{Api, ApiError};
use crate::clock;
use crate::delivery::ATTEMPTS;
use crate::ledger::{Ledger, LedgerError};

/// The counter of answered requests.
pub const REQUESTS: &str = "elicit_http_requests_total";

/// The handle of the process's metrics recorder, which is installed by the first call.
///
/// Where another recorder is installed already, that one keeps the counters and this handle
/// shows none.
pub fn metrics_recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let recorder = PrometheusBuilder::new().build_recorder();
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            describe();
            handle
        })
        .clone()
}

fn describe() {
    use metrics::{describe_counter, describe_gauge};
    describe_gauge!(
        "elicit_ready",
        "1 when the service can hear and speak, else 0"
    );
    describe_gauge!(
        "elicit_elicitations_queued",
        "Questions stored and not yet in their room"
    );
    describe_gauge!("elicit_elicitations_open", "Questions waiting for a person");
    describe_gauge!(
        "elicit_oldest_open_seconds",
        "How long the oldest open question waits"
    );
    describe_gauge!(
        "elicit_deliveries_pending",
        "Webhook deliveries not taken yet"
    );
    describe_gauge!("elicit_deliveries_parked", "Webhook deliveries given up");
    describe_counter!(ATTEMPTS, "Webhook calls by how they ended");
    describe_counter!(REQUESTS, "HTTP requests answered");
}

/// `GET /healthz`: the process answers.
pub async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// `GET /readyz`: 200 when it can hear and speak, else 503 with the reasons.
pub async fn ready(State(api): State<Api>) -> Response {
    let readiness = api.service.readiness();
    if readiness.ready {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        not_ready(&readiness.reasons).into_response()
    }
}

/// The answer of `/readyz` when it is not.
pub fn not_ready(reasons: &[String]) -> (StatusCode, Json<Value>) {
    let body = json!({ "status": "not ready", "reasons": reasons });
    (StatusCode::SERVICE_UNAVAILABLE, Json(body))
}

/// `GET /metrics`: Prometheus' text format.
pub async fn metrics(State(api): State<Api>) -> Result<Response, ApiError> {
    let counts = |ledger: &mut dyn Ledger| {
        Ok::<_, LedgerError>((ledger.pending_counts()?, ledger.delivery_counts()?))
    };
    let ((queued, open, oldest), deliveries) = api.service.book().read(counts).await?;
    let oldest_ms = oldest.map_or(0, |asked_at| clock::now().saturating_sub(asked_at).max(0));
    metrics::gauge!("elicit_ready").set(if api.service.readiness().ready {
        1.0
    } else {
        0.0
    });
    metrics::gauge!("elicit_elicitations_queued").set(float(queued));
    metrics::gauge!("elicit_elicitations_open").set(float(open));
    metrics::gauge!("elicit_oldest_open_seconds").set(float(oldest_ms.unsigned_abs()) / 1000.0);
    metrics::gauge!("elicit_deliveries_pending").set(float(deliveries.0));
    metrics::gauge!("elicit_deliveries_parked").set(float(deliveries.1));
    api.metrics.run_upkeep();
    let text = api.metrics.render();
    Ok((
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response())
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
