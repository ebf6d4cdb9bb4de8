//! Accepting connections, and letting them go.
//!
//! A connection has a limited time for the header of its next request, so that
//! one that says nothing, or says it slowly, is let go; sooner, if its place is
//! needed (see [`places`](super::places)). When the service stops,
//! nothing new is accepted, waiting readers and event streams end at once, and
//! whatever is still unanswered after [`GRACE`] is cut.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::places::{Limits, Place, Places};
use super::{router, waiting_router};
use crate::service::Service;

/// How long requests in hand may take to finish when the service stops.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the API until `stopping` becomes true or its sender is gone. `metrics` is the handle of
/// [`metrics_recorder`](super::metrics_recorder).
///
/// # Errors
/// None so far: what concerns one connection never ends the service.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    metrics: PrometheusHandle,
    stopping: watch::Receiver<bool>,
) -> io::Result<()> {
    serve_within(
        service,
        listener,
        metrics,
        stopping,
        Limits::of_this_process(),
    )
    .await;
    Ok(())
}

/// Serves the API within these limits.
pub(super) async fn serve_within(
    service: Arc<Service>,
    listener: TcpListener,
    metrics: PrometheusHandle,
    stopping: watch::Receiver<bool>,
    limits: Limits,
) {
    let routes = router(service, metrics, stopping.clone(), limits.waiters);
    accept(routes, listener, stopping, limits).await;
}

/// Serves what can be said while the homeserver is waited for, until `stopping` becomes true or its
/// sender is gone. `why` is what `/readyz` tells.
pub async fn serve_waiting(listener: TcpListener, why: String, stopping: watch::Receiver<bool>) {
    let limits = Limits::of_this_process();
    accept(waiting_router(&why), listener, stopping, limits).await;
}

/// Accepts connections until `stopping` becomes true, then lets them finish for [`GRACE`].
pub(super) async fn accept(
    routes: Router,
    listener: TcpListener,
    mut stopping: watch::Receiver<bool>,
    limits: Limits,
) {
    let told = stopping.clone();
    let places = Places::new(limits.connections);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (place, accepted) = async {
                // Without a place nothing is accepted.
                let place = places.take().await;
                (place, listener.accept().await)
            } => match accepted {
                Ok((stream, peer)) => {
                    let routes = routes.clone();
                    let stopping = told.clone();
                    connections.spawn(async move {
                        converse(routes, stream, peer, stopping, limits.header, place).await;
                    });
                }
                Err(error) => {
                    places.make_room();
                    pause_after(&error).await;
                }
            },
            Some(ended) = connections.join_next() => note_panic(ended),
            () = stop(&mut stopping) => break,
        }
    }
    drop(listener);
    let finished = async {
        while let Some(ended) = connections.join_next().await {
            note_panic(ended);
        }
    };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        tracing::debug!("{} connections were cut", connections.len());
        connections.shutdown().await;
    }
}

/// Returns when `stopping` is true or its sender is gone.
async fn stop(stopping: &mut watch::Receiver<bool>) {
    // Without a sender nobody could say stop any more.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Serves one connection to its end.
async fn converse(
    routes: Router,
    stream: TcpStream,
    peer: SocketAddr,
    mut stopping: watch::Receiver<bool>,
    header_time: Duration,
    place: Place,
) {
    // Events are small and wanted at once. A socket without the option works too.
    let _ = stream.set_nodelay(true);
    let routes = TowerToHyperService::new(routes);
    let place = Arc::new(place);
    place.idle();
    let its_place = Arc::clone(&place);
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        // Sent away before this request came, so nothing of it is done.
        let answer = its_place.busy().then(|| routes.call(request));
        let place = Arc::clone(&its_place);
        async move {
            let Some(answer) = answer else {
                return std::future::pending().await;
            };
            let response = answer.await?;
            // An answer without a known end is a stream, which stays.
            if response.body().size_hint().exact().is_some() {
                place.idle();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stop(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = place.sent_away() => return,
    };
    if let Err(error) = outcome {
        tracing::trace!(
            error = &error as &dyn std::error::Error,
            "a connection ended early"
        );
    }
}

/// A caller who left before being accepted is nobody's trouble; anything else, like too many open
/// files, passes with time.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        return;
    }
    tracing::error!(
        error = error as &dyn std::error::Error,
        "accepting a connection failed"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a request ended in a panic"
        );
    }
}
