//! What holds for every room and every text.

use proptest::prelude::*;

use super::super::clean::clean;
use super::super::folded::{by_the_book, folded, match_text};
use super::super::{
    Digest, LONGEST_NAME, LONGEST_WHAT, MOST_CHARS, MOST_ITEMS, Standing, Written, answers, handle,
    prepare,
};
use super::{AGENT, DAY, Room, SINCE, Said, UNTIL};
use crate::clock::Millis;

/// Who may be in a room: a Matrix id, a name, and a word that only they say.
const PEOPLE: [(&str, &str, &str); 8] = [
    ("@mira:example.org", "Mira", "wordofmira"),
    ("@Sam.K:b.example", "Sam", "wordofsam"),
    ("@x:localhost", "@x:localhost", "wordofx"),
    ("@علی:example.org", "علی", "wordofali"),
    (
        "@long_long_long_long_long_long_long_long:example.org",
        "L",
        "wordoflong",
    ),
    ("@mira:b.example:8448", "mira@b.example", "wordofother"),
    ("@here:example.org", "", "wordofhere"),
    (
        "@q=1/2:example.org",
        "Q\u{300}\u{301}\u{302}\u{303} https://a.example",
        "wordofq",
    ),
];

/// Text that comes near what the rules are about more often than chance would.
fn near_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "hi",
            "why",
            "is it",
            "nice",
            "haha",
            "please",
            "agent:",
            "C++",
            "1.2",
            "earn",
            "$500",
            "guaranteed",
            "dm me",
            "https://",
            "www.",
            "a.example/x",
            "github.com",
            "t.me/+x",
            "git@",
            ":repo",
            "matrix.to/#/",
            "matrix:u/",
            "%40",
            "(",
            ")",
            "`",
            "```",
            "@",
            "＠",
            "@mira",
            "@mira:example.org",
            "@Sam.K:b.example",
            "@x:localhost",
            "@علی:example.org",
            "@mira:b.example:8448",
            "@q=1/2:example.org",
            "@agent:example.org",
            "mail@b.example",
            "!agents",
            ">",
            "\n",
            "?",
            "!",
            ".",
            ",",
            "می\u{200C}شه",
            "چرا",
            "لطفاً",
            "\u{64B}",
            "هل",
            "为什么",
            "吗",
            "你好",
            "哈哈",
            "，",
            "\u{200B}",
            "\u{200D}",
            "\u{FE0F}",
            "\u{20E3}",
            "1",
            "👨\u{200D}👩\u{200D}👧",
            "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "🚀",
            "👍🏽",
            "🇩🇪",
            "e\u{301}",
            "\u{300}\u{301}\u{302}\u{303}\u{304}",
            "é",
            "İ",
            "ß",
            "ﷺ",
            "ﬁ",
            "½",
            "が",
            "한",
            "\u{1112}\u{1161}",
            "ё",
            "ς",
            "K",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,3}",
        any::<char>().prop_map(String::from),
        ("[a-zé ]{1,6}", 1..60usize).prop_map(|(text, times)| text.repeat(times)),
    ];
    prop::collection::vec((piece, prop::bool::ANY), 0..10).prop_map(|pieces| {
        let mut text = String::new();
        for (piece, blank) in pieces {
            text.push_str(&piece);
            text.push_str(if blank { " " } else { "" });
        }
        text
    })
}

fn standing() -> impl Strategy<Value = (Standing, Option<Millis>)> {
    let standing = prop::sample::select(vec![
        Standing::In,
        Standing::In,
        Standing::In,
        Standing::Banned,
        Standing::Muted,
        Standing::OptedOut,
    ]);
    let seen = prop::sample::select(vec![
        Some(0),
        Some(0),
        Some(SINCE - DAY),
        Some(UNTIL - DAY + 1),
        None,
    ]);
    (standing, seen)
}

