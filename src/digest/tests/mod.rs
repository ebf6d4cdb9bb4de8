//! The corpus, and how the other tests write a room.

use serde_json::{Value, json};

use super::{Digest, digest, written_window};

fn written(digest: &Digest) -> Value {
    let items: Vec<Value> = digest
        .items
        .iter()
        .map(|item| {
            let mut written = json!({
                "handle": item.handle,
                "what": item.what,
                "kind": item.kind,
                "upvotes": item.upvotes,
            });
            if let Some(repeated) = item.repeated {
                written["repeated"] = repeated.into();
            }
            written
        })
        .collect();
    json!({"items": items, "truncated": digest.truncated})
}

#[test]
fn every_line_of_the_corpus_gives_the_digest_it_expects() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/digest.jsonl");
    let corpus = std::fs::read_to_string(path).unwrap();
    let mut failures = Vec::new();
    let mut lines = 0;
    for line in corpus.lines().filter(|line| !line.trim().is_empty()) {
        lines += 1;
        let entry: Value = serde_json::from_str(line).unwrap();
        let read = written_window::read(line).unwrap();
        let digest = written(&digest(&read.window(), &read.settings()));
        if digest != entry["expect"] {
            failures.push(format!(
                "{}\n    expected: {}\n    given:    {digest}",
                entry["name"], entry["expect"]
            ));
        }
    }
    assert_eq!(lines, 44);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
