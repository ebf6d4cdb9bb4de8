//! `matrix-elicit deliveries list|retry|drop`: what agents have not taken, asked of
//! the running bot, which alone may touch its ledger.
//!
//! The address and the operator's token come from the bot's own configuration
//! file. What it answers holds words of agents: none of them reaches the
//! terminal as anything but visible characters.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use reqwest::{Client, Method, StatusCode, redirect};
use serde_json::{Value, json};
use url::Url;

use crate::config::HttpConfig;
use crate::secret::Secret;

/// The most that one page of the API holds.
const PAGE: usize = 200;
/// How long the bot may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

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

/// How the running bot is reached.
#[derive(Debug, Args)]
pub struct BotArgs {
    /// The configuration file that the bot was started with.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where its API is, if not where `http.listen` says.
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Write what the bot answers, as one line of JSON.
    #[arg(long)]
    json: bool,
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
            let bot = RunningBot::of(&arguments.bot)?;
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
        let mut url = bot.url("");
        let limit = (wanted.limit - deliveries.len()).min(PAGE).to_string();
        url.query_pairs_mut()
            .append_pair("state", state)
            .append_pair("limit", &limit)
            .extend_pairs(wanted.agent.iter().map(|agent| ("agent", agent)))
            .extend_pairs(next.iter().map(|next: &String| ("cursor", next)));
        let mut page = bot.ask(Method::GET, url, None).await?;
        let Value::Array(found) = page["deliveries"].take() else {
            bail!("{} answers what is no list of deliveries", bot.base);
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
    let bot = RunningBot::of(&wanted.bot)?;
    let body = match &wanted.choice {
        Choice { all: true, .. } => json!({ "all": true }),
        Choice {
            agent: Some(agent), ..
        } => json!({ "agent": agent }),
        Choice { ids, .. } => json!({ "ids": ids }),
    };
    let url = bot.url(&format!("/{}", verb.path));
    let outcome = bot.ask(Method::POST, url, Some(&body)).await?;
    let Some(count) = outcome[verb.done].as_u64() else {
        bail!("{} answers something else than was asked", bot.base);
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

/// The bot that runs with a configuration.
struct RunningBot {
    client: Client,
    base: String,
    token: Secret,
    config: PathBuf,
}

impl RunningBot {
    fn of(wanted: &BotArgs) -> anyhow::Result<Self> {
        let http = HttpConfig::load(&wanted.config).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            anyhow!(lines.join("\n"))
        })?;
        let Some(token) = http.operator_token else {
            bail!(
                "http.operator_token is not set in {}: write \
                 operator_token = \"env:ELICIT_OPERATOR_TOKEN\" under [http], give it what \
                 \"openssl rand -hex 32\" prints, and start the bot again",
                wanted.config.display()
            );
        };
        let base = match &wanted.url {
            Some(url) if matches!(url.scheme(), "http" | "https") => url.to_string(),
            Some(_) => bail!("--url must begin with http:// or https://"),
            None => address(http.listen)?,
        };
        let client = Client::builder()
            .no_proxy()
            // The token goes to the bot and to nobody it names.
            .redirect(redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .context("the client cannot be made")?;
        Ok(Self {
            client,
            base: base.trim_end_matches('/').to_owned(),
            token,
            config: wanted.config.clone(),
        })
    }

    fn url(&self, path: &str) -> Url {
        let url = format!("{}/v1/operator/deliveries{path}", self.base);
        // The base was printed by a URL or is an address, and a path only makes it longer.
        Url::parse(&url).expect("a URL with a longer path is one")
    }

    /// What the bot answers, if it does what it was asked to.
    async fn ask(&self, method: Method, url: Url, body: Option<&Value>) -> anyhow::Result<Value> {
        let mut request = self
            .client
            .request(method, url)
            .bearer_auth(self.token.expose());
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.silence(error))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| self.silence(error))?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        if status == StatusCode::OK && answer.is_object() {
            return Ok(answer);
        }
        Err(refusal(&self.base, &self.config, status, &answer))
    }

    fn silence(&self, error: reqwest::Error) -> anyhow::Error {
        if error.is_connect() {
            return anyhow!(
                "nothing answers at {}; is the bot running? (matrix-elicit run --config {})",
                self.base,
                self.config.display()
            );
        }
        if error.is_timeout() {
            let seconds = PATIENCE.as_secs();
            return anyhow!("{} did not answer within {seconds} s", self.base);
        }
        anyhow::Error::from(error.without_url()).context(format!("{} does not answer", self.base))
    }
}

/// Why the bot did not do it.
fn refusal(base: &str, config: &Path, status: StatusCode, answer: &Value) -> anyhow::Error {
    let error = &answer["error"];
    let (Some(code), Some(message)) = (error["code"].as_str(), error["message"].as_str()) else {
        return anyhow!("what answers at {base} is no matrix-elicit: HTTP {status}");
    };
    let config = config.display();
    match code {
        "UNAUTHORIZED" => anyhow!(
            "the bot at {base} does not take http.operator_token of {config}; was it started with \
             another one?"
        ),
        "NO_OPERATOR_TOKEN" => anyhow!(
            "the bot at {base} was started without http.operator_token; start it again with {config}"
        ),
        "NOT_FOUND" => anyhow!("the bot at {base} does not know this command; is it older?"),
        _ => anyhow!("the bot at {base} says: {}", plain(message)),
    }
}

/// Where a bot that listens there is reached from its own machine.
fn address(listen: SocketAddr) -> anyhow::Result<String> {
    if listen.port() == 0 {
        bail!("http.listen leaves the port open: say with --url where the bot is");
    }
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}", SocketAddr::new(ip, listen.port())))
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
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing into a string does not fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// A text whose characters are all to be seen: no line break, no colour, nothing that turns the
/// direction of what follows.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\'' | '"' | '\\') {
            plain.push(character);
        } else {
            plain.extend(character.escape_debug());
        }
    }
    plain
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
