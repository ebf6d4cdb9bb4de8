//! Every place where somebody else's text is shown, with every kind of text that deceives.

use super::*;

/// What is written, and how it is shown as a part of one line: plain, and in HTML.
const WRITTEN: [(&str, &str, &str); 10] = [
    (
        "<b onclick=x>b</b>",
        "<b onclick=x>b</b>",
        "&lt;b onclick=x&gt;b&lt;/b&gt;",
    ),
    ("&lt;i&gt;", "&lt;i&gt;", "&amp;lt;i&amp;gt;"),
    ("@room", "@room", "@room"),
    ("a\u{202E}b\u{2066}c\u{2069}", "abc", "abc"),
    ("a\r\nb\u{2028}c\u{85}d", "a b c d", "a b c d"),
    ("\u{0}a\u{1B}[2J\u{9B}b\u{7F}", "a[2Jb", "a[2Jb"),
    (
        "javascript:alert(1)",
        "javascript:alert(1)",
        "javascript:alert(1)",
    ),
    (
        "[x](data:text/html,<p>)",
        "[x](data:text/html,<p>)",
        "[x](data:text/html,&lt;p&gt;)",
    ),
    ("**bold** `code`", "**bold** `code`", "**bold** `code`"),
    ("\"x\" 'y'", "\"x\" 'y'", "&quot;x&quot; &#39;y&#39;"),
];

/// Asserts that a message shows this, pings nobody, and links nowhere.
fn shows(content: &Value, plain: &str, html: &str) {
    assert_eq!(content["m.mentions"], json!({}), "{content:#}");
    let shown = [body(content), content["formatted_body"].as_str().unwrap()];
    assert!(shown[0].contains(plain), "{plain:?} in {:?}", shown[0]);
    assert!(shown[1].contains(html), "{html:?} in {:?}", shown[1]);
    assert!(!shown[1].contains("<a "), "{:?}", shown[1]);
    for form in shown {
        assert!(
            !form.contains(|c: char| c != '\n' && c.is_control()),
            "{form:?}"
        );
        assert!(
            !form.contains(['\u{202E}', '\u{2066}', '\u{2028}']),
            "{form:?}"
        );
    }
}

#[test]
fn no_text_of_an_agent_is_more_than_text() {
    for (written, plain, html) in WRITTEN {
        let labelled = bare("Which?", &[written, "b"]);
        shows(
            &card(&labelled, true),
            &format!("\n1. {plain}\n2. b\n"),
            &format!("<ol><li>{html}</li><li>b</li></ol>"),
        );
        let mut around = bare("Which?", &["a", "b"]);
        around.question.card_title = Some(written.to_owned());
        around.question.stage_key = Some(written.to_owned());
        around.question.asker_name = Some(written.to_owned());
        shows(
            &card(&around, true),
            &format!("— {plain} · {plain} · asked by {plain}"),
            &format!("<p><em>{html} · {html} · asked by {html}</em></p>"),
        );
        let withdrawn = over(labelled, State::Cancelled, Some(written));
        shows(&closed(&withdrawn)["m.new_content"], plain, html);
    }
}

#[test]
fn no_text_of_a_person_is_more_than_text() {
    for (written, plain, html) in WRITTEN {
        let mut named = answered(bare("Which?", &["a", "b"]), Ok(0));
        named.answer.as_mut().unwrap().display_name = Some(written.to_owned());
        let mut replied = answered(bare("Which?", &[]), Err(written));
        replied.answer.as_mut().unwrap().display_name = None;
        // Nobody goes by somebody else's user id, nor by everybody's.
        let (plain_name, html_name) = match written {
            "@room" => ("@mira:example.org", "@mira:example.org"),
            _ => (plain, html),
        };
        for content in [
            closed(&named)["m.new_content"].clone(),
            already_closed(PLACE, &named),
        ] {
            shows(&content, plain_name, html_name);
        }
        // A text keeps its lines.
        let (first, html) = (
            plain.split(' ').next().unwrap(),
            html.split(' ').next().unwrap(),
        );
        shows(&closed(&replied)["m.new_content"], first, html);
    }
}

#[test]
fn a_link_that_leads_astray_is_not_shown() {
    for link in [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html;base64,PHA+",
        "vbscript:x",
        "https://bank.example@evil.example/",
        "https:bank.example@evil.example",
        "blob:https://a.example/1",
    ] {
        let mut elicitation = bare("Which?", &["a", "b"]);
        elicitation.question.deep_link = Some(link.to_owned());
        let content = card(&elicitation, false);
        shows(
            &content,
            "— asked by agt_31d0",
            "<em>asked by agt_31d0</em>",
        );
        assert!(body(&content).ends_with("— asked by agt_31d0"), "{link:?}");
    }
}
