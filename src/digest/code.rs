//! Where a text is code (digest.md, 5): between runs of backticks of one length, as Markdown has it.

use std::ops::Range;

/// The stretches of code, backticks included, in bytes, in order.
///
/// A run of three or more that is never closed is code to the end, as clients show it; a shorter
/// one is a backtick.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    if !text.contains('`') {
        return Vec::new();
    }
    let runs = runs(text);
    let mut spans = Vec::new();
    // From each run, where the next one of its length is: found from behind, so that a text of
    // nothing but backticks takes no longer than any other.
    let mut next_of = std::collections::HashMap::new();
    let mut closing = vec![None; runs.len()];
    for (place, run) in runs.iter().enumerate().rev() {
        closing[place] = next_of.insert(run.len(), place);
    }
    let mut place = 0;
    while let Some(run) = runs.get(place) {
        match closing[place] {
            Some(close) => {
                spans.push(run.start..runs[close].end);
                place = close;
            }
            None if run.len() >= 3 => {
                spans.push(run.start..text.len());
                break;
            }
            None => {}
        }
        place += 1;
    }
    spans
}

fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}
