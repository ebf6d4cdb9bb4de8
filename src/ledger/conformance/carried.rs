//! The questions of other carriers, and who hears of them.

use serde_json::json;

use super::boards::BOARD;
use super::{
    AGENT, NOON, ROOM, answer, changed, closed, draft, head, insert, news, post, question,
};
use crate::contract::CardOption;
use crate::elicitation::{Elicitation, Key, State};
use crate::ledger::{Ledger, Noticed, SendDraft, SendKind, Sending, Sought};

super::cases![
    an_agent_finds_its_own_and_what_is_routed_to_it,
    what_other_carriers_ask_is_found_by_its_id_alone,
    a_carriers_card_is_open_and_visible_from_the_start,
    a_pending_question_says_what_it_was_revised_to,
    somebody_elses_message_is_about_a_question_like_our_own,
    an_agent_lists_what_is_routed_to_it_and_nobody_lists_the_rest,
    a_redacted_text_is_gone_from_what_the_agent_was_told,
    what_waits_is_found_by_its_message_apart_from_what_was_said,
    a_reaction_is_no_message_about_a_question,
    the_unsent_cards_of_one_id_are_found_in_their_room,
];

const HUB: &str = "carrier:@hub:example.org";

/// An open question of a carrier, whose answer goes to an agent.
fn carried(ledger: &mut dyn Ledger, origin: &str, id: &str, to: Option<&str>) -> Elicitation {
    let open = changed(question(origin, id), |it| {
        it.question.asked_by = AGENT.to_owned();
        it.question.routed_to = to.map(str::to_owned);
        it.state = State::Open;
        it.event_id = Some(format!("$card_{id}"));
        it.visible = true;
    });
    insert(ledger, open)
}

fn keys(found: &[Elicitation]) -> Vec<&Key> {
    found.iter().map(Elicitation::key).collect()
}

fn an_agent_finds_its_own_and_what_is_routed_to_it(ledger: &mut dyn Ledger) {
    let routed = carried(ledger, HUB, "a", Some(AGENT));
    let observed = carried(ledger, HUB, "b", None);
    let boards = insert(ledger, question(BOARD, "c"));
    assert_eq!(ledger.find_of(AGENT, "a").unwrap(), Some(routed.clone()));
    for (agent, id) in [("agt_other", "a"), (AGENT, "b"), (AGENT, "c"), (AGENT, "d")] {
        assert_eq!(ledger.find_of(agent, id).unwrap(), None, "{agent} {id}");
    }
    assert_eq!(ledger.find(observed.key()).unwrap(), Some(observed));
    assert_eq!(ledger.find(boards.key()).unwrap(), Some(boards));
    // What it asked itself comes first.
    let own = insert(ledger, question(AGENT, "a"));
    assert_eq!(ledger.find_of(AGENT, "a").unwrap(), Some(own));
    // And what is over is still found.
    let over = closed(&routed, State::Answered, Some(answer("$x", None)));
    assert!(ledger.settle(&over).unwrap());
    let other = carried(ledger, HUB, "e", Some("agt_other"));
    assert_eq!(ledger.find_of("agt_other", "e").unwrap(), Some(other));
    assert_eq!(ledger.find(routed.key()).unwrap(), Some(over));
}

fn what_other_carriers_ask_is_found_by_its_id_alone(ledger: &mut dyn Ledger) {
    let first = carried(ledger, "carrier:@second:example.org", "a", None);
    let second = carried(ledger, HUB, "a", Some(AGENT));
    carried(ledger, HUB, "b", None);
    insert(ledger, question(BOARD, "a"));
    insert(ledger, question(AGENT, "a"));
    let over = closed(&first, State::Cancelled, None);
    assert!(ledger.settle(&over).unwrap());
    assert_eq!(ledger.carried_as("a").unwrap(), [over, second]);
    assert_eq!(ledger.carried_as("c").unwrap(), []);
}

fn a_carriers_card_is_open_and_visible_from_the_start(ledger: &mut dyn Ledger) {
    let open = carried(ledger, HUB, "a", None);
    assert_eq!(ledger.find(open.key()).unwrap(), Some(open.clone()));
    assert_eq!(ledger.visible_at(open.key()).unwrap(), Some(NOON));
    assert_eq!(ledger.open_in(ROOM).unwrap(), [open]);
    // What is to be put up yet is not.
    let queued = insert(ledger, question(AGENT, "b"));
    assert_eq!(ledger.visible_at(queued.key()).unwrap(), None);
}

