//! What kind of character a character is.
//!
//! The short cuts by range change nothing (a test holds them); they are there because every
//! character of every message is asked about.

use std::sync::LazyLock;

use icu_properties::props::{DefaultIgnorableCodePoint, Emoji, GeneralCategory};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed, CodePointSetData, CodePointSetDataBorrowed,
};

/// Zero width non-joiner: the half-space of Persian words.
pub(super) const ZWNJ: char = '\u{200C}';
/// Zero width joiner: what ties an emoji family together.
pub(super) const ZWJ: char = '\u{200D}';
/// Asks for the coloured form of the character before it.
pub(super) const EMOJI_STYLE: char = '\u{FE0F}';
/// Asks for the plain form of the character before it.
pub(super) const TEXT_STYLE: char = '\u{FE0E}';
/// The keycap sign that follows a digit in `1️⃣`.
pub(super) const KEYCAP: char = '\u{20E3}';
/// The flag that England, Scotland and Wales share; the tags after it tell them apart.
pub(super) const BLACK_FLAG: char = '\u{1F3F4}';
/// Ends the tags of a flag.
pub(super) const END_OF_TAGS: char = '\u{E007F}';

const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();
const EMOJI: CodePointSetDataBorrowed<'static> = CodePointSetData::new::<Emoji>();
const IGNORABLE: CodePointSetDataBorrowed<'static> =
    CodePointSetData::new::<DefaultIgnorableCodePoint>();

/// The runs of decimal digits, each as its zero and its last.
///
/// Unicode gives every script's ten digits code points in a row, from zero on, so a place in a
/// run is a value (a test holds it).
static DIGITS: LazyLock<Vec<(u32, u32)>> = LazyLock::new(|| {
    CATEGORY
        .iter_ranges_for_value(GeneralCategory::DecimalNumber)
        .map(|run| (*run.start(), *run.end()))
        .collect()
});

/// The value of a decimal digit of any script.
pub(super) fn digit(c: char) -> Option<char> {
    if c.is_ascii() {
        return c.is_ascii_digit().then_some(c);
    }
    if is_plain_letter(c) {
        return None;
    }
    let code = u32::from(c);
    let run = DIGITS.partition_point(|&(zero, _)| zero <= code);
    let (zero, last) = *DIGITS.get(run.checked_sub(1)?)?;
    (code <= last)
        .then(|| char::from_digit((code - zero) % 10, 10))
        .flatten()
}

/// A letter of any script.
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    is_plain_letter(c)
        || matches!(
            CATEGORY.get(c),
            GeneralCategory::UppercaseLetter
                | GeneralCategory::LowercaseLetter
                | GeneralCategory::TitlecaseLetter
                | GeneralCategory::ModifierLetter
                | GeneralCategory::OtherLetter
        )
}

/// A digit or another sign of a number.
pub(super) fn is_number(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    !is_plain_letter(c)
        && matches!(
            CATEGORY.get(c),
            GeneralCategory::DecimalNumber
                | GeneralCategory::LetterNumber
                | GeneralCategory::OtherNumber
        )
}

/// A letter or a digit.
pub(super) fn is_wordly(c: char) -> bool {
    is_letter(c) || is_number(c)
}

/// A combining mark of any kind.
pub(super) fn is_mark(c: char) -> bool {
    is_above(c) || (!c.is_ascii() && CATEGORY.get(c) == GeneralCategory::SpacingMark)
}

/// A mark that takes no place of its own (`Mn`, `Me`).
pub(super) fn is_above(c: char) -> bool {
    c > '\u{2FF}'
        && !is_plain_letter(c)
        && matches!(
            CATEGORY.get(c),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        )
}

/// A mark that piles up on a letter: neither a variation selector nor the keycap.
pub(super) fn piles_up(c: char) -> bool {
    is_above(c)
        && !matches!(c, '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}' | KEYCAP)
        && !matches!(c, '\u{E0100}'..='\u{E01EF}')
}

