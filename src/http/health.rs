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
//! | `elicit_agent_deliveries_pending` | gauge | `agent` | of them, this agent's |
//! | `elicit_agent_deliveries_parked` | gauge | `agent` | of them, this agent's |
//! | `elicit_delivery_attempts_total` | counter | `outcome`: `delivered`, `retried`, `parked` | webhook calls by how they ended |
//! | `elicit_http_requests_total` | counter | `route`, `status` | requests answered |
//! | `elicit_sync_malformed_total` | counter | | sync responses that held something malformed |
//! | `elicit_upgrades_followed_total` | counter | | room upgrades that were followed |
//! | `elicit_upgrades_refused_total` | counter | | successors of rooms that proved to be none |
//! | `elicit_board_submissions_pending` | gauge | | answers on their way to a board |
//! | `elicit_board_unread` | gauge | `board` | 1 while the board could not be read the last time, else 0 |
//! | `elicit_board_pushes_total` | counter | `board`, `outcome`: `stored`, `known`, `ignored`, `unsigned`, `failed` | pushes of boards by what became of them |
//! | `elicit_board_sweeps_total` | counter | `board`, `outcome`: `read`, `unread` | looks at what is pending on a board |
//! | `elicit_board_found_total` | counter | `board`, `outcome`: `posted`, `settled`, `malformed` | what those looks found |
//! | `elicit_board_subscriptions_total` | counter | `board`, `outcome`: `subscribed`, `failed` | subscriptions to a board's pushes |
//! | `elicit_board_submissions_total` | counter | `board`, `outcome`: `taken`, `retried`, `settled`, `invalid`, `separation_of_duties`, `unknown_person`, `identity_down`, `refused` | answers handed in to a board, by how that ended |
//!
//! The gauges are read from the ledger when they are asked for, but `elicit_board_unread`, which is
//! there from the first look on; the counters begin at 0 with the process.

use std::collections::BTreeMap;
use std::sync::{OnceLock, PoisonError};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use serde_json::{Value, json};

use super::boards::PUSHES;
use super::{Api, ApiError};
use crate::board::{FOUND, SUBMISSIONS, SUBSCRIPTIONS, SWEEPS, UNREAD};
use crate::clock;
use crate::delivery::ATTEMPTS;
use crate::ledger::{DeliveryCount, Ledger, LedgerError};

/// The counter of answered requests.
pub const REQUESTS: &str = "elicit_http_requests_total";
const AGENT_PENDING: &str = "elicit_agent_deliveries_pending";
const AGENT_PARKED: &str = "elicit_agent_deliveries_parked";
const SUBMISSIONS_PENDING: &str = "elicit_board_submissions_pending";

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
    describe_gauge!(AGENT_PENDING, "Webhook deliveries not taken yet, by agent");
    describe_gauge!(AGENT_PARKED, "Webhook deliveries given up, by agent");
    describe_counter!(ATTEMPTS, "Webhook calls by how they ended");
    describe_counter!(REQUESTS, "HTTP requests answered");
    describe_counter!(
        "elicit_upgrades_followed_total",
        "Room upgrades that were followed"
    );
    describe_counter!(
        "elicit_upgrades_refused_total",
        "Successors of rooms that proved to be none"
    );
    describe_counter!(
        "elicit_sync_malformed_total",
        "Sync responses that held something malformed"
    );
    describe_counter!("elicit_digests_total", "Digests made, by stream");
    describe_counter!(
        "elicit_digest_dropped_total",
        "Lines left out of digests, by reason"
    );
    describe_boards();
}

fn describe_boards() {
    use metrics::{describe_counter, describe_gauge};
    describe_gauge!(SUBMISSIONS_PENDING, "Answers on their way to a board");
    describe_gauge!(UNREAD, "1 while a board could not be read the last time");
    describe_counter!(PUSHES, "Pushes of boards by what became of them");
    describe_counter!(SWEEPS, "Looks at what is pending on a board");
    describe_counter!(FOUND, "What looks at boards found");
    describe_counter!(SUBSCRIPTIONS, "Subscriptions to the pushes of boards");
    describe_counter!(SUBMISSIONS, "Answers handed in to boards by how that ended");
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
        Ok::<_, LedgerError>((
            ledger.pending_counts()?,
            ledger.delivery_counts_by_origin()?,
            ledger.submissions_pending()?,
        ))
    };
    let ((queued, open, oldest), deliveries, submissions) = api.service.book().read(counts).await?;
    let oldest_ms = oldest.map_or(0, |asked_at| clock::now().saturating_sub(asked_at).max(0));
    metrics::gauge!("elicit_ready").set(if api.service.readiness().ready {
        1.0
    } else {
        0.0
    });
    metrics::gauge!("elicit_elicitations_queued").set(float(queued));
    metrics::gauge!("elicit_elicitations_open").set(float(open));
    metrics::gauge!("elicit_oldest_open_seconds").set(float(oldest_ms.unsigned_abs()) / 1000.0);
    metrics::gauge!(SUBMISSIONS_PENDING).set(float(submissions));
    let sum = |of: fn(&DeliveryCount) -> u64| deliveries.iter().map(of).sum();
    metrics::gauge!("elicit_deliveries_pending").set(float(sum(|count| count.pending)));
    metrics::gauge!("elicit_deliveries_parked").set(float(sum(|count| count.parked)));
    for (agent, [pending, parked]) in by_agent(&api, deliveries) {
        metrics::gauge!(AGENT_PENDING, "agent" => agent.clone()).set(float(pending));
        metrics::gauge!(AGENT_PARKED, "agent" => agent).set(float(parked));
    }
    api.metrics.run_upkeep();
    let text = api.metrics.render();
    Ok((
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response())
}

/// What is pending and parked of each agent: of all that have a webhook, so that a 0 is told too,
/// and of those that had deliveries once, which may be in the configuration no more.
fn by_agent(api: &Api, counts: Vec<DeliveryCount>) -> BTreeMap<String, [u64; 2]> {
    let mut shown = api.shown.lock().unwrap_or_else(PoisonError::into_inner);
    shown.extend(counts.iter().map(|count| count.origin.clone()));
    let agents = api.service.config().agents.iter();
    let agents = agents.filter(|(_, agent)| agent.webhook.is_some());
    let none = agents.map(|(id, _)| id).chain(shown.iter());
    let mut all: BTreeMap<String, [u64; 2]> = none.map(|agent| (agent.clone(), [0; 2])).collect();
    for count in counts {
        all.insert(count.origin, [count.pending, count.parked]);
    }
    all
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
