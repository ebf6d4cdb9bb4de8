//! Agents that do not take what they are told, and the operator who mends it from the command
//! line, while the bot runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::stage::{Stage, id, may_i_run_them};
use crate::support::{AGENT, Api, BotConfig, Received, SinkAnswer, WebhookSink, soon};

const OPERATOR: &str = "the-token-of-the-operator";
/// Their tokens are their names.
const HANGING: &str = "agt_hanging-0123456789";
const GONE: &str = "agt_gone-0123456789";
const FINE: &str = "agt_fine-0123456789";

/// What a command wrote and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    out: String,
    err: String,
    code: Option<i32>,
}

/// Runs `matrix-elicit deliveries` with the arguments and this configuration.
async fn deliveries(arguments: &[&str], config: &Path) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_matrix-elicit"))
        .arg("deliveries")
        .args(arguments)
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    Ran {
        out: String::from_utf8(ran.stdout).unwrap(),
        err: String::from_utf8(ran.stderr).unwrap(),
        code: ran.status.code(),
    }
}

fn good(out: impl Into<String>) -> Ran {
    Ran {
        out: out.into(),
        err: String::new(),
        code: Some(0),
    }
}

fn bad(err: impl AsRef<str>) -> Ran {
    Ran {
        out: String::new(),
        err: format!("matrix-elicit: {}\n", err.as_ref()),
        code: Some(1),
    }
}

fn file_of(config: &BotConfig) -> PathBuf {
    config.folder().join("config.toml")
}

/// What is parked, each without its age.
async fn parked(config: &Path) -> Vec<Value> {
    let listed = deliveries(&["list", "--json"], config).await;
    assert_eq!((&*listed.err, listed.code), ("", Some(0)));
    let mut listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed["more"], false);
    let mut found: Vec<Value> = serde_json::from_value(listed["deliveries"].take()).unwrap();
    for one in &mut found {
        let age = one.as_object_mut().unwrap().remove("age_seconds");
        assert!(age.unwrap().is_u64());
    }
    found
}

fn texts<'a>(of: &'a [Value], member: &str) -> Vec<&'a str> {
    let texts = of.iter().map(|one| one[member].as_str().unwrap());
    texts.collect()
}

/// The parked deliveries of one agent.
fn of(agent: &str, parked: &[Value]) -> Vec<Value> {
    let its = parked.iter().filter(|one| one["agent"] == agent);
    its.cloned().collect()
}

/// The ids of what came about a question, in the order it came.
fn ids_about(came: &[Received], question: &str) -> Vec<String> {
    let about = came
        .iter()
        .filter(|one| one.json["data"]["elicitation_id"] == question);
    about.map(|one| one.id.clone()).collect()
}

