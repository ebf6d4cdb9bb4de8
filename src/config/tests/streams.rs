//! `[streams]` and `[synapse_admin]`.

use super::*;

/// An agent and its stream; in a file made by [`with`] the stream begins in line 7.
const STREAM: &str = r##"[agents.agt_31d0]
token = "0123456789abcdef-agent"
[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ]
room = "#release:example.org"
agents = ["agt_31d0"]
"##;

fn stream(text: &str) -> StreamConfig {
    let mut config = read(&with(text)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    config
        .streams
        .remove("ags_01JAB2C3D4E5F6G7H8J9K0MNPQ")
        .unwrap()
}

#[test]
fn the_least_stream_gets_its_defaults() {
    assert_eq!(
        stream(STREAM),
        StreamConfig {
            room: "#release:example.org".to_owned(),
            agents: vec!["agt_31d0".to_owned()],
            keep: Duration::from_hours(24),
            min_age: Duration::from_hours(24),
            policy_lists: vec![],
        }
    );
    let least = read(MATRIX).unwrap();
    assert_eq!(
        (least.streams, least.synapse_admin),
        (BTreeMap::new(), None)
    );
}

#[test]
fn everything_about_streams_is_read() {
    let text = r##"
[agents.a]
token = "0123456789abcdef-a"
[agents.b]
token = "0123456789abcdef-b"
[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ]
room = "!abc"
agents = ["a", "b"]
keep = "90m"
min_age = 172800
policy_lists = ["!bans:example.org", "#bans:example.org"]
[synapse_admin]
url = "http://127.0.0.1:8008/base"
token = "env:SYNAPSE_ADMIN_TOKEN"
"##;
    assert_eq!(
        stream(text),
        StreamConfig {
            room: "!abc".to_owned(),
            agents: vec!["a".to_owned(), "b".to_owned()],
            keep: Duration::from_mins(90),
            min_age: Duration::from_hours(48),
            policy_lists: vec![
                "!bans:example.org".to_owned(),
                "#bans:example.org".to_owned()
            ],
        }
    );
    let config = read(&with(text)).unwrap();
    assert_eq!(
        config.synapse_admin,
        Some(SynapseAdminConfig {
            url: Url::parse("http://127.0.0.1:8008/base").unwrap(),
            token: Secret::from("an-admin's-token"),
        })
    );
    assert_eq!(config.cautions(), Vec::<String>::new());
}

#[test]
fn every_mistake_about_streams_is_told_with_line_and_key() {
    let text = r#"
[streams.x]

[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI]
room = "lobby"
agents = []
keep = "25h"
min_age = "0s"
policy_lists = ["!a", "bans"]
colour = 1

[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ]
room = 5
agents = "agt_31d0"
keep = 86401
min_age = 0
policy_list = []

[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR]
room = "!abc"
agents = ["a b", "operator", "agt_31d0"]
keep = "soon"

[synapse_admin]
url = "example.org"
tokn = "t"
"#;
    assert_eq!(
        faults(&with(text)),
        [
            "6: streams.x: must be \"ags_\" and a ULID: 26 digits and capital letters, without I, L, O and U",
            "6: streams.x.agents: is missing",
            "6: streams.x.room: is missing",
            "8: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI: must be \"ags_\" and a ULID: 26 digits and capital letters, without I, L, O and U",
            "9: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.room: must be a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
            "10: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.agents: is an empty list",
            "11: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.keep: must not be longer than 24h",
            "12: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.min_age: must be longer than nothing",
            "13: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.policy_lists[1]: must be a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
            "14: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPI.colour: is not known",
            "17: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.room: must be a string, not a whole number",
            "18: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.agents: must be a list, not a string",
            "19: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.keep: must be at most 86400",
            "20: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.min_age: must be at least 1",
            "21: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.policy_list: is not known; did you mean policy_lists?",
            "25: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR.agents[0]: must be 1 to 64 letters, digits, dots, dashes or underscores",
            "25: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR.agents[1]: must be another word: the operator is whoever runs the bot",
            "25: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR.agents[2]: is none of [agents]",
            "26: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR.keep: must be a span of time like \"90s\", \"30m\", \"1h\" or \"7d\", or whole seconds",
            "28: synapse_admin.token: is missing",
            "29: synapse_admin.url: must be an http or https URL without a user name, password, query or fragment in it",
            "30: synapse_admin.tokn: is not known; did you mean token?",
        ]
        .map(|fault| format!("config.toml:{fault}"))
    );
}

#[test]
fn a_room_is_one_stream_and_an_agent_may_read_several() {
    let second = |room: &str| {
        with(&format!(
            "{STREAM}[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR]\nroom = \"{room}\"\nagents = [\"agt_31d0\"]\n"
        ))
    };
    assert_eq!(
        faults(&second("#release:example.org")),
        [
            "config.toml:11: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPR.room: is the room of \
             streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ as well"
        ]
    );
    assert_eq!(read(&second("!release")).unwrap().streams.len(), 2);
}

#[test]
fn an_agent_that_may_stand_on_a_broken_line_is_not_missed() {
    let broken = STREAM.replace("[agents.agt_31d0]", "[agents.agt_31d0");
    assert_eq!(
        faults(&with(&broken)),
        ["config.toml:5: not valid TOML: unclosed table, expected `]`"]
    );
}

#[test]
fn the_rooms_of_streams_and_their_policy_lists_are_among_the_aliases() {
    let lists = "policy_lists = [\"#bans:example.org\", \"!bans\"]\n";
    let config = read(&with(&format!("{STREAM}{lists}"))).unwrap();
    let aliases = ["#bans:example.org", "#release:example.org"];
    assert_eq!(config.aliases(), BTreeSet::from(aliases));
}

fn cautions(text: &str) -> Vec<String> {
    read(&with(text)).unwrap().cautions()
}

#[test]
fn an_age_below_the_contracts_day_is_allowed_and_said() {
    let at = |age: &str| cautions(&format!("{STREAM}min_age = \"{age}\"\n"));
    assert_eq!(
        at("86399s"),
        [
            "streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.min_age: is shorter than 24h: accounts younger \
             than a day get into the digest, against chat.agent-digest@1"
        ]
    );
    assert_eq!(at("1d"), Vec::<String>::new());
    assert_eq!(at("30d"), Vec::<String>::new());
}

#[test]
fn the_token_of_an_admin_had_better_be_encrypted_and_is_never_shown() {
    let at = |url: &str| format!("[synapse_admin]\nurl = \"{url}\"\ntoken = \"hunter2\"\n");
    assert_eq!(
        cautions(&at("http://matrix.example.org")),
        ["synapse_admin.url: tokens go to another machine unencrypted; use https"]
    );
    for url in ["https://matrix.example.org", "http://localhost:8008"] {
        assert_eq!(cautions(&at(url)), Vec::<String>::new());
    }
    let config = read(&with(&at("https://matrix.example.org"))).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn the_guide_to_digests_configures_what_there_is() {
    let guide = include_str!("../../../docs/digest.md");
    let block = guide.split("```toml\n").nth(1);
    let block = block.and_then(|rest| rest.split("```").next()).unwrap();
    let agent = "[agents.agt_31d0]\ntoken = \"0123456789abcdef-agent\"\n";
    let file = with(&format!("{agent}{block}"));
    let environment = |name: &str| (name == "SYNAPSE_ADMIN_TOKEN").then(|| "syt_0123456789".into());
    let read = Config::read(&file, "config.toml", &environment);
    read.unwrap_or_else(|faults| panic!("{faults:#?}"));
    for schema in [
        schemars::schema_for!(StreamConfig),
        schemars::schema_for!(SynapseAdminConfig),
    ] {
        let schema = serde_json::to_value(schema).unwrap();
        for key in schema["properties"].as_object().unwrap().keys() {
            assert!(block.contains(&format!("\n{key} = ")), "{key}");
        }
    }
}
