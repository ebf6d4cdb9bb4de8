//! The text of a reply made comparable.
//!
//! Two forms of a text are used. Its *shown* form is what a reader sees: NFKC,
//! invisible characters gone, digits as ASCII, white space collapsed, case kept.
//! Its *normal* form is the shown form with case folded.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// The zero of every run of ten decimal digits that Unicode knows (general category `Nd`).
const ZEROS: [u32; 77] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x10D40, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0,
    0x11650, 0x116C0, 0x116D0, 0x116DA, 0x11730, 0x118E0, 0x11950, 0x11BF0, 0x11C50, 0x11D50,
    0x11DA0, 0x11DE0, 0x11F50, 0x16130, 0x16A60, 0x16AC0, 0x16B50, 0x16D70, 0x1CCF0, 0x1D7CE,
    0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E5F1, 0x1E950, 0x1FBF0,
];

/// The keycap sign that follows a digit in `1️⃣`.
const KEYCAP: char = '\u{20E3}';

/// The braille pattern without dots: a symbol to Unicode, a blank to whoever looks at it.
const BRAILLE_BLANK: char = '\u{2800}';

/// The flag that England, Scotland and Wales share: only the tag characters
/// after it, otherwise invisible, tell them apart.
const BLACK_FLAG: char = '\u{1F3F4}';

/// The shown form: NFKC, invisible characters, variation selectors and skin
/// tones gone, every script's digits as ASCII, white space collapsed and
/// trimmed. Case stays.
pub(crate) fn shown(text: &str) -> String {
    if text.is_ascii() {
        return collapsed(text);
    }
    let prepared = prepared(text);
    collapsed(&ComposingNormalizerBorrowed::new_nfkc().normalize(&prepared))
}

/// The normal form of a text that is already in its shown form.
pub(crate) fn folded(shown: &str) -> String {
    if shown.is_ascii() {
        return shown.to_ascii_lowercase();
    }
    // Folding may undo a composition, and composing may make a letter that folds
    // again: it comes to rest within two rounds (a test holds it for every character).
    let mut text = Cow::Borrowed(shown);
    for _ in 0..2 {
        let Cow::Owned(fold) = CaseMapper::new().fold_string(&text) else {
            break;
        };
        match ComposingNormalizerBorrowed::new_nfkc().normalize(&fold) {
            Cow::Borrowed(_) => return fold,
            Cow::Owned(composed) => text = Cow::Owned(composed),
        }
    }
    text.into_owned()
}

/// Whether nothing of the text can be seen.
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || c == BRAILLE_BLANK || is_invisible(c) || is_skin_tone(c))
}

/// The text without the white space and invisible characters before it.
pub(crate) fn trim_unseen_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c))
}

/// The value of a decimal digit of any script.
pub(crate) fn digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| c as u8 - b'0');
    }
    let code = u32::from(c);
    let run = ZEROS.partition_point(|&zero| zero <= code).checked_sub(1)?;
    let value = code - ZEROS.get(run)?;
    u8::try_from(value).ok().filter(|&value| value <= 9)
}

/// Where the text without its wrapping punctuation and emphasis marks begins and
/// ends, in bytes of a shown or normal form.
///
/// Never trimmed: `>` (quoting is not answering), `?` (asking is not either), `-`
/// and `+` (a sign is part of a number), `!` in front (a command or a "not"), and a
/// stop right before a digit (`.5` is not 5).
pub(crate) fn core(text: &str) -> (usize, usize) {
    let mut start = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let stop_before_word = is_stop(c) && chars.peek().is_none_or(|&next| digit(next).is_none());
        if !(c == ' ' || c == '¡' || stop_before_word || opens(c)) {
            break;
        }
        start += c.len_utf8();
    }
    let mut end = text.len();
    for c in text[start..].chars().rev() {
        if !(c == ' ' || c == '!' || is_stop(c) || closes(c)) {
            break;
        }
        end -= c.len_utf8();
    }
    (start, end)
}

