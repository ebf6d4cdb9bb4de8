//! What can be known of a text when it arrives, whoever the room's people are.
//!
//! Almost all of a digest's work is done here, once a message: cleaning, links, the kind, the
//! key, what makes it spam by itself. What is left for the digest is who is named: people come,
//! go and opt out, so ids and `@names` stay as written until then.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::addresses::{has_listed_server, parts};
use super::clean::{clean, without_quotation};
use super::folded::{folded, match_text};
use super::greeting::Greeting;
use super::key::{Key, key};
use super::kind::{Asked, kind};
use super::letters::{EMOJI_STYLE, KEYCAP, is_asking_or_calling, is_emoji, is_wordly, takes_style};
use super::line_spam::{Looked, spam};
use super::people::{Named, People};
use super::pieces::{Piece, What, pieces};
use super::reduced::{How, Mention, Reduced};
use super::{Kind, Reason};

/// The version of [`Prepared`]: raised whenever [`prepare`] changes what it says of a text.
pub const VERSION: u32 = 2;

/// Who is named that is not to be shown.
const SOMEONE: &str = "@someone";

/// A message as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    /// The text: `body`, never `formatted_body`; of an edited message the latest edit's.
    pub body: &'a str,
    /// Whether it is an `m.emote`.
    pub emote: bool,
    /// Whether it is a reply: then the lines it begins with may quote someone else.
    pub reply: bool,
    /// What commands to the bot begin with, like `!`.
    pub prefix: &'a str,
}

/// What can be known of a line before the room's people are (digest.md, 4 to 9).
///
/// It is kept as JSON; its fields are nobody's but [`prepare`]'s and the digest's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    #[serde(rename = "v")]
    version: u32,
    /// The reduced text; people as they were written.
    #[serde(rename = "t")]
    text: String,
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    mentions: Vec<Mention>,
    /// Where `a link to …` stands in the text, in bytes.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    links: Vec<(u32, u32)>,
    #[serde(rename = "k")]
    key: Key,
    /// Which mentions the key depends on.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    key_mentions: Vec<u16>,
    #[serde(rename = "q")]
    kind: Kind,
    #[serde(rename = "g", default, skip_serializing_if = "Greeting::is_no")]
    greeting: Greeting,
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    only_links: bool,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    spam: Option<Reason>,
}

/// What is known of a text by itself. `None` when it is no line (digest.md, 3): a command to the
/// bot about agents, or nothing that says anything.
pub fn prepare(written: &Written<'_>) -> Option<Prepared> {
    let body = if written.reply {
        without_quotation(written.body)
    } else {
        written.body
    };
    let text = clean(body);
    if is_command(&text, written.prefix) || !says_anything(&text) {
        return None;
    }
    let pieces = pieces(&text);
    let reduced = Reduced::of(&text, &pieces);
    let linked_or_code = pieces
        .iter()
        .any(|piece| piece.code || matches!(piece.what, What::Link { .. }));

    // Without code and links; the same without people; and outside code.
    let in_words = |piece: &Piece| !piece.code && !matches!(piece.what, What::Link { .. });
    let is_plain = |piece: &Piece| piece.what == What::Plain;
    let is_person =
        |piece: &Piece| matches!(piece.what, What::Id(_) | What::Attached | What::Typed);
    let words = chosen(&text, &pieces, in_words);
    let nameless = chosen(&text, &pieces, |piece| in_words(piece) && !is_person(piece));
    let plain = chosen(&text, &pieces, is_plain);
    let written_outside_code = chosen(&text, &pieces, |piece| !piece.code);
    let shown = reduced.outside_code();

    let matched = match_text(&nameless);
    let links = pieces
        .iter()
        .filter(|piece| matches!(piece.what, What::Link { .. }))
        .count();
    let placed = reduced.with_placeholders();
    let placed_folded = folded(&placed);
    let (key, key_mentions) = key(&placed, &placed_folded);
    let spam = spam(&Looked {
        text: &text,
        words: &plain,
        shown: &shown,
        folded: &match shown {
            // No code, so only people are different, and no hook names one.
            Cow::Borrowed(_) => placed_folded.as_str().into(),
            Cow::Owned(ref shown) => Cow::<str>::Owned(folded(shown)),
        },
        written: &written_outside_code,
        matched: &matched,
        links,
        invites: pieces
            .iter()
            .any(|piece| matches!(piece.what, What::Link { invites: true, .. })),
    });
    let only_links = links > 0
        && pieces.iter().all(|piece| match piece.what {
            What::Link { .. } => true,
            What::Plain => !has_words(&text[piece.range.clone()]),
            _ => false,
        });
    let kind = kind(&Asked {
        words: &words,
        matched: &matched,
        linked_or_code,
        wordless: !has_words(&nameless),
        emote: written.emote,
    });
    let greeting = if linked_or_code {
        Greeting::No
    } else {
        Greeting::of(&matched)
    };
    Some(Prepared {
        version: VERSION,
        mentions: reduced.mentions,
        links: reduced.links,
        text: reduced.text,
        key,
        key_mentions,
        kind,
        greeting,
        only_links,
        spam,
    })
}

