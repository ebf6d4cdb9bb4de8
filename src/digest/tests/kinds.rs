//! digest.md, 6 and 8: greetings, questions, suggestions, reactions.

use super::super::folded::match_text;
use super::super::{Dropped, Kind, Standing};
use super::{Room, dropped, kind};

fn all_are(expected: Kind, texts: &[&str]) {
    for text in texts {
        assert_eq!(kind(text), Some(expected), "{text:?}");
    }
}

#[test]
fn match_text_is_words_alone() {
    for (text, expected) in [
        ("What's UP, Doc?!", "what's up doc"),
        ("What’s up", "what's up"),
        ("'quoted' dogs'", "quoted dogs"),
        ("+1 -1 a+1 1-2 C++", "+1 -1 a 1 1 2 c"),
        ("می\u{200C}شه", "میشه"),
        ("شكراً جزيـــلاً", "شكرا جزيلا"),
        ("۱۲ ３", "12 3"),
        ("nice👍🏽work", "nice work"),
        ("1\u{FE0F}\u{20E3} ok", "1 ok"),
        ("Straße ﬁn ＷＯＷ", "strasse fin wow"),
        ("a_b…c—d", "a b c d"),
        ("این أين", "این أين"),
    ] {
        assert_eq!(match_text(text), expected, "{text:?}");
    }
}

#[test]
fn greetings_are_dropped() {
    let greeting = Dropped {
        greetings: 1,
        ..Dropped::default()
    };
    for text in [
        "hi",
        "Hi!!",
        "hello there everyone",
        "how are you?",
        "hi Mira!",
        "hi @mira",
        "Sam, good morning",
        "hi mira and".trim_end_matches(" and"),
        "yo 👋",
        "hey y'all",
        "大家晚上好",
        "你好@agent",
        "سلام بچه\u{200C}ها",
        "سلام عليکم",
        "bonjour",
        "hi 大家",
        "good\u{200B} morning",
        "hi sam hi ana",
    ] {
        assert_eq!(dropped(text), greeting, "{text:?}");
    }
}

#[test]
fn more_than_a_greeting_stays() {
    for text in [
        "hi and bye then",
        "everyone",
        "Mira",
        "hi `x`",
        "hi https://a.example/",
        "hi Nobody",
        "hi 2",
        "morning build is red",
    ] {
        assert_eq!(dropped(text), Dropped::default(), "{text:?}");
    }
}

#[test]
fn people_are_greeted_by_any_of_their_names() {
    let room = Room::new()
        .with("@mk:example.org", Some("Mira Kovač"), Standing::In)
        .with("@ll:example.org", Some("李雷"), Standing::In);
    for text in [
        "hi Mira Kovač",
        "hi mk",
        "hello mira",
        "你好李雷",
        "hi 李雷!",
    ] {
        let digest = room.clone().says("sam", text).digest();
        assert_eq!(
            (digest.items.len(), digest.dropped.greetings),
            (0, 1),
            "{text:?}"
        );
    }
    assert_eq!(room.says("sam", "hi Kovač").digest().dropped.greetings, 0);
}

#[test]
fn what_is_no_name_makes_nobodys_question_a_greeting() {
    let greetings = |name: &str, standing, text: &str| {
        let room = Room::new().with("@xy:example.org", Some(name), standing);
        room.says("mira", text).digest().dropped.greetings
    };
    for (name, text) in [
        ("why is the build red", "hi, why is the build red?"),
        ("why", "hi, why?"),
        ("为什么测试失败了", "你好，为什么测试失败了？"),
        ("the build is red again", "hi, the build is red again"),
        (
            "请把这个测试改成更快的那一个版本好",
            "你好，请把这个测试改成更快的那一个版本好",
        ),
    ] {
        assert_eq!(greetings(name, Standing::In, text), 0, "{name:?}");
    }
    for standing in [Standing::OptedOut, Standing::Banned, Standing::Muted] {
        assert_eq!(
            greetings("Deploy", standing, "hi deploy"),
            0,
            "{standing:?}"
        );
    }
    assert_eq!(greetings("Deploy", Standing::In, "hi deploy"), 1);
    let long = "x".repeat(81);
    assert_eq!(greetings(&long, Standing::In, &format!("hi {long}")), 0);
    let mut young = Room::new().says("sam", "hi Mira");
    young.person("mira").first_seen = None;
    young.person("mira").handle = "m_1".to_owned();
    assert_eq!(young.digest().dropped.greetings, 0);
    let handle = Room::new().with("@why.is.it.red:example.org", None, Standing::In);
    let asked = handle.says("mira", "hi, why is it red?").digest();
    assert_eq!(asked.dropped.greetings, 0);
}

