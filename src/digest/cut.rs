//! Texts cut to what the contract allows (digest.md, 10.2).

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::clean::clean;

/// What stands for the part of a text that is cut off.
pub(super) const ELLIPSIS: &str = "…";

/// The clean text, of at most so many characters: what does not fit is cut off between clusters,
/// never inside one of the phrases, and an ellipsis stands for it.
pub(super) fn cut(text: String, phrases: &[Range<usize>], most: usize) -> String {
    if text.len() <= most || text.chars().nth(most).is_none() {
        return text;
    }
    let mut end = 0;
    let mut chars = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        chars += cluster.chars().count();
        if chars >= most {
            break;
        }
        end = at + cluster.len();
    }
    if let Some(phrase) = phrases
        .iter()
        .find(|phrase| phrase.start < end && end < phrase.end)
    {
        end = phrase.start;
    }
    if end == 0 && phrases.first().is_none_or(|phrase| phrase.start > 0) {
        // One cluster is longer than all there is room for: a part of it says more than nothing.
        let room: String = text.chars().take(most - 1).collect();
        return format!("{}{ELLIPSIS}", clean(&room));
    }
    format!("{}{ELLIPSIS}", text[..end].trim_end_matches(' '))
}

/// How many characters a text has, as the contract counts them.
pub(super) fn length(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}
