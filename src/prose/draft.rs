//! One message written in both forms at once, so that neither says what the other
//! does not.
//!
//! The only place where HTML is made: whatever comes in is text, and is escaped
//! here. The elements are of the Matrix specification's recommended set.

use serde_json::{Value, json};

use super::markdown::Rendering;
use super::text::{escaped, user_id, user_link};

/// A part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Words. No line breaks.
    Text(String),
    /// Words that stand out, without line breaks.
    Strong(String),
    /// Something to be typed as it stands.
    Code(String),
    /// A link that passed [`super::text::link`].
    Link(String),
    /// A user id, shown as that person's pill.
    Person(String),
    /// The next line of the same paragraph.
    Break,
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A message in the making.
#[derive(Debug, Default)]
pub struct Draft {
    plain: String,
    html: String,
}

impl Draft {
    /// A paragraph.
    pub fn paragraph(&mut self, spans: &[Span]) {
        self.begin_block();
        self.html.push_str("<p>");
        self.spans(spans, "");
        self.html.push_str("</p>");
    }

    /// A paragraph of lesser weight. In plain text a dash begins it, so that it is
    /// no item of a list whatever it says.
    pub fn aside(&mut self, spans: &[Span]) {
        self.begin_block();
        self.plain.push_str("— ");
        self.html.push_str("<p><em>");
        self.spans(spans, "");
        self.html.push_str("</em></p>");
    }

    /// Somebody's lines, unmistakably theirs.
    pub fn quote(&mut self, lines: &[String]) {
        self.begin_block();
        self.html.push_str("<blockquote>");
        // Not `> `: at the head of a message clients take that for a quoted reply
        // and hide it.
        self.plain.push_str("| ");
        self.spans(&broken(lines), "| ");
        self.html.push_str("</blockquote>");
    }

    /// A numbered list under its heading.
    pub fn list(&mut self, heading: &str, items: &[String]) {
        self.paragraph(&[heading.into()]);
        self.html.push_str("<ol>");
        for (number, item) in (1..).zip(items) {
            self.plain.extend(["\n", &format!("{number}. "), item]);
            self.html.extend(["<li>", &escaped(item), "</li>"]);
        }
        self.html.push_str("</ol>");
    }

    /// Somebody's Markdown, in both forms; as a quotation where it is to be unmistakably theirs.
    pub fn markdown(&mut self, rendering: &Rendering, quoted: bool) {
        self.begin_block();
        if !quoted {
            self.plain.push_str(&rendering.plain);
            self.html.push_str(&rendering.html);
            return;
        }
        self.plain.push_str("| ");
        self.plain.push_str(&rendering.plain.replace('\n', "\n| "));
        self.html
            .extend(["<blockquote>", &rendering.html, "</blockquote>"]);
    }

    /// The content of a message of this kind that mentions nobody.
    pub fn content(self, msgtype: &str) -> Value {
        json!({
            "msgtype": msgtype,
            "body": self.plain,
            "format": "org.matrix.custom.html",
            "formatted_body": self.html,
            "m.mentions": {},
        })
    }

    fn begin_block(&mut self) {
        if !self.plain.is_empty() {
            self.plain.push_str("\n\n");
        }
    }

    fn spans(&mut self, spans: &[Span], margin: &str) {
        for span in spans {
            match span {
                Span::Text(text) => {
                    self.plain.push_str(text);
                    self.html.push_str(&escaped(text));
                }
                Span::Strong(text) => {
                    self.plain.push_str(text);
                    self.html.extend(["<strong>", &escaped(text), "</strong>"]);
                }
                Span::Code(text) => {
                    self.plain.push_str(text);
                    self.html.extend(["<code>", &escaped(text), "</code>"]);
                }
                Span::Link(url) => {
                    self.plain.push_str(url);
                    let url = escaped(url);
                    self.html.extend(["<a href=\"", &url, "\">", &url, "</a>"]);
                }
                Span::Person(person) => {
                    let shown = user_id(person);
                    self.plain.push_str(&shown);
                    let (url, shown) = (escaped(&user_link(person)), escaped(&shown));
                    self.html
                        .extend(["<a href=\"", &url, "\">", &shown, "</a>"]);
                }
                Span::Break => {
                    self.plain.push('\n');
                    self.plain.push_str(margin);
                    self.html.push_str("<br>");
                }
            }
        }
    }
}

/// Lines as the spans of one paragraph.
pub fn broken(lines: &[String]) -> Vec<Span> {
    let mut spans = Vec::with_capacity(lines.len() * 2);
    for line in lines {
        if !spans.is_empty() {
            spans.push(Span::Break);
        }
        spans.push(Span::Text(line.clone()));
    }
    spans
}

/// The parts of a line with something between them.
pub fn joined(parts: Vec<Span>, between: &str) -> Vec<Span> {
    let mut spans = Vec::with_capacity(parts.len() * 2);
    for part in parts {
        if !spans.is_empty() {
            spans.push(between.into());
        }
        spans.push(part);
    }
    spans
}