/// A punctuation mark or a symbol, which a label may be typed without.
pub(crate) fn is_mark(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    matches!(
        c.general_category(),
        GeneralCategory::ConnectorPunctuation
            | GeneralCategory::DashPunctuation
            | GeneralCategory::OpenPunctuation
            | GeneralCategory::ClosePunctuation
            | GeneralCategory::InitialPunctuation
            | GeneralCategory::FinalPunctuation
            | GeneralCategory::OtherPunctuation
            | GeneralCategory::MathSymbol
            | GeneralCategory::CurrencySymbol
            | GeneralCategory::ModifierSymbol
            | GeneralCategory::OtherSymbol
    )
}

/// A mark that asks. NFKC turns the Greek one into a semicolon, so it is looked
/// for in the text as typed.
pub(crate) fn asks(text: &str) -> bool {
    text.contains([
        '?', '¿', '？', '؟', '\u{37E}', '՞', '፧', '⁇', '⁈', '⁉', '‽', '⸮', '꘏', '﹖',
    ])
}

/// An apostrophe as keyboards write it.
pub(crate) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | 'ʼ' | '`' | '´')
}

fn is_stop(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ':'
            | ';'
            | '。'
            | '、'
            | '،'
            | '؛'
            | '۔'
            | '।'
            | '॥'
            | '։'
            | '።'
            | '။'
            | '។'
    )
}

fn opens(c: char) -> bool {
    match c {
        '(' | '[' | '{' | '"' | '\'' | '*' | '_' | '`' => true,
        _ if c.is_ascii() || is_letter_of_a_common_script(c) => false,
        _ => matches!(
            c.general_category(),
            GeneralCategory::OpenPunctuation
                | GeneralCategory::InitialPunctuation
                | GeneralCategory::FinalPunctuation
        ),
    }
}

fn closes(c: char) -> bool {
    match c {
        ')' | ']' | '}' | '"' | '\'' | '*' | '_' | '`' => true,
        _ if c.is_ascii() || is_letter_of_a_common_script(c) => false,
        _ => matches!(
            c.general_category(),
            GeneralCategory::ClosePunctuation
                | GeneralCategory::InitialPunctuation
                | GeneralCategory::FinalPunctuation
        ),
    }
}

/// White space collapsed to single blanks, both ends trimmed, control characters and the keycaps
/// of digits gone.
fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else if c == KEYCAP && out.ends_with(|c: char| c.is_ascii_digit()) {
            // NFKC made the digit: `½⃣`, `㎡⃣`.
        } else if !c.is_control() {
            out.push(c);
        }
    }
    if out.ends_with(' ') {
        out.pop();
    }
    out
}

/// What has to happen before NFKC: invisible characters would keep letters from
/// composing, and NFKC would run `①②` and `1²` together into twelve.
fn prepared(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut in_flag = false;
    let mut after_digit = false;
    let mut after_enclosed = false;
    for c in text.chars() {
        if is_letter_of_a_common_script(c) {
            out.push(c);
            (in_flag, after_digit, after_enclosed) = (false, false, false);
            continue;
        }
        if in_flag && matches!(c, '\u{E0020}'..='\u{E007F}') {
            out.push(c);
            continue;
        }
        if is_invisible(c) || is_skin_tone(c) || (c == KEYCAP && after_digit) {
            continue;
        }
        in_flag = c == BLACK_FLAG;
        if let Some(value) = digit(c) {
            if after_enclosed {
                out.push(' ');
            }
            out.push(char::from(b'0' + value));
            (after_digit, after_enclosed) = (true, false);
        } else if !c.is_ascii() && is_enclosed_number(c) {
            if after_digit || after_enclosed {
                out.push(' ');
            }
            match circled(c) {
                Some(value) => out.push_str(&value.to_string()),
                None => out.push(c),
            }
            (after_digit, after_enclosed) = (false, true);
        } else {
            if begins_with_a_number(c) && (after_digit || after_enclosed) {
                out.push(' ');
            }
            out.push(if c == BRAILLE_BLANK { ' ' } else { c });
            (after_digit, after_enclosed) = (false, ends_with_a_number(c));
        }
    }
    out
}

/// A character that needs none of the looking up: a short cut, since this runs on
/// every message, and no more than that.
fn is_letter_of_a_common_script(c: char) -> bool {
    matches!(c,
        'a'..='z' | 'A'..='Z' | 'À'..='ʯ' | '\u{388}'..='\u{52F}' | '\u{5D0}'..='\u{5EA}'
        | '\u{620}'..='\u{65F}' | '\u{671}'..='\u{6D3}' | '\u{904}'..='\u{963}'
        | '\u{3041}'..='\u{30FF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}')
}

