//! What may stand before the reply proper: the plain reply fallback, a mention
//! of the bot, a card tag.

use super::target::Bot;
use super::text;

/// A mention taken off the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mention<'a> {
    /// What follows it.
    pub(crate) rest: &'a str,
    /// Whether it plainly addresses the bot: its user id, or its name with `:` or
    /// `,`. A name that is only followed by a blank may be an ordinary word.
    pub(crate) addresses: bool,
}

/// The body without the quoted lines that a rich reply begins with, for clients that
/// know no replies, and without the blank line after them.
pub fn without_fallback(body: &str) -> &str {
    let mut rest = body;
    let mut quoted = false;
    loop {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with("> ") || line == ">" {
            quoted = true;
            rest = after;
            if !rest.is_empty() {
                continue;
            }
        } else if quoted && line.trim().is_empty() {
            rest = after;
        }
        return rest;
    }
}

/// Takes off a leading mention of the bot: its user id (or a link to it), its
/// display name or its localpart, the longest that fits.
pub(crate) fn without_mention<'a>(body: &'a str, bot: &Bot<'_>) -> Option<Mention<'a>> {
    let text = text::trim_unseen_start(body);
    if let Some(after) = after_user_id(text, bot.user_id) {
        return Some(Mention {
            rest: after_mark(after).0,
            addresses: true,
        });
    }
    let localpart = bot
        .user_id
        .strip_prefix('@')
        .and_then(|id| id.split(':').next());
    let (text, as_id) = match text.strip_prefix('@') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let after = [bot.display_name, localpart]
        .into_iter()
        .flatten()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .filter_map(|name| after_name(text, name))
        // `@elicit:elsewhere.org` is somebody else.
        .filter(|after| !(as_id && is_server_part(after)))
        .min_by_key(|after| after.len())?;
    let (rest, marked) = after_mark(after);
    Some(Mention {
        rest,
        addresses: marked,
    })
}

/// What follows a leading tag, which is a word of its own, with an optional `:` or `,`.
pub(crate) fn after_tag<'a>(body: &'a str, tag: &str) -> Option<&'a str> {
    let text = text::trim_unseen_start(body);
    let mut expected = tag.chars();
    let mut at = 0;
    for c in text.chars() {
        let Some(wanted) = expected.next() else { break };
        let same = match text::digit(c) {
            Some(value) => char::from(b'0' + value) == wanted,
            None => c.eq_ignore_ascii_case(&wanted),
        };
        if !same {
            return None;
        }
        at += c.len_utf8();
    }
    let after = text.get(at..)?;
    (at > 0 && expected.next().is_none() && ends_word(after)).then(|| after_mark(after).0)
}

fn after_user_id<'a>(text: &'a str, user_id: &str) -> Option<&'a str> {
    if let Some(after) = after_name(text, user_id) {
        return Some(after);
    }
    let after = match text.strip_prefix('[') {
        // A Markdown link, as some clients write a mention: [name](https://matrix.to/#/id).
        Some(link) => {
            let (name, target) = link.split_once("](")?;
            // More than a name is something that was said.
            if name.contains(['[', ']', '\n', '\r']) {
                return None;
            }
            after_link(target, user_id)?.strip_prefix(')')?
        }
        None => after_link(text, user_id)?,
    };
    ends_word(after).then_some(after)
}

fn after_link<'a>(text: &'a str, user_id: &str) -> Option<&'a str> {
    let id = text.strip_prefix("https://matrix.to/#/")?;
    let encoded = user_id.replace('@', "%40").replace(':', "%3A");
    prefix_in_any_case(id, user_id).or_else(|| prefix_in_any_case(id, &encoded))
}

fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    prefix_in_any_case(text, name).filter(|after| ends_word(after))
}

fn is_server_part(after: &str) -> bool {
    let server = after.strip_prefix(':').and_then(|rest| rest.chars().next());
    server.is_some_and(|c| !c.is_whitespace())
}

/// Whether a word that ended here was a whole one.
fn ends_word(after: &str) -> bool {
    after
        .chars()
        .next()
        .is_none_or(|c| c == ':' || c == ',' || c.is_whitespace())
}

