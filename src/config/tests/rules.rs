//! What the settings come to: rules of a room, invitations, where an agent asks.

use super::*;

#[test]
fn a_room_has_its_own_rules_over_the_common_ones() {
    let config = read(&with(
        r##"
[answers]
bots = ["@*bot:example.org"]
min_power = 10
users = ["@ada:example.org"]
unreadable_after = "5m"
[rooms."#general:example.org"]
min_power = 1
require_verified = true
users = []
[rooms."#release:example.org"]
min_power = 2
[rooms."!quiet"]
unreadable_after = "1h"
[rooms."!abc"]
min_power = 50
bots = ["@ci:example.org", "@*bot:example.org"]
"##,
    ))
    .unwrap();
    let common = config.answers_for("!other", &["#other:example.org"]);
    assert_eq!(
        common,
        AnswerRules {
            bots: vec![Pattern::from("@*bot:example.org")],
            min_power: Some(10),
            users: Some(vec!["@ada:example.org".to_owned()]),
            require_verified: false,
            unreadable_after: Duration::from_mins(5),
        }
    );
    assert_eq!(
        config.answers_for("!quiet", &[]),
        AnswerRules {
            unreadable_after: Duration::from_hours(1),
            ..common.clone()
        }
    );
    let aliases = ["#release:example.org", "#general:example.org"];
    // The first alias counts most, the room id more than any.
    assert_eq!(
        config.answers_for("!other", &aliases),
        AnswerRules {
            min_power: Some(2),
            require_verified: true,
            users: Some(vec![]),
            ..common.clone()
        }
    );
    let own = config.answers_for("!abc", &aliases);
    assert_eq!(
        own,
        AnswerRules {
            bots: vec![
                Pattern::from("@*bot:example.org"),
                Pattern::from("@ci:example.org")
            ],
            min_power: Some(50),
            require_verified: true,
            users: Some(vec![]),
            ..common
        }
    );
    assert_eq!(
        own.for_desk(),
        Rules {
            users: Some(vec![]),
            min_power: Some(50),
            require_verified: true,
        }
    );
    assert!(own.is_bot("@ci:example.org") && !own.is_bot("@ada:example.org"));
}

#[test]
fn invitations_are_followed_from_the_own_server_unless_said_otherwise() {
    let follows = |join: &str, inviter: &str| read(&with(join)).unwrap().matrix.joins_for(inviter);
    assert!(follows("", "@ada:example.org"));
    assert!(!follows("", "@ada:evil.example"));
    assert!(!follows("join = []", "@ada:example.org"));
    assert!(follows("join = [\"*\"]", "@ada:evil.example"));
    assert!(follows(
        "join = [\"partner.example\"]",
        "@ada:partner.example"
    ));
    assert!(!follows("join = [\"partner.example\"]", "@ada:example.org"));
}

#[test]
fn an_agent_asks_where_it_may() {
    let config = read(&with(
        r##"
[agents.everywhere]
token = "0123456789abcdef-a"
[agents.somewhere]
token = "0123456789abcdef-b"
rooms = ["!abc", "#release:example.org"]
[agents.nowhere]
token = "0123456789abcdef-c"
rooms = []
"##,
    ))
    .unwrap();
    let may = |agent: &str, room, aliases: &[&str]| config.agents[agent].may_ask_in(room, aliases);
    assert!(may("everywhere", "!x", &[]));
    assert!(may("somewhere", "!abc", &[]));
    assert!(may("somewhere", "!x", &["#release:example.org"]));
    assert!(!may("somewhere", "!x", &["#general:example.org"]));
    assert!(!may("nowhere", "!abc", &["#release:example.org"]));
}

#[test]
fn the_aliases_of_rules_agents_and_boards_are_known() {
    let config = read(&with(
        r##"
[rooms."#general:example.org"]
[rooms."!abc"]
[agents.somewhere]
token = "0123456789abcdef-b"
rooms = ["!abc", "#builds:example.org", "#general:example.org"]
[agents.everywhere]
token = "0123456789abcdef-a"
[boards.brd_7c1f]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
room = "#release:example.org"
people.bearer = { "@mira:example.org" = "0123456789abcdef" }
[boards.brd_7c20]
base_url = "https://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
room = "!def"
people.bearer = { "@mira:example.org" = "0123456789abcdef" }
"##,
    ))
    .unwrap();
    let aliases = [
        "#builds:example.org",
        "#general:example.org",
        "#release:example.org",
    ];
    assert_eq!(config.aliases(), BTreeSet::from(aliases));
}
