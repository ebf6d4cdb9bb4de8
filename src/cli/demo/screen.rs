//! What is shown on the terminal, and what is typed there.

use std::{
    io::{self, BufRead as _, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::mpsc;

use super::show::printable;

const PROMPT: &str = "you> ";

/// Where things are shown: on standard output, unless that is for the result alone.
#[derive(Debug, Clone)]
pub struct Screen {
    scripted: bool,
    /// Whether a prompt stands on the last line.
    prompting: Arc<Mutex<bool>>,
}

impl Screen {
    /// `scripted`: nobody types, and standard output is for the result.
    pub fn new(scripted: bool) -> Self {
        Self {
            scripted,
            prompting: Arc::default(),
        }
    }

    /// Whether nobody types here.
    pub fn is_scripted(&self) -> bool {
        self.scripted
    }

    /// Shows a text.
    pub fn say(&self, text: &str) {
        let text = printable(text);
        if self.scripted {
            eprintln!("{text}");
        } else {
            println!("{text}");
        }
    }

    /// What the following is about.
    pub fn title(&self, text: &str) {
        self.say(&format!("\n── {text} ──"));
    }

    /// The result, for scripts as for people.
    pub fn result(&self, object: &Value) {
        if self.scripted {
            println!("{object:#}");
        } else {
            self.say(&format!("{object:#}"));
        }
    }

    /// Asks for a line.
    pub fn prompt(&self) {
        let mut prompting = self.prompting();
        if !self.scripted && !*prompting {
            *prompting = true;
            print_now(PROMPT);
        }
    }

    /// The line with the prompt is over: something was typed, or nothing is asked for any more.
    pub fn end_prompt(&self) {
        *self.prompting() = false;
    }

    /// Shows a text while a prompt may be waiting on this line; it waits below the text then.
    pub fn interject(&self, text: &str) {
        let prompting = self.prompting();
        if *prompting {
            print_now("\r");
        }
        self.say(text);
        if *prompting {
            print_now(PROMPT);
        }
    }

    fn prompting(&self) -> MutexGuard<'_, bool> {
        self.prompting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn print_now(text: &str) {
    print!("{text}");
    // A prompt that cannot be written is missed by nobody.
    let _ = io::stdout().flush();
}

/// The one line that is given, or else what is typed.
pub fn lines(given: Option<String>) -> mpsc::Receiver<String> {
    given.map_or_else(typed_lines, one_line)
}

fn one_line(text: String) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    // The channel is empty, so there is room.
    let _ = sender.try_send(text);
    lines
}

/// Standard input by the line. Read on a thread of its own that nobody waits for: a read that
/// never returns must not keep the program from ending.
fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}
