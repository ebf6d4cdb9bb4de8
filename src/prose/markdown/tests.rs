use proptest::prelude::*;

use super::*;

/// Markdown in both forms: the text itself, cleaned, and its HTML; `None` where that would say
/// nothing more.
fn rendered(markdown: &str) -> (String, Option<String>) {
    let rendering = Rendering::of(markdown);
    let html = (!rendering.is_plain).then_some(rendering.html);
    (rendering.plain, html)
}

/// The HTML of Markdown that has more to it than its text.
fn html(markdown: &str) -> String {
    rendered(markdown).1.unwrap_or_else(|| "(none)".to_owned())
}

#[test]
fn what_is_only_text_needs_no_html() {
    for plain in [
        "Done.",
        "One line\nand another\n\nA paragraph, \"quoted\" & more",
        "2 < 3",
        "a_b_c",
        "",
    ] {
        assert_eq!(rendered(plain), (plain.to_owned(), None));
    }
    // The text as it is typed and as it is meant differ here.
    assert_eq!(html("a \\* b"), "<p>a * b</p>");
    assert_eq!(html("a &lt; b"), "<p>a &lt; b</p>");
}

#[test]
fn the_elements_of_markdown_are_elements() {
    for (markdown, expected) in [
        (
            "**a** *b* ~~c~~ `d < e`",
            "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d &lt; e</code></p>",
        ),
        ("# a\n###### b", "<h1>a</h1><h6>b</h6>"),
        ("a\nb  \nc\n***", "<p>a<br>b<br>c</p><hr>"),
        (
            "- a\n- b\n  - c",
            "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>",
        ),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("3) a", "<ol start=\"3\"><li>a</li></ol>"),
        ("> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"),
        (
            "```rust\nlet a = \"<b>\";\n```",
            "<pre><code class=\"language-rust\">let a = &quot;&lt;b&gt;&quot;;\n</code></pre>",
        ),
        ("```a\"b c\nx\n```", "<pre><code>x\n</code></pre>"),
        ("    x\n\ty", "<pre><code>x\ny</code></pre>"),
        (
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
        ),
    ] {
        assert_eq!(html(markdown), expected, "{markdown:?}");
    }
}

#[test]
fn html_is_shown_as_the_text_it_is() {
    for (markdown, expected) in [
        (
            "<script>alert(1)</script>",
            "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
        ),
        (
            "<div>\nx\n</div>",
            "<p>&lt;div&gt;<br>x<br>&lt;/div&gt;</p>",
        ),
        (
            "a <b onclick=\"x\">b</b>",
            "<p>a &lt;b onclick=&quot;x&quot;&gt;b&lt;/b&gt;</p>",
        ),
        (
            "<mx-reply>x</mx-reply>",
            "<p>&lt;mx-reply&gt;x&lt;/mx-reply&gt;</p>",
        ),
        ("<!-- x -->", "<p>&lt;!-- x --&gt;</p>"),
        ("&lt;b&gt;", "<p>&lt;b&gt;</p>"),
    ] {
        assert_eq!(html(markdown), expected, "{markdown:?}");
    }
}

#[test]
fn a_link_leads_where_it_says() {
    for (markdown, expected) in [
        (
            "[the docs](https://a.example/x?y=1&z)",
            "<a href=\"https://a.example/x?y=1&amp;z\">the docs</a>",
        ),
        (
            "<https://a.example/x>",
            "<a href=\"https://a.example/x\">https://a.example/x</a>",
        ),
        (
            "[A.example](https://www.a.example/x)",
            "<a href=\"https://www.a.example/x\">A.example</a>",
        ),
        (
            "[version 1.2.3](https://a.example/)",
            "<a href=\"https://a.example/\">version 1.2.3</a>",
        ),
        (
            "[the room](matrix:r/room:a.example)",
            "<a href=\"matrix:r/room:a.example\">the room</a>",
        ),
        (
            "![a picture](https://a.example/p.png)",
            "<a href=\"https://a.example/p.png\">a picture</a>",
        ),
        (
            "![](https://a.example/p.png)",
            "<a href=\"https://a.example/p.png\">https://a.example/p.png</a>",
        ),
        (
            "[![build](https://a.example/b.svg)](https://a.example/b)",
            "<a href=\"https://a.example/b\">build</a>",
        ),
    ] {
        assert_eq!(html(markdown), format!("<p>{expected}</p>"), "{markdown:?}");
    }
}

