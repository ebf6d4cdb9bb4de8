//! A reply to a board's question: kept, handed in, and an answer only when the board has taken it.

use super::boards::{key, kinds};
use super::*;
use crate::elicitation::Outcome;
use crate::ledger::Submission;

/// The message that a reaction, a redaction of one or a notice is about.
fn meant(posted: &Posted) -> &str {
    posted.sending.draft.replies_to().unwrap_or_default()
}

/// Where something is to be sent.
fn room(posted: &Posted) -> &str {
    &posted.sending.draft.room_id
}

fn emoji(posted: &Posted) -> &Value {
    &posted.sending.draft.content["m.relates_to"]["key"]
}

fn option(submission: &Submission) -> (&str, &str) {
    let answer = &submission.answer;
    let option = answer.option.as_ref().expect("an option was named");
    (&answer.answered_by, &option.id)
}

impl House {
    /// Hands the one answer in that is due, and lets it end.
    async fn decide(&self, outcome: Outcome) {
        let submission = self.in_hand().await;
        self.ended(submission, outcome).await;
    }

    /// The one answer that is due, in hand now.
    async fn in_hand(&self) -> Submission {
        let mut due = self.due().await;
        assert_eq!(due.len(), 1);
        assert!(self.service.hand_in(due[0].seq).await.unwrap());
        due.remove(0)
    }

    async fn ended(&self, submission: Submission, outcome: Outcome) {
        self.service.handed_in(submission, outcome).await.unwrap();
    }

    async fn put_off(&self, submission: &Submission) {
        let until = clock::now() + 5_000;
        let why = "HTTP 503".to_owned();
        let put_off = self.service.put_off(submission, until, why);
        put_off.await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_is_an_answer_when_the_board_has_taken_it_and_no_sooner() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    let open = house.on_board("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    assert_eq!(house.on_board("e1").await, open);
    assert_eq!(kinds(&house.post().await), []);
    let due = house.due().await;
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].key, key("e1"));
    assert_eq!(option(&due[0]), ("@mira:x.org", "wait"));
    let by_service = house.service.submissions_due("brd_1", 10).await.unwrap();
    assert_eq!(by_service, (due.clone(), None));
    let elsewhere = house.service.submissions_due("brd_9", 10).await.unwrap();
    assert_eq!(elsewhere, (Vec::new(), None));

    house.decide(Outcome::Taken).await;
    let answered = house.on_board("e1").await;
    let expected = Elicitation {
        state: State::Answered,
        closed_at: answered.closed_at,
        answer: Some(due[0].answer.clone()),
        ..open
    };
    assert_eq!(answered, expected);
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::CardEdit, SendKind::Reaction]);
    assert!(posted[0].body().contains("✓ 2. Wait — @mira:x.org"));
    assert_eq!(emoji(&posted[1]), "✓");
    assert_eq!(
        posted[1].sending.draft.content["m.relates_to"]["event_id"],
        "$m1"
    );
    assert_eq!(house.due().await, []);
    // An end is told once, however often it comes.
    house.ended(due[0].clone(), Outcome::Taken).await;
    assert_eq!(house.on_board("e1").await, expected);
    assert_eq!(kinds(&house.post().await), []);
}

#[tokio::test]
async fn a_question_that_is_settled_there_is_closed_here_with_a_word_to_who_answered() {
    for (uncertain, words) in [
        (false, "was settled on the board before your answer came"),
        (true, "I cannot say whether it was yours"),
    ] {
        let mut house = House::with_boards().await;
        house.open_pushed("e1").await;
        house.hear(vec![mira("$m1", "2")]).await;
        house.decide(Outcome::Settled { uncertain }).await;
        let over = house.on_board("e1").await;
        assert_eq!((over.state, over.answer), (State::Cancelled, None));
        assert_eq!(over.reason.as_deref(), Some("settled on the board"));
        let posted = house.post().await;
        assert_eq!(kinds(&posted), [SendKind::CardEdit, SendKind::Notice]);
        assert_eq!(meant(&posted[1]), "$m1");
        assert!(posted[1].body().contains(words), "{}", posted[1].body());
        assert_eq!(house.due().await, []);
    }
}

#[tokio::test]
async fn every_refusal_has_its_words_and_leaves_the_question_to_be_answered() {
    let refused = Outcome::Refused {
        code: "STALE_LEASE".to_owned(),
    };
    let mut house = House::with_boards().await;
    let card = house.open_pushed("e1").await;
    let open = house.on_board("e1").await;
    for (at, outcome, words) in [
        (1, Outcome::Invalid, "does not take that as an answer"),
        (2, Outcome::SeparationOfDuties, "who asks may not answer"),
        (3, Outcome::UnknownPerson, "the board does not know you"),
        (4, Outcome::IdentityDown, "please try again in a while"),
        (5, refused, "(STALE_LEASE)"),
    ] {
        // Also when it is the same person: it may have been meant to end otherwise.
        let message = format!("$m{at}");
        house.hear(vec![mira(&message, "2")]).await;
        house.decide(outcome).await;
        assert_eq!(house.on_board("e1").await, open);
        let posted = house.post().await;
        assert_eq!(kinds(&posted), [SendKind::Notice]);
        assert_eq!(meant(&posted[0]), message);
        assert!(posted[0].body().contains(words), "{}", posted[0].body());
    }
    house.hear(vec![to(&card, ben("$b1", "1"))]).await;
    house.decide(Outcome::Taken).await;
    assert_eq!(house.on_board("e1").await.state, State::Answered);
}

