//! Which reactions are votes (digest.md, 9).

use super::letters::{EMOJI_STYLE, TEXT_STYLE};

/// Whether a reaction's key is a thumbs-up, of whatever skin tone and style.
pub fn is_thumbs_up(key: &str) -> bool {
    if matches!(key, "+1" | ":+1:" | ":thumbsup:") {
        return true;
    }
    let shaping = |c: &char| matches!(*c, EMOJI_STYLE | TEXT_STYLE | '\u{1F3FB}'..='\u{1F3FF}');
    let mut signs = key.chars().filter(|c| !shaping(c));
    signs.next() == Some('👍') && signs.next().is_none()
}
