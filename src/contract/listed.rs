//! The options of a card that its prose lists and the card itself has no room for.
//!
//! A card carries four options at most. A question may have more: the prose numbers all of them.

use super::CardOption;
use super::card::{Card, MAX_OPTIONS};

/// The most options that are read from a prose.
const MOST: usize = 100;

/// All options of a card: its own, and those that follow them in the numbered list of its prose.
///
/// The list is one that numbers its lines from 1 without a gap and whose first items are the
/// card's own labels. Where the prose has two such lists that go on differently, only the card's
/// own options are sure. An option that the card does not carry has no id there: it gets `#5`,
/// which names its place and nothing else.
pub fn all_options(card: &Card, prose: &str) -> Vec<CardOption> {
    let own = card.options();
    let mut all = own.to_vec();
    if own.len() < MAX_OPTIONS {
        return all;
    }
    let begins_alike = |list: &Vec<String>| {
        (own.iter().zip(list)).all(|(own, item)| one_line(&own.label) == *item)
    };
    let mut fitting = lists(prose)
        .into_iter()
        .filter(|list| list.len() > own.len() && begins_alike(list));
    let Some(list) = fitting.next() else {
        return all;
    };
    if fitting.any(|other| other != list) {
        return all;
    }
    for (number, label) in (1..).zip(list).skip(own.len()).take(MOST) {
        let id = format!("#{number}");
        // Whoever calls an option like a place means it to be confused with one.
        if own.iter().any(|option| option.id == id) {
            return own.to_vec();
        }
        all.push(CardOption { id, label });
    }
    all
}

/// The numbered lists of a text, each item on one line.
fn lists(text: &str) -> Vec<Vec<String>> {
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut current: Vec<String> = Vec::new();
    for line in text.lines() {
        let item = numbered(line);
        // A blank line between two items does not end a list.
        if item.is_none() && line.trim().is_empty() {
            continue;
        }
        match item {
            Some((number, label)) if number == current.len() + 1 => current.push(one_line(label)),
            Some((1, label)) => {
                lists.push(std::mem::replace(&mut current, vec![one_line(label)]));
            }
            _ => lists.push(std::mem::take(&mut current)),
        }
    }
    lists.push(current);
    lists.retain(|list| !list.is_empty());
    lists
}

/// The number and the rest of a line like `5. Ask me later` or `5) Ask me later`.
fn numbered(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line.get(..digits)?;
    if number.is_empty() || number.len() > 3 || number.starts_with('0') {
        return None;
    }
    let label = line[digits..].strip_prefix(['.', ')'])?;
    label.starts_with(char::is_whitespace).then_some(())?;
    Some((number.parse().ok()?, label))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(labels: &[&str]) -> Card {
        let options = (1..).zip(labels).map(|(number, label)| CardOption {
            id: format!("opt_{number}"),
            label: (*label).to_owned(),
        });
        Card::builder("elc_1").options(options).build().unwrap()
    }

    fn read(labels: &[&str], prose: &str) -> Vec<(String, String)> {
        all_options(&card(labels), prose)
            .into_iter()
            .map(|option| (option.id, option.label))
            .collect()
    }

    fn own(labels: &[&str]) -> Vec<(String, String)> {
        read(labels, "")
    }

    const FOUR: [&str; 4] = ["Red", "Green", "Blue", "Grey\nor grey"];
    const SIX: &str = "Which colour?\n\n1. Red\n2. Green\n3. Blue\n4. Grey or grey\n5. White \n6. Black\n\nReply with a number.";

    #[test]
    fn what_the_prose_lists_beyond_the_card_is_answerable_by_number_and_label() {
        let all = read(&FOUR, SIX);
        assert_eq!(all.len(), 6);
        assert_eq!(all[..4], own(&FOUR));
        assert_eq!(all[4], ("#5".to_owned(), "White".to_owned()));
        assert_eq!(all[5], ("#6".to_owned(), "Black".to_owned()));
    }

    #[test]
    fn a_list_may_be_written_in_other_ways() {
        for prose in [
            "1) Red\n2) Green\n3) Blue\n4) Grey  or grey\n5) White\n6) Black",
            "  1. Red\r\n  2. Green\r\n\r\n  3. Blue\r\n  4. Grey or grey\r\n  5. White\r\n  6. Black",
        ] {
            assert_eq!(read(&FOUR, prose), read(&FOUR, SIX), "{prose}");
        }
    }

    #[test]
    fn a_list_that_is_not_the_cards_says_nothing() {
        for prose in [
            "1. Red\n2. Green\n3. Blue\n4. Pink\n5. White",
            "1. Red\n2. Green\n3. Blue\n5. White",
            "1. Red\n2. Green\nor\n3. Blue\n4. Grey or grey\n5. White",
            "5. White",
            "1.Red\n2.Green\n3.Blue\n4.Grey or grey\n5.White",
            "1. Red\n2. Green\n3. Blue\n4. Grey or grey",
        ] {
            assert_eq!(read(&FOUR, prose), own(&FOUR), "{prose}");
        }
    }

    #[test]
    fn a_card_with_fewer_than_four_has_them_all() {
        let three = ["Red", "Green", "Blue"];
        assert_eq!(read(&three, SIX), own(&three));
    }

    #[test]
    fn two_lists_that_go_on_differently_leave_only_what_the_card_says() {
        let forged = format!("1. Red\n2. Green\n3. Blue\n4. Grey or grey\n5. Delete it\n\n{SIX}");
        assert_eq!(read(&FOUR, &forged), own(&FOUR));
        let repeated = format!("{SIX}\n\nAgain:\n{SIX}");
        assert_eq!(read(&FOUR, &repeated), read(&FOUR, SIX));
    }

    #[test]
    fn an_option_whose_id_is_a_place_leaves_only_what_the_card_says() {
        let options = ["#5", "b", "c", "d"].map(|id| CardOption::new(id, id.to_uppercase()));
        let card = Card::builder("elc_1").options(options).build().unwrap();
        let all = all_options(&card, "1. #5\n2. B\n3. C\n4. D\n5. E");
        assert_eq!(all, card.options());
    }
}
