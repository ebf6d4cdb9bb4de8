//! `matrix-elicit digest STREAM`: what a room said, as an agent would be told, asked of the running
//! bot; with `--window FILE` of a window that is written down, asked of nobody.
//!
//! It holds words of anybody in a room: none of them reaches the terminal as anything that does
//! more than be read.

mod window;

use std::fmt::Write as _;
use std::io::Write;

use anyhow::bail;
use clap::Args;
use reqwest::Method;

use super::running::{RunningBot, WhereArgs};
use super::terminal::{json_line, words};
use crate::clock::{read_timestamp, timestamp};
use crate::contract::digest::{
    AgentDigest, DigestItem, ItemKind, MAX_CHARS, MAX_ITEMS, is_stream_id,
};
use crate::prose::moment;

/// `digest`.
#[derive(Debug, Args)]
#[command(mut_arg("config", |config| config.required(false).required_unless_present("window")))]
pub struct DigestArgs {
    #[command(flatten)]
    place: Option<WhereArgs>,
    /// Write the digest as one line of JSON.
    #[arg(long)]
    json: bool,
    /// The stream, by its id in `[streams]`.
    #[arg(value_name = "STREAM", value_parser = stream_id, required_unless_present = "window")]
    stream_id: Option<String>,
    /// Only what was said from then on: a time with an offset, like 2026-11-06T10:00:00Z. Without
    /// it everything that is kept.
    #[arg(long, value_name = "TIME", value_parser = moment_with_offset)]
    since: Option<String>,
    /// Make the digest of a window that is written down (JSON, in the shape of the corpus), as one
    /// line of JSON, and ask no bot; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stream_id", "since", "WhereArgs"])]
    window: Option<String>,
    /// With --window: the stream that the digest says it is of.
    #[arg(
        long = "stream",
        value_name = "STREAM",
        value_parser = stream_id,
        requires = "window",
        default_value = "ags_01JAB2C3D4E5F6G7H8J9K0MNPQ"
    )]
    of_stream: String,
}

/// Reads the id of a stream.
pub(super) fn stream_id(text: &str) -> Result<String, &'static str> {
    if is_stream_id(text) {
        Ok(text.to_owned())
    } else {
        Err("is no id of a stream, which is \"ags_\" and a ULID")
    }
}

fn moment_with_offset(text: &str) -> Result<String, &'static str> {
    match read_timestamp(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("is no time with an offset, like 2026-11-06T10:00:00Z"),
    }
}

/// Asks for the digest, or makes it, and writes it to `out`.
///
/// # Errors
/// When the bot cannot be asked, says no, or answers what is no digest; when the window cannot be
/// read.
pub async fn run(wanted: DigestArgs, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(path) = &wanted.window {
        return window::run(path, &wanted.of_stream, out);
    }
    let (Some(place), Some(stream_id)) = (&wanted.place, &wanted.stream_id) else {
        bail!("say which stream of which bot, or which window");
    };
    let bot = RunningBot::of(place)?;
    let mut url = bot.url(&["streams", stream_id, "digest"]);
    if let Some(since) = &wanted.since {
        url.query_pairs_mut().append_pair("since", since);
    }
    let answer = bot.ask(Method::GET, url, None).await?;
    let digest = match AgentDigest::read(&answer) {
        Ok(digest) => digest,
        Err(fault) => {
            let fault = words(&fault.to_string());
            bail!("{} answers what is no digest: {fault}", bot.base());
        }
    };
    if wanted.json {
        write_json(&digest, out)
    } else {
        out.write_all(told(&digest).as_bytes())?;
        Ok(())
    }
}

/// The digest alone, as one line of JSON.
fn write_json(digest: &AgentDigest, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", json_line(&serde_json::to_string(digest)?))?;
    Ok(())
}

/// The digest for people.
fn told(digest: &AgentDigest) -> String {
    let stream = digest.stream_id();
    let until = moment(digest.until());
    let window = match digest.since() {
        Some(since) => format!("from {} until {until}", moment(since)),
        None => format!("all that is kept until {until}"),
    };
    let mut text = format!("{stream}, {window}:\n\n");
    if digest.items().is_empty() {
        text.push_str("Nobody said anything that an agent is told.\n");
    }
    for (at, item) in digest.items().iter().enumerate() {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{}. {}", at + 1, head(item));
        let _ = writeln!(text, "   {}", words(item.what()));
    }
    text.push('\n');
    if digest.truncated() == Some(true) {
        let _ = writeln!(
            text,
            "More was said than {MAX_ITEMS} items or {MAX_CHARS} characters hold."
        );
    }
    let _ = writeln!(
        text,
        "To go on from here: --since {}",
        timestamp(digest.until())
    );
    text
}

fn head(item: &DigestItem) -> String {
    let who = item.who();
    let handle = who.handle();
    let name = match who.display_name() {
        "" => format!("@{handle}"),
        name => format!("{} (@{handle})", words(name)),
    };
    let does = match item.kind() {
        ItemKind::Question => "asks",
        ItemKind::Suggestion => "suggests",
        ItemKind::Reaction => "reacts",
    };
    let upvotes = match item.upvotes() {
        0 => String::new(),
        1 => ", 1 upvote".to_owned(),
        upvotes => format!(", {upvotes} upvotes"),
    };
    let repeated = match item.repeated() {
        Some(people @ 2..) => format!(", said by {people} people"),
        _ => String::new(),
    };
    format!("{name} {does}{upvotes}{repeated}")
}

#[cfg(test)]
mod tests;
