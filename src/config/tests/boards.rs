//! `[boards]` and `[carriers]`.

use super::*;

/// A board with what it needs and nothing more; in a file made by [`with`] it begins in line 5.
const BOARD: &str = r##"[boards.brd_7c1f]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef-push"]
room = "#release:example.org"
people.bearer = { "@mira:example.org" = "0123456789abcdef-mira" }
"##;

fn board(text: &str) -> BoardConfig {
    let mut config = read(&with(text)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    config.boards.remove("brd_7c1f").unwrap()
}

/// What is wrong with [`BOARD`] when one text in it is another.
fn wrong(from: &str, to: &str) -> Vec<String> {
    assert!(BOARD.contains(from), "{from}");
    faults(&with(&BOARD.replace(from, to)))
}

fn bearers(tokens: &[(&str, &str)]) -> PeopleConfig {
    let tokens = tokens.iter().map(|(user, token)| {
        let token = Secret::from(*token);
        ((*user).to_owned(), token)
    });
    PeopleConfig {
        bearer: Some(tokens.collect()),
        assertion: None,
        dev: None,
    }
}

#[test]
fn the_least_board_gets_its_defaults() {
    assert_eq!(
        board(BOARD),
        BoardConfig {
            base_url: Url::parse("https://board.example.org").unwrap(),
            agent_token: Secret::from("kbn_0123456789abcdef"),
            push_secrets: vec![Secret::from("0123456789abcdef-push")],
            room: Some("#release:example.org".to_owned()),
            invite: vec![],
            encrypted: false,
            free_text: false,
            sweep: Duration::from_mins(5),
            people: bearers(&[("@mira:example.org", "0123456789abcdef-mira")]),
        }
    );
    assert_eq!(read(MATRIX).unwrap().boards, BTreeMap::new());
}

#[test]
fn everything_about_a_board_is_read() {
    let read = board(
        r#"
[boards.brd_7c1f]
base_url = "http://127.0.0.1:8080/api/"
agent_token = "env:BOARD_AGENT_TOKEN"
push_secrets = ["env:BOARD_PUSH_SECRET", "an older one"]
invite = ["@mira:example.org", "@ada:example.org"]
encrypted = true
free_text = true
sweep = "1s"
people.assertion = { url = "https://id.example.org/a?b", token = "env:ASSERTION_TOKEN" }
"#,
    );
    assert_eq!(
        read,
        BoardConfig {
            base_url: Url::parse("http://127.0.0.1:8080/api/").unwrap(),
            agent_token: Secret::from("kbn_0123456789abcdef"),
            push_secrets: vec![
                Secret::from("0123456789abcdef push"),
                Secret::from("an older one")
            ],
            room: None,
            invite: vec![
                "@mira:example.org".to_owned(),
                "@ada:example.org".to_owned()
            ],
            encrypted: true,
            free_text: true,
            sweep: Duration::from_secs(1),
            people: PeopleConfig {
                bearer: None,
                assertion: Some(AssertionConfig {
                    url: Url::parse("https://id.example.org/a?b").unwrap(),
                    token: Secret::from("0123456789abcdef-assertion"),
                }),
                dev: None,
            },
        }
    );
    let dev = board(&BOARD.replace(
        "people.bearer = { \"@mira:example.org\" = \"0123456789abcdef-mira\" }",
        "people.dev = { tenant = \"tnt_dev\", users = { \"@mira:example.org\" = \"usr_mira\" } }",
    ));
    let users = [("@mira:example.org".to_owned(), "usr_mira".to_owned())];
    assert_eq!(
        dev.people,
        PeopleConfig {
            bearer: None,
            assertion: None,
            dev: Some(DevConfig {
                tenant: "tnt_dev".to_owned(),
                users: users.into(),
            }),
        }
    );
}

#[test]
fn a_carrier_is_read_with_its_defaults() {
    let config = read(&with(
        r#"
[carriers."@hub:example.org"]
answer = "route"
react = true
[carriers."@exchange:example.org"]
answer = "observe"
notices = true
"#,
    ))
    .unwrap();
    let carrier = |answer, notices, react| CarrierConfig {
        answer,
        notices,
        react,
    };
    assert_eq!(
        config.carriers,
        BTreeMap::from([
            (
                "@hub:example.org".to_owned(),
                carrier(CarrierAnswer::Route, false, true)
            ),
            (
                "@exchange:example.org".to_owned(),
                carrier(CarrierAnswer::Observe, true, false)
            ),
        ])
    );
}

#[test]
fn every_mistake_about_boards_and_carriers_is_told_with_line_and_key() {
    let text = r#"
[boards."a/b"]

[boards.".."]
base_url = "https://board.example.org?tenant=1"
agent_token = "two words"
push_secrets = []
room = "lobby"
free_text = 1
sweep = "0s"
people = {}

[boards.brd_1]
base_url = "board.example.org"
agent_token = "é"
push_secrets = ["good", " "]
invite = ["mira", "@ada:example.org"]
encrypted = "yes"
sweep = 0
people.bearer = { mira = "sound", "@ada:example.org" = "a b" }
colour = "red"

[boards.brd_2]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = "0123456789abcdef"
invite = []
people.dev = { tenant = "a b", users = { mira = "usr", "@ada:example.org" = "" } }

[boards.brd_3]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
room = "!abc"
people.assertion = { url = "identity" }

[boards.brd_4]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
room = "!abc"
people.bearer = {}

[boards.brd_5]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
room = "!abc"
people.dev = { users = {} }

[carriers.hub]
answer = "ignore"

[carriers."@hub:example.org"]
react = "yes"
"#;
    let url = "must be an http or https URL without a user name";
    let user = "must be a user id like \"@ada:example.org\"";
    let signs = "must be letters, digits and signs, without a space";
    let token = format!("{signs}; \"openssl rand -hex 32\" makes a good one");
    let board_id =
        "must be 1 to 64 letters, digits, dots, dashes or underscores, and not \".\" or \"..\"";
    assert_eq!(
        faults(&with(text)),
        [
            format!("6: boards.\"a/b\": {board_id}"),
            "6: boards.\"a/b\".agent_token: is missing".to_owned(),
            "6: boards.\"a/b\".base_url: is missing".to_owned(),
            "6: boards.\"a/b\".people: is missing".to_owned(),
            "6: boards.\"a/b\".push_secrets: is missing".to_owned(),
            "6: boards.\"a/b\".room: is missing: give it, or invite".to_owned(),
            format!("8: boards.\"..\": {board_id}"),
            format!("9: boards.\"..\".base_url: {url}, password, query or fragment in it"),
            format!("10: boards.\"..\".agent_token: {token}"),
            "11: boards.\"..\".push_secrets: is an empty list".to_owned(),
            "12: boards.\"..\".room: must be a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"".to_owned(),
            "13: boards.\"..\".free_text: must be true or false, not a whole number".to_owned(),
            "14: boards.\"..\".sweep: must be longer than nothing".to_owned(),
            "15: boards.\"..\".people.bearer: is missing: give it, or assertion, or dev".to_owned(),
            format!("18: boards.brd_1.base_url: {url}, password, query or fragment in it"),
            format!("19: boards.brd_1.agent_token: {token}"),
            "20: boards.brd_1.push_secrets[1]: must not be blank".to_owned(),
            format!("21: boards.brd_1.invite[0]: {user}"),
            "22: boards.brd_1.encrypted: must be true or false, not a string".to_owned(),
            "23: boards.brd_1.sweep: must be at least 1".to_owned(),
            format!("24: boards.brd_1.people.bearer.\"@ada:example.org\": {token}"),
            format!("24: boards.brd_1.people.bearer.mira: {user}"),
            "25: boards.brd_1.colour: is not known".to_owned(),
            "30: boards.brd_2.push_secrets: must be a list, not a string".to_owned(),
            "31: boards.brd_2.invite: is an empty list".to_owned(),
            format!("32: boards.brd_2.people.dev.tenant: {signs}"),
            format!("32: boards.brd_2.people.dev.users.\"@ada:example.org\": {signs}"),
            format!("32: boards.brd_2.people.dev.users.mira: {user}"),
            "39: boards.brd_3.people.assertion.token: is missing".to_owned(),
            format!("39: boards.brd_3.people.assertion.url: {url} or password in it"),
            "46: boards.brd_4.people.bearer: is an empty table".to_owned(),
            "53: boards.brd_5.people.dev.tenant: is missing".to_owned(),
            "53: boards.brd_5.people.dev.users: is an empty table".to_owned(),
            format!("55: carriers.hub: {user}"),
            "56: carriers.hub.answer: must be \"observe\" or \"route\"".to_owned(),
            "58: carriers.\"@hub:example.org\".answer: is missing".to_owned(),
            "59: carriers.\"@hub:example.org\".react: must be true or false, not a string"
                .to_owned(),
        ]
        .map(|fault| format!("config.toml:{fault}"))
    );
}

#[test]
fn a_board_has_one_room_and_only_a_made_one_is_encrypted_by_us() {
    let room = "room = \"#release:example.org\"";
    assert_eq!(
        wrong(room, &format!("{room}\ninvite = [\"@mira:example.org\"]")),
        ["config.toml:10: boards.brd_7c1f.invite: cannot be given together with room"]
    );
    assert_eq!(
        wrong(room, ""),
        ["config.toml:5: boards.brd_7c1f.room: is missing: give it, or invite"]
    );
    let made = "encrypted = true\ninvite = [\"@mira:example.org\"]";
    assert!(board(&BOARD.replace(room, made)).encrypted);
    for given in ["true", "false"] {
        assert_eq!(
            wrong(room, &format!("{room}\nencrypted = {given}")),
            [
                "config.toml:10: boards.brd_7c1f.encrypted: is only for a room that is made: give invite, or leave this out"
            ]
        );
    }
    // The line that is no TOML may have been the other way.
    assert_eq!(
        wrong(room, "encrypted = true\ninvite [\"@mira:example.org\"]"),
        ["config.toml:10: not valid TOML: key with no value, expected `=`"]
    );
}

#[test]
fn a_board_knows_its_people_in_one_way() {
    let assertion = "people.assertion = { url = \"https://id.example.org\", token = \"t\" }";
    let dev = "people.dev = { tenant = \"t\", users = { \"@mira:example.org\" = \"u\" } }";
    for (added, told) in [
        (assertion, vec!["11: boards.brd_7c1f.people.assertion"]),
        (dev, vec!["11: boards.brd_7c1f.people.dev"]),
        (
            &format!("{assertion}\n{dev}"),
            vec![
                "11: boards.brd_7c1f.people.assertion",
                "12: boards.brd_7c1f.people.dev",
            ],
        ),
    ] {
        let told: Vec<String> = told
            .into_iter()
            .map(|key| format!("config.toml:{key}: cannot be given together with bearer"))
            .collect();
        assert_eq!(faults(&with(&format!("{BOARD}{added}\n"))), told);
    }
    assert_eq!(
        wrong("people.bearer", "people.bearers"),
        [
            "config.toml:10: boards.brd_7c1f.people.bearer: is missing: give it, or assertion, or dev",
            "config.toml:10: boards.brd_7c1f.people.bearers: is not known; did you mean bearer?",
        ]
    );
}

#[test]
fn the_bot_is_no_carrier_beside_itself() {
    let carrier = |user: &str| with(&format!("[carriers.\"{user}\"]\nanswer = \"observe\"\n"));
    assert_eq!(
        faults(&carrier("@elicit:example.org")),
        [
            "config.toml:5: carriers.\"@elicit:example.org\": is the bot's own account; a carrier is another one"
        ]
    );
    assert!(read(&carrier("@elicit:partner.example")).is_ok());
}

fn cautions(text: &str) -> Vec<String> {
    read(&with(text)).unwrap().cautions()
}

#[test]
fn tokens_for_a_board_elsewhere_had_better_be_encrypted() {
    let caution = "boards.brd_7c1f.base_url: tokens go to another machine unencrypted; use https";
    let at = |url: &str| cautions(&BOARD.replace("https://board.example.org", url));
    for url in [
        "http://board.example.org",
        "http://10.0.0.7:8080/api",
        "http://128.0.0.1",
        "http://localhost.example.org",
        "http://[::2]",
    ] {
        assert_eq!(at(url), [caution], "{url}");
    }
    for url in [
        "https://board.example.org",
        "http://localhost:8080",
        "http://LOCALHOST",
        "http://127.0.0.1",
        "http://127.8.9.10:8080",
        "http://[::1]:8080",
    ] {
        assert_eq!(at(url), Vec::<String>::new(), "{url}");
    }
}

#[test]
fn the_token_for_an_assertion_had_better_be_encrypted() {
    let bearer = "people.bearer = { \"@mira:example.org\" = \"0123456789abcdef-mira\" }";
    let at = |url: &str| {
        let assertion = format!("people.assertion = {{ url = \"{url}\", token = \"t\" }}");
        cautions(&BOARD.replace(bearer, &assertion))
    };
    assert_eq!(
        at("http://id.example.org"),
        [
            "boards.brd_7c1f.people.assertion.url: tokens go to another machine unencrypted; use https"
        ]
    );
    assert_eq!(at("https://id.example.org"), Vec::<String>::new());
    assert_eq!(at("http://127.0.0.1:9000"), Vec::<String>::new());
}

#[test]
fn headers_of_development_had_better_stay_on_the_machine() {
    let bearer = "people.bearer = { \"@mira:example.org\" = \"0123456789abcdef-mira\" }";
    let dev = "people.dev = { tenant = \"t\", users = { \"@mira:example.org\" = \"u\" } }";
    let there = BOARD.replace(bearer, dev);
    assert_eq!(
        cautions(&there),
        [
            "boards.brd_7c1f.people.dev: proves nothing to a board on another machine; use bearer or assertion"
        ]
    );
    let here = there.replace("https://board.example.org", "http://localhost:8080");
    assert_eq!(cautions(&here), Vec::<String>::new());
}

#[test]
fn what_signs_or_reads_for_a_board_had_better_not_be_guessable() {
    let short = BOARD.replace("kbn_0123456789abcdef", "kbn_123").replace(
        "\"0123456789abcdef-push\"",
        "\"0123456789abcdef\", \"short\"",
    );
    let advice = "is short enough to be guessed; \"openssl rand -hex 32\" makes a good one";
    assert_eq!(
        cautions(&short),
        [
            format!("boards.brd_7c1f.agent_token: {advice}"),
            format!("boards.brd_7c1f.push_secrets[1]: {advice}"),
        ]
    );
}

#[test]
fn no_secret_of_a_board_is_shown() {
    let text = format!("{BOARD}[boards.b]\n");
    let text = with(&text.replace("0123456789abcdef", "hunter2hunter2hunter2"));
    assert!(!faults(&text).concat().contains("hunter2"));
    let config = read(&with(&BOARD.replace("0123456789abcdef", "hunter2"))).unwrap();
    assert!(!format!("{config:?} {:?}", config.cautions()).contains("hunter2"));
}

#[test]
fn what_the_guide_to_boards_says_to_write_is_taken_and_every_key_of_a_board_is_in_it() {
    let guide = include_str!("../../../docs/boards.md");
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        read(&with(block)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    }
    let schema = serde_json::to_value(schemars::schema_for!(BoardConfig)).unwrap();
    for key in schema["properties"].as_object().unwrap().keys() {
        assert!(guide.contains(&format!("\n| `{key}` |")), "{key}");
    }
}