#[tokio::test]
async fn words_of_their_own_are_handed_in_as_a_text() {
    let mut house = House::with_boards().await;
    let card = house.open_pushed("e1").await;
    house
        .hear(vec![to(&card, mira("$m1", "Not before Monday"))])
        .await;
    let due = house.due().await;
    assert_eq!(due[0].answer.option, None);
    assert_eq!(due[0].answer.text.as_deref(), Some("Not before Monday"));
}

#[tokio::test]
async fn that_it_takes_its_time_is_shown_once_and_is_gone_with_the_end() {
    for (outcome, last) in [
        (Outcome::Taken, vec![SendKind::CardEdit, SendKind::Reaction]),
        (Outcome::Invalid, vec![SendKind::Notice]),
    ] {
        let mut house = House::with_boards().await;
        house.open_pushed("e1").await;
        house.hear(vec![mira("$m1", "2")]).await;
        let first = house.in_hand().await;
        house.service.show_waiting(&first).await.unwrap();
        house.put_off(&first).await;
        let (due, next) = house.service.submissions_due("brd_1", 10).await.unwrap();
        assert_eq!(due, []);
        assert!(next.is_some_and(|at| at > clock::now()));
        let mut house = house.restart().await;
        let again = house.in_hand().await;
        assert_eq!((again.attempts, again.tried, again.waited), (1, true, true));
        house.put_off(&again).await;
        let shown = house.post().await;
        assert_eq!(kinds(&shown), [SendKind::Waiting]);
        assert_eq!((meant(&shown[0]), emoji(&shown[0])), ("$m1", &json!("⏳")));
        assert_eq!(house.on_board("e1").await.state, State::Open);

        house.decide(outcome).await;
        let over = house.attempt().await.unwrap();
        assert_eq!(over.draft.kind, SendKind::WaitingOver);
        let ended = house
            .service
            .said_before(SendKind::Waiting, &over.draft)
            .await;
        assert_eq!(ended.unwrap(), Some(shown[0].event_id.clone()));
        let posted = house.post().await;
        assert_eq!(kinds(&posted)[1..], last);
    }
}

#[tokio::test]
async fn who_answers_while_an_answer_is_handed_in_is_told_so_once() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house
        .hear(vec![mira("$m1", "2"), ben("$b1", "1"), ben("$b2", "1")])
        .await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Notice]);
    assert_eq!(meant(&posted[0]), "$b1");
    assert!(posted[0].body().contains("An answer of @mira:x.org"));
    let due = house.due().await;
    assert_eq!(due.len(), 1);
    assert_eq!(option(&due[0]), ("@mira:x.org", "wait"));
    // What Ben said then is no answer later.
    house.decide(Outcome::UnknownPerson).await;
    assert_eq!(house.due().await, []);
    house.post().await;
    house.hear(vec![ben("$b3", "1")]).await;
    assert_eq!(option(&house.due().await[0]), ("@ben:x.org", "deploy"));
}

#[tokio::test]
async fn a_look_leaves_what_is_in_hand_and_ends_what_is_not() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    let in_hand = house.in_hand().await;
    let look = async |house: &House| {
        let read_at = clock::now() + 1;
        let done = house.service.reconcile("brd_1", &[], read_at).await;
        done.unwrap().settled
    };
    assert_eq!(look(&house).await, 0);
    assert_eq!(house.on_board("e1").await.state, State::Open);
    house.put_off(&in_hand).await;
    // The board may have got it: nobody can say who settled it.
    assert_eq!(look(&house).await, 1);
    assert_eq!(house.on_board("e1").await.state, State::Cancelled);
    let posted = house.post().await;
    assert_eq!(
        kinds(&posted),
        [
            SendKind::Waiting,
            SendKind::WaitingOver,
            SendKind::CardEdit,
            SendKind::Notice
        ]
    );
    assert!(posted[3].body().contains("I cannot say whether"));
    assert!(!house.service.hand_in(in_hand.seq).await.unwrap());
    assert_eq!(house.due().await, []);

    let card = house.open_pushed("e2").await;
    house.hear(vec![to(&card, mira("$m2", "2"))]).await;
    assert_eq!(look(&house).await, 1);
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::CardEdit, SendKind::Notice]);
    assert!(posted[1].body().contains("before your answer came there"));
}

