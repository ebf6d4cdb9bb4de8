//! `matrix-elicit read`: how texts would be read, for whoever wonders why a reply
//! was not understood.
//!
//! One JSON object a line, as in the corpus: `options` (objects or bare strings),
//! `text`, `directed` (false unless given); other fields are ignored. The text is what
//! is left when reply fallback, mention and tag are gone.

use std::io::{BufRead, Write};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::contract::CardOption;
use crate::reply::{Choice, Options, read_option};

#[derive(Deserialize)]
struct Line {
    options: Vec<LineOption>,
    text: String,
    #[serde(default)]
    directed: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LineOption {
    Both { id: String, label: String },
    Bare(String),
}

impl From<LineOption> for CardOption {
    fn from(option: LineOption) -> Self {
        let (id, label) = match option {
            LineOption::Both { id, label } => (id, label),
            LineOption::Bare(both) => (both.clone(), both),
        };
        Self { id, label }
    }
}

/// Reads every line of `input` and writes one JSON line for each that is not blank:
/// `{"choose","by","why"}`, `{"ask":[ids],"why"}`, `{"none":true,"why"}`, or `{"error"}`.
///
/// # Errors
/// When `input` or `output` breaks, and, after the last line, when a line was no such
/// object.
pub fn run(mut input: impl BufRead, mut output: impl Write) -> anyhow::Result<()> {
    let mut bad = 0_usize;
    let mut bytes = Vec::new();
    for number in 1_usize.. {
        bytes.clear();
        if input
            .read_until(b'\n', &mut bytes)
            .context("cannot read the lines")?
            == 0
        {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let reading = match serde_json::from_slice::<Line>(&bytes) {
            Ok(line) => reading(line),
            Err(error) => {
                bad += 1;
                json!({ "error": format!("line {number}: {error}") })
            }
        };
        writeln!(output, "{reading}").context("cannot write the readings")?;
    }
    output.flush().context("cannot write the readings")?;
    match bad {
        0 => Ok(()),
        1 => bail!("1 line could not be read"),
        _ => bail!("{bad} lines could not be read"),
    }
}

fn reading(line: Line) -> Value {
    let list: Vec<CardOption> = line.options.into_iter().map(CardOption::from).collect();
    let options = Options::new(&list);
    let reading = read_option(&line.text, &options, line.directed);
    let why = reading.why;
    match reading.choice {
        Choice::Choose { index, by } => json!({ "choose": list[index].id, "by": by, "why": why }),
        Choice::Ask { indexes } => {
            let ids: Vec<&str> = indexes.iter().map(|&i| list[i].id.as_str()).collect();
            json!({ "ask": ids, "why": why })
        }
        Choice::None => {
            let only_if_directed =
                !line.directed && read_option(&line.text, &options, true).choice != Choice::None;
            let why = if only_if_directed {
                "read so only when said to the bot"
            } else {
                why
            };
            json!({ "none": true, "why": why })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> (String, anyhow::Result<()>) {
        let mut output = Vec::new();
        let result = run(input.as_bytes(), &mut output);
        (String::from_utf8(output).unwrap(), result)
    }

    #[test]
    fn each_line_gets_its_reading() {
        let options = r#""options":[{"id":"r","label":"Red"},"Blue"]"#;
        let (output, result) = read(&format!(
            "{{{options},\"text\":\"RED!\",\"n\":1}}\n\n{{{options},\"text\":\"1 or blue\",\"directed\":true}}\r\n\
             {{{options},\"text\":\"the last one\"}}\n{{{options},\"text\":\"staging?\",\"directed\":true}}"
        ));
        result.unwrap();
        let lines: Vec<Value> = output
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                json!({ "choose": "r", "by": "label", "why": "the label of one option" }),
                json!({ "ask": ["r", "Blue"], "why": "more than one option fits" }),
                json!({ "none": true, "why": "read so only when said to the bot" }),
                json!({ "none": true, "why": "a question is no answer" }),
            ]
        );
    }

    #[test]
    fn a_bad_line_is_named_and_the_rest_is_read() {
        let (output, result) = read("nonsense\n{\"options\":[\"a\"],\"text\":\"a\"}\n{}\n");
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with(r#"{"error":"line 1: "#), "{output}");
        assert_eq!(
            serde_json::from_str::<Value>(lines[1]).unwrap(),
            json!({ "choose": "a", "by": "id", "why": "the id of one option" })
        );
        assert!(lines[2].starts_with(r#"{"error":"line 3: "#), "{output}");
        assert_eq!(result.unwrap_err().to_string(), "2 lines could not be read");
    }
}
