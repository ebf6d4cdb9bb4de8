//! What holds for every text anybody can write.

use proptest::prelude::*;

use super::*;

/// The elements that we write. Anything else in a formatted body is a text's own.
const OURS: [&str; 13] = [
    "p",
    "/p",
    "ol",
    "/ol",
    "li",
    "/li",
    "em",
    "/em",
    "code",
    "/code",
    "br",
    "blockquote",
    "/blockquote",
];

/// Texts full of what breaks things.
fn text(most: usize) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,5} ",
        1 => "[0-9]{1,2}[.):]? ?",
        1 => prop::sample::select(vec![
            "\n", "\r\n", "\r", "\u{b}", "\u{85}", "\u{2028}", "\u{2029}", "\t", "\0", "  ",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "\u{202a}", "\u{202e}", "\u{2066}", "\u{2067}", "\u{2069}", "\u{200f}", "שלום", "نعم",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "<b>", "</p>", "</li><li>", "<br>", "&amp;", "&", "\"", "'", "<a href=\"https://x\">", "<!--",
            "Options:", "✓ ", "— ", "> ", "| ", "1️⃣", "①", "@room", "\\",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
}

/// A card's label has at least one character.
fn or_x(label: String) -> String {
    if label.is_empty() {
        "x".to_owned()
    } else {
        label
    }
}

fn question() -> impl Strategy<Value = Elicitation> {
    (
        text(40),
        prop::collection::vec((text(8), text(3)), 0..12),
        (
            any::<bool>(),
            prop::option::of(text(6)),
            prop::option::of(text(6)),
        ),
        (
            prop::option::of(text(6)),
            prop::collection::vec(text(4), 0..3),
            prop::option::of(text(6)),
        ),
    )
        .prop_map(
            |(prompt, options, (free_text, title, link), (stage, mention, name))| {
                let mut elicitation = bare(&prompt, &[]);
                elicitation.question.options = options
                    .into_iter()
                    .zip(1..)
                    .map(|((label, id), place)| {
                        CardOption::new(format!("{place}{id}"), or_x(label))
                    })
                    .collect();
                elicitation.question.free_text = free_text;
                elicitation.question.card_title = title;
                elicitation.question.stage_key = stage;
                elicitation.question.mention = mention;
                elicitation.question.asker_name = name;
                elicitation.question.deep_link =
                    link.map(|link| format!("https://example.org/{link}"));
                elicitation
            },
        )
}

/// Every content that can be made of the question and a written text.
fn contents(elicitation: &Elicitation, text: &str) -> Vec<Value> {
    let mut contents = vec![card(elicitation, false), card(elicitation, true)];
    let mut by_text = answered(elicitation.clone(), Err(text));
    if let Some(answer) = &mut by_text.answer {
        answer.display_name = Some(text.to_owned());
    }
    let by_option = answered(elicitation.clone(), Ok(0));
    let cancelled = over(elicitation.clone(), State::Cancelled, Some(text));
    for over in [&by_text, &by_option, &cancelled] {
        let mut content = closed(over);
        contents.push(content["m.new_content"].take());
        contents.push(content);
        contents.push(already_closed(PLACE, over));
    }
    contents.extend([
        ask_option(PLACE, elicitation, &[0, 1]),
        ask_option(PLACE, elicitation, &[]),
        not_understood(PLACE, elicitation, &[0, 1, 2, 3, 99]),
        ask_which(PLACE, &[elicitation, &by_text]),
        may_not_answer(PLACE, elicitation, Refusal::NotListed),
        unreadable("$sealed", text),
    ]);
    contents
}

/// Reads HTML of ours as a client would: the plain form it amounts to, or what is
/// wrong with it.
fn read_html(html: &str) -> Result<String, String> {
    let (mut plain, mut rest, mut item) = (String::new(), html, 0);
    while let Some(at) = rest.find(['<', '&', '>', '"', '\'']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((entity, c)) = [
            ("&amp;", '&'),
            ("&lt;", '<'),
            ("&gt;", '>'),
            ("&quot;", '"'),
            ("&#39;", '\''),
        ]
        .into_iter()
        .find(|(entity, _)| rest.starts_with(entity))
        {
            plain.push(c);
            rest = &rest[entity.len()..];
            continue;
        }
        let end = rest
            .find('>')
            .ok_or_else(|| format!("open element: {rest}"))?;
        let element = rest
            .strip_prefix('<')
            .ok_or_else(|| format!("unescaped: {rest}"))?;
        let element = &element[..end - 1];
        let link = element
            .strip_prefix("a href=\"")
            .and_then(|link| link.strip_suffix('"'));
        let link_is_ours = link.is_some_and(|link| {
            link.starts_with("https://") && !link.contains(['"', '\'', '<', '>', ' '])
        });
        if !OURS.contains(&element) && element != "/a" && !link_is_ours {
            return Err(format!("not ours: <{element}>"));
        }
        if element == "ol" {
            item = 0;
        }
        if element == "li" {
            item += 1;
            plain.extend([item.to_string(), ". ".to_owned()]);
        }
        rest = &rest[end + 1..];
    }
    plain.push_str(rest);
    Ok(plain)
}

/// Only what is read: no white space, no margin of quotations, no dash of asides.
fn words(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !"|—".contains(*c))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn both_forms_say_the_same_and_only_our_markup_is_markup(
        elicitation in question(), text in text(30)
    ) {
        for content in contents(&elicitation, &text) {
            let html = content["formatted_body"].as_str().unwrap_or_default();
            let read = read_html(html).map_err(TestCaseError::fail)?;
            prop_assert_eq!(words(&read), words(body(&content)));
        }
    }

    #[test]
    fn the_numbers_of_the_options_begin_exactly_one_line_each(elicitation in question()) {
        let content = card(&elicitation, true);
        let numbers: Vec<usize> = body(&content)
            .split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
            .filter_map(|line| line.trim_start().split_once(". ")?.0.parse().ok())
            .collect();
        let expected: Vec<usize> = (1..=elicitation.question.options.len()).collect();
        prop_assert_eq!(numbers, expected);
        let html = content["formatted_body"].as_str().unwrap_or_default();
        prop_assert_eq!(html.matches("<li>").count(), elicitation.question.options.len());
    }

    #[test]
    fn nothing_turns_around_what_stands_beside_it(elicitation in question(), text in text(30)) {
        for content in contents(&elicitation, &text) {
            for (form, breaks) in [("body", '\n'), ("formatted_body", '<')] {
                let shown = content[form].as_str().unwrap_or_default();
                for line in shown.split(breaks) {
                    let mut depth = 0_i32;
                    for c in line.chars() {
                        match c {
                            '\u{2068}' => depth += 1,
                            '\u{2069}' => depth -= 1,
                            '\u{202a}'..='\u{202e}' | '\u{2066}' | '\u{2067}' => {
                                return Err(TestCaseError::fail(format!("steers: {line:?}")));
                            }
                            _ => {}
                        }
                        prop_assert!((0..=1).contains(&depth), "{line:?}");
                    }
                    prop_assert_eq!(depth, 0, "{:?}", line);
                }
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn no_content_is_too_large_for_a_question_that_fits(
        unit in prop::sample::select(vec!["x", "\"", "\\", "\n", "a\n", "1.\n", "<", "&", "\0", "é", "🦀", "ש"]),
        (prompt, label, count) in (0_usize..=8192, 0_usize..=512, 0_usize..=50),
    ) {
        let fill = |bytes: usize| unit.repeat(bytes / unit.len());
        let label = or_x(fill(label));
        let mut elicitation = bare(&fill(prompt), &vec![label.as_str(); count]);
        elicitation.question.card_title = Some(fill(512));
        if fits(&elicitation) {
            for content in contents(&elicitation, &fill(9_000)) {
                prop_assert!(event_size(&content) <= MAX_CONTENT, "{}", event_size(&content));
            }
        }
        // However it was asked, it can be closed.
        let over = answered(elicitation, Err(&fill(9_000)));
        prop_assert!(event_size(&closed(&over)) <= MAX_CONTENT);
    }
}
