//! A throwaway homeserver and the people on it: what `matrix-elicit demo` shows itself
//! off with, and what the tests talk to.
//!
//! [`Provision`] puts a pinned Synapse into the user's cache folder, once; [`Synapse`] runs
//! one on loopback in a folder of its own; [`Person`] is somebody in its rooms, speaking the
//! plain client-server protocol.
//!
//! Life cycle: the installation outlives everything and is shared by all processes. A server
//! lives as long as its [`Synapse`], and its process ends by itself when ours is gone, however
//! that came about: it watches a pipe that only we hold. What it stored lives as long as the
//! folder it was given.
//!
//! Nothing here is fit for a homeserver that anybody relies on: registration is open, limits
//! are off, and nothing is federated.

mod homeserver;
mod homeserver_config;
mod person;
mod provision;
mod synapse;

use std::{io, path::PathBuf};

pub use homeserver::{Account, Homeserver};
pub use homeserver_config::{RateLimits, SERVER_NAME};
pub use person::{Following, Person, RoomOptions};
pub use provision::{Installed, Provision, SYNAPSE_VERSION, find_python};
pub use synapse::{Synapse, SynapseOptions, free_port};

/// Why there is no throwaway homeserver, or why it refused something.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No Python that is new enough. `found` tells what was there instead, if anything.
    #[error(
        "Python 3.10 or newer is needed, and {found}; \
         install one, or name one in MATRIX_ELICIT_PYTHON"
    )]
    NoPython {
        /// What was looked for, and what came of it.
        found: String,
    },
    /// Python is there but cannot make virtual environments, as on a bare Debian.
    #[error(
        "{python} cannot make a virtual environment (its venv or ensurepip is missing); \
         on Debian and Ubuntu: apt install python3-venv"
    )]
    NoVenv {
        /// The interpreter that was asked.
        python: String,
    },
    /// There is no place to keep the installation in.
    #[error("no cache folder: set HOME, XDG_CACHE_HOME or MATRIX_ELICIT_CACHE")]
    NoCacheFolder,
    /// The installer ran and failed.
    #[error("Synapse could not be installed: {reason} (the whole output is in {log})", log = log.display())]
    Install {
        /// The installer's own last complaint.
        reason: String,
        /// Where its output was written.
        log: PathBuf,
    },
    /// The server did not come up, or went away while starting.
    #[error("Synapse did not start: {reason} (its log is in {log})", log = log.display())]
    Start {
        /// Its last words.
        reason: String,
        /// Where its output was written.
        log: PathBuf,
    },
    /// A file or a process could not be used.
    #[error("{what} failed")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The homeserver could not be asked.
    #[error("the homeserver could not be reached")]
    Unreachable(#[from] reqwest::Error),
    /// The homeserver's address is not a URL to which paths can be added.
    #[error("{0} is not the address of a homeserver; it looks like https://matrix.example.org")]
    Address(String),
    /// The homeserver answered, and the answer was no.
    #[error("the homeserver refused {what}: {status} {errcode} {message}")]
    Refused {
        /// Method and path, without the query.
        what: String,
        /// The HTTP status.
        status: u16,
        /// Matrix' `errcode`, or empty.
        errcode: String,
        /// Matrix' `error`, or the start of the body.
        message: String,
    },
    /// The answer lacked something that the specification promises.
    #[error("the homeserver's answer has no {0}")]
    Incomplete(&'static str),
    /// What was waited for did not come.
    #[error("waited {seconds} s for {what}, in vain")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
}

impl SandboxError {
    /// Whether a homeserver that is there already would help: nothing could be installed here.
    pub fn is_missing_here(&self) -> bool {
        matches!(
            self,
            Self::NoPython { .. }
                | Self::NoVenv { .. }
                | Self::NoCacheFolder
                | Self::Install { .. }
        )
    }

    /// Matrix' `errcode` if the homeserver refused, such as `M_FORBIDDEN`.
    pub fn errcode(&self) -> Option<&str> {
        match self {
            Self::Refused { errcode, .. } => Some(errcode),
            _ => None,
        }
    }

    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
