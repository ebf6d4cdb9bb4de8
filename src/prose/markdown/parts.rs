//! Long Markdown in parts.

use super::super::text::without_blank_ends;

/// A run of lines that belongs together.
struct Block<'a> {
    /// Its lines, as they stand in the text.
    text: &'a str,
    /// What opens it, where it is a fenced code block.
    fence: Option<Fence<'a>>,
}

/// The line that opens a fenced code block.
#[derive(Clone, Copy)]
struct Fence<'a> {
    /// The whole line.
    line: &'a str,
    /// What it begins with.
    indent: &'a str,
    /// The fence itself.
    marks: &'a str,
}

/// Markdown in parts of at most `most` bytes (but at least 4, so that every character fits), in
/// order and with nothing lost but blanks where it was cut.
///
/// It is cut between paragraphs. A fenced code block stays whole where it fits into a part;
/// otherwise each part of it is closed, and opened again in the next. What is still too long is
/// cut between lines, then at a blank, then between characters.
pub fn parts(markdown: &str, most: usize) -> Vec<String> {
    let most = most.max(4);
    let mut parts = Vec::new();
    let mut part = String::new();
    for block in blocks(markdown) {
        // What stands between two blocks goes with the first; it does not count when it ends a part.
        let fits = part.len() + block.text.trim_end().len() <= most;
        if fits {
            part.push_str(block.text);
            continue;
        }
        finish(&mut parts, &part);
        part.clear();
        if without_blank_ends(block.text).len() <= most {
            part.push_str(without_first_blanks(block.text));
        } else {
            cut(&block, most, &mut parts);
            // The last piece may have room for what follows, the others do not.
            part = parts.pop().unwrap_or_default();
            part.push_str("\n\n");
        }
    }
    finish(&mut parts, &part);
    parts
}

fn finish(parts: &mut Vec<String>, part: &str) {
    let part = without_blank_ends(part);
    if !part.is_empty() {
        parts.push(part.to_owned());
    }
}

fn without_first_blanks(text: &str) -> &str {
    let begins = text.len() - text.trim_start().len();
    text[..begins]
        .rfind('\n')
        .map_or(text, |last| &text[last + 1..])
}

/// A block that is too long, piece by piece.
fn cut(block: &Block<'_>, most: usize, parts: &mut Vec<String>) {
    let text = without_blank_ends(block.text);
    let Some(fence) = block.fence else {
        pieces(text, most, parts);
        return;
    };
    let opening = format!("{}\n", fence.line);
    let closing = format!("\n{}{}", fence.indent, fence.marks);
    // A fence that leaves no room for a line of code is not worth repeating.
    let Some(room) = most
        .checked_sub(opening.len() + closing.len())
        .filter(|room| *room >= most / 2 && *room >= 4)
    else {
        pieces(text, most, parts);
        return;
    };
    let inside = text.get(fence.line.len()..).unwrap_or_default();
    let inside = inside.strip_prefix('\n').unwrap_or(inside);
    let inside = match inside.rsplit_once('\n') {
        Some((lines, last)) if closes(last, fence) => lines,
        None if closes(inside, fence) => "",
        _ => inside,
    };
    let mut cut = Vec::new();
    pieces(inside, room, &mut cut);
    parts.extend(
        cut.into_iter()
            .map(|piece| format!("{opening}{piece}{closing}")),
    );
}

/// Lines, as many as fit together; a line that is too long in pieces.
fn pieces(text: &str, most: usize, parts: &mut Vec<String>) {
    let mut part = String::new();
    for line in text.split_inclusive('\n') {
        if part.len() + line.trim_end_matches('\n').len() <= most {
            part.push_str(line);
            continue;
        }
        finish(parts, &part);
        part.clear();
        let mut rest = line;
        while rest.trim_end_matches('\n').len() > most {
            let (piece, after) = rest.split_at(end_of_piece(rest, most));
            finish(parts, piece);
            rest = after;
        }
        part.push_str(rest);
    }
    finish(parts, &part);
}

/// Where the first piece of a line ends: at a blank where one is far enough in, so that no word is
/// cut in two that can stay whole.
fn end_of_piece(line: &str, most: usize) -> usize {
    let mut end = most.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    match line[..end].rfind(char::is_whitespace) {
        Some(blank) if blank > end / 2 => blank,
        _ => end,
    }
}

/// The blocks of a text. Together they are the text.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut fence: Option<Fence<'_>> = None;
    let mut after_blank = false;
    for line in text.split_inclusive('\n') {
        let shown = line.trim_end_matches('\n');
        let begins = match fence {
            // Not before the fence is closed.
            Some(open) => {
                if closes(shown, open) {
                    blocks.push(Block {
                        text: &text[start..at + line.len()],
                        fence,
                    });
                    start = at + line.len();
                    fence = None;
                }
                at += line.len();
                after_blank = false;
                continue;
            }
            None => after_blank && !shown.trim().is_empty(),
        };
        let opens = opens(shown);
        if (begins || opens.is_some()) && at > start {
            blocks.push(Block {
                text: &text[start..at],
                fence: None,
            });
            start = at;
        }
        fence = opens;
        after_blank = shown.trim().is_empty();
        at += line.len();
    }
    if start < text.len() {
        blocks.push(Block {
            text: &text[start..],
            fence,
        });
    }
    blocks
}

/// The fence that a line is, if it opens a code block. Inside lists they are indented.
fn opens(line: &str) -> Option<Fence<'_>> {
    let trimmed = line.trim_start_matches(' ');
    let (indent, _) = line.split_at(line.len() - trimmed.len());
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = trimmed.trim_start_matches(mark);
    let marks = &trimmed[..trimmed.len() - info.len()];
    let is_fence = marks.len() >= 3 && !(mark == '`' && info.contains('`'));
    is_fence.then_some(Fence {
        line,
        indent,
        marks,
    })
}

fn closes(line: &str, open: Fence<'_>) -> bool {
    let trimmed = line.trim();
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mark = open.marks.chars().next().unwrap_or('`');
    indent <= open.indent.len() + 3
        && trimmed.len() >= open.marks.len()
        && trimmed.chars().all(|c| c == mark)
}
