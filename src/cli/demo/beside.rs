//! A program of the demo's that runs as a process of its own, beside the bot.

use std::{fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    task::JoinHandle,
};

use super::{SOON, screen::Screen};

const STOP_LIMIT: Duration = Duration::from_secs(5);

/// What runs beside the bot. Its process ends when this is dropped, and by itself when ours is gone.
pub struct Beside {
    url: String,
    child: Child,
    story: JoinHandle<()>,
}

/// A program in Python, and what it is started with. It ends when its standard input is closed, and
/// its first line of output is `{"url": …}`, where it listens.
pub struct Program<'a> {
    /// What it is, to people: `the board`.
    pub name: &'static str,
    /// What its file is called.
    pub file: &'a str,
    /// Its source.
    pub source: &'a str,
    /// Its arguments.
    pub args: &'a [&'a str],
    /// What it is told in its environment. A value that is not given is taken away.
    pub variables: &'a [(&'a str, Option<&'a str>)],
}

impl Beside {
    /// Starts a program, with its file in `folder`, and waits until it listens. What it tells on
    /// standard error is shown on the screen.
    pub async fn start(
        program: &Program<'_>,
        python: &Path,
        folder: &Path,
        screen: &Screen,
    ) -> anyhow::Result<Self> {
        let name = program.name;
        let path = folder.join(program.file);
        fs::write(&path, program.source).with_context(|| format!("writing {name}'s program"))?;
        let mut command = Command::new(python);
        command
            .args(["-I", "-B", "-X", "utf8"])
            .arg(&path)
            .args(program.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (variable, value) in program.variables {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        // Ctrl-C in a terminal reaches the whole group: we mean to end it ourselves.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {name} with {}", python.display()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let story = tokio::spawn(tell(name, stderr, screen.clone()));
        let mut first_line = String::new();
        if let Some(stdout) = stdout {
            let mut stdout = BufReader::new(stdout);
            let listening = stdout.read_line(&mut first_line);
            tokio::time::timeout(SOON, listening)
                .await
                .with_context(|| format!("{name} did not start in time"))?
                .with_context(|| format!("reading what {name} says"))?;
        }
        let said: Value = serde_json::from_str(&first_line).unwrap_or_default();
        let Some(url) = said["url"].as_str() else {
            // Why not is what it told.
            let _ = tokio::time::timeout(STOP_LIMIT, story).await;
            bail!("{name} did not start");
        };
        Ok(Self {
            url: url.to_owned(),
            child,
            story,
        })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it, once it has told everything.
    pub async fn stop(&mut self) {
        // It ends when its standard input does.
        drop(self.child.stdin.take());
        let ended = async {
            let _ = self.child.wait().await;
            let _ = (&mut self.story).await;
        };
        // Whatever is left then is killed when this is dropped.
        let _ = tokio::time::timeout(STOP_LIMIT, ended).await;
    }
}

/// Shows what it tells, until it ends.
async fn tell(name: &str, stderr: Option<ChildStderr>, screen: Screen) {
    let Some(stderr) = stderr else { return };
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        screen.interject(&format!("{name} │ {line}"));
    }
}