#[test]
fn a_link_that_pretends_to_be_another_shows_where_it_leads() {
    for said in [
        "https://bank.example",
        "bank.example",
        "Log in at **bank**.example/login",
        "www.bank.example",
        "bank\u{200B}.example",
        "bank&#46;example",
        "bank。example",
        "ｂａｎｋ．ｅｘａｍｐｌｅ",
        "http://bank",
        "https://evil.example@bank.example",
        "@mira:bank.example",
        "192.168.0.1",
        "`bank.example`",
        "еvil.example",
    ] {
        let shown = html(&format!("[{said}](https://evil.example/x)"));
        assert!(
            shown.ends_with("</a> (https://evil.example/x)</p>"),
            "{shown}"
        );
    }
    let shown = html("[بانک bank.example](https://evil.example/)");
    assert!(
        shown.ends_with("</a> \u{2068}(https://evil.example/)\u{2069}</p>"),
        "{shown}"
    );
    let far = format!("https://evil.example/{}", "x".repeat(500));
    let shown = html(&format!("[bank.example]({far})"));
    assert!(shown.ends_with(&format!("</a> ({}…)</p>", &far[..200])));
}

#[test]
fn what_may_not_be_a_link_is_none() {
    for (markdown, expected) in [
        ("[x](javascript:alert(1))", "x (javascript:alert(1))"),
        ("[x](JaVaScRiPt:alert(1))", "x (JaVaScRiPt:alert(1))"),
        ("[x](data:text/html,1)", "x (data:text/html,1)"),
        (
            "[x](https://bank.example@evil.example/)",
            "x (https://bank.example@evil.example/)",
        ),
        ("[x](src/main.rs)", "x (src/main.rs)"),
        ("[x](mailto:a@b.example)", "x (mailto:a@b.example)"),
        ("<a@b.example>", "a@b.example"),
        ("![x](mxc://a.example/b)", "x (mxc://a.example/b)"),
        ("[x]()", "x"),
        ("[x](<java&#10;script:a>)", "x (java script:a)"),
    ] {
        let (_, html) = rendered(markdown);
        assert_eq!(html, Some(format!("<p>{expected}</p>")), "{markdown:?}");
    }
}

#[test]
fn nothing_steers_what_stands_beside_it() {
    assert_eq!(
        rendered("\u{202e}a\u{2066}\u{1b}[2J\0\r\nb\u{2028}c\n"),
        ("a[2J\nb\nc".to_owned(), None)
    );
    // Written out, the parser makes a character of it.
    assert_eq!(
        html("a&#x202e;b&#x2067;c&#27;d&#10;e&#x2028;f"),
        "<p>abcd e f</p>"
    );
    assert_eq!(html("`a\u{202e}b`"), "<p><code>ab</code></p>");
}

#[test]
fn what_is_nested_without_end_is_shown_to_a_depth() {
    for markdown in [
        "> ".repeat(5_000) + "deep",
        "- ".repeat(5_000) + "deep",
        format!("{}deep{}", "*a _b ".repeat(500), " b_ a*".repeat(500)),
    ] {
        let html = html(&markdown);
        assert!(html.contains("deep"));
        assert_eq!(balanced(&html), Ok(MAX_DEPTH), "{html}");
    }
    let quoted = "> ".repeat(19);
    let list = format!("{quoted}- a\n{quoted}- b");
    assert!(html(&list).contains("a<br>b"), "{}", html(&list));
}

#[test]
fn on_one_line_markdown_is_its_words() {
    assert_eq!(
        flat("Reading `src/main.rs`\n\n- **one**\n- two"),
        "Reading src/main.rs one two"
    );
    assert_eq!(flat("[x](https://a.example/) <b>"), "x <b>");
    assert_eq!(flat(" \n"), "");
}