/// Makes the tables that [`prepare`] and the digest look things up in, before the first text comes.
pub fn make_ready() {
    // What needs most of them: a question, a link, somebody named, an emoji, a script of its own.
    let body = "hi all, why is https://ci.example.org/7 red, @mira? 🚀 سلام";
    let written = Written {
        body,
        emote: false,
        reply: false,
        prefix: "!",
    };
    let _ = prepare(&written);
}

impl Prepared {
    /// Whether [`prepare`] would still say the same of the text.
    pub fn is_current(&self) -> bool {
        self.version == VERSION
    }

    /// What it says, as far as it can be known without the room's people: equal where two texts say
    /// the same. A thumbs-up for a message counts only while its edits leave it so (digest.md, 9).
    /// Opaque; may be kept.
    pub fn said(&self) -> String {
        let mut said = format!("{:?}", self.key);
        for mention in self.key_mentions() {
            said.push('\n');
            said.push_str(&self.written(mention).to_lowercase());
        }
        said
    }

    /// By what it names people, as it was written, without the sign before it: localparts of ids,
    /// and names.
    pub fn named_by(&self) -> impl Iterator<Item = &str> {
        let written = self.mentions.iter().map(|mention| self.written(mention));
        written.map(|name| {
            let name = without_sign(name);
            name.split_once(':').map_or(name, |(local, _)| local)
        })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn spam(&self) -> Option<Reason> {
        self.spam
    }

    pub(super) fn is_only_links(&self) -> bool {
        self.only_links
    }

    /// Whether it is a greeting, whoever is there. `None`: it depends on who is.
    pub(super) fn greets_anyone(&self) -> Option<bool> {
        match self.greeting {
            Greeting::No => Some(false),
            Greeting::Yes => Some(true),
            Greeting::With(_) => None,
        }
    }

    /// Whether it is a greeting among these people.
    pub(super) fn greets(&self, people: &People<'_>) -> bool {
        self.greeting.among(|| people.names())
    }

    /// The key in a room of these people.
    pub(super) fn key(&self, people: &People<'_>) -> Key {
        if self.key_mentions.is_empty() {
            return self.key;
        }
        let names: Vec<_> = self
            .key_mentions()
            .map(|mention| self.compared(mention, people))
            .collect();
        self.key.with(names.iter().map(AsRef::as_ref))
    }

    /// How many are named outside code, at most.
    pub(super) fn named(&self) -> usize {
        self.mentions
            .iter()
            .filter(|mention| !mention.in_code)
            .count()
    }

    /// The user ids of those named outside code, as far as people are meant.
    pub(super) fn people_named<'a>(&'a self, people: &People<'a>) -> impl Iterator<Item = &'a str> {
        self.mentions
            .iter()
            .filter(|mention| !mention.in_code)
            .filter_map(|mention| {
                let written = self.written(mention);
                match mention.how {
                    How::Id => Some(people.id_of(written).unwrap_or(written)),
                    How::Attached => {
                        let end = people.id_at_start(written)?;
                        people.id_of(&written[..end])
                    }
                    How::Typed => people.id_of_name(without_sign(written)),
                }
            })
    }

    /// What is shown of the line in a room of these people, and where `a link to …` stands in it,
    /// in bytes.
    pub(super) fn rendered(&self, people: &People<'_>) -> (String, Vec<Range<usize>>) {
        let mut text = String::with_capacity(self.text.len());
        let mut links = Vec::new();
        let mut mentions = self.mentions.iter().peekable();
        let mut open_links = self
            .links
            .iter()
            .map(|&(start, end)| start as usize..end as usize)
            .peekable();
        let mut at = 0;
        // Links and mentions do not overlap, so both are met in order.
        loop {
            let mention = mentions.peek().map(|mention| mention.at as usize);
            let next = mention.unwrap_or(self.text.len());
            while let Some(link) = open_links.next_if(|link| link.end <= next) {
                let start = text.len() + (link.start.saturating_sub(at));
                links.push(start..start + link.len());
            }
            text.push_str(self.text.get(at..next).unwrap_or_default());
            let Some(mention) = mentions.next() else {
                return (text, links);
            };
            text.push_str(&self.shown(mention, people));
            at = next + mention.len as usize;
        }
    }

    fn key_mentions(&self) -> impl Iterator<Item = &Mention> {
        self.key_mentions
            .iter()
            .filter_map(|&place| self.mentions.get(usize::from(place)))
    }

    fn written(&self, mention: &Mention) -> &str {
        let start = mention.at as usize;
        let end = start.saturating_add(mention.len as usize);
        // Empty only in a text that `prepare` did not make.
        self.text.get(start..end).unwrap_or_default()
    }

    fn goes_on_with_slash(&self, mention: &Mention) -> bool {
        let end = mention.at.saturating_add(mention.len) as usize;
        self.text
            .get(end..)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// How someone named is compared: as shown, but whoever is not shown stays who they are, or
    /// two lines about two people would be one.
    fn compared<'a>(&'a self, mention: &Mention, people: &People<'a>) -> Cow<'a, str> {
        let shown = self.shown(mention, people);
        let written = self.written(mention);
        if !shown.starts_with(SOMEONE) || shown == written {
            return shown;
        }
        let meant = match mention.how {
            How::Id => people.id_of(written),
            How::Attached => people
                .id_at_start(written)
                .and_then(|end| people.id_of(&written[..end])),
            How::Typed => people.id_of_name(without_sign(written)),
        };
        format!("{shown}\n{}", meant.unwrap_or(written)).into()
    }

    /// How someone named is shown (digest.md, 5).
    fn shown<'a>(&'a self, mention: &Mention, people: &People<'a>) -> Cow<'a, str> {
        let written = self.written(mention);
        let someone = || SOMEONE.into();
        match mention.how {
            How::Id => match people.by_id(written) {
                Named::Shown(handle) => format!("@{handle}").into(),
                Named::Hidden => someone(),
                Named::Nobody => match addressed_without_blank(written) {
                    Some((name, rest)) => match people.by_name(name) {
                        Named::Shown(_) => written.into(),
                        Named::Hidden => format!("@someone:{rest}").into(),
                        Named::Nobody => someone(),
                    },
                    None => someone(),
                },
            },
            How::Attached => {
                // What follows an id does not make it another's: `hi@mira:example.org1`.
                let end = people.id_at_start(written);
                let (id, rest) = written.split_at(end.unwrap_or(written.len()));
                match people.by_id(id) {
                    Named::Shown(handle) => format!("@{handle}{rest}").into(),
                    Named::Hidden => format!("@someone{rest}").into(),
                    Named::Nobody if has_listed_server(written) => someone(),
                    Named::Nobody => written.into(),
                }
            }
            How::Typed => {
                let name = without_sign(written);
                let named = if !mention.in_code {
                    people.by_name(name)
                } else if self.goes_on_with_slash(mention) {
                    // `@scope/package`
                    Named::Nobody
                } else {
                    people.by_handle(name)
                };
                match named {
                    Named::Hidden => someone(),
                    Named::Shown(_) | Named::Nobody => written.into(),
                }
            }
        }
    }
}

/// `@mira:look`, typed without a blank, reads like an id. The name, and what follows the colon,
/// where that is no server as servers are called.
fn addressed_without_blank(written: &str) -> Option<(&str, &str)> {
    let (name, rest) = parts(written)?;
    let server = rest.contains(['.', ':', '[']) || rest.eq_ignore_ascii_case("localhost");
    (!server).then_some((name, rest))
}

fn without_sign(name: &str) -> &str {
    let mut chars = name.chars();
    chars.next();
    chars.as_str()
}

fn is_command(text: &str, prefix: &str) -> bool {
    let Some(rest) = text.strip_prefix(prefix) else {
        return false;
    };
    let word = "agents";
    rest.get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word))
        && !rest[word.len()..].starts_with(|c| is_wordly(c) || matches!(c, '-' | '_'))
}

fn says_anything(text: &str) -> bool {
    says_words(text) || text.contains(is_asking_or_calling)
}

/// A letter, a digit or an emoji.
fn says_words(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        // `#️⃣` is an emoji too.
        let keycap = c == KEYCAP && (takes_style(last) || last == EMOJI_STYLE);
        if keycap || is_wordly(c) || is_emoji(c, chars.peek().copied()) {
            return true;
        }
        last = c;
    }
    false
}

/// A letter or a digit that is no part of an emoji.
fn has_words(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !is_wordly(c) {
            continue;
        }
        let mut after = chars.clone();
        let follows = after.next();
        let keycap = [follows, after.next()].contains(&Some(KEYCAP))
            && matches!(follows, Some(EMOJI_STYLE | KEYCAP));
        if !keycap && !is_emoji(c, follows) {
            return true;
        }
    }
    false
}

/// The chosen parts of a text, a blank where others are left out.
fn chosen<'a>(text: &'a str, pieces: &[Piece], choose: impl Fn(&Piece) -> bool) -> Cow<'a, str> {
    if pieces.iter().all(&choose) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for piece in pieces {
        if choose(piece) {
            out.push_str(&text[piece.range.clone()]);
        } else {
            out.push(' ');
        }
    }
    out.into()
}
