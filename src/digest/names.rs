//! What people are called in a digest (digest.md, 11).

use unicode_segmentation::UnicodeSegmentation;

use super::clean::clean;
use super::cut::{ELLIPSIS, cut};
use super::folded::plain_letters;
use super::letters::piles_up;
use super::pieces::pieces;
use super::reduced::reduced_name;
use super::{LONGEST_NAME, Person};

/// The most marks on one cluster of a name.
const MOST_MARKS: usize = 2;

/// The name the room shows for someone, fit for a digest: their handle where there is none, or
/// where it holds what is nobody's business.
pub(super) fn display_name(person: &Person) -> String {
    let name = person.display_name.as_deref().unwrap_or_default();
    let name = without_piles(&clean(name));
    let handle = || person.handle.clone();
    if !can_be_seen(&name) || reaches_someone(&name) {
        return handle();
    }
    let (name, links) = reduced_name(&name);
    let name = cut(name, &links, LONGEST_NAME);
    if name == ELLIPSIS { handle() } else { name }
}

/// Whether a name holds an id or an e-mail address, in a link too, however wide its letters are.
fn reaches_someone(name: &str) -> bool {
    let holds_any = |name: &str| pieces(name).iter().any(|part| part.what.reaches_someone());
    holds_any(name) || (!name.is_ascii() && holds_any(&clean(&plain_letters(name))))
}

/// The name with at most two marks on a cluster.
fn without_piles(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let mut kept = String::with_capacity(name.len());
    for cluster in name.graphemes(true) {
        let mut marks = 0;
        for c in cluster.chars() {
            marks += usize::from(piles_up(c));
            if !piles_up(c) || marks <= MOST_MARKS {
                kept.push(c);
            }
        }
    }
    kept
}

/// Whether there is anything but blanks: the braille pattern without dots is one to the eye.
fn can_be_seen(name: &str) -> bool {
    name.contains(|c: char| c != ' ' && c != '\u{2800}')
}