#[test]
fn a_short_text_is_one_part() {
    assert_eq!(parts("a\n\nb\n", 100), ["a\n\nb"]);
    assert_eq!(parts("    code\n", 100), ["    code"]);
    assert_eq!(parts("\n \n", 100), Vec::<String>::new());
    assert_eq!(parts("", 100), Vec::<String>::new());
}

#[test]
fn a_long_text_is_cut_between_paragraphs_then_lines_then_words() {
    assert_eq!(
        parts("one two\n\nthree\n\nfour", 14),
        ["one two\n\nthree", "four"]
    );
    assert_eq!(
        parts("one two\nthree\nfour\n\nfive", 10),
        ["one two", "three\nfour", "five"]
    );
    assert_eq!(parts("one two three", 9), ["one two", " three"]);
    assert_eq!(parts("aé€🦀éé", 4), ["aé", "€", "🦀", "éé"]);
    assert_eq!(parts("xxxxxxxxxx", 4), ["xxxx", "xxxx", "xx"]);
    assert_eq!(parts("🦀🦀", 0), ["🦀", "🦀"]);
}

#[test]
fn a_code_block_stays_whole_where_it_fits() {
    let text = "before it\n\n```\na\n\nb\n```\n\nafter";
    assert_eq!(parts(text, 20), ["before it", "```\na\n\nb\n```\n\nafter"]);
    // Without a blank line before it, it is a block all the same.
    assert_eq!(
        parts("before it\n```\na\nb\n```", 14),
        ["before it", "```\na\nb\n```"]
    );
}

#[test]
fn a_code_block_that_is_cut_is_closed_and_opened_again() {
    let text = "~~~~rust\naaaaaaaa\n~~~\n\nbbbbbbbb\n~~~~\nafter";
    assert_eq!(
        parts(text, 32),
        [
            "~~~~rust\naaaaaaaa\n~~~\n~~~~",
            "~~~~rust\nbbbbbbbb\n~~~~\n\nafter"
        ]
    );
    assert_eq!(
        parts(" ```\n0123456789abcdef", 20),
        [" ```\n0123456789\n ```", " ```\nabcdef\n ```"]
    );
    // A fence that would fill the part is not repeated.
    let named = format!("```{}\na\n```", "x".repeat(30));
    let bare = |text: &str| text.replace('\n', "");
    assert_eq!(bare(&parts(&named, 16).concat()), bare(&named));
}

#[test]
fn a_fence_in_a_part_ends_in_it() {
    let code = "let it = 1;\n".repeat(300);
    let text = format!("Look:\n\n```rust\n{code}```\n\nDone.");
    for part in parts(&text, 500) {
        assert_eq!(part.matches("```").count() % 2, 0, "{part}");
        assert!(part.len() <= 500);
    }
    let first = &parts(&text, 500)[1];
    assert!(html(first).starts_with("<pre><code class=\"language-rust\">let it = 1;\n"));
}

/// The elements that may stand in the HTML.
const ELEMENTS: [&str; 25] = [
    "p",
    "em",
    "strong",
    "del",
    "code",
    "pre",
    "ul",
    "ol",
    "li",
    "blockquote",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
    "hr",
];