fn a_pending_question_says_what_it_was_revised_to(ledger: &mut dyn Ledger) {
    let open = carried(ledger, HUB, "a", Some(AGENT));
    let other = carried(ledger, "carrier:@second:example.org", "a", None);
    let says_more = |it: &mut Elicitation| {
        it.question.prompt = "Which soup, if any?".to_owned();
        it.question.options.push(CardOption::new("none", "None"));
    };
    let revised = changed(open.clone(), says_more);
    assert!(ledger.revise(&revised.question).unwrap());
    assert_eq!(ledger.find(open.key()).unwrap(), Some(revised.clone()));
    assert_eq!(ledger.find(other.key()).unwrap(), Some(other));
    assert_eq!(ledger.find_of(AGENT, "a").unwrap(), Some(revised.clone()));

    let queued = insert(ledger, question(AGENT, "queued"));
    let before = changed(queued, says_more);
    assert!(ledger.revise(&before.question).unwrap());
    assert_eq!(ledger.find(before.key()).unwrap(), Some(before));

    let over = closed(&revised, State::Answered, Some(answer("$x", None)));
    assert!(ledger.settle(&over).unwrap());
    assert!(!ledger.revise(&open.question).unwrap());
    assert_eq!(ledger.find(open.key()).unwrap(), Some(over));
    assert!(!ledger.revise(&question(HUB, "unknown").question).unwrap());
}

fn somebody_elses_message_is_about_a_question_like_our_own(ledger: &mut dyn Ledger) {
    let open = carried(ledger, HUB, "a", None);
    let own = post(ledger, question(AGENT, "a"));
    for _ in 0..2 {
        ledger.note_about(open.key(), ROOM, "$x").unwrap();
        ledger.note_about(own.key(), ROOM, "$x").unwrap();
        ledger.note_about(open.key(), ROOM, "$y").unwrap();
    }
    let mut about = ledger.about(ROOM, "$x").unwrap();
    about.sort();
    assert_eq!(about, [own.key().clone(), open.key().clone()]);
    assert_eq!(ledger.about(ROOM, "$y").unwrap(), [open.key().clone()]);
    assert_eq!(ledger.about("!other:example.org", "$x").unwrap(), []);
    let mut events = ledger.events_about(open.key()).unwrap();
    events.sort();
    assert_eq!(events, ["$x", "$y"]);
    assert_eq!(ledger.events_about(own.key()).unwrap(), ["$x"]);
}

fn an_agent_lists_what_is_routed_to_it_and_nobody_lists_the_rest(ledger: &mut dyn Ledger) {
    let own = insert(ledger, question(AGENT, "own"));
    let routed = carried(ledger, HUB, "routed", Some(AGENT));
    carried(ledger, HUB, "observed", None);
    carried(ledger, HUB, "others", Some("agt_other"));
    insert(ledger, question(BOARD, "boards"));
    let list = |ledger: &mut dyn Ledger, owner: &str, below, limit| {
        let sought = Sought {
            owner: owner.to_owned(),
            state: None,
            room_id: None,
            below,
            limit,
        };
        ledger.list(&sought).unwrap()
    };
    let all = list(ledger, AGENT, None, 10);
    assert_eq!(keys(&all.elicitations), [routed.key(), own.key()]);
    assert_eq!(all.next, None);
    let first = list(ledger, AGENT, None, 1);
    assert_eq!(keys(&first.elicitations), [routed.key()]);
    let second = list(ledger, AGENT, first.next, 1);
    assert_eq!(keys(&second.elicitations), [own.key()]);
    for nobody in [HUB, BOARD, ""] {
        assert_eq!(list(ledger, nobody, None, 10).elicitations, []);
    }
}

fn a_redacted_text_is_gone_from_what_the_agent_was_told(ledger: &mut dyn Ledger) {
    let open = carried(ledger, HUB, "a", Some(AGENT));
    let secret = answer("$said", Some("a secret"));
    let answered = closed(&open, State::Answered, Some(secret));
    assert!(ledger.settle(&answered).unwrap());
    let mut told = news(&answered);
    assert_eq!(told.key, Key::new(AGENT, "a"));
    ledger.announce(&told, true, NOON).unwrap();
    // Another agent has something by the same id.
    let mut others = told.clone();
    others.key = Key::new("agt_other", "a");
    ledger.announce(&others, false, NOON).unwrap();

    ledger.forget_answer_text(answered.key()).unwrap();
    told.body["answer"]["text"] = json!(null);
    let events = ledger.events_after(AGENT, 0, 10).unwrap();
    let bodies: Vec<_> = events.into_iter().map(|event| event.body).collect();
    assert_eq!(bodies, [told.body.clone()]);
    let (due, _) = ledger.deliveries_due(AGENT, NOON, 10).unwrap();
    assert_eq!(due[0].event.body, told.body);
    let kept = ledger.events_after("agt_other", 0, 10).unwrap();
    assert_eq!(kept[0].body, others.body);
}

fn reaction(about: &Elicitation, kind: SendKind, to: &str) -> SendDraft {
    let mut reaction = draft(about, kind, "⏳");
    reaction.content["m.relates_to"] = json!({ "event_id": to, "rel_type": "m.annotation" });
    reaction
}

