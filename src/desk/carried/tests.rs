use super::*;
use crate::contract::CardOption;
use crate::elicitation::Source;

const NOW: Millis = 1_796_047_500_000;
const HUB: &str = "@hub:x.org";

fn card(labels: &[&str]) -> Carried {
    let options = (1..)
        .zip(labels)
        .map(|(number, label)| CardOption::new(format!("o{number}"), *label));
    let listed = (1..)
        .zip(labels)
        .map(|(number, label)| format!("\n{number}. {label}"));
    let body = format!("Which one?\n{}", listed.collect::<String>());
    Carried {
        card: Card::builder("elc_1")
            .asked_by("agt_31d0")
            .prompt("Which one?")
            .options(options)
            .build()
            .unwrap(),
        body,
        thread: None,
    }
}

fn asked(carried: &Carried) -> Elicitation {
    let tag = "q1".to_owned();
    from_carrier(
        HUB,
        carried,
        Some("agt_31d0".to_owned()),
        "!r:x.org",
        "$card",
        tag,
        NOW,
    )
}

#[test]
fn a_carriers_card_is_open_where_it_stands() {
    let open = asked(&card(&["Red", "Blue"]));
    assert_eq!(*open.key(), Key::of_carrier(HUB, "elc_1"));
    assert_eq!(open.question.source(), Source::Carrier);
    assert_eq!(open.question.owner(), Some("agt_31d0"));
    assert_eq!((open.state, open.visible), (State::Open, true));
    assert_eq!(open.event_id.as_deref(), Some("$card"));
    assert!(!open.question.free_text);
}

#[test]
fn a_card_without_options_is_answered_in_words() {
    assert!(asked(&card(&[])).question.free_text);
}

#[test]
fn the_prose_has_the_options_for_which_the_card_has_no_room() {
    let six = card(&["A", "B", "C", "D", "E", "F"]);
    assert_eq!(six.card.options().len(), 4);
    let options = asked(&six).question.options;
    assert_eq!(options.len(), 6);
    assert_eq!(options[5], CardOption::new("#6", "F"));
}

#[test]
fn an_edited_card_says_what_is_asked_now() {
    let open = asked(&card(&["Red", "Blue"]));
    assert_eq!(revised(&open, &card(&["Red", "Blue"])), None);
    let swapped = revised(&open, &card(&["Blue", "Red"])).unwrap();
    assert_eq!(swapped.options[0].label, "Blue");
    assert_eq!(swapped.key, open.question.key);
    assert_eq!(swapped.created_at, NOW);
}

#[test]
fn an_edit_that_names_another_question_changes_nothing() {
    let open = asked(&card(&["Red", "Blue"]));
    let other = Carried {
        card: Card::builder("elc_2").build().unwrap(),
        ..card(&[])
    };
    assert_eq!(revised(&open, &other), None);
}

#[test]
fn a_card_that_is_gone_closes_the_question_and_tells_its_agent() {
    let Change::Close {
        closed,
        edit,
        event,
    } = gone(&asked(&card(&["Red"])), NOW)
    else {
        panic!("it is not closed");
    };
    assert_eq!(closed.state, State::Cancelled);
    assert_eq!(edit, None);
    assert_eq!(event.unwrap().event_type, "elicitation.cancelled");
}
