//! What holds for every card: as JSON that comes in, and as one that is made.

use std::collections::HashSet;

use serde_json::Value;

use crate::contract::CardOption;
use crate::contract::card::{Card, CardError, MAX_OPTIONS, SCHEMA_VERSION};
use crate::contract::schema::{Contract, Layer, validate};

/// Takes JSON as a card that comes in; any other text is the lines of one that is made.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => comes_in(&value),
        Err(_) => is_made(&text),
    }
}

/// The reader and the schema give the same verdict, by the same layer, and what was read is
/// written and read again as itself.
fn comes_in(value: &Value) {
    let faults = validate(Contract::Card, value);
    let layers = |layer: Layer| faults.iter().any(|fault| fault.layer == layer);
    match Card::read(value) {
        Ok(card) => {
            assert_eq!(faults, [], "taken by the reader alone");
            stays_itself(&card);
            if card.schema_version() == SCHEMA_VERSION {
                assert_eq!(made_again(&card), Ok(card));
            }
        }
        Err(CardError::RepeatedId { first, again }) => {
            assert!(
                layers(Layer::Unique) && !layers(Layer::Schema),
                "{faults:?}"
            );
            assert!(first < again);
            let options = &value["options"];
            assert_eq!(options[first]["id"], options[again]["id"]);
        }
        Err(error) => assert!(layers(Layer::Schema), "{error}, but {faults:?}"),
    }
}

/// Whatever the builder makes is valid, and it refuses nothing else than what it says.
fn is_made(text: &str) {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let id = next();
    let builder = Card::builder(id.clone())
        .board_id(next())
        .card_id(next())
        .run_id(next())
        .stage_key(next())
        .card_title(next())
        .asked_by(next())
        .prompt(next())
        .deep_link(Some(next()).filter(|link| !link.is_empty()));
    let options: Vec<CardOption> = lines
        .map(|line| {
            let (id, label) = line.split_once('\t').unwrap_or((line, line));
            CardOption::new(id, label)
        })
        .collect();
    let unnamed = id.is_empty() || options.iter().any(|option| option.id.is_empty());
    let ids: HashSet<&str> = options.iter().map(|option| option.id.as_str()).collect();
    let repeated = ids.len() < options.len();
    match builder.options(options.clone()).build() {
        Ok(card) => {
            assert!(!unnamed && !repeated);
            let carried = options.len().min(MAX_OPTIONS);
            assert_eq!(card.options(), &options[..carried]);
            stays_itself(&card);
            assert_eq!(made_again(&card), Ok(card));
        }
        Err(CardError::Empty { .. }) => assert!(unnamed),
        Err(CardError::RepeatedId { first, again }) => {
            assert!(!unnamed && first < again);
            assert_eq!(options[first].id, options[again].id);
        }
        Err(other) => panic!("{other}"),
    }
}

/// Written, it is valid; read back, as a value or as text, it is the same.
fn stays_itself(card: &Card) {
    let written = serde_json::to_value(card).expect("a card can be written");
    assert_eq!(validate(Contract::Card, &written), []);
    assert_eq!(Card::read(&written).as_ref(), Ok(card));
    let text = serde_json::to_string(card).expect("a card can be written");
    let read: Card = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, *card);
}

fn made_again(card: &Card) -> Result<Card, CardError> {
    Card::builder(card.elicitation_id())
        .board_id(card.board_id())
        .card_id(card.card_id())
        .run_id(card.run_id())
        .stage_key(card.stage_key())
        .card_title(card.card_title())
        .asked_by(card.asked_by())
        .prompt(card.prompt())
        .options(card.options().to_vec())
        .deep_link(card.deep_link().map(str::to_owned))
        .build()
}