#[tokio::test]
async fn an_answer_whose_message_is_redacted_is_not_handed_in() {
    let mut house = House::with_boards().await;
    let card = house.open_pushed("e1").await;
    let secret = to(&card, mira("$m1", "a secret"));
    house.hear(vec![secret, redaction("$r1", "$m1")]).await;
    assert_eq!(house.due().await, []);
    assert_eq!(kinds(&house.post().await), []);
    assert_eq!(house.on_board("e1").await.state, State::Open);
    let path = house.folder.path().join("ledger.sqlite3");
    let kept = rusqlite::Connection::open(path).unwrap().query_row(
        "SELECT answer FROM submissions",
        [],
        |row| row.get::<_, String>(0),
    );
    assert!(!kept.unwrap().contains("a secret"));

    // One that the room was shown to wait for is not waited for any more.
    house.hear(vec![mira("$m2", "2")]).await;
    let in_hand = house.in_hand().await;
    house.put_off(&in_hand).await;
    house.hear(vec![redaction("$r2", "$m2")]).await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Waiting, SendKind::WaitingOver]);
    assert_eq!(meant(&posted[1]), "$m2");
    assert_eq!(house.due().await, []);
}

#[tokio::test]
async fn an_answer_that_is_redacted_in_hand_counts_without_its_text_if_the_board_has_it() {
    let mut house = House::with_boards().await;
    let card = house.open_pushed("e1").await;
    house.hear(vec![to(&card, mira("$m1", "a secret"))]).await;
    let in_hand = house.in_hand().await;
    house.hear(vec![redaction("$r1", "$m1")]).await;
    house.ended(in_hand, Outcome::Taken).await;
    let answered = house.on_board("e1").await;
    assert_eq!(answered.state, State::Answered);
    let answer = answered.answer.unwrap();
    assert_eq!((&*answer.answered_by, answer.text), ("@mira:x.org", None));
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::CardEdit, SendKind::Reaction]);
    assert!(!posted[0].body().contains("a secret"));
}

#[tokio::test]
async fn an_answer_that_is_redacted_in_hand_is_not_tried_again() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    let in_hand = house.in_hand().await;
    house.hear(vec![redaction("$r1", "$m1")]).await;
    house.put_off(&in_hand).await;
    assert_eq!(house.due().await, []);
    for outcome in [Outcome::Invalid, Outcome::Settled { uncertain: true }] {
        house.ended(in_hand.clone(), outcome).await;
    }
    assert_eq!(kinds(&house.post().await), []);
    assert_eq!(house.on_board("e1").await.state, State::Open);
}

#[tokio::test]
async fn who_answered_meanwhile_is_told_when_a_redacted_answer_was_taken_first() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    let redacted = house.in_hand().await;
    house
        .hear(vec![redaction("$r1", "$m1"), ben("$b1", "1")])
        .await;
    let bens = house.in_hand().await;
    assert_eq!(option(&bens), ("@ben:x.org", "deploy"));
    house.ended(redacted, Outcome::Taken).await;
    let answered = house.on_board("e1").await;
    house.post().await;
    let settled = Outcome::Settled { uncertain: false };
    house.ended(bens, settled).await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Notice]);
    assert_eq!(meant(&posted[0]), "$b1");
    assert!(posted[0].body().contains("before your answer came there"));
    assert_eq!(house.on_board("e1").await, answered);
}

#[tokio::test]
async fn what_the_board_has_taken_gets_its_tick_also_when_the_card_is_gone_meanwhile() {
    let mut house = House::with_boards().await;
    let card = house.open_pushed("e1").await;
    house
        .hear(vec![mira("$m1", "2"), redaction("$r1", &card)])
        .await;
    let over = house.on_board("e1").await;
    assert_eq!(over.state, State::Cancelled);
    house.decide(Outcome::Taken).await;
    let posted = house.post().await;
    assert_eq!(kinds(&posted), [SendKind::Reaction]);
    assert_eq!(emoji(&posted[0]), "✓");
    assert_eq!(house.on_board("e1").await, over);
}

#[tokio::test]
async fn what_was_said_before_an_upgrade_gets_its_signs_where_it_was_said() {
    let mut house = House::with_boards().await;
    let next = "!next:x.org";
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    let in_hand = house.in_hand().await;
    house.put_off(&in_hand).await;
    house.post().await;
    house.service.follow_upgrade(ROOM, next).await.unwrap();
    house.post().await;
    house.decide(Outcome::Taken).await;
    let posted = house.post().await;
    let mut sent: Vec<(&str, SendKind)> = posted.iter().map(|it| (room(it), it.kind())).collect();
    sent.sort_by_key(|(room, _)| *room == next);
    assert_eq!(
        sent,
        [
            (ROOM, SendKind::WaitingOver),
            (ROOM, SendKind::Reaction),
            (next, SendKind::CardEdit)
        ]
    );
    assert_eq!(house.on_board("e1").await.state, State::Answered);
}

#[tokio::test]
async fn what_a_dead_process_had_in_hand_is_handed_in_again() {
    let mut house = House::with_boards().await;
    house.open_pushed("e1").await;
    house.hear(vec![mira("$m1", "2")]).await;
    house.in_hand().await;
    assert_eq!(house.due().await, []);
    let house = house.restart().await;
    let again = house.due().await.remove(0);
    assert_eq!(option(&again), ("@mira:x.org", "wait"));
    assert!(again.tried && !again.in_hand);
}
