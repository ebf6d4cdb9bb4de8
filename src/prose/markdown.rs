//! An agent's Markdown as HTML that can do no harm, and in parts that fit into a message.
//!
//! Of the Markdown only the elements of the Matrix specification's recommended set become
//! elements; everything else, HTML in it included, shows as the text that it is. Entities are
//! decoded by the parser, so all text is cleaned on its way out as well.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};
use url::Url;

use super::text::{cleaned, escaped, isolated, line_of, link, poses, steers};
use crate::reply::{is_blank, normal_form};

mod parts;

pub use parts::parts;

/// Elements within each other. What is nested deeper shows without its marks.
const MAX_DEPTH: usize = 20;

/// Characters of a link's target that are shown behind it.
const SHOWN_TARGET: usize = 200;

/// The longest name of a language that is passed on.
const MAX_LANGUAGE: usize = 32;

/// Markdown, read once.
#[derive(Debug)]
pub(super) struct Rendering {
    /// The text itself.
    pub(super) plain: String,
    /// The same as HTML, whether or not that says more.
    pub(super) html: String,
    /// Whether the HTML has nothing but the text's own paragraphs and lines.
    pub(super) is_plain: bool,
    /// Whether a line of it, in either form, could be taken for one of ours.
    pub(super) poses: bool,
}

impl Rendering {
    pub(super) fn of(markdown: &str) -> Self {
        let plain = cleaned(markdown);
        let written = written(&plain);
        let letters = |text: &str| -> String { text.split_whitespace().collect() };
        Self {
            is_plain: !written.marked && letters(&written.seen) == letters(&plain),
            poses: plain.lines().chain(written.seen.lines()).any(poses),
            plain,
            html: written.html,
        }
    }
}

/// What can be read of Markdown, on one line.
pub fn flat(markdown: &str) -> String {
    let seen = written(&cleaned(markdown)).seen;
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn written(plain: &str) -> Writer {
    let mut writer = Writer::default();
    for event in Parser::new_ext(
        plain,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    ) {
        writer.take(event);
    }
    while !writer.open.is_empty() {
        writer.close();
    }
    writer
}

/// A link or an image that has begun.
struct Target {
    /// Where it leads, if it may be one.
    link: Option<String>,
    /// Where it leads, as people read it.
    shown: String,
    /// Whether it became an element.
    linked: bool,
    /// Whether it is inside another, which is the one that counts.
    inner: bool,
    /// Where in [`Writer::seen`] its text begins.
    from: usize,
}

#[derive(Default)]
struct Writer {
    html: String,
    /// What a reader sees, each line that begins anew on its own.
    seen: String,
    /// What closes each element that is open; `None` for one that is not shown.
    open: Vec<Option<&'static str>>,
    targets: Vec<Target>,
    /// Whether there is an element that the plain text does not show.
    marked: bool,
    in_code: bool,
    in_head: bool,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Code(text) => {
                self.open("<code>", "</code>", 1);
                self.text(&text);
                self.close();
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for (at, line) in text.trim_end_matches('\n').split('\n').enumerate() {
                    if at > 0 {
                        self.line();
                    }
                    self.text(line);
                }
                // Text that looks like an element must not become one in a client that reads
                // the plain form as Markdown: the HTML says which it is.
                self.marked = true;
                if text.ends_with('\n') {
                    self.line();
                }
            }
            Event::SoftBreak | Event::HardBreak => self.line(),
            Event::Rule => {
                self.marked = true;
                self.seen.push('\n');
                self.html.push_str("<hr>");
            }
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text(&text),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block("<p>", "</p>", 1),
            Tag::Heading { level, .. } => {
                let (opening, closing) = HEADINGS[level as usize - 1];
                self.block(opening, closing, 1);
            }
            Tag::BlockQuote(_) => self.block("<blockquote>", "</blockquote>", 1),
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                let opening = match language(&kind) {
                    Some(name) => format!("<pre><code class=\"language-{name}\">"),
                    None => "<pre><code>".to_owned(),
                };
                self.block(&opening, "</code></pre>", 1);
            }
            // A list is shown with its items or not at all, a table with all its parts.
            Tag::List(None) => self.block("<ul>", "</ul>", 2),
            Tag::List(Some(1)) => self.block("<ol>", "</ol>", 2),
            Tag::List(Some(first)) => {
                self.block(&format!("<ol start=\"{first}\">"), "</ol>", 2);
            }
            Tag::Item => self.block("<li>", "</li>", 0),
            Tag::Table(_) => self.block("<table>", "</table>", 4),
            Tag::TableHead => {
                self.in_head = true;
                self.block("<thead><tr>", "</tr></thead>", 0);
            }
            Tag::TableRow => self.block("<tr>", "</tr>", 0),
            Tag::TableCell if self.in_head => self.block("<th>", "</th>", 0),
            Tag::TableCell => self.block("<td>", "</td>", 0),
            Tag::Emphasis => self.open("<em>", "</em>", 1),
            Tag::Strong => self.open("<strong>", "</strong>", 1),
            Tag::Strikethrough => self.open("<del>", "</del>", 1),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.begin_link(&dest_url),
            // None of these is asked for. Whatever they are, their text is shown.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.open.push(None),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::HtmlBlock => {
                if let Some(kept) = self.html.strip_suffix("<br>").map(str::len) {
                    self.html.truncate(kept);
                }
                self.close();
            }
            TagEnd::TableHead => {
                self.in_head = false;
                self.close();
                self.open("<tbody>", "</tbody>", 0);
            }
            TagEnd::Table => {
                self.close();
                self.close();
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.close();
            }
            _ => self.close(),
        }
    }

    /// Opens an element that begins a line.
    fn block(&mut self, opening: &str, closing: &'static str, room: usize) {
        self.seen.push('\n');
        self.open(opening, closing, room);
        if self.open.last() == Some(&None) && !self.html.is_empty() {
            self.html.push_str("<br>");
        }
    }

    /// Opens an element that needs room for so many levels, its own included; 0 for one that is
    /// there if what it is in is.
    fn open(&mut self, opening: &str, closing: &'static str, room: usize) {
        self.marked |= closing != "</p>";
        let shown =
            self.open.last() != Some(&None) && (room == 0 || self.open.len() + room <= MAX_DEPTH);
        if shown {
            self.html.push_str(opening);
        }
        self.open.push(shown.then_some(closing));
    }

    fn close(&mut self) {
        if let Some(Some(closing)) = self.open.pop() {
            self.html.push_str(closing);
        }
    }

    fn line(&mut self) {
        self.seen.push('\n');
        self.html.push_str("<br>");
    }

    /// Text, whatever stands in it.
    fn text(&mut self, text: &str) {
        let clean: String = text
            .chars()
            .filter_map(|c| match c {
                '\n' | '\t' if self.in_code => Some(c),
                _ if c.is_control() && c.is_whitespace() => Some(' '),
                '\u{2028}' | '\u{2029}' => Some(' '),
                _ if c.is_control() || steers(c) => None,
                _ => Some(c),
            })
            .collect();
        self.html.push_str(&escaped(&clean));
        self.seen.push_str(&clean);
    }

    fn begin_link(&mut self, address: &CowStr<'_>) {
        let address = address.as_ref();
        let mut target = Target {
            link: link(address),
            shown: line_of(address, SHOWN_TARGET),
            linked: false,
            inner: !self.targets.is_empty(),
            from: self.seen.len(),
        };
        match &target.link {
            Some(link) if !target.inner => {
                target.shown = line_of(link, SHOWN_TARGET);
                self.open(&format!("<a href=\"{}\">", escaped(link)), "</a>", 1);
                target.linked = self.open.last() != Some(&None);
            }
            // What it holds may be shown as if it were not there.
            _ => self.marked = true,
        }
        self.targets.push(target);
    }

    fn end_link(&mut self) {
        let Some(target) = self.targets.pop() else {
            return;
        };
        if target.inner {
            return;
        }
        let said = self.seen[target.from..].to_owned();
        let unnamed = is_blank(&said);
        if unnamed && target.linked {
            self.text(&target.shown);
        }
        if target.link.is_some() {
            self.close();
        }
        let astray = match &target.link {
            Some(link) if target.linked => !unnamed && pretends(&said, link),
            _ => said.trim() != target.shown,
        };
        if astray && !target.shown.is_empty() {
            // Behind text that runs from right to left it would change its place.
            let shown = format!(" ({})", target.shown);
            let apart = if isolated(said.clone()) == said {
                shown
            } else {
                format!(" \u{2068}({})\u{2069}", target.shown)
            };
            self.html.push_str(&escaped(&apart));
            self.seen.push_str(&apart);
        }
    }
}

