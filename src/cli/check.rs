//! `matrix-elicit check --config FILE`: every mistake at once.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;

use crate::config::Config;

/// Checks the configuration at `path`. Right is one line that says what it amounts to, and
/// `true`; otherwise each mistake is a line, `FILE:LINE: KEY: MESSAGE`.
///
/// # Errors
/// Only if `out` cannot be written to.
pub fn run(path: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let checked = Config::load(path);
    match &checked {
        Ok(config) => config
            .cautions()
            .iter()
            .try_for_each(|caution| writeln!(out, "{}: caution: {caution}", path.display()))
            .and_then(|()| writeln!(out, "{}: ok: {}", path.display(), summary(config))),
        Err(faults) => faults.iter().try_for_each(|fault| writeln!(out, "{fault}")),
    }
    .context("cannot write the result")?;
    Ok(checked.is_ok())
}

fn summary(config: &Config) -> String {
    let agents = counted(config.agents.len(), "agent");
    let rooms = counted(config.rooms.len(), "room");
    let webhooks = config
        .agents
        .values()
        .filter(|agent| agent.webhook.is_some());
    let webhooks = counted(webhooks.count(), "webhook");
    let mut summary = format!("{agents}, {webhooks}, {rooms} with own rules");
    for (count, noun) in [
        (config.boards.len(), "board"),
        (config.carriers.len(), "other carrier"),
        (config.streams.len(), "stream"),
    ] {
        if count > 0 {
            summary.push_str(", ");
            summary.push_str(&counted(count, noun));
        }
    }
    summary
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> (bool, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        let right = run(&path, &mut out).unwrap();
        let name = path.display().to_string();
        (
            right,
            String::from_utf8(out).unwrap().replace(&name, "FILE"),
        )
    }

    const RIGHT: &str = r##"
[matrix]
homeserver = "https://matrix.example.org"
user = "@elicit:example.org"
password = "correct horse"
[rooms."#release:example.org"]
min_power = 50
[agents.a]
token = "0123456789abcdef-a"
webhook = { url = "https://example.org", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
[agents.b]
token = "0123456789abcdef-b"
"##;

    #[test]
    fn a_right_file_is_told_in_one_line() {
        assert_eq!(
            said(RIGHT),
            (
                true,
                "FILE: ok: 2 agents, 1 webhook, 1 room with own rules\n".to_owned()
            )
        );
    }

    #[test]
    fn boards_and_carriers_are_told_where_there_are_some() {
        let text = format!(
            r#"{RIGHT}
[boards.brd_7c1f]
base_url = "http://board.example.org"
agent_token = "kbn_0123456789abcdef"
push_secrets = ["0123456789abcdef"]
invite = ["@mira:example.org"]
people.bearer = {{ "@mira:example.org" = "0123456789abcdef-mira" }}
[carriers."@hub:example.org"]
answer = "route"
[carriers."@exchange:example.org"]
answer = "observe"
"#
        );
        assert_eq!(
            said(&text),
            (
                true,
                "FILE: caution: boards.brd_7c1f.base_url: tokens go to another machine \
                 unencrypted; use https\n\
                 FILE: ok: 2 agents, 1 webhook, 1 room with own rules, 1 board, \
                 2 other carriers\n"
                    .to_owned()
            )
        );
        let wrong = text
            .replace("invite = [", "room = \"!abc\"\ninvite = [")
            .replace("\"route\"", "\"answer\"");
        assert_eq!(
            said(&wrong),
            (
                false,
                "FILE:19: boards.brd_7c1f.invite: cannot be given together with room\n\
                 FILE:22: carriers.\"@hub:example.org\".answer: must be \"observe\" or \"route\"\n"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_stream_is_told_with_what_had_better_be_otherwise() {
        let stream = r#"
[streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ]
room = "!abc"
agents = ["a"]
min_age = "1h"
"#;
        assert_eq!(
            said(&format!("{RIGHT}{stream}")),
            (
                true,
                "FILE: caution: streams.ags_01JAB2C3D4E5F6G7H8J9K0MNPQ.min_age: is shorter than \
                 24h: accounts younger than a day get into the digest, against \
                 chat.agent-digest@1\n\
                 FILE: ok: 2 agents, 1 webhook, 1 room with own rules, 1 stream\n"
                    .to_owned()
            )
        );
    }

    #[test]
    fn what_may_be_guessed_is_allowed_and_said_without_telling_it() {
        let short = RIGHT
            .replace("0123456789abcdef-b", "hunter2")
            .replace("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=");
        assert_eq!(
            said(&short),
            (
                true,
                "FILE: caution: agents.b.token: is short enough to be guessed; \
                 \"openssl rand -hex 32\" makes a good one\n\
                 FILE: caution: agents.a.webhook.secret: is shorter than 24 bytes\n\
                 FILE: ok: 2 agents, 1 webhook, 1 room with own rules\n"
                    .to_owned()
            )
        );
    }

    #[test]
    fn every_mistake_is_a_line_of_its_own() {
        let wrong = RIGHT
            .replace("min_power", "max_power")
            .replace("https://example", "example");
        assert_eq!(
            said(&wrong),
            (
                false,
                "FILE:7: rooms.\"#release:example.org\".max_power: is not known; did you mean min_power?\n\
                 FILE:10: agents.a.webhook.url: must be an http or https URL without a user name or password in it\n"
                    .to_owned()
            )
        );
    }
}
