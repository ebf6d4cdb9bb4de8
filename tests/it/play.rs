//! The bot on a scripted homeserver: one question, whatever goes wrong, and how it must end.

use matrix_elicit::sandbox::Account;

use crate::scene::{Traces, at_rest, count, one_of_each, opened, question, told, traces_in};
use crate::scripted::{ScriptedServer, World};
use crate::support::{BotConfig, BotProcess, WebhookSink, soon};

/// The bot's password.
pub const PASSWORD: &str = "bot-password";

/// A bot with a webhook on a scripted homeserver, and a person in a room with it.
pub struct Play {
    pub server: ScriptedServer,
    pub sink: WebhookSink,
    pub bot: BotProcess,
    pub ada: String,
    pub room: String,
}

impl Play {
    /// The bot is ready, and nothing has gone wrong yet.
    pub async fn begin() -> Self {
        let mut play = Self::prepare(|config| config).await;
        play.bot.wait_ready().await;
        play
    }

    /// The bot is only just started.
    pub async fn prepare(configure: impl FnOnce(BotConfig) -> BotConfig) -> Self {
        Self::over(ScriptedServer::start().await, configure).await
    }

    /// The same on a server that has been told what to do wrong.
    pub async fn over(
        server: ScriptedServer,
        configure: impl FnOnce(BotConfig) -> BotConfig,
    ) -> Self {
        let sink = WebhookSink::start().await;
        let user_id = server.account("elicit", PASSWORD);
        let ada = server.account("ada", "");
        // With a third in the room not everything is said to the bot.
        let ben = server.account("ben", "");
        let room = server.room(&ada, &[&user_id, &ben]);
        let account = Account {
            user_id,
            device_id: String::new(),
            access_token: String::new(),
            password: PASSWORD.to_owned(),
        };
        let config = BotConfig::at(&server.url(), account).with_webhook(&sink);
        let bot = BotProcess::start_unready(configure(config));
        Self {
            server,
            sink,
            bot,
            ada,
            room,
        }
    }

    /// Asks a question; its card, once it is in the room.
    pub async fn ask(&self, id: &str) -> String {
        self.bot.api().ask_fine(&question(&self.room, id)).await;
        self.card_of(id).await
    }

    /// The card of a question, once it has come back by sync: what is said then may mean it.
    pub async fn card_of(&self, id: &str) -> String {
        let open = opened(&self.bot.api(), id).await;
        let visible = format!("SELECT visible FROM elicitations WHERE id = '{id}'");
        soon("the card to come back", async || {
            (count(&self.bot, &visible) == 1).then_some(())
        })
        .await;
        open["event_id"].as_str().unwrap().to_owned()
    }

    /// Ada says something.
    pub fn says(&self, body: &str) -> String {
        self.server.says(&self.room, &self.ada, body)
    }

    /// Asks, lets it go wrong, answers: the answer must come through, once, and the bot be ready.
    pub async fn survives(&self, disturb: impl FnOnce(&ScriptedServer)) {
        let card = self.ask("e1").await;
        disturb(&self.server);
        let answer = self.says("2");
        self.ends_with("e1", &card, &answer).await;
        assert!(self.server.faults_are_over());
        assert!(self.bot.api().is_ready().await);
    }

    /// Waits until this question, the only one there was, is answered by this event, and until
    /// everything about it has been sent; and nothing twice.
    pub async fn ends_with(&self, id: &str, card: &str, answer: &str) {
        let left = self.is_answered_by(id, card, answer).await;
        assert_eq!(left, one_of_each(&[(card.to_owned(), answer.to_owned())]));
    }

    async fn is_answered_by(&self, id: &str, card: &str, answer: &str) -> Traces {
        let object = self.bot.api().until_answered(id).await;
        assert_eq!(object["answer"]["event_id"], *answer, "{object:#}");
        assert_eq!(object["event_id"], *card, "{object:#}");
        self.rests().await;
        let kinds = ["elicitation.answered", "elicitation.open"];
        assert_eq!(
            self.told(),
            kinds.map(|kind| (id.to_owned(), kind.to_owned()))
        );
        self.traces()
    }

    /// Waits until nothing is left to be sent, and until the bot has heard of all it has sent.
    pub async fn rests(&self) {
        at_rest(&self.bot).await;
        soon("the bot to hear of everything", async || {
            self.server.look(World::is_heard).then_some(())
        })
        .await;
    }

    /// What the bot has put into the room.
    pub fn traces(&self) -> Traces {
        let timeline = self.server.look(|world| world.timeline(&self.room));
        traces_in(&timeline, self.bot.user_id())
    }

    /// Of what the agent was told, by question and type, each webhook id once.
    pub fn told(&self) -> Vec<(String, String)> {
        let told = told(&self.sink).into_iter();
        told.map(|(id, kind, _)| (id, kind)).collect()
    }
}
