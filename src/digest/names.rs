//! What people are called in a digest (digest.md, 11).

use unicode_segmentation::UnicodeSegmentation;

use super::addresses;
use super::clean::clean;
use super::cut::cut;
use super::letters::piles_up;
use super::reduced::reduced_name;
use super::{LONGEST_NAME, Person};

/// The most marks on one cluster of a name.
const MOST_MARKS: usize = 2;

/// The name the room shows for someone, fit for a digest: their handle where there is none, or
/// where it holds what is nobody's business.
pub(super) fn display_name(person: &Person) -> String {
    let name = person.display_name.as_deref().unwrap_or_default();
    let name = without_piles(&clean(name));
    if !can_be_seen(&name) || addresses::holds_any(&name) {
        return person.handle.clone();
    }
    let (name, links) = reduced_name(&name);
    cut(name, &links, LONGEST_NAME)
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
