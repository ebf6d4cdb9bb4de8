//! Links that invite to a chat elsewhere (digest.md, 7.8).

use std::sync::LazyLock;

use regex::Regex;
use url::Host;

use super::lexicon;
use super::links::decoded;

/// How much of a path is looked at, in characters: more than an invitation's needs.
const LOOKED_AT: usize = 64;

/// As the lexicon has it: on the link as it is written, right after its scheme and `www.`.
static AS_WRITTEN: LazyLock<Regex> =
    LazyLock::new(|| lexicon::pattern(&format!("^(?i:{})", lexicon::WRITTEN.invite_regex)));

/// On a plain host and path, whatever stands before its domain.
static AS_OPENED: LazyLock<Regex> = LazyLock::new(|| {
    lexicon::pattern(&format!(
        "^(?:[^/]*\\.)?(?i:{})",
        lexicon::WRITTEN.invite_regex
    ))
});

/// Whether a link invites: as it is written behind its scheme, or as a browser opens it, whatever
/// its writer put around the host and into the path.
pub(super) fn invites(behind: &str, host: Option<&Host>, path: &str) -> bool {
    let bare = match behind.get(..4) {
        Some(www) if www.eq_ignore_ascii_case("www.") => &behind[4..],
        _ => behind,
    };
    if AS_WRITTEN.is_match(bare) {
        return true;
    }
    let Some(Host::Domain(domain)) = host else {
        return false;
    };
    let mut opened = format!("{domain}/");
    let end = path.char_indices().nth(LOOKED_AT).map(|(at, _)| at);
    let head = &path[..end.unwrap_or(path.len())];
    for c in decoded(head).as_deref().unwrap_or(head).chars() {
        match c {
            '/' | '\\' | '／' if opened.ends_with('/') => {}
            '\\' | '／' => opened.push('/'),
            c => opened.push(c),
        }
    }
    AS_OPENED.is_match(&opened)
}