/// A vowel mark or another small sign on an Arabic letter.
pub(super) fn is_arabic_mark(c: char) -> bool {
    matches!(c,
        '\u{610}'..='\u{61A}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}'
        | '\u{6DF}'..='\u{6E4}' | '\u{6E7}' | '\u{6E8}' | '\u{6EA}'..='\u{6ED}'
        | '\u{8CA}'..='\u{8E1}' | '\u{8E3}'..='\u{8FF}')
}

/// A punctuation mark or a symbol.
pub(super) fn is_sign(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    if is_plain_letter(c) {
        return false;
    }
    matches!(
        CATEGORY.get(c),
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

/// A bracket or a quotation mark that is not ASCII.
pub(super) fn is_wide_bracket(c: char) -> bool {
    opens(c) || closes(c)
}

/// An opening bracket or quotation mark that is not ASCII.
pub(super) fn opens(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            CATEGORY.get(c),
            GeneralCategory::OpenPunctuation | GeneralCategory::InitialPunctuation
        )
}

/// A closing bracket or quotation mark that is not ASCII.
pub(super) fn closes(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            CATEGORY.get(c),
            GeneralCategory::ClosePunctuation | GeneralCategory::FinalPunctuation
        )
}

/// Punctuation of Chinese and Japanese writing.
pub(super) fn is_cjk_punctuation(c: char) -> bool {
    matches!(c,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301F}'
        | '\u{3030}' | '\u{303D}' | '\u{30FB}' | '\u{FE10}'..='\u{FE19}'
        | '\u{FE30}'..='\u{FE6B}' | '\u{FF01}' | '\u{FF02}' | '\u{FF07}'..='\u{FF09}'
        | '\u{FF0C}' | '\u{FF1A}' | '\u{FF1B}' | '\u{FF1F}' | '\u{FF3B}' | '\u{FF3D}'
        | '\u{FF5B}' | '\u{FF5D}' | '\u{FF5F}'..='\u{FF65}')
}

/// Punctuation of Arabic writing, but not the signs within its numbers.
pub(super) fn is_arabic_punctuation(c: char) -> bool {
    matches!(
        c,
        '\u{60C}' | '\u{60D}' | '\u{61B}' | '\u{61D}'..='\u{61F}' | '\u{66D}' | '\u{6D4}'
    )
}

/// A mark that asks, whatever follows it.
pub(super) fn asks(c: char) -> bool {
    matches!(c, '؟' | '？' | '⁇' | '⁈' | '⁉' | '‽' | '¿')
}

/// `?` or `!`, however wide: what NFKC makes of it is nothing else.
pub(super) fn is_asking_or_calling(c: char) -> bool {
    matches!(
        c,
        '?' | '!' | '？' | '！' | '﹖' | '﹗' | '︖' | '︕' | '⁇' | '⁈' | '⁉' | '‼'
    )
}

/// Unicode's `Emoji`, ASCII digits and signs included: what a variation selector may follow.
pub(super) fn takes_style(c: char) -> bool {
    matches!(c, '#' | '*' | '0'..='9') || is_emoji_at_all(c)
}

/// An emoji, as it is shown: a character that people take for text (`→`, `©`, `‼`) only where
/// the coloured form is asked for.
pub(super) fn is_emoji(c: char, next: Option<char>) -> bool {
    is_emoji_at_all(c) && (next == Some(EMOJI_STYLE) || !looks_like_text(c))
}

fn is_emoji_at_all(c: char) -> bool {
    match c {
        '\0'..='\u{A8}' | '\u{AF}'..='\u{203B}' | '\u{32A0}'..='\u{1EFFF}' => false,
        _ => EMOJI.contains(c),
    }
}

fn looks_like_text(c: char) -> bool {
    matches!(c,
        '©' | '®' | '™' | '‼' | '⁉' | 'ℹ' | '\u{2190}'..='\u{21FF}' | '\u{2934}' | '\u{2935}'
        | '\u{2B05}'..='\u{2B07}' | '〰' | '〽')
}

