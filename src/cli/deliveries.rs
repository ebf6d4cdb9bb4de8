//! `matrix-elicit deliveries list|retry|drop`: what agents have not taken, asked of
//! the running bot.
//!
//! What it answers holds words of agents: none of them reaches the terminal as
//! anything but visible characters.

use std::io::Write;

use anyhow::bail;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::running::{BotArgs, RunningBot};
use super::terminal::{cell, columns};

/// The most that one page of the API holds.
const PAGE: usize = 200;

/// What is done with deliveries.
#[derive(Debug, Subcommand)]
pub enum DeliveriesCommand {
    /// List what is parked, oldest first.
    List(ListArgs),
    /// Try parked deliveries again, at once and under their ids.
    Retry(ChoiceArgs),
    /// Give parked deliveries up for good.
    Drop(ChoiceArgs),
}

/// `deliveries list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    bot: BotArgs,
    /// Only this agent's.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Those that are still tried, instead of those that are parked.
    #[arg(long)]
    pending: bool,
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,
}

/// `deliveries retry` and `deliveries drop`.
#[derive(Debug, Args)]
pub struct ChoiceArgs {
    #[command(flatten)]
    bot: BotArgs,
    #[command(flatten)]
    choice: Choice,
}

/// Which parked deliveries are meant.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Choice {
    /// These, by their ids (`evt_…`).
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All of this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// All there are.
    #[arg(long)]
    all: bool,
}

/// Does what was asked for and writes what came of it to `out`.
///
/// # Errors
/// When the bot cannot be asked or says no, and when there was nothing to retry or drop.
pub async fn run(command: DeliveriesCommand, out: &mut impl Write) -> anyhow::Result<()> {
    match command {
        DeliveriesCommand::List(arguments) => {
            let bot = arguments.bot.running()?;
            list(&bot, &arguments, out).await
        }
        DeliveriesCommand::Retry(arguments) => {
            let verb = Verb {
                path: "retry",
                done: "retried",
                said: "tried again",
            };
            change(&arguments, &verb, out).await
        }
        DeliveriesCommand::Drop(arguments) => {
            let verb = Verb {
                path: "drop",
                done: "dropped",
                said: "dropped",
            };
            change(&arguments, &verb, out).await
        }
    }
}

async fn list(bot: &RunningBot, wanted: &ListArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let state = if wanted.pending { "pending" } else { "parked" };
    let mut deliveries = Vec::new();
    let mut next = None;
    let mut more = true;
    while more && deliveries.len() < wanted.limit {
        let mut url = bot.url(&["deliveries"]);
        let limit = (wanted.limit - deliveries.len()).min(PAGE).to_string();
        url.query_pairs_mut()
            .append_pair("state", state)
            .append_pair("limit", &limit)
            .extend_pairs(wanted.agent.iter().map(|agent| ("agent", agent)))
            .extend_pairs(next.iter().map(|next: &String| ("cursor", next)));
        let mut page = bot.ask(Method::GET, url, None).await?;
        let Value::Array(found) = page["deliveries"].take() else {
            bail!("{} answers what is no list of deliveries", bot.base());
        };
        deliveries.extend(found);
        next = page["next"].as_str().map(str::to_owned);
        more = next.is_some();
    }
    if wanted.bot.json {
        writeln!(out, "{}", json!({ "deliveries": deliveries, "more": more }))?;
        return Ok(());
    }
    if deliveries.is_empty() {
        let of = wanted.agent.as_ref().map(|agent| format!(" of {agent}"));
        writeln!(out, "no delivery{} is {state}", of.unwrap_or_default())?;
        return Ok(());
    }
    out.write_all(table(&deliveries, wanted.pending).as_bytes())?;
    if more {
        writeln!(out, "There are more: --limit shows them.")?;
    }
    Ok(())
}

/// A change of parked deliveries.
struct Verb {
    /// Its path.
    path: &'static str,
    /// What the answer calls the number of those it was done to.
    done: &'static str,
    /// What became of them, for people.
    said: &'static str,
}

async fn change(wanted: &ChoiceArgs, verb: &Verb, out: &mut impl Write) -> anyhow::Result<()> {
    let bot = wanted.bot.running()?;
    let body = match &wanted.choice {
        Choice { all: true, .. } => json!({ "all": true }),
        Choice {
            agent: Some(agent), ..
        } => json!({ "agent": agent }),
        Choice { ids, .. } => json!({ "ids": ids }),
    };
    let url = bot.url(&["deliveries", verb.path]);
    let outcome = bot.ask(Method::POST, url, Some(&body)).await?;
    let Some(count) = outcome[verb.done].as_u64() else {
        bail!("{} answers something else than was asked", bot.base());
    };
    if wanted.bot.json {
        writeln!(out, "{outcome}")?;
    } else if count == 1 {
        writeln!(out, "1 delivery is {}", verb.said)?;
    } else if count > 1 {
        writeln!(out, "{count} deliveries are {}", verb.said)?;
    }
    let left = outcome["left"].as_array().map_or(&[][..], Vec::as_slice);
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(cell).collect();
        let why = "left as it is, being not parked or having no webhook to go to";
        bail!("{why}: {}", left.join(", "));
    }
    if count == 0 {
        let of = wanted.choice.agent.as_ref();
        let of = of.map(|agent| format!(" of {agent}")).unwrap_or_default();
        bail!("no delivery{of} is parked that could be {}", verb.said);
    }
    Ok(())
}

/// The deliveries in columns, with a head.
fn table(deliveries: &[Value], pending: bool) -> String {
    let mut head = vec!["ID", "AGE", "AGENT", "ELICITATION", "EVENT", "TRIES"];
    if pending {
        head.push("NEXT TRY");
    }
    head.push("LAST ERROR");
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for one in deliveries {
        let mut row = vec![
            cell(&one["id"]),
            age(one["age_seconds"].as_u64().unwrap_or(0)),
            cell(&one["agent"]),
            cell(&one["elicitation_id"]),
            cell(&one["type"]),
            cell(&one["attempts"]),
        ];
        if pending {
            row.push(cell(&one["next_try"]));
        }
        row.push(cell(&one["last_error"]));
        rows.push(row);
    }
    columns(&rows)
}

/// A span of time in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