/// What follows an optional `:` or `,`, and whether there was one.
fn after_mark(after: &str) -> (&str, bool) {
    let marked = after.strip_prefix([':', ',']);
    (marked.unwrap_or(after).trim_start(), marked.is_some())
}

/// What follows `prefix` in the text, case aside.
fn prefix_in_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let mut wanted = prefix.chars().flat_map(char::to_lowercase).peekable();
    let mut at = 0;
    for c in text.chars() {
        if wanted.peek().is_none() {
            break;
        }
        if !c.to_lowercase().all(|lower| wanted.next() == Some(lower)) {
            return None;
        }
        at += c.len_utf8();
    }
    wanted.peek().is_none().then(|| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fallback_and_the_blank_line_after_it_go() {
        let quoted = "> <@bot:example.org> 1. Red\n> 2. Green\n\n2";
        assert_eq!(without_fallback(quoted), "2");
        assert_eq!(without_fallback("> a\r\n>\r\n\r\nred"), "red");
        assert_eq!(without_fallback("> a\nred\n\n> b"), "red\n\n> b");
        assert_eq!(without_fallback("> a\n\n\nred"), "\nred");
        assert_eq!(without_fallback("> only this"), "");
        assert_eq!(without_fallback(">2"), ">2");
        assert_eq!(without_fallback("red"), "red");
        assert_eq!(without_fallback("\nred"), "\nred");
    }

    fn mention(text: &str) -> Option<(&str, bool)> {
        let bot = Bot {
            user_id: "@elicit:example.org",
            display_name: Some("Elicit Bot"),
        };
        without_mention(text, &bot).map(|mention| (mention.rest, mention.addresses))
    }

    #[test]
    fn a_leading_mention_goes_in_each_of_its_forms() {
        assert_eq!(mention("@elicit:example.org 2"), Some(("2", true)));
        assert_eq!(mention(" @Elicit:Example.org: 2"), Some(("2", true)));
        assert_eq!(mention("Elicit Bot: 2"), Some(("2", true)));
        assert_eq!(mention("elicit bot, 2"), Some(("2", true)));
        assert_eq!(mention("@Elicit Bot 2"), Some(("2", false)));
        assert_eq!(mention("elicit: bot 2"), Some(("bot 2", true)));
        assert_eq!(mention("elicit 2"), Some(("2", false)));
        assert_eq!(mention("elicit:2"), Some(("2", true)));
        assert_eq!(mention("@elicit:example.org"), Some(("", true)));
        let link = "[Elicit](https://matrix.to/#/@elicit:example.org) 2";
        assert_eq!(mention(link), Some(("2", true)));
        let encoded = "https://matrix.to/#/%40elicit%3Aexample.org: 2";
        assert_eq!(mention(encoded), Some(("2", true)));
    }

    /// Pain: fallback.
    #[test]
    fn a_longer_word_is_no_mention() {
        assert_eq!(mention("elicitation 2"), None);
        assert_eq!(mention("elicit's 2"), None);
        assert_eq!(mention("elicit-bot 2"), None);
        assert_eq!(mention("@elicit:example.org.evil 2"), None);
        assert_eq!(mention("@elicit:elsewhere.org: 2"), None);
        assert_eq!(mention("@elicit: 2"), Some(("2", true)));
        assert_eq!(mention("ask elicit: 2"), None);
        for more in ["[not 1], [", "[x] [", "[not this\n"] {
            let said = format!("{more}Elicit](https://matrix.to/#/@elicit:example.org) 2");
            assert_eq!(mention(&said), None, "{said}");
        }
    }

    #[test]
    fn a_tag_is_a_word_of_its_own() {
        assert_eq!(after_tag("q3 2", "q3"), Some("2"));
        assert_eq!(after_tag(" Q3: red", "q3"), Some("red"));
        assert_eq!(after_tag("q۳, red", "q3"), Some("red"));
        assert_eq!(after_tag("q3", "q3"), Some(""));
        assert_eq!(after_tag("q31 2", "q3"), None);
        assert_eq!(after_tag("q3-2", "q3"), None);
        assert_eq!(after_tag("q3?", "q3"), None);
        assert_eq!(after_tag("q", "q3"), None);
        assert_eq!(after_tag("", "q3"), None);
    }
}
