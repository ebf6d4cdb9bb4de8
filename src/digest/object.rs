//! The digest as its contract has it.

use super::{Digest, Item, Kind};
use crate::clock::Millis;
use crate::contract::digest::{AgentDigest, DigestItem, InvalidDigest, ItemKind, Who};

/// What an agent is told of a stream (by its id, `ags_…`): what was said from `since` to `until`.
///
/// # Errors
/// When the id is none of a stream, or a moment is not [`WRITABLE`](crate::clock::WRITABLE). A
/// digest that [`digest`](super::digest) made of people with handles breaks no other rule.
pub fn object(
    stream_id: &str,
    since: Option<Millis>,
    until: Millis,
    digest: &Digest,
) -> Result<AgentDigest, InvalidDigest> {
    let items = digest.items.iter().map(item).collect::<Result<_, _>>()?;
    let (chars, truncated) = (digest.chars, digest.truncated);
    AgentDigest::new(stream_id, since, until, items, chars, truncated)
}

fn item(item: &Item) -> Result<DigestItem, InvalidDigest> {
    let kind = match item.kind {
        Kind::Question => ItemKind::Question,
        Kind::Suggestion => ItemKind::Suggestion,
        Kind::Reaction => ItemKind::Reaction,
    };
    let repeated = item.repeated.map(u64::from);
    let who = Who::new(&item.display_name, &item.handle)?;
    DigestItem::new(who, &item.what, kind, item.upvotes.into(), repeated)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ";

    fn digest() -> Digest {
        let item = |name: &str, what: &str, kind, upvotes, repeated| Item {
            display_name: name.to_owned(),
            handle: name.to_lowercase(),
            what: what.to_owned(),
            kind,
            upvotes,
            repeated,
        };
        let asked = "why is the test flaky?";
        Digest {
            items: vec![
                item("Mira", asked, Kind::Question, 3, None),
                item("Sam", "a link to github.com", Kind::Suggestion, 2, Some(2)),
                item("Lea", "yes!", Kind::Reaction, 0, None),
            ],
            chars: 66,
            truncated: true,
            dropped: super::super::Dropped::default(),
        }
    }

    #[test]
    fn everything_of_a_digest_is_in_its_object() {
        let object = object(STREAM, None, 1_793_959_500_000, &digest()).unwrap();
        assert_eq!(
            serde_json::to_value(object).unwrap(),
            serde_json::json!({
                "room": "agent:ags_01JAB2C3D4E5F6G7H8J9K0MNPQ",
                "since": null,
                "until": "2026-11-06T10:05:00.000Z",
                "chars": 66,
                "truncated": true,
                "items": [
                    {
                        "who": { "display_name": "Mira", "handle": "mira" },
                        "what": "why is the test flaky?", "kind": "question", "upvotes": 3,
                    },
                    {
                        "who": { "display_name": "Sam", "handle": "sam" },
                        "what": "a link to github.com", "kind": "suggestion", "upvotes": 2,
                        "repeated": 2,
                    },
                    {
                        "who": { "display_name": "Lea", "handle": "lea" },
                        "what": "yes!", "kind": "reaction", "upvotes": 0,
                    },
                ],
            })
        );
    }

    #[test]
    fn what_is_no_stream_has_no_object() {
        let refused = object("ags_1", None, 0, &digest()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "$.room must match ^agent:ags_[0-9A-HJKMNP-TV-Z]{26}$"
        );
    }
}
