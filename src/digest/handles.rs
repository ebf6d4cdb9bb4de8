//! Handles: by what an agent names someone (digest.md, 11).

use icu_normalizer::DecomposingNormalizerBorrowed;
use sha2::{Digest, Sha256};

use super::letters::is_mark;

/// Names that mean someone else, or everyone.
pub(super) const RESERVED: [&str; 6] = ["everyone", "here", "room", "someone", "all", "agent"];

/// The most characters of a handle.
const LONGEST: usize = 32;
/// How many of them stay before what makes it one of its own.
const KEPT: usize = 23;
/// Hex digits that make it one of its own.
const DIGITS: usize = 8;

/// The handle for a new user, given which are gone already (digest.md, 11).
///
/// It fits `^[a-z0-9_]{2,32}$`, is not reserved, and is free. It is given once and never again to
/// anyone else: who calls this keeps it.
pub fn handle(user_id: &str, mut taken: impl FnMut(&str) -> bool) -> String {
    let plain = plain(user_id);
    let short = plain.len() < 2;
    if !short && !RESERVED.contains(&plain.as_str()) && !taken(&plain) {
        return plain;
    }
    let stem = if short {
        "user"
    } else {
        // ASCII, so every byte is a character.
        &plain[..plain.len().min(KEPT)]
    };
    let mut hash = Sha256::digest(user_id);
    loop {
        let number = hash
            .iter()
            .take(DIGITS / 2)
            .fold(0u32, |number, &byte| number << 8 | u32::from(byte));
        let handle = format!("{stem}_{number:0DIGITS$x}");
        if !taken(&handle) {
            return handle;
        }
        // Someone is called so already: on, the same way for everybody.
        hash = Sha256::digest(hash);
    }
}

/// The localpart, made to fit; it may be too short.
fn plain(user_id: &str) -> String {
    let id = user_id.strip_prefix('@').unwrap_or(user_id);
    let localpart = id.split(':').next().unwrap_or(id);
    let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_');
    if (2..=LONGEST).contains(&localpart.len()) && localpart.chars().all(fits) {
        return localpart.to_owned();
    }
    let apart = DecomposingNormalizerBorrowed::new_nfkd().normalize(localpart);
    let mut plain = String::new();
    for c in apart
        .chars()
        .filter(|&c| !is_mark(c))
        .flat_map(char::to_lowercase)
    {
        if fits(c) {
            plain.push(c);
        } else if !is_mark(c) && !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    let mut plain = plain.replace(' ', "_").trim_matches('_').to_owned();
    plain.truncate(LONGEST);
    plain
}
