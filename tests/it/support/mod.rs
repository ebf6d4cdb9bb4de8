//! What the tests stand on: a homeserver that all of them share, people in its rooms, the bot
//! as a process of its own, and an agent's side of things.
//!
//! Tests run side by side and share the homeserver: whoever needs a user takes a fresh name
//! ([`unique`]), and nobody stops the shared server. A test that needs the homeserver to go
//! away starts its own ([`own_homeserver`]).
#![allow(dead_code, reason = "a kit: not every test needs every tool")]

mod api;
mod board;
mod board_faults;
mod bot_process;
mod encrypted_person;
mod webhook_sink;

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use matrix_elicit::sandbox::{Installed, Provision, Synapse, SynapseOptions};
use tokio::sync::OnceCell;

#[allow(unused_imports, reason = "a kit")]
pub use {
    api::{Api, EventStream, StreamedEvent},
    board::{BOARD_AGENT, Board, BoardOptions},
    board_faults::{BoardFault, BoardRoute},
    bot_process::{AGENT, BotConfig, BotProcess},
    encrypted_person::EncryptedPerson,
    webhook_sink::{Received, SinkAnswer, WebhookSink},
};

/// How long a test waits for something that is bound to happen: ample, as a machine that is
/// also compiling can be slow, and nothing waits longer than it must.
pub const SOON: Duration = Duration::from_mins(1);

struct Shared {
    synapse: Synapse,
    /// Locked for as long as this process lives; see [`scratch_folder`].
    _in_use: File,
}

static SHARED: OnceCell<Shared> = OnceCell::const_new();
static INSTALLED: OnceCell<Installed> = OnceCell::const_new();

/// The homeserver that the tests of this process share, started by the first one to ask. It
/// belongs to no test's runtime, and ends with the process.
pub async fn homeserver() -> &'static Synapse {
    let start = async || {
        let (folder, in_use) = scratch_folder();
        let synapse = Synapse::start(installed().await, &folder, SynapseOptions::default())
            .await
            .unwrap();
        Shared {
            synapse,
            _in_use: in_use,
        }
    };
    &SHARED.get_or_init(start).await.synapse
}

/// A homeserver for one test alone, which may stop and restart it. Its files are in the folder,
/// to be kept for as long.
pub async fn own_homeserver(options: SynapseOptions) -> (Synapse, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let synapse = Synapse::start(installed().await, folder.path(), options)
        .await
        .unwrap();
    (synapse, folder)
}

/// The installation, made on the first run ever.
pub async fn installed() -> &'static Installed {
    let install = async || {
        let provision = Provision::from_env(&|name| std::env::var(name).ok()).unwrap();
        // Straight to standard error, which the test harness does not hold back: a first run
        // that installs for a minute should say so.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "homeserver: {line}"));
        provision.run(&progress).await.unwrap()
    };
    INSTALLED.get_or_init(install).await
}

/// A name that no other test uses: the stem and eight random digits.
pub fn unique(stem: &str) -> String {
    format!("{stem}-{:08x}", rand::random::<u32>())
}

/// Asks until there is something, for no longer than [`SOON`].
pub async fn soon<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let Ok(found) = tokio::time::timeout(SOON, found).await else {
        panic!("waited in vain for {what}");
    };
    found
}

/// A folder for a server that is never dropped, as the process just ends. It is locked while it
/// is used, so that a later run knows what it may remove.
fn scratch_folder() -> (PathBuf, File) {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("homeservers");
    fs::create_dir_all(&parent).unwrap();
    for entry in fs::read_dir(&parent).unwrap().flatten() {
        let abandoned =
            File::open(entry.path().join("in-use")).is_ok_and(|file| file.try_lock().is_ok());
        if abandoned {
            // Another process may be removing it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = parent.join(unique("synapse"));
    fs::create_dir_all(&folder).unwrap();
    let in_use = File::create(folder.join("in-use")).unwrap();
    in_use.lock().unwrap();
    (folder, in_use)
}
