//! The bot that runs already, and how a command speaks to it as its operator.
//!
//! The address and the operator's token come from the bot's own configuration file. The bot alone
//! may touch its ledger.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use reqwest::{Client, Method, StatusCode, redirect};
use serde_json::{Value, json};
use url::Url;

use super::terminal::plain;
use crate::config::HttpConfig;
use crate::secret::Secret;

/// How long the bot may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the running bot is.
#[derive(Debug, Args)]
pub struct WhereArgs {
    /// The configuration file that the bot was started with.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where its API is, if not where `http.listen` says.
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
}

/// How the running bot is asked, and what is shown of its answer.
#[derive(Debug, Args)]
pub struct BotArgs {
    #[command(flatten)]
    place: WhereArgs,
    /// Write what the bot answers, as one line of JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl BotArgs {
    /// The bot that is meant; nothing is asked yet.
    pub(super) fn running(&self) -> anyhow::Result<RunningBot> {
        RunningBot::of(&self.place)
    }
}

/// The bot that runs with a configuration.
pub(super) struct RunningBot {
    client: Client,
    base: String,
    token: Secret,
    config: PathBuf,
}

impl RunningBot {
    /// The bot that these arguments mean; nothing is asked yet.
    pub(super) fn of(wanted: &WhereArgs) -> anyhow::Result<Self> {
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

    /// Where it is, without a slash at the end.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Where it is asked as its operator, a path below `/v1/operator` in its segments.
    pub(super) fn url(&self, path: &[&str]) -> Url {
        let url = format!("{}/v1/operator", self.base);
        // The base was printed by a URL or is an address, and a path only makes it longer.
        let mut url = Url::parse(&url).expect("a URL with a longer path is one");
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        url
    }

    /// What the bot answers, if it does what it was asked to: an object, which is empty where it
    /// has nothing to say.
    ///
    /// # Errors
    /// When it is not there, is something else, or says no.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let mut request = self
            .client
            .request(method, url)
            .bearer_auth(self.token.expose());
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.silence(error))?;
        let status = response.status();
        if status == StatusCode::NO_CONTENT {
            return Ok(json!({}));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_listens_everywhere_and_is_reached_at_home() {
        let at = |listen: &str| address(listen.parse().unwrap()).map_err(|error| error.to_string());
        for (listen, reached) in [
            ("127.0.0.1:8470", "http://127.0.0.1:8470"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:8470", "http://[::1]:8470"),
            ("192.0.2.7:8470", "http://192.0.2.7:8470"),
        ] {
            assert_eq!(at(listen), Ok(reached.to_owned()));
        }
        let open = "http.listen leaves the port open: say with --url where the bot is";
        assert_eq!(at("127.0.0.1:0"), Err(open.to_owned()));
    }

    #[test]
    fn a_segment_of_a_path_stays_one_segment() {
        let bot = |base: &str| RunningBot {
            client: Client::new(),
            base: base.to_owned(),
            token: Secret::from("the-token"),
            config: PathBuf::new(),
        };
        let path = |base: &str| bot(base).url(&["a", "@a/b?c#d%:example.org"]).to_string();
        assert_eq!(
            path("http://127.0.0.1:1"),
            "http://127.0.0.1:1/v1/operator/a/@a%2Fb%3Fc%23d%25:example.org"
        );
        assert_eq!(
            path("https://example.org/bot"),
            "https://example.org/bot/v1/operator/a/@a%2Fb%3Fc%23d%25:example.org"
        );
    }
}
