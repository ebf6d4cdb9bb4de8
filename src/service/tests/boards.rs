//! What a board asks, whether it is pushed or found, and how it leaves the room again.

use super::*;
use crate::contract::board::Pending;
use crate::desk::Interest;
use crate::ledger::Submission;

/// One board in the room, and one for which a room is made.
pub(super) const BOARDS: &str = r#"
    [boards.brd_1]
    base_url = "https://board.x.org"
    agent_token = "kbn_a-token-of-the-bot-there"
    push_secrets = ["a-secret-of-the-board-1"]
    room = "!deploys:x.org"
    free_text = true
    people = { bearer = { "@mira:x.org" = "a-token-of-mira-there" } }
    [boards.brd_9]
    base_url = "https://board.x.org"
    agent_token = "kbn_a-token-of-the-bot-there"
    push_secrets = ["a-secret-of-the-board-9"]
    invite = ["@mira:x.org", "@ben:x.org"]
    people = { bearer = { "@mira:x.org" = "a-token-of-mira-there" } }
    [carriers."@hub:x.org"]
    answer = "route"
    "#;

const DROPPED: &str = "settled on the board";

pub(super) fn key(id: &str) -> Key {
    Key::of_board("brd_1", id)
}

/// A question as a board says it.
pub(super) fn entry(id: &str) -> Value {
    json!({
        "event": "elicitation.pending", "boardId": "brd_1", "cardId": format!("card_{id}"),
        "cardTitle": "Release", "elicitationId": id, "runId": "run_1", "stageKey": "build",
        "agentId": "agt_there", "question": format!("What about {id}?"),
        "options": [{ "id": "deploy", "label": "Deploy" }, { "id": "wait", "label": "Wait" }],
    })
}

/// The same question about a card, asked at a time.
fn about(id: &str, card_id: &str, asked_at: Option<&str>) -> Pending {
    let mut entry = entry(id);
    entry["cardId"] = json!(card_id);
    entry["ts"] = json!(asked_at);
    Pending::read(&entry).unwrap()
}

pub(super) fn kinds(posted: &[Posted]) -> Vec<SendKind> {
    posted.iter().map(Posted::kind).collect()
}

impl House {
    pub(super) async fn with_boards() -> Self {
        Self::with(BOARDS).await
    }

    pub(super) async fn push(&self, id: &str) -> Taken {
        let pending = Pending::read(&entry(id)).unwrap();
        self.service.take_pushed("brd_1", pending).await.unwrap()
    }

    /// A board's question is pushed, posted and seen. Gives its card's event.
    pub(super) async fn open_pushed(&mut self, id: &str) -> String {
        assert_eq!(self.push(id).await, Taken::New);
        let posted = self.post().await;
        let card = posted.last().expect("a card is posted");
        self.hear(vec![echo(card)]).await;
        card.event_id.clone()
    }

    pub(super) async fn on_board(&self, id: &str) -> Elicitation {
        let found = self.service.find(&key(id)).await.unwrap();
        found.expect("the board asked it")
    }

    /// What is to be handed in, now or ever.
    pub(super) async fn due(&self) -> Vec<Submission> {
        let origin = key("").origin;
        let due = self.service.book().read(move |ledger| {
            let (due, _) = ledger.submissions_due(&origin, Millis::MAX, 100)?;
            Ok::<_, LedgerError>(due)
        });
        due.await.unwrap()
    }

    async fn reconcile(&self, listed: &[Value]) -> Reconciled {
        // A moment later than everything that is here.
        let read_at = clock::now() + 1;
        let done = self.service.reconcile("brd_1", listed, read_at).await;
        done.unwrap()
    }
}

fn done(posted: usize, settled: usize, malformed: usize) -> Reconciled {
    Reconciled {
        posted,
        settled,
        malformed,
        not_posted: None,
    }
}

#[tokio::test]
async fn a_push_is_put_up_in_the_boards_room_and_no_agent_hears_of_it() {
    let mut house = House::with_boards().await;
    assert_eq!(house.push("e1").await, Taken::New);
    assert_eq!(house.service.interest(ROOM), Some(Interest::Pending));
    let queued = house.on_board("e1").await;
    assert_eq!(queued.state, State::Queued);
    assert_eq!(queued.question.room_id, ROOM);
    assert_eq!(queued.question.asked_by, "agt_there");
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Card]);
    assert!(posted[0].body().contains("What about e1?"));
    assert!(posted[0].body().contains("2. Wait"));
    house.hear(vec![echo(&posted[0])]).await;
    let open = Elicitation {
        state: State::Open,
        event_id: Some(posted[0].event_id.clone()),
        visible: true,
        ..queued
    };
    assert_eq!(house.on_board("e1").await, open);
    for agent in ["builder", "tester", "hooked", "agt_there"] {
        assert_eq!(house.events(agent).await, []);
        let found = house.service.find_of(agent, "e1").await.unwrap();
        assert_eq!(found, None, "{agent}");
    }
}

