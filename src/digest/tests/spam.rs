//! digest.md, 7.5 to 7.9, and 7.3: what is spam by itself.

use super::super::Dropped;
use super::dropped;

fn all_dropped(expected: Dropped, texts: &[&str]) {
    for text in texts {
        assert_eq!(dropped(text), expected, "{text:?}");
    }
}

fn none_dropped(texts: &[&str]) {
    all_dropped(Dropped::default(), texts);
}

fn with_marks(counts: &[usize]) -> String {
    let marks: String = ('\u{300}'..='\u{30F}').collect();
    let pile = |&count: &usize| format!("q{}", marks.chars().take(count).collect::<String>());
    counts.iter().map(pile).collect()
}

#[test]
fn marks_piled_up_are_spam() {
    let marks = Dropped {
        marks: 1,
        ..Dropped::default()
    };
    all_dropped(
        marks,
        &[
            &with_marks(&[5, 5, 5]),
            &with_marks(&[9]),
            &with_marks(&[12]),
            &format!("`{}`", with_marks(&[9])),
        ],
    );
    none_dropped(&[
        &with_marks(&[5, 5, 4]),
        &with_marks(&[8]),
        "a\u{20E3}\u{20E3}",
    ]);
}

#[test]
fn a_wall_of_emoji_is_spam() {
    let emoji = Dropped {
        emoji: 1,
        ..Dropped::default()
    };
    let thirteen = "🚀🔥".repeat(6) + "🚀";
    all_dropped(
        emoji,
        &[
            &thirteen,
            &format!("{thirteen} twelve chars"),
            &"👨\u{200D}👩\u{200D}👧🚀".repeat(7),
            &"🇩🇪🇫🇷".repeat(7),
            &format!("{thirteen} https://a.example/abcdefghijkl"),
        ],
    );
    none_dropped(&[
        &"🚀🔥".repeat(6),
        &format!("{thirteen} thirteen chars"),
        &"👨\u{200D}👩\u{200D}👧".repeat(5),
    ]);
}

#[test]
fn one_character_on_and_on_is_spam() {
    let runs = Dropped {
        runs: 1,
        ..Dropped::default()
    };
    all_dropped(
        runs,
        &[
            &"a".repeat(30),
            &"哈".repeat(30),
            &format!("ok {}", "!".repeat(30)),
            &"e\u{301}x\u{302}\u{303}".replace('x', "").repeat(30),
            &"ก\u{E34}".repeat(30),
        ],
    );
    none_dropped(&[
        &"a".repeat(29),
        &"ab".repeat(30),
        &format!("`{}` is a ruler", "-".repeat(40)),
        &"aA".repeat(15),
    ]);
}

#[test]
fn five_links_are_spam() {
    let links = Dropped {
        links: 1,
        ..Dropped::default()
    };
    all_dropped(
        links,
        &[
            &"x https://a.example/ ".repeat(5),
            &format!("`{}`", "a.com/x ".repeat(5)),
            "https://a.com/,https://b.com/;https://c.com/,https://d.com/,https://e.com/",
        ],
    );
    none_dropped(&[
        &"x https://a.example/ ".repeat(4),
        &"x https://matrix.to/#/@sam:example.org ".repeat(5),
    ]);
}

#[test]
fn an_invitation_elsewhere_is_spam() {
    let invites = Dropped {
        invites: 1,
        ..Dropped::default()
    };
    all_dropped(
        invites,
        &[
            "https://discord.gg/x",
            "https://www.Discord.com/invite/x",
            "t.me/+x",
            "https://t.me/joinchat/x",
            "join https://signal.group/#Cj",
            "`https://chat.whatsapp.com/x`",
            "https://user:pw@discord.gg/x",
            "https://discord.gg:443/x",
            "https://discord.gg./x",
            "https://ptb.discord.com/invite/x",
            "https://www.ptb.discord.com//invite/x",
            "https://discord。gg/x",
            "discord．gg/x",
            "discord.gg／x",
            "https:/discord.gg/x",
            "https:\\\\discord.gg\\x",
            "https://discord.com/%69nvite/x",
            "https://a.example/,https://discord.gg/x",
            "-discord.gg/x",
        ],
    );
    none_dropped(&[
        "https://t.me/durov",
        "https://discord.com/blog",
        "https://a.example/discord.gg/x",
        "discord.gg is a host",
        "https://notdiscord.gg/x",
        "https://discord.gg.example.org/x",
        "https://user@a.example/discord.gg/",
    ]);
}

#[test]
fn three_of_four_make_a_solicitation() {
    let solicitations = Dropped {
        solicitations: 1,
        ..Dropped::default()
    };
    all_dropped(
        solicitations,
        &[
            "earn $500 now, dm me",
            "crypto, guaranteed, $500",
            "guaranteed: 500 usd, message me",
            "赚钱，稳赚，加我微信",
            "سود تضمینی، پیام بده",
            "invest with no risk: t.me/x",
            "ＥＡＲＮ ＄５００, dm me",
        ],
    );
    none_dropped(&[
        "earn $500 now",
        "dm me, guaranteed",
        "the profit is 500 usd",
        "`earn $500, dm me, guaranteed`",
        "earnest dm me $500",
    ]);
}

#[test]
fn capitals_length_script_and_single_unseen_characters_are_no_spam() {
    none_dropped(&[
        "STOP SHOUTING AT ME",
        &"a long word or two ".repeat(500),
        "ᚠᚢᚦᚨᚱᚲ",
        "a\u{200B}b",
    ]);
}
