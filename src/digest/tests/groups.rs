//! digest.md, 9 and 10: what groups, what it weighs, what is taken.

use super::super::is_thumbs_up;
use super::{Room, are_one, shown};

#[test]
fn what_says_the_same_is_one() {
    for (a, b) in [
        ("Use Tabs.", "use tabs"),
        ("hi, use tabs", "use tabs"),
        ("agent: use tabs", "Use tabs please!"),
        ("@mira use tabs", "please use tabs"),
        ("@agent:example.org use tabs", "use tabs"),
        ("use “tabs”", "use 'tabs'"),
        ("use *tabs*", "use `tabs`"),
        ("use tabs 🎉", "use tabs"),
        ("ask @Sam", "ask @sam:example.org"),
        ("sooo good stuff", "so good stuff"),
        ("hahaha that works", "haha that works"),
        ("哈哈哈这个可以", "哈哈这个可以"),
        ("🎉🎉", "🎉"),
        ("!!!", "!"),
        ("از كتاب يك بگو", "از کتاب یک بگو"),
        ("می\u{200C}خواهم", "میخواهم"),
        ("جرّب إعادة", "جرب اعاده"),
        ("cómo se instala", "como se instala"),
        ("нужен ещё тест", "нужен еще тест"),
        ("don’t merge", "don't merge"),
        ("用 Rust，重写", "用 Rust 重写"),
        ("۱۲ بار", "12 بار"),
        ("https://a.example/1", "https://www.a.example/2"),
        ("请用 Rust", "用 Rust"),
        ("¡usa tabs!", "usa tabs"),
        ("ＷＯＷ it is", "wow it is"),
        ("lol", "loool"),
        ("666", "66666"),
        ("❤", "❤\u{FE0F}"),
    ] {
        assert!(are_one(a, b), "{a:?} and {b:?}");
    }
}

#[test]
fn what_may_differ_is_two() {
    for (a, b) in [
        ("write C", "write C++"),
        ("take 1.2", "take 12"),
        ("set .5", "set 5"),
        ("run -v", "run v"),
        ("not x", "x then"),
        ("ask @sam", "ask @ana"),
        ("ask @sam:example.org", "ask @x:b.example"),
        ("kkkk", "kk"),
        ("hehe", "he"),
        ("port 666", "port 6666"),
        ("1000", "10"),
        ("vote 1\u{FE0F}\u{20E3}", "vote 2\u{FE0F}\u{20E3}"),
        ("🎉", "🚀"),
        ("🎉🚀", "🚀🎉"),
        ("👍", "👍🏽"),
        ("?", "!"),
        ("a > b", "a b"),
        ("50٪ now", "50 now"),
        ("۱٫۲ now", "12 now"),
        ("a → b", "a b"),
        ("が", "か"),
        ("please", "thanks"),
        ("https://a.example/1", "https://b.example/1"),
        ("a-b", "a b"),
        ("foo_bar", "foobar"),
        ("use x", "use y"),
    ] {
        assert!(!are_one(a, b), "{a:?} and {b:?}");
    }
}

#[test]
fn a_group_speaks_with_its_first_voice_and_its_strongest_kind() {
    let room = Room::new()
        .says("mira", "the build, red")
        .says("sam", "the build red?")
        .says("sam", "the build red!");
    assert_eq!(room.said_in_short(), ["mira: question: the build, red x2"]);
    let first = room
        .says("ana", "THE BUILD RED")
        .but(|said| said.stamp = super::SINCE - 1);
    assert_eq!(first.said_in_short(), ["mira: question: the build, red x2"]);
    let tied = Room::new()
        .says("mira", "Use it")
        .says("sam", "use it")
        .but(|said| (said.stamp, said.event_id) = (super::SINCE, "$a".to_owned()));
    assert_eq!(tied.said_in_short(), ["sam: suggestion: use it x2"]);
}

#[test]
fn supporters_are_counted_once() {
    let room = Room::new()
        .says("mira", "use it")
        .with_votes(&["tom", "tom", "sam", "mira", "quiet"])
        .says("sam", "Use it")
        .with_votes(&["tom", "ana"]);
    assert_eq!(room.said_in_short(), ["mira: suggestion: use it +2 x2"]);
    let own = Room::new()
        .says("mira", "use it")
        .says("mira", "use it")
        .with_votes(&["mira"]);
    assert_eq!(own.said_in_short(), ["mira: suggestion: use it"]);
    let mut copies = Room::new().says("mira", "use it").with_votes(&["sam"]);
    for _ in 0..5 {
        copies = copies.says("sam", "use it").with_votes(&["tom"]);
    }
    assert_eq!(copies.said_in_short(), ["mira: suggestion: use it"]);
}

