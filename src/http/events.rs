//! `/v1/events`: the agent's own events as server-sent events.
//!
//! An event's `id:` is its id in the ledger, the same as on a webhook. A
//! listener that comes back with `Last-Event-ID` gets everything after it; one
//! that comes without gets what happens from now on, or, with `?from=start`,
//! everything that is kept. A restart of the service ends the stream; nothing
//! is lost by it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response, sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::sync::broadcast::Receiver;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::auth::Caller;
use super::elicitations::Parameters;
use super::query;
use super::{Api, ApiError};
use crate::delivery::{envelope, woken};
use crate::ledger::{Book, Event, LedgerError, Note};

const LAST_EVENT_ID: &str = "Last-Event-ID";
/// A comment this often keeps proxies from closing a quiet stream, and finds listeners that left.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// So many events are read at a time: a long backlog is not held in memory.
const BATCH: usize = 100;

/// `GET /v1/events`.
pub async fn listen(
    State(api): State<Api>,
    Caller(agent): Caller,
    Parameters(pairs): Parameters,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let [last, from] = query::read(pairs, ["last_event_id", "from"])?;
    // The header is the newer one: a browser adds it when it reconnects to the same address.
    let last = match headers.get(LAST_EVENT_ID) {
        Some(id) => Some(id.to_str().map_err(|_| ApiError::EventsExpired)?.to_owned()),
        None => last,
    };
    let last = last.filter(|id| !id.is_empty());
    let from_start = match from.as_deref() {
        None | Some("now") => false,
        Some("start") => true,
        Some(_) => return Err(ApiError::invalid("from", "must be `start` or `now`")),
    };
    let place = api.waiter()?;
    // Listening begins before reading: what is committed in between is seen by one or the other.
    let notes = api.service.book().notes();
    let after = match last {
        Some(id) => {
            let origin = agent.clone();
            let seq = api
                .service
                .book()
                .read(move |ledger| ledger.event_seq(&origin, &id))
                .await?;
            seq.ok_or(ApiError::EventsExpired)?
        }
        None if from_start => 0,
        None => {
            api.service
                .book()
                .read(|ledger| ledger.last_event_seq())
                .await?
        }
    };
    let feed = Feed {
        book: api.service.book().clone(),
        agent,
        after,
        ready: VecDeque::new(),
        notes,
        stopping: api.stopping.clone(),
        _place: place,
    };
    let stream = Sse::new(feed.stream()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Without this nginx collects the stream instead of passing it on.
    let unbuffered = (
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(([unbuffered], stream).into_response())
}

/// One listener: how far it is, and what wakes it.
struct Feed {
    book: Book,
    agent: String,
    after: i64,
    ready: VecDeque<Event>,
    notes: Receiver<Note>,
    stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Feed {
    fn stream(self) -> impl Stream<Item = Result<sse::Event, Infallible>> {
        // The first bytes show that the stream stands.
        let hello = sse::Event::default()
            .comment("listening")
            .retry(Duration::from_secs(1));
        let events = stream::unfold(self, async |mut feed| {
            let event = feed.next().await?;
            let frame = sse::Event::default()
                .id(event.id.as_str())
                .event(event.event_type.as_str())
                .data(envelope(&event));
            Some((frame, feed))
        });
        stream::once(async { hello }).chain(events).map(Ok)
    }

    /// The next event, when it comes. `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if *self.stopping.borrow() {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                self.after = event.seq;
                return Some(event);
            }
            match self.read().await {
                Ok(events) if events.is_empty() => {
                    if !self.woken().await {
                        return None;
                    }
                }
                Ok(events) => self.ready = events.into(),
                Err(error) => {
                    // The listener comes back and goes on where it was.
                    tracing::error!(
                        agent.id = %self.agent,
                        error = &error as &dyn std::error::Error,
                        "the event stream of {} ends: {error}",
                        self.agent
                    );
                    return None;
                }
            }
        }
    }

    async fn read(&self) -> Result<Vec<Event>, LedgerError> {
        let (agent, after) = (self.agent.clone(), self.after);
        self.book
            .read(move |ledger| ledger.events_after(&agent, after, BATCH))
            .await
    }

    /// Waits until there may be something new. `false` when the service is stopping.
    async fn woken(&mut self) -> bool {
        tokio::select! {
            open = woken(&mut self.notes, &self.agent) => open,
            _ = self.stopping.wait_for(|stopping| *stopping) => false,
        }
    }
}