/// A room where everyone's own word is in all they say.
fn room() -> impl Strategy<Value = Room> {
    let said = (
        0..PEOPLE.len() + 2,
        near_text(),
        prop::bool::ANY,
        (SINCE - 10)..(SINCE + 600_000),
        prop::collection::vec(0..PEOPLE.len() + 2, 0..6),
        prop::collection::vec(0..PEOPLE.len() + 2, 0..3),
        prop::bool::ANY,
    );
    let people = prop::collection::vec(standing(), PEOPLE.len());
    (people, prop::collection::vec(said, 0..30)).prop_map(|(standings, said)| {
        let user = |place: usize| match place {
            0..8 => PEOPLE[place].0,
            8 => AGENT,
            _ => "@stranger:c.example",
        };
        let mut room = Room {
            people: Vec::new(),
            said: Vec::new(),
        };
        for ((user, name, _), (standing, seen)) in PEOPLE.into_iter().zip(standings) {
            room = room.with(user, Some(name), standing);
            room.people.last_mut().unwrap().first_seen = seen;
        }
        for (number, (who, text, own, stamp, votes, mentions, emote)) in
            said.into_iter().enumerate()
        {
            let word = PEOPLE.get(who).map_or("wordofnobody", |person| person.2);
            let body = if own {
                format!("{word} {text}")
            } else {
                format!("{text} {word}")
            };
            let ids = |places: Vec<usize>| {
                places
                    .into_iter()
                    .map(|place| user(place).to_owned())
                    .collect()
            };
            room.said.push(Said {
                event_id: format!("$event{number}"),
                sender: user(who).to_owned(),
                stamp,
                sent_at: (number % 3 == 0).then_some(stamp - 5),
                prepared: prepare(&Written {
                    emote,
                    ..super::written_as(&body)
                }),
                replied_to: None,
                mentions: ids(mentions),
                votes: ids(votes),
            });
        }
        room
    })
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn is_within_the_contract(digest: &Digest) -> Result<(), TestCaseError> {
    prop_assert!(digest.items.len() <= MOST_ITEMS);
    let mut chars = 0;
    for item in &digest.items {
        prop_assert!(
            (1..=LONGEST_WHAT).contains(&characters(&item.what)),
            "{item:?}"
        );
        prop_assert!(
            (1..=LONGEST_NAME).contains(&characters(&item.display_name)),
            "{item:?}"
        );
        prop_assert!((2..=32).contains(&item.handle.len()));
        prop_assert!(
            item.handle
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        );
        prop_assert!(item.repeated.is_none_or(|repeated| repeated > 1));
        prop_assert_eq!(clean(&item.what), item.what.clone());
        chars += characters(&item.what) + characters(&item.display_name) + item.handle.len();
    }
    prop_assert_eq!(usize::try_from(digest.chars).unwrap(), chars);
    prop_assert!(digest.chars <= MOST_CHARS);
    Ok(())
}

proptest! {
    // A room is some hundred texts.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_digest_is_within_the_contract(room in room()) {
        is_within_the_contract(&room.digest())?;
    }

    #[test]
    fn the_order_in_which_things_are_given_does_not_matter(room in room(), turn in 0..30usize) {
        let mut other = room.clone();
        other.people.reverse();
        other.said.reverse();
        let length = other.said.len().max(1);
        other.said.rotate_left(turn % length);
        for said in &mut other.said {
            said.votes.reverse();
            said.mentions.reverse();
        }
        prop_assert_eq!(room.digest(), other.digest());
    }

    #[test]
    fn whoever_is_left_out_might_as_well_have_said_nothing(room in room()) {
        let is_in = |user: &str| room.people.iter().any(|person| {
            let old = person.first_seen.is_some_and(|seen| seen <= UNTIL - DAY);
            person.user == user && person.standing == Standing::In && old
        });
        let mut without = room.clone();
        without.said.retain(|said| is_in(&said.sender));
        for said in &mut without.said {
            said.votes.retain(|vote| is_in(vote));
        }
        let digest = room.digest();
        prop_assert_eq!(&digest.items, &without.digest().items);
        let all: String = digest.items.iter().map(|item| item.what.as_str()).collect();
        for (user, _, word) in PEOPLE.into_iter().chain([(AGENT, "", "wordofnobody")]) {
            prop_assert!(is_in(user) || !all.contains(word), "{word} in {all}");
        }
    }

    #[test]
    fn nobodys_id_or_address_is_ever_shown(room in room()) {
        for item in room.digest().items {
            for (user, ..) in PEOPLE {
                prop_assert!(!item.what.contains(user), "{item:?}");
                prop_assert!(!item.display_name.contains(user), "{item:?}");
            }
            prop_assert!(!item.what.contains(AGENT), "{item:?}");
            prop_assert!(!item.what.contains("mail@b.example"), "{item:?}");
            prop_assert!(!item.display_name.contains("@b.example"), "{item:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_can_be_prepared(text in prop_oneof![any::<String>(), near_text()], emote: bool, reply: bool) {
        let written = Written { body: &text, emote, reply, prefix: "!" };
        if let Some(prepared) = prepare(&written) {
            prop_assert_eq!(prepared.said(), prepared.said());
        }
        answers(&text, reply, &[]);
    }

    #[test]
    fn a_clean_text_is_clean(text in prop_oneof![any::<String>(), near_text()]) {
        let once = clean(&text);
        prop_assert_eq!(clean(&once), once.clone());
    }

    #[test]
    fn the_short_cut_of_folding_changes_nothing(text in prop_oneof![any::<String>(), near_text()]) {
        let text = clean(&text);
        let (matched, compared) = by_the_book(&text);
        prop_assert_eq!(match_text(&text), matched);
        prop_assert_eq!(folded(&text), compared);
    }

    #[test]
    fn a_handle_fits_and_is_free(user in "@[^:]{0,40}:example.org", gone in 0..3usize) {
        let mut taken = Vec::new();
        for _ in 0..=gone {
            let given = handle(&user, |handle| taken.iter().any(|taken| taken == handle));
            prop_assert!((2..=32).contains(&given.len()));
            prop_assert!(given.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')));
            prop_assert!(!taken.contains(&given));
            taken.push(given);
        }
    }
}