const HEADINGS: [(&str, &str); 6] = [
    ("<h1>", "</h1>"),
    ("<h2>", "</h2>"),
    ("<h3>", "</h3>"),
    ("<h4>", "</h4>"),
    ("<h5>", "</h5>"),
    ("<h6>", "</h6>"),
];

/// The language of a code block, where it is a plain word.
fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else {
        return None;
    };
    let name = info.split([' ', '\t', ',', '{']).next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "+#-_.".contains(c);
    let is_plain = !name.is_empty() && name.len() <= MAX_LANGUAGE && name.chars().all(plain);
    is_plain.then(|| name.to_owned())
}

/// Whether the text of a link names an address that is not its own.
fn pretends(said: &str, link: &str) -> bool {
    let host = host_of(link);
    // Unicode has more full stops than one that a browser reads as such.
    let said = normal_form(said).replace(['。', '｡'], ".");
    let named = said.split("://").skip(1).filter_map(|after| {
        let end = after.find(|c: char| !(c.is_alphanumeric() || ".-_@:".contains(c)));
        let authority = &after[..end.unwrap_or(after.len())];
        (!authority.is_empty()).then(|| authority.to_owned())
    });
    let hosts = said
        .split(|c: char| !(c.is_alphanumeric() || ".-_".contains(c)))
        .map(|word| word.trim_matches(['.', '-', '_']))
        .filter(|word| is_like_a_host(word))
        .map(str::to_owned);
    named.chain(hosts).any(|named| {
        let bare = named.split(['@', ':']).next().unwrap_or_default();
        // Letters of other scripts may look like any host.
        let same = named.is_ascii() && host.as_deref() == Some(without_www(bare));
        !same || named.contains('@')
    })
}

/// The host of an address, as it is compared.
fn host_of(link: &str) -> Option<String> {
    let url = Url::parse(link).ok()?;
    url.host_str().map(|host| without_www(host).to_owned())
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// Whether a word could be the name or the address of a host.
fn is_like_a_host(word: &str) -> bool {
    let labels: Vec<&str> = word.split('.').collect();
    if labels.len() < 2 || labels.iter().any(|label| label.is_empty()) {
        return false;
    }
    let number = |label: &&str| label.chars().all(char::is_numeric);
    if labels.iter().all(number) {
        // `1.2.3` is a version.
        return labels.len() == 4;
    }
    labels
        .last()
        .is_some_and(|last| last.chars().count() >= 2 && last.chars().any(char::is_alphabetic))
}

#[cfg(test)]
mod tests;
