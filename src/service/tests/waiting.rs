//! Waiting for a question to be over.

use std::time::Instant;

use super::*;

const LONG: Duration = Duration::from_mins(1);

fn e1() -> Key {
    Key::new("builder", "e1")
}

/// A wait that has begun.
fn waiting(house: &House) -> tokio::task::JoinHandle<Option<Elicitation>> {
    let service = house.service.clone();
    tokio::spawn(async move { service.wait(&e1(), LONG).await.unwrap() })
}

#[tokio::test]
async fn a_wait_ends_at_once_when_the_question_is_over() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let waiters = [waiting(&house), waiting(&house)];
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    house.hear(vec![mira("$m1", "1")]).await;
    for waiter in waiters {
        let found = soon(waiter).await.unwrap();
        assert_eq!(found, Some(house.found("e1").await));
        assert_eq!(found.unwrap().state, State::Answered);
    }
}

#[tokio::test]
async fn what_is_over_or_unknown_is_not_waited_for() {
    let mut house = House::start().await;
    assert_eq!(soon(house.service.wait(&e1(), LONG)).await.unwrap(), None);
    house.open_question("e1").await;
    house.hear(vec![mira("$m1", "1")]).await;
    let found = soon(house.service.wait(&e1(), LONG)).await.unwrap();
    assert_eq!(found.unwrap().state, State::Answered);
}

#[tokio::test]
async fn a_wait_ends_with_what_there_is_when_the_time_is_up() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let began = Instant::now();
    let at_most = Duration::from_millis(60);
    let found = soon(house.service.wait(&e1(), at_most)).await.unwrap();
    assert_eq!(found.unwrap().state, State::Open);
    assert!(began.elapsed() >= at_most);
}

#[tokio::test]
async fn a_wait_ends_with_what_there_is_when_the_process_ends() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let waiter = waiting(&house);
    tokio::time::sleep(Duration::from_millis(20)).await;
    house.stop.send_replace(true);
    let found = soon(waiter).await.unwrap();
    assert_eq!(found.unwrap().state, State::Open);
    // Nobody begins to wait then, either.
    let found = soon(house.service.wait(&e1(), LONG)).await.unwrap();
    assert_eq!(found.unwrap().state, State::Open);
}

#[tokio::test]
async fn the_end_of_another_question_wakes_nobody() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    house.ask("tester", question("e1")).await.unwrap();
    let waiter = waiting(&house);
    house
        .service
        .cancel(&Key::new("tester", "e1"))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiter.is_finished());
    house.service.cancel(&e1()).await.unwrap();
    soon(waiter).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_end_is_missed_whenever_it_comes() {
    let house = House::start().await;
    for round in 0..100_u64 {
        let id = format!("e{round}");
        house.ask("builder", question(&id)).await.unwrap();
        let key = Key::new("builder", id);
        let (service, waited) = (house.service.clone(), key.clone());
        let waiter = tokio::spawn(async move { service.wait(&waited, LONG).await.unwrap() });
        // The end comes before, while and after the first look.
        tokio::time::sleep(Duration::from_micros(round * 7 % 300)).await;
        house.service.cancel(&key).await.unwrap();
        let found = soon(waiter).await.unwrap();
        assert_eq!(found.unwrap().state, State::Cancelled, "round {round}");
    }
}

#[tokio::test]
async fn whoever_falls_behind_looks_again() {
    let mut house = House::start().await;
    house.open_question("e1").await;
    let waiter = waiting(&house);
    tokio::time::sleep(Duration::from_millis(20)).await;
    // In one commit, the end and more notes than are kept for anybody.
    let open = house.found("e1").await;
    let flood = house.service.book().write(move |ledger| {
        let closed = crate::desk::close(&open, State::Cancelled, None, None, clock::now());
        ledger::apply(ledger, &[closed], &|_| false, clock::now())?;
        for n in 0..3_000 {
            let event = crate::desk::EventDraft {
                urgent: false,
                key: Key::new(format!("agent{n}"), "e"),
                event_type: "elicitation.open".to_owned(),
                body: json!({}),
            };
            ledger.announce(&event, false, clock::now())?;
        }
        Ok::<_, LedgerError>(())
    });
    tokio::pin!(flood);
    tokio::select! {
        biased;
        _ = &mut flood => panic!("a commit takes a moment"),
        () = std::future::ready(()) => {}
    }
    // It has begun, and nobody can listen until it is over.
    std::thread::sleep(Duration::from_secs(1));
    flood.await.unwrap();
    let found = soon(waiter).await.unwrap();
    assert_eq!(found.unwrap().state, State::Cancelled);
}

#[tokio::test]
async fn a_wait_that_runs_out_tells_what_came_of_the_question_meanwhile() {
    let mut house = House::start().await;
    house.ask("builder", question("e1")).await.unwrap();
    let service = house.service.clone();
    let at_most = Duration::from_millis(500);
    let waiter = tokio::spawn(async move { service.wait(&e1(), at_most).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(20)).await;
    house.post().await;
    let found = soon(waiter).await.unwrap().unwrap();
    assert_eq!(found, house.found("e1").await);
    assert_eq!(found.state, State::Open);
}
