use super::*;

mod boards;
mod example;
mod http;
mod rules;
mod streams;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "MATRIX_PASSWORD" => "a password from the environment",
        "MATRIX_ACCESS_TOKEN" => "an access token",
        "AGENT_TOKEN" => "0123456789abcdef-agent",
        "ELICIT_OPERATOR_TOKEN" => "0123456789abcdef-operator",
        "AGENT_WEBHOOK_SECRET" => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "BOARD_AGENT_TOKEN" => "kbn_0123456789abcdef",
        "BOARD_PUSH_SECRET" => "0123456789abcdef push",
        "MIRA_TOKEN" => "0123456789abcdef-mira",
        "ASSERTION_TOKEN" => "0123456789abcdef-assertion",
        "SYNAPSE_ADMIN_TOKEN" => "an-admin's-token",
        "SHORT" => "hunter2",
        "SPACED" => "hunter 2",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn read(text: &str) -> Result<Config, Vec<ConfigFault>> {
    Config::read(text, "config.toml", &env)
}

fn faults(text: &str) -> Vec<String> {
    let faults = read(text).expect_err("is refused");
    faults.iter().map(ConfigFault::to_string).collect()
}

/// Lines 1 to 4 of most files here.
const MATRIX: &str = "\
[matrix]
homeserver = \"https://matrix.example.org\"
user = \"@elicit:example.org\"
password = \"correct horse\"
";

fn with(rest: &str) -> String {
    format!("{MATRIX}{rest}")
}

#[test]
fn the_least_configuration_gets_its_defaults() {
    let config = read(MATRIX).unwrap();
    assert_eq!(
        config,
        Config {
            matrix: MatrixConfig {
                homeserver: Url::parse("https://matrix.example.org").unwrap(),
                user: "@elicit:example.org".to_owned(),
                password: Some(Secret::from("correct horse")),
                access_token: None,
                device_id: None,
                data_dir: PathBuf::from("data"),
                recovery_passphrase: None,
                join: None,
                prefix: "!".to_owned(),
            },
            http: HttpConfig {
                listen: "127.0.0.1:8470".parse().unwrap(),
                public_url: None,
                operator_token: None,
            },
            ledger: LedgerConfig {
                keep: Duration::from_hours(720),
            },
            answers: AnswersConfig::default(),
            rooms: BTreeMap::new(),
            agents: BTreeMap::new(),
            boards: BTreeMap::new(),
            carriers: BTreeMap::new(),
            streams: BTreeMap::new(),
            synapse_admin: None,
        }
    );
    assert_eq!(
        config.answers_for("!any", &[]),
        AnswerRules {
            bots: vec![],
            min_power: None,
            users: None,
            require_verified: false,
            unreadable_after: Duration::from_mins(2),
        }
    );
}

