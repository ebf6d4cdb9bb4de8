//! digest.md, 2 and 7.1 to 7.4: who is left out, and what is spam only together.

use super::super::{Dropped, Standing};
use super::{DAY, Room, UNTIL, id};
use crate::clock::Millis;

#[test]
fn whoever_is_left_out_says_nothing_and_counts_for_nothing() {
    for standing in [Standing::Banned, Standing::Muted, Standing::OptedOut] {
        let mut room = Room::new()
            .says("mira", "use vim")
            .with_votes(&["tom"])
            .says("tom", "use vim");
        room.person("tom").standing = standing;
        assert_eq!(
            room.said_in_short(),
            ["mira: suggestion: use vim"],
            "{standing:?}"
        );
        assert_eq!(room.digest().dropped.excluded, 1);
    }
    for seen in [
        None,
        Some(UNTIL - DAY + 1),
        Some(UNTIL + DAY),
        Some(Millis::MAX),
    ] {
        let mut room = Room::new()
            .says("tom", "use vim")
            .says("mira", "use nano")
            .with_votes(&["tom"]);
        room.person("tom").first_seen = seen;
        assert_eq!(
            room.said_in_short(),
            ["mira: suggestion: use nano"],
            "{seen:?}"
        );
    }
    let mut room = Room::new().says("tom", "use vim");
    room.person("tom").first_seen = Some(UNTIL - DAY);
    assert_eq!(room.said_in_short(), ["tom: suggestion: use vim"]);
    let stranger = Room::new()
        .says("@x:b.example", "use vim")
        .says(super::AGENT, "which?");
    assert_eq!(stranger.said_in_short(), [""; 0]);
    let agent = Room::new()
        .with(super::AGENT, None, Standing::In)
        .says(super::AGENT, "which?");
    assert_eq!(agent.said_in_short(), [""; 0]);
    let other_case = Room::new().says("@Mira:example.org", "use vim");
    assert_eq!(other_case.said_in_short(), [""; 0]);
}

/// So many lines of Sam's, all different, so many milliseconds apart by our clock and by his.
fn eleven(count: usize, ours: Millis, his: Millis) -> Room {
    let mut room = Room::new();
    for number in 0..count {
        let place = Millis::try_from(number).unwrap();
        room = room.says("sam", &format!("point {number}")).but(|said| {
            said.stamp = super::SINCE + ours * place;
            said.sent_at = Some(super::SINCE + his * place);
        });
    }
    room
}

#[test]
fn a_flood_is_eleven_in_a_minute_by_both_clocks() {
    let floods = |room: Room| room.digest().dropped.flood;
    assert_eq!(floods(eleven(11, 5_999, 5_999)), 11);
    assert_eq!(floods(eleven(11, 6_000, 0)), 0);
    assert_eq!(floods(eleven(11, 0, 6_000)), 0, "an outage is over");
    assert_eq!(floods(eleven(11, 0, 0)), 11);
    assert_eq!(floods(eleven(10, 0, 0)), 0);
    assert_eq!(floods(eleven(14, 5_000, 5_000)), 14);
    let spread = eleven(11, 0, 0).says("sam", "later");
    assert_eq!(floods(spread.clone()), 11);
    assert_eq!(spread.said_in_short(), ["sam: suggestion: later"]);
    let claimed_late = eleven(11, 1_000, 1_000).but(|said| said.sent_at = Some(super::SINCE + DAY));
    assert_eq!(floods(claimed_late), 0);
}

#[test]
fn a_flood_that_came_at_once_is_found_among_all_that_came_at_once() {
    // Eleven within a minute, and before and after them an hour's others, all stored at once.
    let mut room = Room::new();
    for number in 0..31i64 {
        let sent = match number {
            0..10 => number * 100_000,
            10..21 => 2_000_000 + number * 1_000,
            _ => 3_000_000 + number * 100_000,
        };
        room = room.says("sam", &format!("point {number}")).but(|said| {
            said.event_id = format!("$e{}", (number * 17) % 31);
            said.stamp = super::SINCE;
            said.sent_at = Some(super::SINCE + sent);
        });
    }
    assert_eq!(room.digest().dropped.flood, 11);
}

#[test]
fn five_copies_of_ones_own_line_are_spam_and_four_are_not() {
    let copies = |count: usize| {
        let mut room = Room::new().says("ana", "follow me");
        for number in 0..count {
            room = room.says("sam", &format!("follow me{}", "!".repeat(number)));
        }
        room
    };
    assert_eq!(copies(4).said_in_short(), ["ana: suggestion: follow me x2"]);
    assert_eq!(copies(5).said_in_short(), ["ana: suggestion: follow me"]);
    assert_eq!(
        copies(5).digest().dropped,
        Dropped {
            copies: 5,
            ..Dropped::default()
        }
    );
}

#[test]
fn five_lines_of_links_alone_are_spam_and_words_beside_them_are_not() {
    let mut room = Room::new();
    for number in 0..5 {
        room = room.says(
            "sam",
            &format!("👉 1\u{FE0F}\u{20E3} https://shop{number}.example/ !!"),
        );
    }
    room = room.says("sam", "and https://shop9.example/");
    assert_eq!(
        room.said_in_short(),
        ["sam: suggestion: and a link to shop9.example"]
    );
    let four = Room {
        said: room.said[1..].to_vec(),
        ..room
    };
    assert_eq!(four.digest().dropped, Dropped::default());
}

#[test]
fn five_people_mentioned_are_spam() {
    let mentions = |room: Room| room.digest().dropped.mentions;
    let says = |text: &str| Room::new().says("mira", text);
    assert_eq!(mentions(says("@sam @ana @lea @tom @kim")), 1);
    assert_eq!(mentions(says("@sam @ana @lea @tom @mira")), 0, "oneself");
    assert_eq!(
        mentions(says("@sam @ana @lea @tom @agent @agent:example.org")),
        0
    );
    assert_eq!(
        mentions(says("@sam @ana @lea @tom @SAM @sam:example.org")),
        0,
        "one twice"
    );
    assert_eq!(mentions(says("@sam @ana @lea @tom @quiet")), 1);
    assert_eq!(mentions(says("@sam @ana @lea @tom @decorator")), 0);
    assert_eq!(mentions(says("@sam @ana @lea @tom @x:b.example")), 1);
    assert_eq!(mentions(says("`@sam @ana @lea @tom @kim`")), 0, "in code");
    assert_eq!(mentions(says("@sam @ana @lea @tom `@kim`")), 0);
    let listed = |count: usize| {
        let names = ["sam", "ana", "lea", "tom", "kim"];
        says("look")
            .but(|said| said.mentions = names[..count].iter().map(|name| id(name)).collect())
    };
    assert_eq!(mentions(listed(5)), 1);
    assert_eq!(mentions(listed(4)), 0);
    assert_eq!(
        mentions(listed(5).but(|said| said.replied_to = Some(id("kim")))),
        0
    );
    let both =
        says("@joe look").but(|said| said.mentions = ["sam", "ana", "lea", "tom"].map(id).to_vec());
    assert_eq!(mentions(both), 1);
}

#[test]
fn what_was_said_outside_the_window_counts_for_nothing() {
    let mut room = Room::new();
    for number in 0..5i64 {
        room = room
            .says("sam", "follow me")
            .but(|said| said.stamp = super::SINCE - 1 + number);
    }
    assert_eq!(room.said_in_short(), ["sam: suggestion: follow me"]);
}
