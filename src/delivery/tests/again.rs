//! What was parked and is asked for again.

use super::*;
use crate::ledger::ChosenDeliveries;

const ALL: ChosenDeliveries = ChosenDeliveries {
    event_ids: None,
    origins: None,
};

impl Office {
    /// Asks for everything again that is parked; gives the ids.
    async fn retry(&self) -> Vec<String> {
        let written = self
            .book
            .write(|ledger| ledger.retry_parked(&ALL, clock::now()));
        Result::<_, LedgerError>::unwrap(written.await)
    }
}

#[tokio::test]
async fn what_is_asked_for_again_is_delivered_at_once_under_its_id() {
    let receiver = Endpoint::answering([status(StatusCode::GONE), status(StatusCode::GONE)]);
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    let one = office.announce("builder", "e1", "one").await;
    office.counts(0, 1).await;
    let two = office.announce("builder", "e1", "two").await;
    office.counts(0, 2).await;
    assert_eq!(office.retry().await, [one.id.as_str(), two.id.as_str()]);
    let calls = receiver.wait_for(4).await;
    let ids: Vec<String> = calls.iter().map(Call::id).collect();
    assert_eq!(ids, [&one.id, &two.id, &one.id, &two.id].map(String::clone));
    assert_eq!(calls[0].body, calls[2].body);
    office.counts(0, 0).await;
    assert_eq!(office.retry().await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_asked_for_again_gets_its_whole_time_again() {
    let receiver = Endpoint::answering([
        status(StatusCode::INTERNAL_SERVER_ERROR),
        status(StatusCode::INTERNAL_SERVER_ERROR),
    ]);
    let office = Office::start(
        &[("builder", &receiver.serve().await)],
        "park_after = \"1h\"",
    )
    .await;
    let long_ago = clock::now() - 3_600_000;
    office.announce_at("builder", "e1", "old", long_ago).await;
    office.counts(0, 1).await;
    office.retry().await;
    // It fails once more, and is not parked for that.
    let calls = receiver.wait_for(3).await;
    let waited = calls[2].at - calls[1].at;
    assert!(waited >= Duration::from_millis(990), "{waited:?}");
    office.counts(0, 0).await;
}

#[tokio::test]
async fn what_is_asked_for_again_does_not_run_beside_what_is_newer() {
    let receiver = Endpoint {
        delay: Duration::from_millis(400),
        ..Endpoint::answering([status(StatusCode::GONE)])
    };
    let office = Office::start(&[("builder", &receiver.serve().await)], "").await;
    office.announce("builder", "e1", "older").await;
    office.counts(0, 1).await;
    office.announce("builder", "e1", "newer").await;
    receiver.wait_for(2).await;
    office.retry().await;
    let calls = receiver.wait_for(3).await;
    let words: Vec<String> = calls.iter().map(Call::word).collect();
    assert_eq!(words, ["older", "newer", "older"]);
    let waited = calls[2].at - calls[1].at;
    assert!(waited >= Duration::from_millis(390), "{waited:?}");
    office.counts(0, 0).await;
}
