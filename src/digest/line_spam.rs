//! What makes a line spam by itself, whoever wrote it (digest.md, 7).

use std::sync::LazyLock;

use regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

use super::Reason;
use super::folded::{folded, with_signs};
use super::letters::{KEYCAP, is_emoji, is_wordly, piles_up};
use super::lexicon::{self, LEXICON};

/// How many links make a line spam, and how many lines of one kind a person's.
pub(super) const MANY: usize = 5;
/// Marks piled up on one cluster.
const PILE: usize = 4;
/// Marks piled up on one cluster, of which one is enough.
const TOWER: usize = 8;
/// Clusters with a pile.
const PILES: usize = 3;
/// How many emoji make a wall.
const WALL: usize = 13;
/// How often one cluster may not be repeated.
const RUN: usize = 30;

/// What is looked at.
pub(super) struct Looked<'a> {
    /// The clean text.
    pub(super) text: &'a str,
    /// The text without links, ids and addresses.
    pub(super) words: &'a str,
    /// The reduced text outside code.
    pub(super) shown: &'a str,
    /// The clean text outside code, links as written.
    pub(super) written: &'a str,
    /// The match text of the text without code and links.
    pub(super) matched: &'a str,
    /// How many links there are.
    pub(super) links: usize,
    /// Whether one of them invites to a chat elsewhere.
    pub(super) invites: bool,
}

/// Why a line is spam by itself.
pub(super) fn spam(looked: &Looked<'_>) -> Option<Reason> {
    if looked.links >= MANY {
        Some(Reason::Links)
    } else if is_piled_up(looked.text) {
        Some(Reason::Marks)
    } else if is_wall_of_emoji(looked.words) {
        Some(Reason::Emoji)
    } else if runs_on(looked.shown) {
        Some(Reason::Run)
    } else if looked.invites {
        Some(Reason::Invite)
    } else if solicits(looked) {
        Some(Reason::Solicitation)
    } else {
        None
    }
}

fn is_piled_up(text: &str) -> bool {
    if text.is_ascii() || text.chars().filter(|&c| piles_up(c)).count() <= TOWER {
        return false;
    }
    let mut piles = 0;
    for cluster in text.graphemes(true) {
        let marks = cluster.chars().filter(|&c| piles_up(c)).count();
        if marks > TOWER {
            return true;
        }
        piles += usize::from(marks > PILE);
    }
    piles >= PILES
}

fn is_wall_of_emoji(words: &str) -> bool {
    let coloured =
        |c: char| !c.is_ascii() && (c == KEYCAP || is_emoji(c, Some(super::letters::EMOJI_STYLE)));
    if words.is_ascii() || words.chars().filter(|&c| coloured(c)).count() < WALL {
        return false;
    }
    let (mut emoji, mut wordly) = (0, 0);
    for cluster in words.graphemes(true) {
        if is_emoji_cluster(cluster) {
            emoji += 1;
        } else {
            wordly += cluster.chars().filter(|&c| is_wordly(c)).count();
        }
    }
    emoji >= WALL && emoji > wordly
}

/// Whether what a reader sees as one character is an emoji.
pub(super) fn is_emoji_cluster(cluster: &str) -> bool {
    let mut chars = cluster.chars();
    let Some(first) = chars.next() else {
        return false;
    };
    is_emoji(first, chars.next()) || (cluster.len() > 1 && cluster.ends_with(KEYCAP))
}

fn runs_on(shown: &str) -> bool {
    if shown.len() < RUN {
        return false;
    }
    if shown.is_ascii() {
        return longest_run(shown.bytes()) >= RUN;
    }
    // Clusters of one character each need no finding of clusters.
    let composite = shown
        .chars()
        .filter(|&c| piles_up(c) || is_part_of_a_cluster(c))
        .count();
    if composite < RUN && longest_run(shown.chars()) < RUN {
        return false;
    }
    longest_run(shown.graphemes(true)) >= RUN
}

/// Signs that one character is made of with others, roughly: too many of them cost time, no more.
fn is_part_of_a_cluster(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_ascii()
        || super::letters::is_mark(c)
        || matches!(c, '\u{1100}'..='\u{11FF}' | '\u{A960}'..='\u{A97F}' | '\u{D7B0}'..='\u{D7FF}')
        || matches!(c, '\u{E30}'..='\u{E3A}' | '\u{EB0}'..='\u{EBC}')
        || matches!(c, '\u{1F1E6}'..='\u{1F1FF}' | '\u{FF9E}' | '\u{FF9F}')
}

fn longest_run<T: PartialEq>(of: impl Iterator<Item = T>) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for item in of {
        run = if last.as_ref() == Some(&item) {
            run + 1
        } else {
            1
        };
        longest = longest.max(run);
        last = Some(item);
    }
    longest
}

static AMOUNT: LazyLock<Regex> =
    LazyLock::new(|| lexicon::pattern(&lexicon::WRITTEN.solicit.amount_regex));
static CONTACT: LazyLock<Regex> =
    LazyLock::new(|| lexicon::pattern(&lexicon::WRITTEN.solicit.contact_regex));

/// Three of the four: money, an amount, a way to be reached, a hook.
fn solicits(looked: &Looked<'_>) -> bool {
    let money = LEXICON.money.any_in(looked.matched);
    let hook = LEXICON.hook.is_match(&folded(looked.shown));
    if !money && !hook {
        return false;
    }
    let written = with_signs(looked.written);
    let amount = AMOUNT.is_match(&written);
    let classes = [money, hook, amount];
    let so_far = classes.into_iter().filter(|&class| class).count();
    so_far == 3 || (so_far == 2 && CONTACT.is_match(&written))
}