#[tokio::test]
async fn a_push_that_comes_again_or_twice_at_once_is_posted_once() {
    let mut house = House::with_boards().await;
    let (first, second) = tokio::join!(house.push("e1"), house.push("e1"));
    let mut came = [first, second];
    came.sort_by_key(|taken| *taken != Taken::New);
    assert_eq!(came, [Taken::New, Taken::Known]);
    assert_eq!(house.push("e1").await, Taken::Known);
    assert_eq!(kinds(&house.post().await), [SendKind::Card]);
    assert_eq!(house.push("e1").await, Taken::Known);
    let mut house = house.restart().await;
    assert_eq!(house.push("e1").await, Taken::Known);
    assert_eq!(house.reconcile(&[entry("e1")]).await, done(0, 0, 0));
    assert_eq!(kinds(&house.post().await), []);
    // Nor is it asked again once it is over, whatever the board still believes.
    house.reconcile(&[]).await;
    assert_eq!(kinds(&house.post().await), [SendKind::CardEdit]);
    assert_eq!(house.push("e1").await, Taken::Known);
    assert_eq!(house.reconcile(&[entry("e1")]).await, done(0, 0, 0));
    assert_eq!(kinds(&house.post().await), []);
    assert_eq!(house.on_board("e1").await.state, State::Cancelled);
}

#[tokio::test]
async fn what_a_push_asks_of_no_board_or_without_a_room_is_not_stored() {
    let house = House::with_boards().await;
    let why = async |board: &str| {
        let pending = Pending::read(&entry("e1")).unwrap();
        match house.service.take_pushed(board, pending).await {
            Err(BoardError::NoRoom(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why("brd_2").await, "there is no board brd_2");
    let not_ready = [
        (
            Ok(RoomFacts {
                joined: false,
                ..facts(ROOM)
            }),
            "the bot is not in !deploys:x.org: invite @elicit:x.org",
        ),
        (
            Ok(RoomFacts {
                may_send: false,
                ..facts(ROOM)
            }),
            "the bot may not send messages in !deploys:x.org: give @elicit:x.org the power to",
        ),
        (
            Err(RoomTrouble::Unknown(ROOM.to_owned())),
            "there is no room !deploys:x.org",
        ),
        (
            Err(RoomTrouble::Away("timed out".to_owned())),
            "the homeserver does not answer: timed out",
        ),
    ];
    for (found, expected) in not_ready {
        house.room(ROOM, found);
        assert_eq!(why("brd_1").await, expected);
        let expected = Reconciled {
            not_posted: Some(expected.to_owned()),
            ..Reconciled::default()
        };
        assert_eq!(house.reconcile(&[entry("e1")]).await, expected);
        assert_eq!(house.service.find(&key("e1")).await.unwrap(), None);
    }
    house.room(ROOM, Ok(facts(ROOM)));
    assert_eq!(house.push("e1").await, Taken::New);
    // What is here needs no room.
    house.room(ROOM, Err(RoomTrouble::Away("timed out".to_owned())));
    assert_eq!(house.push("e1").await, Taken::Known);
}

#[tokio::test]
async fn a_room_is_made_once_and_named_when_the_board_says_how() {
    let mut house = House::with_boards().await;
    house.room("!brd_9", Ok(facts("!brd_9")));
    let push = async |house: &House, id: &str, name: Option<&str>| {
        let mut entry = entry(id);
        entry["boardId"] = json!("brd_9");
        entry["boardName"] = json!(name);
        let pending = Pending::read(&entry).unwrap();
        house.service.take_pushed("brd_9", pending).await.unwrap()
    };
    let both = tokio::join!(push(&house, "e1", None), push(&house, "e2", None));
    assert_eq!(both, (Taken::New, Taken::New));
    house.service.name_board_room("brd_9").await.unwrap();
    let made = ["brd_9 None @mira:x.org @ben:x.org"];
    assert_eq!(*house.rooms.1.lock().unwrap(), made);
    let posted = house.post().await;
    assert_eq!(posted.len(), 2);
    let there = |it: &Posted| it.sending.draft.room_id == "!brd_9";
    assert!(posted.iter().all(there));

    let house = house.restart().await;
    push(&house, "e3", Some("Releases")).await;
    for _ in 0..2 {
        house.service.name_board_room("brd_9").await.unwrap();
    }
    // A name that is missing later names nothing.
    push(&house, "e4", None).await;
    house.service.name_board_room("brd_9").await.unwrap();
    push(&house, "e5", Some("Release")).await;
    house.service.name_board_room("brd_9").await.unwrap();
    assert_eq!(
        house.rooms.1.lock().unwrap()[1..],
        ["!brd_9 Releases None", "!brd_9 Release Some(\"Releases\")"]
    );
}

#[tokio::test]
async fn a_card_that_asks_again_supersedes_what_it_asked_before() {
    let mut house = House::with_boards().await;
    house.open_pushed("other").await;
    let push = async |house: &House, pending: Pending| {
        house.service.take_pushed("brd_1", pending).await.unwrap()
    };
    let (noon, later) = ("2026-12-01T12:00:00Z", "2026-12-01T12:00:01Z");
    assert_eq!(push(&house, about("e1", "c", None)).await, Taken::New);
    house.post().await;
    // In doubt the one that comes later is the newer one.
    assert_eq!(push(&house, about("e2", "c", Some(noon))).await, Taken::New);
    let over = house.on_board("e1").await;
    assert_eq!(over.state, State::Superseded);
    assert_eq!(over.reason.as_deref(), Some("asked again as e2"));
    assert_eq!(
        kinds(&house.post().await),
        [SendKind::CardEdit, SendKind::Card]
    );
    assert_eq!(
        push(&house, about("e3", "c", Some(later))).await,
        Taken::New
    );
    assert_eq!(house.on_board("e2").await.state, State::Superseded);
    house.post().await;
    // An older one comes late.
    let late = push(&house, about("e0", "c", Some(noon))).await;
    let why = "a newer question about its card is here";
    assert_eq!(late, Taken::Ignored(why));
    assert_eq!(house.service.find(&key("e0")).await.unwrap(), None);
    assert_eq!(kinds(&house.post().await), []);
    assert_eq!(house.on_board("e3").await.state, State::Open);
    assert_eq!(house.on_board("other").await.state, State::Open);
}

#[tokio::test]
async fn questions_about_no_card_do_not_supersede_each_other() {
    let house = House::with_boards().await;
    for id in ["e1", "e2"] {
        let taken = house.service.take_pushed("brd_1", about(id, "", None));
        assert_eq!(taken.await.unwrap(), Taken::New);
    }
    assert_eq!(house.on_board("e1").await.state, State::Queued);
}

#[tokio::test]
async fn a_question_whose_answer_is_being_handed_in_is_not_superseded() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "1")]).await;
    let again = house
        .service
        .take_pushed("brd_1", about("e2", "card_e1", None));
    assert_eq!(again.await.unwrap(), Taken::New);
    assert_eq!(house.on_board("e1").await.state, State::Open);
    assert_eq!(house.due().await.len(), 1);
}