#[test]
fn a_mark_asks_if_there_is_a_letter() {
    all_are(
        Kind::Question,
        &[
            "it works?",
            "it works ?",
            "it works？",
            "يعمل؟",
            "it works‽",
            "¿funciona",
            "what⁉",
            "x?!",
            "a?..",
            "why?`x`",
            "it works?)",
            "it works? yes",
        ],
    );
    all_are(
        Kind::Suggestion,
        &[
            "see a?b=c",
            "match file?.txt",
            "use x?=y and ?&z",
            "is `why?` fine here".trim_start_matches("is "),
            "https://a.example/?",
            "`x` ?",
        ],
    );
    all_are(Kind::Reaction, &["???", "?", "?!"]);
    all_are(Kind::Suggestion, &["1?"]);
}

#[test]
fn questions_are_known_by_their_words() {
    all_are(
        Kind::Question,
        &[
            "why not",
            "hi all, ok so can we use tokio",
            "agent, please how does it work",
            "what is it",
            "who can help",
            "isn't it red",
            "are these fine",
            "can the parser do it",
            "ist das rot",
            "könnt ihr das testen",
            "was ist los",
            "cómo se instala",
            "puedes probar",
            "ميشه تست کنی",
            "میشه تست کنی",
            "بگو چرا",
            "هل يعمل",
            "كَيْفَ يعمل",
            "我想知道为什么",
            "可以用吗",
            "你呢!",
            "请问在哪",
            "what’s new",
            "hello @agent:example.org is it red",
        ],
    );
    all_are(
        Kind::Suggestion,
        &[
            "do the refactor",
            "have a look",
            "had the same here",
            "don't the tests",
            "when it runs",
            "das ist rot",
            "was soon fixed",
            "you can do it",
            "没什么问题",
            "不管怎么样都发布",
            "吗啡是药",
            "whatever is fine",
            "این خوب نیست که هست",
        ],
    );
}

#[test]
fn an_exclamation_is_no_question() {
    all_are(
        Kind::Reaction,
        &[
            "how nice",
            "what a day",
            "چقدر خوب",
            "wie schön",
            "how nice of you all to come here",
        ],
    );
    all_are(
        Kind::Suggestion,
        &[
            "what a pity that the build is red for so long now",
            "how nice is `x`",
        ],
    );
    all_are(Kind::Question, &["how nice is it?"]);
}

#[test]
fn cheers_and_laughter_are_reactions() {
    all_are(
        Kind::Reaction,
        &[
            "nice",
            "so nice!!",
            "thank you so much everyone",
            "hahaha",
            "哈哈哈太好了",
            "ههههه",
            "+1",
            "-1",
            "hi nice",
            "lgtm 👍",
            "👍",
            "🎉🎉",
            "!!!",
            "1\u{FE0F}\u{20E3}",
            "❤",
            "nice @mira",
            "👍 @mira:example.org",
            "真棒",
            "太好了啊",
            "عالییی".trim_end_matches("یی"),
        ],
    );
    all_are(
        Kind::Suggestion,
        &[
            "nice try",
            "so very",
            "2",
            "nice `x`",
            "nice https://a.example/",
            "thanks for nothing",
            "ha",
            "niceness",
        ],
    );
}

#[test]
fn an_emote_is_a_reaction_unless_it_asks() {
    let said = |body| {
        let written = super::Written {
            emote: true,
            ..super::written_as(body)
        };
        Room::new()
            .sends("mira", super::prepare(&written))
            .said_in_short()
    };
    assert_eq!(said("looks at `x`"), ["mira: reaction: looks at `x`"]);
    assert_eq!(said("wonders why?"), ["mira: question: wonders why?"]);
}