/// How deep the elements are nested, if each is one of ours with only the attributes it may have,
/// where it may be, and closed.
fn balanced(html: &str) -> Result<usize, String> {
    let mut deepest = 0;
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '>', '"', '\'', '&']) {
        rest = &rest[at..];
        if rest.starts_with('&') {
            let entity = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"]
                .into_iter()
                .find(|entity| rest.starts_with(entity))
                .ok_or(format!("unescaped: {rest}"))?;
            rest = &rest[entity.len()..];
            continue;
        }
        let element = rest.strip_prefix('<').ok_or(format!("unescaped: {rest}"))?;
        let end = element.find('>').ok_or(format!("not ended: {rest}"))?;
        rest = &element[end + 1..];
        let element = &element[..end];
        if let Some(name) = element.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("closes nothing: </{name}>"));
            }
            continue;
        }
        let (name, attribute) = element.split_once(' ').unwrap_or((element, ""));
        let fits = match name {
            "a" => {
                ["https://", "http://", "matrix:"]
                    .iter()
                    .any(|scheme| attribute.starts_with(&format!("href=\"{scheme}")))
                    && attribute.matches(['"', '\'', ' ', '<']).count() == 2
                    && !open.contains(&"a")
            }
            "code" => attribute.is_empty() || attribute.starts_with("class=\"language-"),
            "ol" => attribute.is_empty() || attribute.starts_with("start=\""),
            _ => attribute.is_empty(),
        };
        if !fits || !ELEMENTS.contains(&name) {
            return Err(format!("not ours: <{element}>"));
        }
        let inside = match name {
            "li" => &["ul", "ol"][..],
            "thead" | "tbody" => &["table"],
            "tr" => &["thead", "tbody"],
            "th" | "td" => &["tr"],
            _ => &[],
        };
        if !inside.is_empty() && !open.last().is_some_and(|last| inside.contains(last)) {
            return Err(format!("<{name}> in {open:?}"));
        }
        if !["br", "hr"].contains(&name) {
            open.push(name);
        }
        deepest = deepest.max(open.len());
    }
    if open.is_empty() {
        Ok(deepest)
    } else {
        Err(format!("left open: {open:?}"))
    }
}

/// Markdown full of what breaks things.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,6} ?",
        2 => prop::sample::select(vec!["\n", "\n\n", "  \n", "\n    ", "\t", "\r\n", "\u{2028}"])
            .prop_map(str::to_owned),
        4 => prop::sample::select(vec![
            "*", "**", "_", "~~", "`", "``", "\n```\n", "\n~~~\n", "\n```rust\n", "\n> ", "> > ", "\n- ",
            "\n1. ", "\n99) ", "\n# ", "\n---\n", "\n| a | b |\n|---|---|\n| ", " | ", "\\",
            "[", "](https://a.example/)", "](<javascript:x>)", "![", "](b.example \"t\")", "<https://c.example>",
            "](https://a.example@b.example)", "\n[x]: https://d.example\n", "[x]", "bank.example",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "<b>", "</p>", "<div>\n", "<a href=\"https://x\">", "<!--", "-->", "&amp;", "&#x202e;", "&#60;b&#62;",
            "<script>", "\"", "'", "&", "<", "\u{202e}", "\u{2067}", "שלום", "🦀", "\0",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// What must come through, however it is cut.
fn kept(text: &str) -> String {
    text.chars()
        .filter(|&c| !c.is_whitespace() && !"`~".contains(c))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_html_is_always_balanced_and_ours(markdown in markdown()) {
        let rendering = Rendering::of(&markdown);
        let depth = balanced(&rendering.html).map_err(TestCaseError::fail)?;
        // `pre` and `thead` bring one more along.
        prop_assert!(depth <= MAX_DEPTH + 2);
        let stray = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}' | '\u{2067}' | '\u{2028}')
        };
        for form in [&rendering.plain, &rendering.html] {
            prop_assert!(!form.contains(stray), "{form:?}");
        }
    }

    #[test]
    fn parts_are_small_enough_and_lose_nothing(markdown in markdown(), most in 4_usize..200) {
        // A fence that is opened again repeats what is behind it.
        let markdown = markdown.replace("rust", "");
        let parts = parts(&markdown, most);
        for part in &parts {
            prop_assert!(part.len() <= most && !part.trim().is_empty(), "{part:?}");
        }
        let repeats_nothing = markdown.lines().map(|line| line.trim_start_matches(' ')).all(|line| {
            !(line.starts_with("```") || line.starts_with("~~~"))
                || line.trim_matches(['`', '~', ' ']).is_empty()
        });
        if repeats_nothing {
            prop_assert_eq!(kept(&parts.concat()), kept(&markdown));
        }
    }
}