#[tokio::test]
async fn a_look_posts_what_is_unknown_and_closes_what_is_no_longer_asked() {
    let mut house = House::with_boards().await;
    house.open_pushed("kept").await;
    house.open_pushed("gone").await;
    house.push("never seen").await;
    house.ask("builder", question("an agent's")).await.unwrap();
    let listed = [entry("new"), entry("kept"), entry("new")];
    assert_eq!(house.reconcile(&listed).await, done(1, 2, 0));
    for id in ["gone", "never seen"] {
        let over = house.on_board(id).await;
        assert_eq!(over.state, State::Cancelled);
        assert_eq!(over.reason.as_deref(), Some(DROPPED));
    }
    // A card that never left needs no last words.
    let posted = house.post().await;
    let sent = posted
        .iter()
        .map(|it| (it.kind(), it.sending.draft.key.id.as_str()));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [
            (SendKind::Card, "an agent's"),
            (SendKind::Card, "new"),
            (SendKind::CardEdit, "gone")
        ]
    );
    assert!(posted[2].body().contains("Settled on the board"));
    assert_eq!(house.on_board("kept").await.state, State::Open);
    assert_eq!(house.state("an agent's").await, State::Open);
    assert_eq!(house.reconcile(&listed).await, done(0, 0, 0));
}

#[tokio::test]
async fn what_came_after_the_board_was_read_is_not_taken_for_settled() {
    let house = House::with_boards().await;
    house.push("e1").await;
    let created_at = house.on_board("e1").await.question.created_at;
    let look = async |read_at| {
        house
            .service
            .reconcile("brd_1", &[], read_at)
            .await
            .unwrap()
    };
    assert_eq!(look(created_at - 1).await, done(0, 0, 0));
    assert_eq!(look(created_at).await, done(0, 0, 0));
    assert_eq!(house.on_board("e1").await.state, State::Queued);
    assert_eq!(look(created_at + 1).await, done(0, 1, 0));
    assert_eq!(house.on_board("e1").await.state, State::Cancelled);
}

