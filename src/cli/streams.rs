//! `matrix-elicit streams silence|unsilence|silenced`: who is left out of a stream's digests for a
//! while, told to the running bot. Matrix itself knows no such thing.

use std::io::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::digest::stream_id;
use super::running::BotArgs;
use super::terminal::{cell, columns};
use crate::clock::read_timestamp;
use crate::desk::is_user_id;
use crate::prose::moment;
use crate::span::Span;

/// What is done about people and the digests of a stream.
#[derive(Debug, Subcommand)]
pub enum StreamsCommand {
    /// Leave somebody out of a stream's digests.
    Silence(SilenceArgs),
    /// Take somebody into a stream's digests again.
    Unsilence(PersonArgs),
    /// List who is left out of a stream's digests so.
    Silenced(StreamArgs),
}

/// `streams silenced`.
#[derive(Debug, Args)]
pub struct StreamArgs {
    #[command(flatten)]
    bot: BotArgs,
    /// The stream, by its id in `[streams]`.
    #[arg(value_name = "STREAM", value_parser = stream_id)]
    stream_id: String,
}

/// `streams unsilence`.
#[derive(Debug, Args)]
pub struct PersonArgs {
    #[command(flatten)]
    stream: StreamArgs,
    /// The person, by their user id.
    #[arg(value_name = "USER", value_parser = user_id)]
    user_id: String,
}

/// `streams silence`.
#[derive(Debug, Args)]
pub struct SilenceArgs {
    #[command(flatten)]
    person: PersonArgs,
    /// For how long: a number with s, m, h or d. Without it until it is undone.
    #[arg(long = "for", value_name = "SPAN")]
    span: Option<Span>,
}

fn user_id(text: &str) -> Result<String, &'static str> {
    if is_user_id(text) {
        Ok(text.to_owned())
    } else {
        Err("is no user id like @ada:example.org")
    }
}

/// Does what was asked for and writes what came of it to `out`.
///
/// # Errors
/// When the bot cannot be asked or says no, and when there was nobody to take in again.
pub async fn run(command: StreamsCommand, out: &mut impl Write) -> anyhow::Result<()> {
    match command {
        StreamsCommand::Silence(wanted) => silence(&wanted, out).await,
        StreamsCommand::Unsilence(wanted) => unsilence(&wanted, out).await,
        StreamsCommand::Silenced(wanted) => silenced(&wanted, out).await,
    }
}

async fn silence(wanted: &SilenceArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let body = match wanted.span {
        Some(span) => json!({ "seconds": span.duration().as_secs() }),
        None => json!({}),
    };
    let answer = wanted.person.ask(Method::PUT, Some(&body)).await?;
    if wanted.person.stream.bot.json {
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    let until = match (answer["until"].as_str(), wanted.span) {
        (Some(until), _) => format!("until {}", time(until)),
        (None, Some(span)) => format!("for {span}"),
        (None, None) => "until that is undone".to_owned(),
    };
    let PersonArgs { stream, user_id } = &wanted.person;
    let stream = &stream.stream_id;
    writeln!(
        out,
        "{user_id} is left out of the digests of {stream} {until}"
    )?;
    Ok(())
}

async fn unsilence(wanted: &PersonArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let answer = wanted.ask(Method::DELETE, None).await?;
    if wanted.stream.bot.json {
        writeln!(out, "{answer}")?;
    }
    let PersonArgs { stream, user_id } = wanted;
    let stream_id = &stream.stream_id;
    if answer["undone"] == false {
        bail!("{user_id} was not left out of the digests of {stream_id}");
    }
    if !stream.bot.json {
        writeln!(out, "{user_id} is in the digests of {stream_id} again")?;
    }
    Ok(())
}

async fn silenced(wanted: &StreamArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let bot = wanted.bot.running()?;
    let url = bot.url(&["streams", &wanted.stream_id, "silenced"]);
    let answer = bot.ask(Method::GET, url, None).await?;
    let Some(people) = answer["silenced"].as_array() else {
        bail!("{} answers what is no list of people", bot.base());
    };
    if wanted.bot.json {
        writeln!(out, "{answer}")?;
    } else if people.is_empty() {
        let stream = &wanted.stream_id;
        writeln!(out, "nobody is left out of the digests of {stream}")?;
    } else {
        out.write_all(table(people).as_bytes())?;
    }
    Ok(())
}

impl PersonArgs {
    async fn ask(&self, method: Method, body: Option<&Value>) -> anyhow::Result<Value> {
        let bot = self.stream.bot.running()?;
        let path = ["streams", &self.stream.stream_id, "silenced", &self.user_id];
        bot.ask(method, bot.url(&path), body).await
    }
}

fn table(people: &[Value]) -> String {
    let mut rows = vec![vec!["USER".to_owned(), "UNTIL".to_owned()]];
    for person in people {
        let until = match person["until"].as_str() {
            Some(until) => time(until),
            None => "undone".to_owned(),
        };
        rows.push(vec![cell(&person["user_id"]), until]);
    }
    columns(&rows)
}

/// A moment of the API for people.
fn time(text: &str) -> String {
    match read_timestamp(text) {
        Some(at) => moment(at),
        None => super::terminal::plain(text),
    }
}

#[cfg(test)]
mod tests;