/// The ids of what is listed about a question, oldest first.
fn listed(deliveries: &[Value], question: &str) -> Vec<String> {
    let its = deliveries
        .iter()
        .filter(|one| one["elicitation_id"] == question);
    its.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Asks two questions, called `one` and `two`.
async fn ask_two(stage: &Stage, api: &Api) {
    for name in ["one", "two"] {
        let mut question = may_i_run_them();
        question["room"] = json!(stage.room);
        question["elicitation_id"] = json!(name);
        let asked = api.ask_fine(&question).await;
        api.until_open(id(&asked)).await;
    }
}

async fn cancel_two(api: &Api) {
    for name in ["one", "two"] {
        let (status, object) = api.cancel(name).await;
        assert_eq!(status.as_u16(), 200, "{object:#}");
    }
}

/// Pending and parked deliveries of an agent, as the metrics tell them.
async fn counted(api: &Api, agent: &str) -> (f64, f64) {
    let gauge = async |state: &str| {
        let name = format!("elicit_agent_deliveries_{state}{{agent=\"{agent}\"}}");
        api.metric(&name).await.unwrap()
    };
    (gauge("pending").await, gauge("parked").await)
}

async fn until_counted(api: &Api, agent: &str, wanted: (f64, f64)) {
    soon(&format!("{agent} to have {wanted:?}"), async || {
        (counted(api, agent).await == wanted).then_some(())
    })
    .await;
}

/// A bot whose agents fail in every way, and one that does not.
struct Trouble {
    stage: Stage,
    config: PathBuf,
    failing: WebhookSink,
    hanging: WebhookSink,
    gone: WebhookSink,
    fine: WebhookSink,
}

impl Trouble {
    async fn new() -> Self {
        let [failing, hanging, gone, fine] = [
            WebhookSink::start().await,
            WebhookSink::start().await,
            WebhookSink::start().await,
            WebhookSink::start().await,
        ];
        failing.answer_with(SinkAnswer::Status(500));
        hanging.answer_with(SinkAnswer::Hang);
        gone.answer_with(SinkAnswer::Status(410));
        let webhook = |sink: &WebhookSink| {
            // A day of failing is three seconds here.
            json!({"url": sink.url(), "secret": sink.secret(), "park_after": "3s"})
        };
        let stage = Stage::with(|config| {
            config
                .with_agent(HANGING, HANGING)
                .with_agent(GONE, GONE)
                .with_agent(FINE, FINE)
                .with_path(&["agents", AGENT, "webhook"], webhook(&failing))
                .with_path(&["agents", HANGING, "webhook"], webhook(&hanging))
                .with_path(&["agents", GONE, "webhook"], webhook(&gone))
                .with_path(&["agents", FINE, "webhook"], webhook(&fine))
                .with("http.operator_token", json!(OPERATOR))
        })
        .await;
        let config = file_of(stage.bot.config());
        Self {
            stage,
            config,
            failing,
            hanging,
            gone,
            fine,
        }
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        deliveries(arguments, &self.config).await
    }

    /// Has all agents ask, two questions each, which are then withdrawn; only what hangs is told
    /// no more than that they are open. Waits until whatever fails is parked.
    async fn begin(&self) {
        let api = &self.stage.api;
        ask_two(&self.stage, &api.with_token(HANGING)).await;
        self.hanging.wait_for_count(2).await;
        for agent in [api, &api.with_token(GONE), &api.with_token(FINE)] {
            ask_two(&self.stage, agent).await;
            cancel_two(agent).await;
        }
        // The others do not wait for what hangs.
        self.fine.wait_for_count(4).await;
        assert!(counted(api, HANGING).await.0 > 0.0);
        until_counted(api, FINE, (0.0, 0.0)).await;

        until_counted(api, GONE, (0.0, 4.0)).await;
        until_counted(api, AGENT, (0.0, 4.0)).await;
        until_counted(api, HANGING, (0.0, 2.0)).await;
        assert_eq!(api.metric("elicit_deliveries_parked").await, Some(10.0));
        assert!(api.is_ready().await);
    }

    /// Ends the bot and starts it again. While it is away nothing can be done.
    async fn restart(&mut self) {
        let (ended, _) = self.stage.bot.terminate().await;
        assert!(ended.success());
        let away = format!(
            "nothing answers at {}; is the bot running? (matrix-elicit run --config {})",
            self.stage.bot.url(),
            self.config.display()
        );
        for command in [&["list"][..], &["retry", "--all"], &["drop", "--all"]] {
            assert_eq!(self.run(command).await, bad(&away));
        }
        self.stage.bot.start_again().await;
    }

    fn heal(&self) {
        for sink in [&self.failing, &self.hanging, &self.gone] {
            sink.answer_with(SinkAnswer::Status(204));
        }
    }

    /// Everything of an agent comes, in order, under its ids.
    async fn retry_failing(&self, of_failing: &[Value]) {
        let before = self.failing.received().len();
        let ran = self.run(&["retry", "--agent", AGENT]).await;
        assert_eq!(ran, good("4 deliveries are tried again\n"));
        until_counted(&self.stage.api, AGENT, (0.0, 0.0)).await;
        let came = self.failing.received().split_off(before);
        assert_eq!(came.len(), 4);
        for question in ["one", "two"] {
            assert_eq!(ids_about(&came, question), listed(of_failing, question));
            let about = came
                .iter()
                .filter(|one| one.json["data"]["elicitation_id"] == question);
            let types: Vec<&Value> = about.map(|one| &one.json["type"]).collect();
            assert_eq!(types, ["elicitation.open", "elicitation.cancelled"]);
        }
    }

    /// Those come that are named.
    async fn retry_hanging(&self, of_hanging: &[Value]) {
        let before = self.hanging.received().len();
        let ids = texts(of_hanging, "id");
        let ran = self.run(&["retry", ids[0], ids[1]]).await;
        assert_eq!(ran, good("2 deliveries are tried again\n"));
        until_counted(&self.stage.api, HANGING, (0.0, 0.0)).await;
        let came = self.hanging.received().split_off(before);
        assert_eq!(came.len(), 2);
        for question in ["one", "two"] {
            assert_eq!(ids_about(&came, question), listed(of_hanging, question));
        }
    }

    /// One is given up for good; what is left comes.
    async fn drop_and_retry_gone(&self, of_gone: &[Value]) {
        let before = self.gone.received().len();
        let given_up = texts(of_gone, "id")[0];
        let ran = self.run(&["drop", given_up]).await;
        assert_eq!(ran, good("1 delivery is dropped\n"));
        let left = "left as it is, being not parked or having no webhook to go to";
        assert_eq!(
            self.run(&["retry", given_up]).await,
            bad(format!("{left}: {given_up}"))
        );
        let ran = self.run(&["retry", "--all", "--json"]).await;
        assert_eq!(ran, good("{\"left\":[],\"retried\":3}\n"));
        until_counted(&self.stage.api, GONE, (0.0, 0.0)).await;
        let came = self.gone.received().split_off(before);
        let came = [ids_about(&came, "one"), ids_about(&came, "two")].concat();
        let wanted = [listed(of_gone, "one"), listed(of_gone, "two")].concat();
        assert_eq!((wanted[0].as_str(), &wanted[1..]), (given_up, &came[..]));
    }
}

/// Pain: webhook.
#[tokio::test]
async fn what_agents_do_not_take_is_parked_until_the_operator_has_it_tried_again() {
    let mut trouble = Trouble::new().await;
    let nothing = good("no delivery is parked\n");
    assert_eq!(trouble.run(&["list"]).await, nothing);
    trouble.begin().await;
    let all = parked(&trouble.config).await;
    assert_eq!(all.len(), 10);
    for (agent, why) in [
        (AGENT, "HTTP 500"),
        (HANGING, "timed out"),
        (GONE, "HTTP 410: the receiver wants no more"),
    ] {
        let its = of(agent, &all);
        assert!(texts(&its, "last_error").iter().all(|error| *error == why));
        assert!(texts(&its, "state").iter().all(|state| *state == "parked"));
    }
    // The one that failed was tried more than once before it was given up.
    let failing = of(AGENT, &all);
    assert!(failing[0]["attempts"].as_u64() > Some(1), "{failing:#?}");
    let table = trouble.run(&["list", "--agent", GONE]).await;
    assert_eq!(table.out.lines().count(), 5, "{table:?}");
    let pending = trouble.run(&["list", "--pending"]).await;
    assert_eq!(pending, good("no delivery is pending\n"));

    trouble.restart().await;
    assert_eq!(parked(&trouble.config).await, all);
    trouble.heal();
    trouble.retry_failing(&failing).await;
    trouble.retry_hanging(&of(HANGING, &all)).await;
    trouble.drop_and_retry_gone(&of(GONE, &all)).await;

    assert_eq!(
        trouble.run(&["retry", "--all"]).await,
        bad("no delivery is parked that could be tried again")
    );
    assert_eq!(trouble.run(&["list"]).await, nothing);
    assert_eq!(trouble.fine.received().len(), 4);
    for sink in [&trouble.failing, &trouble.hanging, &trouble.gone] {
        for one in sink.received() {
            assert_eq!(one.signature, Ok(()), "{one:#?}");
        }
    }
    assert!(!trouble.stage.bot.log().contains(OPERATOR));
}

#[tokio::test]
async fn the_commands_are_the_operators_alone() {
    let stage = Stage::with(|config| config.with("http.operator_token", json!(OPERATOR))).await;
    let listen = stage.bot.url().strip_prefix("http://").unwrap();
    let other = stage.bot.config().folder().join("other.toml");
    let with_token = |line: String| {
        std::fs::write(&other, format!("[http]\nlisten = \"{listen}\"\n{line}")).unwrap();
    };
    let commands = [&["list"][..], &["retry", "--all"], &["drop", "evt_1"]];
    let settings: Value = toml::from_str(&stage.bot.config().text()).unwrap();
    let of_agent = settings["agents"][AGENT]["token"].as_str().unwrap();
    let refused = format!(
        "the bot at {} does not take http.operator_token of {}; was it started with another one?",
        stage.bot.url(),
        other.display()
    );
    for token in ["a-token-that-was-guessed", of_agent] {
        with_token(format!("operator_token = \"{token}\""));
        for command in commands {
            assert_eq!(deliveries(command, &other).await, bad(&refused));
        }
    }
    with_token(String::new());
    for command in commands {
        let ran = deliveries(command, &other).await;
        let said = format!(
            "matrix-elicit: http.operator_token is not set in {}: write operator_token = ",
            other.display()
        );
        assert!(ran.err.starts_with(&said), "{ran:?}");
        assert_eq!((&*ran.out, ran.code), ("", Some(1)));
    }
    // A right token is enough, with the address of the bot given instead.
    std::fs::write(&other, format!("[http]\noperator_token = \"{OPERATOR}\"\n")).unwrap();
    let ran = deliveries(&["list", "--url", stage.bot.url()], &other).await;
    assert_eq!(ran, good("no delivery is parked\n"));
}

#[tokio::test]
async fn a_bot_that_takes_no_operators_commands_says_so() {
    let stage = Stage::new().await;
    let listen = stage.bot.url().strip_prefix("http://").unwrap();
    let config = stage.bot.config().folder().join("other.toml");
    let text = format!("[http]\nlisten = \"{listen}\"\noperator_token = \"{OPERATOR}\"\n");
    std::fs::write(&config, text).unwrap();
    let said = format!(
        "the bot at {} was started without http.operator_token; start it again with {}",
        stage.bot.url(),
        config.display()
    );
    assert_eq!(deliveries(&["list"], &config).await, bad(&said));
}