#[tokio::test]
async fn an_entry_that_is_no_question_is_counted_and_settles_nothing_it_may_be() {
    let mut house = House::with_boards().await;
    for id in ["broken", "elsewhere", "gone"] {
        house.open_pushed(id).await;
    }
    let broken = json!({ "elicitationId": "broken", "boardId": "brd_1", "options": 7 });
    let mut elsewhere = entry("elsewhere");
    elsewhere["boardId"] = json!("brd_2");
    let listed = [broken, elsewhere, entry("new")];
    // One without a name may be any of them.
    let blank = json!({ "elicitationId": " ", "boardId": "brd_1" });
    for nameless in [
        json!({ "question": "?" }),
        json!("gone"),
        json!(null),
        blank,
    ] {
        let mut listed = listed.to_vec();
        listed.push(nameless);
        let found = house.reconcile(&listed).await;
        assert_eq!((found.settled, found.malformed), (0, 3));
        assert_eq!(house.on_board("gone").await.state, State::Open);
    }
    assert_eq!(house.on_board("new").await.state, State::Queued);
    assert_eq!(house.reconcile(&listed).await, done(0, 1, 2));
    for id in ["broken", "elsewhere"] {
        assert_eq!(house.on_board(id).await.state, State::Open, "{id}");
    }
    assert_eq!(house.on_board("gone").await.state, State::Cancelled);
}

#[tokio::test]
async fn what_could_not_be_put_before_anybody_is_asked_anew() {
    let mut house = House::with_boards().await;
    house.open_pushed("lost").await;
    house.push("refused").await;
    let card = house.attempt().await.unwrap();
    let refused = house.service.refused(card, "forbidden".to_owned());
    refused.await.unwrap();
    house
        .take_in(Batch {
            lost: vec![ROOM.to_owned()],
            ..Batch::default()
        })
        .await;
    for id in ["lost", "refused"] {
        assert_eq!(house.on_board(id).await.state, State::Undeliverable);
    }
    house.post().await;
    // By the next look, or by the next push.
    assert_eq!(house.reconcile(&[entry("lost")]).await, done(1, 0, 0));
    assert_eq!(house.push("refused").await, Taken::New);
    assert_eq!(kinds(&house.post().await), [SendKind::Card, SendKind::Card]);
    for id in ["lost", "refused"] {
        let again = house.on_board(id).await;
        assert_eq!((again.state, again.reason), (State::Open, None));
        assert_eq!(house.push(id).await, Taken::Known);
    }
}

#[tokio::test]
async fn a_board_whose_room_was_upgraded_asks_in_the_successor() {
    let mut house = House::with_boards().await;
    let next = "!next:x.org";
    house.open_pushed("e1").await;
    let moved = house.service.follow_upgrade(ROOM, next).await.unwrap();
    assert_eq!(moved, Some(1));
    // The room was found before its upgrade was known.
    assert_eq!(house.push("e2").await, Taken::New);
    assert_eq!(house.push("e1").await, Taken::Known);
    assert_eq!(house.service.interest(next), Some(Interest::Pending));
    let posted = house.post().await;
    let there: Vec<(&str, SendKind)> = posted
        .iter()
        .map(|it| (it.sending.draft.room_id.as_str(), it.kind()))
        .collect();
    assert_eq!(there, [(next, SendKind::Card), (next, SendKind::Card)]);
    for id in ["e1", "e2"] {
        let open = house.on_board(id).await;
        assert_eq!((open.state, &*open.question.room_id), (State::Open, next));
    }
}

#[tokio::test]
async fn whoever_waits_for_a_look_is_told_of_a_new_name_and_of_who_comes_in() {
    let house = House::with_boards().await;
    let look = async |board: &str| {
        let short = Duration::from_millis(20);
        let asked = house.service.asked_to_look(board);
        tokio::time::timeout(short, asked).await.is_ok()
    };
    // Which room it is, is not known yet.
    house.service.somebody_joined("!other:x.org");
    assert!(look("brd_1").await && !look("brd_1").await);
    house.push("e1").await;
    assert!(!look("brd_1").await);
    house.service.somebody_joined("!other:x.org");
    assert!(!look("brd_1").await);
    house.service.somebody_joined(ROOM);
    assert!(look("brd_1").await && !look("brd_1").await);
    for (name, expected) in [("Releases", true), ("Releases", false), ("Release", true)] {
        let mut entry = entry("e1");
        entry["boardName"] = json!(name);
        let pending = Pending::read(&entry).unwrap();
        house.service.take_pushed("brd_1", pending).await.unwrap();
        assert_eq!(look("brd_1").await, expected, "{name}");
    }
    assert!(!look("brd_2").await);
}