#[test]
fn a_thumbs_up_is_one_in_every_dress() {
    for yes in [
        "👍",
        "👍\u{FE0F}",
        "👍\u{FE0E}",
        "👍🏻",
        "👍🏿\u{FE0F}",
        "+1",
        ":+1:",
        ":thumbsup:",
    ] {
        assert!(is_thumbs_up(yes), "{yes:?}");
    }
    for no in [
        "👎",
        "❤\u{FE0F}",
        "",
        "👍👍",
        "+2",
        "1",
        "👍 ",
        "thumbsup",
        "🏽",
        ":thumbsdown:",
    ] {
        assert!(!is_thumbs_up(no), "{no:?}");
    }
}

#[test]
fn an_edit_that_says_the_same_keeps_its_votes() {
    let prepared = |text| super::prepare(&super::written_as(text)).unwrap();
    for (a, b, same) in [
        ("use it", "Use it!", true),
        ("use it", "do not use it", false),
        ("ask @sam", "ask @Sam", true),
        ("ask @sam", "ask @ana", false),
    ] {
        assert_eq!(
            prepared(a).said() == prepared(b).said(),
            same,
            "{a:?} {b:?}"
        );
    }
}

#[test]
fn a_long_text_is_cut_between_clusters_and_before_a_link() {
    let words = "word ".repeat(39);
    let cut = |text: &str| {
        let shown = shown(text).unwrap();
        assert!(shown.chars().count() <= 200, "{shown}");
        shown
    };
    let fits = format!("{words}12345");
    assert_eq!(cut(&fits), fits);
    assert_eq!(cut(&format!("{words}123456")), format!("{words}1234…"));
    assert_eq!(cut(&format!("{words}abc 12345")), format!("{words}abc…"));
    assert_eq!(
        cut(&format!("{words}abc👨\u{200D}👩\u{200D}👧 x")),
        format!("{words}abc…")
    );
    assert_eq!(
        cut(&format!("{words}https://a.example/ more")),
        format!("{}…", words.trim_end())
    );
    let at_the_end = format!("{}https://abcd.example/", "word ".repeat(35));
    assert_eq!(
        cut(&at_the_end),
        format!("{}a link to abcd.example", "word ".repeat(35))
    );
    let ids = format!(
        "{}@sam:example.org https://a.example/ x",
        "word ".repeat(38)
    );
    assert_eq!(cut(&ids), format!("{}@sam…", "word ".repeat(38)));
}

#[test]
fn a_cluster_longer_than_all_there_is_room_for_is_cut() {
    let family = "👨\u{200D}".repeat(200) + "👨";
    let expected = format!("{}👨…", "👨\u{200D}".repeat(99));
    assert_eq!(shown(&format!("{family} ship")).unwrap(), expected);
    assert_eq!(shown(&format!("ship {family}")).unwrap(), "ship…");
}

#[test]
fn what_is_said_of_two_who_are_not_shown_is_two() {
    let mut room = Room::new()
        .says("lea", "ask @mira about it")
        .says("tom", "ask @sam about it")
        .says("kim", "ask @mira:example.org about it")
        .says("lea", "ask @one:b.example.org about it")
        .says("tom", "ask @two:b.example.org about it")
        .says("kim", "ask x@one:b.example.org about it")
        .says("joe", "ask x@two:b.example.org about it");
    room.person("mira").standing = super::super::Standing::OptedOut;
    room.person("sam").standing = super::super::Standing::Banned;
    assert_eq!(
        room.said_in_short(),
        [
            "lea: suggestion: ask @someone about it x2",
            "tom: suggestion: ask @someone about it",
            "lea: suggestion: ask @someone about it",
            "tom: suggestion: ask @someone about it",
            "kim: suggestion: ask x@someone about it",
            "joe: suggestion: ask x@someone about it",
        ]
    );
}

#[test]
fn ten_items_are_taken_and_the_rest_is_said_to_be_left() {
    let mut room = Room::new();
    for number in 0..10 {
        room = room.says("mira", &format!("point {number}"));
    }
    let ten = room.digest();
    assert_eq!((ten.items.len(), ten.truncated), (10, false));
    let eleven = room.says("mira", "point 10").digest();
    assert_eq!((eleven.items.len(), eleven.truncated), (10, true));
}

#[test]
fn an_item_that_does_not_fit_ends_the_digest() {
    // Mira's are of 208 characters: 200, and 4 and 4 for her names. Seven of them leave 44.
    let room = |last: usize| {
        let mut room = Room::new();
        for number in 0..7 {
            room = room.says("mira", &format!("{number}{}", " word".repeat(40)));
        }
        room.says("sam", &"ab".repeat(last / 2))
    };
    let fits = room(38).digest();
    assert_eq!(
        (fits.items.len(), fits.chars, fits.truncated),
        (8, 1500, false)
    );
    let not = room(40).says("sam", "ok then").digest();
    assert_eq!((not.items.len(), not.chars, not.truncated), (7, 1456, true));
}