/// A Chinese character.
pub(super) fn is_han(c: char) -> bool {
    c >= '\u{2E80}'
        && matches!(c,
        '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{2E80}'..='\u{2FDF}'
        | '\u{3005}' | '\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303B}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

/// A letter, digit or mark of a script that the names of hosts mix with ASCII: Latin, Greek,
/// Cyrillic, and the wide forms of ASCII, which stand for it there.
pub(super) fn mixes_with_ascii(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ')
        || (matches!(c, '\u{AA}'..='\u{52F}' | '\u{1E00}'..='\u{1FFF}')
            && (is_wordly(c) || is_mark(c)))
}

/// Whether a word of one script ends between two characters that touch: `看example.com`.
pub(super) fn scripts_part(before: char, after: char) -> bool {
    let foreign = |c: char| !c.is_ascii() && !mixes_with_ascii(c) && !is_above(c);
    (before.is_ascii_alphanumeric() && foreign(after))
        || (foreign(before) && after.is_ascii_alphanumeric())
}

/// An apostrophe as keyboards write it.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | 'ʼ' | '´' | '＇')
}

/// A tag that may stand in a flag (UTS 51): a digit or a small letter, invisible by itself.
pub(super) fn is_flag_tag(c: char) -> bool {
    matches!(c, '\u{E0030}'..='\u{E0039}' | '\u{E0061}'..='\u{E007A}')
}

/// What cleaning takes out, other than white space, joiners, styles and the tags of flags:
/// `Cc`, `Co`, noncharacters, `Default_Ignorable_Code_Point` and the annotation marks.
pub(super) fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    if is_plain_letter(c) {
        return false;
    }
    let code = u32::from(c);
    matches!(c, '\u{FDD0}'..='\u{FDEF}' | '\u{FFF9}'..='\u{FFFB}')
        || code & 0xFFFE == 0xFFFE
        || IGNORABLE.contains(c)
        || matches!(
            CATEGORY.get(c),
            GeneralCategory::Control | GeneralCategory::PrivateUse
        )
}

/// A letter that needs no looking up.
pub(super) fn is_plain_letter(c: char) -> bool {
    match c {
        '\0'..='\u{BF}' => c.is_ascii_alphabetic(),
        'À'..='ʯ' => !matches!(c, '×' | '÷'),
        '\u{2B0}'..='\u{52F}' => matches!(c,
            '\u{430}'..='\u{481}' | '\u{48A}'..='\u{52F}' | '\u{400}'..='\u{42F}' | 'Ά' | 'Έ'..='Ί'
            | 'Α'..='Ρ' | 'Σ'..='ώ'),
        '\u{530}'..='\u{6D3}' => {
            matches!(c, '\u{620}'..='\u{64A}' | '\u{671}'..='\u{6D3}' | '\u{5D0}'..='\u{5EA}')
        }
        '\u{6D4}'..='\u{3040}' => false,
        _ => matches!(c,
            '\u{4E00}'..='\u{9FFF}' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}'
            | '\u{AC00}'..='\u{D7A3}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = char> {
        '\0'..='\u{10FFFF}'
    }

    #[test]
    fn the_short_cuts_change_nothing() {
        for c in all().filter(|&c| is_plain_letter(c)) {
            let letter = matches!(
                CATEGORY.get(c),
                GeneralCategory::UppercaseLetter
                    | GeneralCategory::LowercaseLetter
                    | GeneralCategory::TitlecaseLetter
                    | GeneralCategory::ModifierLetter
                    | GeneralCategory::OtherLetter
            );
            assert!(letter && !IGNORABLE.contains(c), "U+{:X}", u32::from(c));
        }
        for c in all().filter(|c| !c.is_ascii()) {
            assert_eq!(
                is_emoji_at_all(c),
                EMOJI.contains(c),
                "U+{:X}",
                u32::from(c)
            );
        }
    }

    #[test]
    fn the_digits_of_every_script_have_their_values() {
        for (zero, last) in DIGITS.iter() {
            assert_eq!((last - zero + 1) % 10, 0, "U+{zero:X}");
        }
        for (c, value) in [
            ('0', '0'),
            ('۵', '5'),
            ('٩', '9'),
            ('７', '7'),
            ('𝟗', '9'),
            ('𝟘', '0'),
        ] {
            assert_eq!(digit(c), Some(value));
        }
        assert_eq!(digit('½'), None);
    }
}