#[test]
fn everything_at_once_is_read() {
    let config = read(
        r##"
[matrix]
homeserver = "http://127.0.0.1:8008"
user = "@elicit:example.org"
access_token = "env:MATRIX_ACCESS_TOKEN"
device_id = "ELICITBOT"
join = ["*.example.org", "@ada:partner.example"]

[http]
listen = "[::1]:9000"
public_url = "https://elicit.example.org"
operator_token = "env:ELICIT_OPERATOR_TOKEN"

[ledger]
keep = 3600

[answers]
users = []

[rooms."!abc:example.org"]
min_power = -5

[agents.agt_31d0]
token = "env:AGENT_TOKEN"
name = "The builder"
call = "builder"
rooms = ["#release:example.org", "!abc"]
matrix_user = "@builder:example.org"
people."U 1" = "@ada:example.org"
webhook = { url = "http://10.0.0.7/hook", secret = ["env:AGENT_WEBHOOK_SECRET", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="], park_after = "12h" }
"##,
    )
    .unwrap();
    assert_eq!(
        config.matrix.access_token,
        Some(Secret::from("an access token"))
    );
    assert_eq!(config.http.listen.to_string(), "[::1]:9000");
    assert_eq!(config.ledger.keep, Duration::from_hours(1));
    assert_eq!(config.answers.users, Some(vec![]));
    assert_eq!(config.rooms["!abc:example.org"].min_power, Some(-5));
    let agent = &config.agents["agt_31d0"];
    assert_eq!(
        agent.token_digest(),
        TokenDigest::of("0123456789abcdef-agent")
    );
    assert_eq!(config.call_of("agt_31d0"), "builder");
    assert_eq!(config.call_of("somebody"), "somebody");
    assert_eq!(agent.people["U 1"], "@ada:example.org");
    let webhook = agent.webhook.as_ref().unwrap();
    assert_eq!(webhook.url.as_str(), "http://10.0.0.7/hook");
    let secrets: Vec<&str> = webhook
        .secret
        .as_slice()
        .iter()
        .map(Secret::expose)
        .collect();
    assert_eq!(
        secrets,
        [
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
        ]
    );
    assert_eq!(webhook.park_after, Duration::from_hours(12));
}

#[test]
fn every_mistake_is_told_at_once_with_line_and_key() {
    let text = r##"[matrix]
homeserver = "matrix.example.org"
usr = "@elicit:example.org"
join = ["example.org", "@ada"]
prefix = "#"
device_id = 7
data_dir = ""

[http]
listen = "8470"
public_url = 1979-05-27
operator_token = "env:SPACED"

[ledger]
keep = "soon"
keeep = 1

[answers]
min_power = "high"
users = "@ada:example.org"
require_verified = 1
unreadable_after = 0
bots = ["*"]

[rooms.lobby]
min_power = 50

[rooms."#a:example.org"]
users = ["ada", "@ada:example.org"]
unknown = true

[agents."a b"]
token = "0123456789abcdef-agent"
rooms = ["lobby"]

[agents.agt_1]
call = "two words"
people = { U1 = "ada" }
webhook = { url = "ftp://example.org", park_after = 1.5 }

[agents.agt_2]
token = "0123456789abcdef-agent"
matrix_user = "bot"
webhook.url = "https://example.org"
webhook.secret = []

[stream.x]
"##;
    assert_eq!(
        faults(text),
        [
            "config.toml:1: matrix.password: is missing: give it, or access_token with device_id",
            "config.toml:1: matrix.user: is missing",
            "config.toml:2: matrix.homeserver: must be an http or https URL without a user name or password in it",
            "config.toml:3: matrix.usr: is not known; did you mean user?",
            "config.toml:4: matrix.join[1]: must be \"*\", a server name, or a user id like \"@ada:example.org\", in which * stands for any run of characters",
            "config.toml:5: matrix.prefix: must be at most 16 characters without a space, the first a sign such as \"!\", but not #, @, > or /",
            "config.toml:6: matrix.device_id: must be a string, not a whole number",
            "config.toml:7: matrix.data_dir: is empty",
            "config.toml:10: http.listen: must be an address and a port, like \"127.0.0.1:8470\" or \"[::1]:8470\"",
            "config.toml:11: http.public_url: must be a string, not a date or time",
            "config.toml:12: http.operator_token: must be letters, digits and signs, without a space; \"openssl rand -hex 32\" makes a good one (it comes from env:SPACED)",
            "config.toml:15: ledger.keep: must be a span of time like \"90s\", \"30m\", \"1h\" or \"7d\", or whole seconds",
            "config.toml:16: ledger.keeep: is not known; did you mean keep?",
            "config.toml:19: answers.min_power: must be a whole number, not a string",
            "config.toml:20: answers.users: must be a list, not a string",
            "config.toml:21: answers.require_verified: must be true or false, not a whole number",
            "config.toml:22: answers.unreadable_after: must be at least 1",
            "config.toml:23: answers.bots[0]: must be a user id like \"@bot:example.org\", in which * stands for any run of characters",
            "config.toml:25: rooms.lobby: must be a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
            "config.toml:29: rooms.\"#a:example.org\".users[0]: must be a user id like \"@ada:example.org\"",
            "config.toml:30: rooms.\"#a:example.org\".unknown: is not known",
            "config.toml:32: agents.\"a b\": must be 1 to 64 letters, digits, dots, dashes or underscores",
            "config.toml:34: agents.\"a b\".rooms[0]: must be \"*\", a room id like \"!abc:example.org\" or an alias like \"#room:example.org\"",
            "config.toml:36: agents.agt_1.token: is missing",
            "config.toml:37: agents.agt_1.call: must be one word of at most 64 characters",
            "config.toml:38: agents.agt_1.people.U1: must be a user id like \"@ada:example.org\"",
            "config.toml:39: agents.agt_1.webhook.park_after: must be a whole number or a string, not a fraction",
            "config.toml:39: agents.agt_1.webhook.secret: is missing",
            "config.toml:39: agents.agt_1.webhook.url: must be an http or https URL without a user name or password in it",
            "config.toml:42: agents.agt_2.token: is the same as agents.\"a b\".token; each needs its own",
            "config.toml:43: agents.agt_2.matrix_user: must be a user id like \"@ada:example.org\"",
            "config.toml:45: agents.agt_2.webhook.secret: is an empty list",
            "config.toml:47: stream: is not known; did you mean streams?",
        ]
    );
}

#[test]
fn an_empty_file_lacks_the_matrix_table() {
    assert_eq!(faults(""), ["config.toml:1: matrix: is missing"]);
    assert_eq!(
        faults("matrix = 5"),
        ["config.toml:1: matrix: must be a table, not a whole number"]
    );
}

#[test]
fn a_key_that_is_nearly_known_is_suggested_and_no_other() {
    for (key, near) in [
        ("usre", Some("user")),
        ("home_server", Some("homeserver")),
        ("acess_token", Some("access_token")),
        ("devcieid", Some("device_id")),
        ("jion", Some("join")),
        ("pass", None),
        ("name", None),
        ("server", None),
        ("x", None),
    ] {
        let told = match near {
            Some(near) => format!("is not known; did you mean {near}?"),
            None => "is not known".to_owned(),
        };
        assert_eq!(
            faults(&with(&format!("{key} = 1"))),
            [format!("config.toml:5: matrix.{key}: {told}")]
        );
    }
}

#[test]
fn one_way_to_log_in_is_needed_and_no_more() {
    assert_eq!(
        faults(&with("access_token = \"t\"\ndevice_id = \"D\"")),
        ["config.toml:5: matrix.access_token: cannot be given together with password"]
    );
    let token = MATRIX.replace("password", "access_token");
    assert_eq!(
        faults(&token),
        [
            "config.toml:1: matrix.device_id: is missing: an access_token needs the device it belongs to"
        ]
    );
    assert!(read(&format!("{token}device_id = \"D\"")).is_ok());
    assert!(read(&with("device_id = \"D\"")).is_ok());
    assert_eq!(
        faults(&MATRIX.replace("correct horse", "")),
        ["config.toml:4: matrix.password: is empty"]
    );
}

#[test]
fn a_token_belongs_to_one_agent_and_never_to_the_operator_too() {
    let text = with(
        r#"
[http]
operator_token = "0123456789abcdef-a"
[agents.a]
token = "0123456789abcdef-a"
[agents.b]
token = "0123456789abcdef-b"
[agents.c]
token = "0123456789abcdef-b"
"#,
    );
    assert_eq!(
        faults(&text),
        [
            "config.toml:9: agents.a.token: is the same as http.operator_token; each needs its own",
            "config.toml:13: agents.c.token: is the same as agents.b.token; each needs its own",
        ]
    );
}

#[test]
fn what_an_agent_is_called_names_no_other_agent() {
    let text = with(
        r#"
[agents.a]
token = "0123456789abcdef-a"
call = "Builder"
[agents.b]
token = "0123456789abcdef-b"
call = "builder"
[agents.c]
token = "0123456789abcdef-c"
call = "D"
[agents.d]
token = "0123456789abcdef-d"
"#,
    );
    assert_eq!(
        faults(&text),
        [
            "config.toml:11: agents.b.call: is what agent a is called as well",
            "config.toml:14: agents.c.call: is what agent d is called as well",
        ]
    );
}

#[test]
fn a_variable_or_file_that_is_not_there_is_named_and_nothing_follows_from_it() {
    let text = r#"[matrix]
homeserver = "env:NOWHERE"
user = "file:no/such/file"
password = "env:EMPTY"
join = ["env:NOBODY"]
"#;
    let faults = faults(text);
    assert!(
        faults[1].starts_with(
            "config.toml:3: matrix.user: the file no/such/file cannot be read: No such file"
        ),
        "{}",
        faults[1]
    );
    assert_eq!(
        [&faults[0], &faults[2], &faults[3]],
        [
            "config.toml:2: matrix.homeserver: the environment variable NOWHERE is not set",
            "config.toml:4: matrix.password: is empty (it comes from env:EMPTY)",
            "config.toml:5: matrix.join[0]: the environment variable NOBODY is not set",
        ]
    );
    assert_eq!(faults.len(), 4);
}

#[test]
fn a_file_gives_its_text_without_the_last_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    for (written, meant) in [
        ("secret", "secret"),
        ("secret\n", "secret"),
        ("secret\r\n", "secret"),
        (" two\nlines \n\n", " two\nlines \n"),
    ] {
        std::fs::write(&path, written).unwrap();
        let text = MATRIX.replace("correct horse", &format!("file:{}", path.display()));
        let password = read(&text).unwrap().matrix.password;
        assert_eq!(password, Some(Secret::from(meant)), "{written:?}");
    }
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    let text = MATRIX.replace("correct horse", &format!("file:{}", path.display()));
    assert!(faults(&text)[0].ends_with("stream did not contain valid UTF-8"));
}

#[test]
fn no_message_gives_a_value_away() {
    let text = r#"[matrix]
homeserver = "https://hunter2@example.org:hunter2"
user = "hunter2 hunter2"
password = hunter2
access_token = ["hunter2"]
recovery_passphrase = { hunter = "hunter2" }
[http]
operator_token = "hunter2"
listen = "env:SHORT"
[agents.a]
token = "env:SHORT"
matrix_user = "hunter2"
webhook = { url = "hunter2", secret = "hunter2" }
[agents.b]
token = "hunter2"
"#;
    let faults = faults(text);
    assert!(faults.len() > 9, "{faults:#?}");
    assert!(!faults.concat().contains("hunter2"), "{faults:#?}");
    let config = read(MATRIX).unwrap();
    assert!(!format!("{config:?}").contains("horse"));
}

#[test]
fn a_line_that_is_not_toml_does_not_hide_the_other_mistakes() {
    assert_eq!(
        faults(
            "[matrix]\nhomeserver = \"nowhere\"\nuser \"elicit\"\npassword = hunter2\nprefix = 3\ncolour = 1\n"
        ),
        [
            "config.toml:2: matrix.homeserver: must be an http or https URL without a user name or password in it",
            "config.toml:3: not valid TOML: key with no value, expected `=`",
            "config.toml:4: not valid TOML: string values must be quoted, expected literal string",
            "config.toml:5: matrix.prefix: must be a string, not a whole number",
            "config.toml:6: matrix.colour: is not known",
        ]
    );
    // Under a broken header nothing is where it was meant to be; the next table is.
    assert_eq!(
        faults(&with(
            "[http\nlisten = 3\nprefix = \"!\"\n[ledger]\nkeeps = 3\n"
        )),
        [
            "config.toml:5: not valid TOML: unclosed table, expected `]`",
            "config.toml:9: ledger.keeps: is not known; did you mean keep?",
        ]
    );
    // An open bracket takes the rest of the file with it.
    assert_eq!(
        faults(&with(
            "join = [\"*\",\nprefix = 3\n[http]\nlisten = 3\n[http]\n"
        )),
        ["config.toml:6: not valid TOML: unexpected `=` in array, expected value, `]`"]
    );
    assert_eq!(
        faults("[matrix\nhomeserver = \"https://example.org\"\nuser = \"elicit\"\n"),
        ["config.toml:1: not valid TOML: unclosed table, expected `]`"]
    );
    assert_eq!(
        faults(&with(
            "prefix = \"!\"\nprefix = 3\n[http]\n[http]\nlisten = 5\nx"
        )),
        [
            "config.toml:6: not valid TOML: duplicate key",
            "config.toml:8: not valid TOML: duplicate key",
            "config.toml:9: http.listen: must be a string, not a whole number",
            "config.toml:10: not valid TOML: key with no value, expected `=`",
        ]
    );
}

#[test]
fn numbers_past_what_fits_and_odd_keys_are_placed() {
    assert_eq!(
        faults(&with(
            "[answers]\nmin_power = 99999999999999999999\n[agents.\"0\"]\n[agents.\"a/b~c\"]\ntoken=3\n"
        )),
        [
            "config.toml:6: answers.min_power: is too large a number",
            "config.toml:7: agents.0.token: is missing",
            "config.toml:8: agents.\"a/b~c\": must be 1 to 64 letters, digits, dots, dashes or underscores",
            "config.toml:9: agents.\"a/b~c\".token: must be a string, not a whole number",
        ]
    );
}

#[test]
fn lines_are_counted_with_windows_line_breaks_too() {
    let text = MATRIX.replace('\n', "\r\n") + "x = 1\r\n";
    assert_eq!(faults(&text), ["config.toml:5: matrix.x: is not known"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let faults = Config::load(std::path::Path::new("no/such/config.toml")).unwrap_err();
    assert_eq!(faults.len(), 1);
    let said = faults[0].to_string();
    assert!(
        said.starts_with("no/such/config.toml: cannot be read: No such file"),
        "{said}"
    );
}