fn what_waits_is_found_by_its_message_apart_from_what_was_said(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(BOARD, "a"));
    let said =
        |ledger: &mut dyn Ledger, kind, event: &str| ledger.said_about(kind, ROOM, event).unwrap();
    ledger
        .send(&reaction(&open, SendKind::Reaction, "$said"), NOON)
        .unwrap();
    assert_eq!(said(ledger, SendKind::Waiting, "$said"), None);
    ledger
        .send(&reaction(&open, SendKind::Waiting, "$said"), NOON)
        .unwrap();
    ledger
        .send(&reaction(&open, SendKind::WaitingOver, "$said"), NOON)
        .unwrap();
    let waiting = said(ledger, SendKind::Waiting, "$said").unwrap();
    let expected = Noticed {
        seq: waiting.seq,
        key: open.key().clone(),
        event_id: None,
        untried: true,
    };
    assert_eq!(waiting, expected);
    assert_eq!(said(ledger, SendKind::Notice, "$said"), None);
    assert_eq!(said(ledger, SendKind::Waiting, "$other"), None);
    let elsewhere = ledger.said_about(SendKind::Waiting, "!other:example.org", "$said");
    assert_eq!(elsewhere.unwrap(), None);

    assert!(ledger.mark_sent(waiting.seq, "$hourglass").unwrap());
    let shown = said(ledger, SendKind::Waiting, "$said").unwrap();
    assert_eq!(shown.event_id.as_deref(), Some("$hourglass"));
    // Of two the latest, unless it was never shown.
    ledger
        .send(&reaction(&open, SendKind::Waiting, "$said"), NOON)
        .unwrap();
    let second = said(ledger, SendKind::Waiting, "$said").unwrap();
    assert!(second.seq > waiting.seq);
    ledger.drop_sending(second.seq, "forbidden").unwrap();
    assert_eq!(said(ledger, SendKind::Waiting, "$said"), Some(shown));
}

fn a_reaction_is_no_message_about_a_question(ledger: &mut dyn Ledger) {
    let open = post(ledger, question(BOARD, "a"));
    for (kind, event) in [
        (SendKind::Waiting, "$hourglass"),
        (SendKind::WaitingOver, "$redaction"),
        (SendKind::Reaction, "$check"),
    ] {
        ledger.send(&reaction(&open, kind, "$said"), NOON).unwrap();
        let row = head(ledger, &open).unwrap();
        assert_eq!(row.draft.kind, kind);
        assert!(ledger.mark_sent(row.seq, event).unwrap());
        assert_eq!(ledger.about(ROOM, event).unwrap(), [], "{kind:?}");
    }
}

fn the_unsent_cards_of_one_id_are_found_in_their_room(ledger: &mut dyn Ledger) {
    let agents = insert(ledger, question(AGENT, "a"));
    let boards = insert(ledger, question(BOARD, "a"));
    let other = insert(ledger, question(AGENT, "b"));
    let elsewhere = changed(question("board:brd_2", "a"), |it| {
        it.question.room_id = "!other:example.org".to_owned();
    });
    let elsewhere = insert(ledger, elsewhere);
    for about in [&agents, &boards, &other, &elsewhere] {
        let notice = draft(about, SendKind::Notice, "no card");
        ledger
            .send(&draft(about, SendKind::Card, "card"), NOON)
            .unwrap();
        ledger.send(&notice, NOON).unwrap();
    }
    let cards = |ledger: &mut dyn Ledger, room: &str, id: &str| -> Vec<Key> {
        let cards: Vec<Sending> = ledger.pending_cards(room, id).unwrap();
        assert!(cards.iter().all(|card| card.draft.kind == SendKind::Card));
        cards.into_iter().map(|card| card.draft.key).collect()
    };
    let both = [agents.key().clone(), boards.key().clone()];
    assert_eq!(cards(ledger, ROOM, "a"), both);
    assert_eq!(cards(ledger, ROOM, "c"), []);
    let there = cards(ledger, "!other:example.org", "a");
    assert_eq!(there, [elsewhere.key().clone()]);
    // One that is tried is still unsent; one that is sent or dropped is not.
    let row = ledger.pending_card(agents.key()).unwrap().unwrap();
    assert!(ledger.mark_attempted(row.seq, NOON).unwrap());
    assert_eq!(cards(ledger, ROOM, "a"), both);
    assert!(ledger.mark_sent(row.seq, "$card_a").unwrap());
    assert_eq!(cards(ledger, ROOM, "a"), [boards.key().clone()]);
    assert!(
        ledger
            .withdraw_unsent(SendKind::Card, boards.key())
            .unwrap()
    );
    assert_eq!(cards(ledger, ROOM, "a"), []);
}