/// A number in one character that NFKC or we write as digits: raised, lowered,
/// fractions, in circles, in brackets, with a stop, and the keycap ten.
fn is_enclosed_number(c: char) -> bool {
    matches!(c,
        '²' | '³' | '¹' | '¼'..='¾' | '\u{2070}'..='\u{2089}' | '\u{2150}'..='\u{215F}'
        | '\u{2189}' | '\u{2460}'..='\u{249B}' | '\u{24EA}'..='\u{24FF}'
        | '\u{2776}'..='\u{2793}' | '\u{3248}'..='\u{324F}' | '\u{3251}'..='\u{325F}'
        | '\u{32B1}'..='\u{32BF}' | '\u{1F100}'..='\u{1F10C}' | '\u{1F51F}')
}

/// The telegraph symbols, which NFKC writes as a number and a word: `㋉` is `10月`.
fn begins_with_a_number(c: char) -> bool {
    matches!(c, '\u{32C0}'..='\u{32CB}' | '\u{3358}'..='\u{3370}' | '\u{33E0}'..='\u{33FE}')
}

/// The units squared and cubed, which NFKC writes with the number behind: `㎡` is `m2`.
fn ends_with_a_number(c: char) -> bool {
    matches!(
        c,
        '\u{3378}' | '\u{3379}' | '\u{339F}'..='\u{33A6}' | '\u{33A8}' | '\u{33AF}'
    )
}

/// Circled digits and the keycap ten, where NFKC does not know their value.
fn circled(c: char) -> Option<u32> {
    let code = u32::from(c);
    let (first, from) = match code {
        0x24EB..=0x24F4 => (0x24EB, 11),
        0x24F5..=0x24FE => (0x24F5, 1),
        0x24FF | 0x1F10B | 0x1F10C => (code, 0),
        0x2776..=0x277F => (0x2776, 1),
        0x2780..=0x2789 => (0x2780, 1),
        0x278A..=0x2793 => (0x278A, 1),
        0x1F51F => (code, 10),
        _ => return None,
    };
    Some(code - first + from)
}

fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Unicode's `Default_Ignorable_Code_Point`, annotation marks, and the control
/// characters that are no white space.
fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !c.is_ascii_whitespace() && c != '\u{B}';
    }
    matches!(c,
        '\u{80}'..='\u{84}' | '\u{86}'..='\u{9F}' | '\u{AD}' | '\u{34F}' | '\u{61C}'
        | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        folded(&shown(text))
    }

    #[test]
    fn every_decimal_digit_of_unicode_becomes_ascii() {
        for c in '\0'..'\u{20000}' {
            let decimal = c.general_category() == GeneralCategory::DecimalNumber;
            assert_eq!(digit(c).is_some(), decimal, "U+{:X}", u32::from(c));
            if decimal {
                let text = shown(&c.to_string());
                assert!(
                    text.len() == 1 && text.as_bytes()[0].is_ascii_digit(),
                    "{c}"
                );
            }
        }
    }

    #[test]
    fn the_normal_form_of_every_character_is_at_rest() {
        // Ideographs, Hangul syllables and the private planes have no case and are left
        // out to keep the test quick.
        let cased = ('\0'..'\u{3400}').chain('\u{A000}'..'\u{AC00}');
        for c in cased.chain('\u{F900}'..'\u{20000}') {
            let once = normal(&c.to_string());
            assert_eq!(normal(&once), once, "U+{:X}", u32::from(c));
        }
    }

    #[test]
    fn keycaps_circles_and_other_scripts_are_digits() {
        for (text, expected) in [
            ("1️⃣", "1"),
            ("1⃣", "1"),
            ("1️⃣0️⃣", "10"),
            ("🔟", "10"),
            ("①", "1"),
            ("❷", "2"),
            ("➌", "3"),
            ("➃", "4"),
            ("⓵", "1"),
            ("⓫", "11"),
            ("⓪", "0"),
            ("㉑", "21"),
            ("１２", "12"),
            ("۱۲", "12"),
            ("𝟏", "1"),
            ("½⃣", "1\u{2044}2"),
            ("㎡⃣", "m2"),
            ("＃２", "#2"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_written_apart_are_not_run_together() {
        assert_eq!(normal("①②"), "1 2");
        assert_eq!(normal("1²"), "1 2");
        assert_eq!(normal("②0"), "2 0");
        assert_eq!(normal("1㋉"), "1 10月");
        assert_eq!(normal("㉉㋉"), "㉉ 10月");
        assert_eq!(normal("5㎡2"), "5m2 2");
        assert_eq!(normal("½"), "1\u{2044}2");
        assert_eq!(normal("1½"), "1 1\u{2044}2");
    }

    #[test]
    fn the_short_cut_changes_nothing() {
        for c in ('\0'..='\u{20000}').filter(|&c| is_letter_of_a_common_script(c)) {
            let looked_up = digit(c).is_some()
                || is_invisible(c)
                || is_enclosed_number(c)
                || matches!(
                    c.general_category(),
                    GeneralCategory::OpenPunctuation
                        | GeneralCategory::ClosePunctuation
                        | GeneralCategory::InitialPunctuation
                        | GeneralCategory::FinalPunctuation
                );
            assert!(!looked_up, "U+{:X}", u32::from(c));
        }
    }

    #[test]
    fn every_character_that_stands_for_digits_is_kept_apart() {
        for c in '\u{80}'..'\u{20000}' {
            let alone = shown(&c.to_string());
            if c.general_category() == GeneralCategory::DecimalNumber {
                continue;
            }
            if alone.starts_with(|c: char| c.is_ascii_digit()) {
                let beside = shown(&format!("1{c}"));
                assert_eq!(beside, format!("1 {alone}"), "U+{:X}", u32::from(c));
            }
            if alone.ends_with(|c: char| c.is_ascii_digit()) {
                let beside = shown(&format!("{c}1"));
                assert_eq!(beside, format!("{alone} 1"), "U+{:X}", u32::from(c));
            }
        }
    }

    #[test]
    fn what_cannot_be_seen_is_gone() {
        assert_eq!(normal("\u{200F}رد شو\u{200F}"), "رد شو");
        assert_eq!(normal("رد\u{200C}شو"), "ردشو");
        assert_eq!(normal("r\u{200B}e\u{AD}d\u{FEFF}\0"), "red");
        assert_eq!(normal("👍🏽"), "👍");
        assert_eq!(normal("❤\u{FE0F}"), "❤");
        assert_eq!(normal(" a\u{A0}\u{3000}\n\tb\u{2028}"), "a b");
        assert!(is_blank(" \u{200B}\u{2060}\n\u{3164}\u{E0001}"));
        assert!(is_blank("\u{2800}"));
        assert!(!is_blank("."));
    }

    #[test]
    fn flags_told_apart_only_by_tags_stay_apart() {
        let england = "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}";
        let scotland = "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";
        assert_ne!(normal(england), normal(scotland));
        assert_eq!(normal("red\u{E0067}"), "red");
    }

    #[test]
    fn case_folds_fully() {
        assert_eq!(normal("STRASSE"), normal("Straße"));
        assert_eq!(normal("ΣΊΣΥΦΟΣ"), normal("σίσυφος"));
        assert_eq!(normal("Cafe\u{301}"), normal("CAFÉ"));
        assert_eq!(normal("ﬁne"), "fine");
    }

    #[test]
    fn wrapping_is_trimmed_and_nothing_else() {
        for (text, expected) in [
            ("2.", "2"),
            ("(2)", "2"),
            ("**2**", "2"),
            ("```2```", "2"),
            ("“run it”", "run it"),
            ("„run it“", "run it"),
            ("»run it«", "run it"),
            ("red!", "red"),
            ("¡rojo!", "rojo"),
            ("...red...", "red"),
            ("...", ""),
            ("> 2", "> 2"),
            ("red?", "red?"),
            ("(red?)", "red?"),
            ("-1", "-1"),
            ("+1", "+1"),
            (".5", ".5"),
            (",5", ",5"),
            ("!red", "!red"),
            ("1%", "1%"),
            ("/1", "/1"),
            ("@1", "@1"),
            ("~~red~~", "~~red~~"),
            ("2 -", "2 -"),
        ] {
            let (start, end) = core(text);
            assert_eq!(&text[start..end], expected, "{text}");
        }
    }
}
