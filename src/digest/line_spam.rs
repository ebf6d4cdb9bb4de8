//! What makes a line spam by itself, whoever wrote it (digest.md, 7).

use std::sync::LazyLock;

use regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

use super::Reason;
use super::folded::with_signs;
use super::letters::{EMOJI_STYLE, KEYCAP, is_emoji, is_plain_letter, is_wordly, piles_up};
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
    /// The same folded.
    pub(super) folded: &'a str,
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
    let survey = Survey::of(looked.text);
    if looked.links >= MANY {
        Some(Reason::Links)
    } else if survey.marks > TOWER && is_piled_up(looked.text) {
        Some(Reason::Marks)
    } else if survey.emoji >= WALL && is_wall_of_emoji(looked.words) {
        Some(Reason::Emoji)
    } else if runs_on(looked.shown, survey.composing) {
        Some(Reason::Run)
    } else if looked.invites {
        Some(Reason::Invite)
    } else if solicits(looked) {
        Some(Reason::Solicitation)
    } else {
        None
    }
}

/// What there is at most: finding clusters costs time, and most lines need it not.
#[derive(Default)]
struct Survey {
    marks: usize,
    emoji: usize,
    /// Characters that may be parts of a cluster of several.
    composing: usize,
}

impl Survey {
    fn of(text: &str) -> Self {
        let mut survey = Self::default();
        if text.is_ascii() {
            return survey;
        }
        for c in text
            .chars()
            .filter(|&c| !c.is_ascii() && !is_plain_letter(c))
        {
            survey.composing += 1;
            survey.marks += usize::from(piles_up(c));
            survey.emoji += usize::from(c == KEYCAP || is_emoji(c, Some(EMOJI_STYLE)));
        }
        survey
    }
}

fn is_piled_up(text: &str) -> bool {
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

fn runs_on(shown: &str, composing: usize) -> bool {
    if shown.len() < RUN {
        return false;
    }
    if shown.is_ascii() {
        return longest_run(shown.bytes()) >= RUN;
    }
    // Without enough to compose them of, clusters in a row are characters in a row.
    if composing < RUN && longest_run(shown.chars()) < RUN {
        return false;
    }
    longest_run(shown.graphemes(true)) >= RUN
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
    let hook = LEXICON.hook.is_match(looked.folded);
    if !money && !hook {
        return false;
    }
    let written = with_signs(looked.written);
    let amount = AMOUNT.is_match(&written);
    let classes = [money, hook, amount];
    let so_far = classes.into_iter().filter(|&class| class).count();
    so_far == 3 || (so_far == 2 && CONTACT.is_match(&written))
}
