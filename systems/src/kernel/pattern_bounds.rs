//! Regular expressions that whoever writes a manifest brings, which are held against texts of strangers where nothing may take
//! long. Reading them and matching them are bounded: their length, how many characters their classes stand for, the memory that
//! they take once they are read, and how much of a text is looked at.

use agentsvc_components::kernel::limit;
use regex::{RegexSet, RegexSetBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSetBinaryOp, ClassSetItem, Visitor, visit,
};

/// Bytes that the search may keep of what it has worked out of one set of patterns.
const CACHE_BYTES_MAX: usize = 128 << 10;

/// Patterns that were read, as one: a text is gone through once for all of them.
#[derive(Clone, Debug)]
pub struct BoundedPatterns(RegexSet);

impl BoundedPatterns {
    /// Reads patterns that belong together, which share the bounds.
    ///
    /// # Errors
    /// One sentence that says which pattern is none, or what is too long or too large, and what to write instead.
    pub fn read<P: AsRef<str>>(patterns: &[P], ignore_case: bool) -> Result<Self, String> {
        // Before anything is made of them: classes are worked out character by character, however little of them is left.
        let mut left = limit::PATTERN_CHARACTERS_MAX;
        for pattern in patterns.iter().map(AsRef::as_ref) {
            check(pattern, &mut left)?;
        }
        let built = RegexSetBuilder::new(patterns)
            .case_insensitive(ignore_case)
            .size_limit(limit::PATTERN_MEMORY_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(most) => format!(
                "the patterns take more than {most} bytes of memory once they are read; write fewer or shorter ones: `\\w` and \
                 `\\d` stand for the letters and digits of all scripts, `(?-u:\\w)` and [0-9] for few, and a{{100}} takes as \
                 much as 100 times a"
            ),
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                format!("not a regular expression: {}", last.trim_start_matches("error: "))
            }
        })
    }

    /// Does one of them match `text`? Only its first [`limit::PATTERN_TEXT_BYTES_MAX`] bytes are looked at, as if it ended there.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(&text[..text.floor_char_boundary(limit::PATTERN_TEXT_BYTES_MAX)])
    }
}

/// Is it a regular expression, however large?
#[must_use]
pub(crate) fn is_pattern(source: &str) -> bool {
    Parser::new().parse(source).is_ok()
}

/// Refuses a pattern that is too long, that is none, or whose classes stand for more characters than are `left`.
fn check(pattern: &str, left: &mut usize) -> Result<(), String> {
    let most = limit::PATTERN_BYTES_MAX;
    if pattern.len() > most {
        return Err(format!("a pattern is longer than {most} bytes"));
    }
    let read = Parser::new().parse(pattern);
    let ast = read.map_err(|error| format!("{pattern:?} is not a regular expression: {}", error.kind()))?;
    visit(&ast, Classes { left, depth: 0 }).map_err(|TooWide| {
        format!(
            "{pattern:?}: the classes of the patterns stand for more than {} characters; write ranges such as [a-z] instead of \
             \\p{{..}}, `(?s:.)` for any character, and no negated class within another",
            limit::PATTERN_CHARACTERS_MAX
        )
    })
}

/// Classes stand for more characters than they may.
struct TooWide;

/// Counts the characters that the classes of a pattern stand for, those of a class once for each class around it: upper and lower
/// case are worked out for each.
struct Classes<'l> {
    left: &'l mut usize,
    depth: usize,
}

/// What `\w` and its opposite count: their cost, as that of a range.
const WORD: usize = 16_384;
/// What `\d` and `\s` count.
const FEW: usize = 1_024;

impl Classes<'_> {
    fn take(&mut self, characters: usize) -> Result<(), TooWide> {
        *self.left = self.left.checked_sub(characters.saturating_mul(self.depth.max(1))).ok_or(TooWide)?;
        Ok(())
    }

    fn perl(&mut self, class: &ClassPerl) -> Result<(), TooWide> {
        match class.kind {
            ClassPerlKind::Word => self.take(WORD),
            ClassPerlKind::Digit | ClassPerlKind::Space => self.take(FEW),
        }
    }

    /// A bracket opens. What is negated within another class is nearly everything there.
    fn open(&mut self, class: &ClassBracketed) -> Result<(), TooWide> {
        if class.negated && self.depth > 0 {
            return Err(TooWide);
        }
        self.depth += 1;
        Ok(())
    }
}

impl Visitor for Classes<'_> {
    type Output = ();
    type Err = TooWide;

    fn finish(self) -> Result<(), TooWide> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), TooWide> {
        match ast {
            Ast::ClassUnicode(_) => Err(TooWide),
            Ast::ClassPerl(class) => self.perl(class),
            Ast::ClassBracketed(class) => self.open(class),
            _ => Ok(()),
        }
    }

    fn visit_post(&mut self, ast: &Ast) -> Result<(), TooWide> {
        self.depth -= usize::from(matches!(ast, Ast::ClassBracketed(_)));
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), TooWide> {
        match item {
            ClassSetItem::Unicode(_) => Err(TooWide),
            ClassSetItem::Perl(class) if class.negated => Err(TooWide),
            ClassSetItem::Ascii(class) if class.negated => Err(TooWide),
            ClassSetItem::Perl(class) => self.perl(class),
            ClassSetItem::Bracketed(class) => self.open(class),
            ClassSetItem::Range(range) => {
                let (from, to) = (u32::from(range.start.c), u32::from(range.end.c));
                self.take(to.saturating_sub(from) as usize + 1)
            }
            _ => self.take(1),
        }
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), TooWide> {
        self.depth -= usize::from(matches!(item, ClassSetItem::Bracketed(_)));
        Ok(())
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ClassSetBinaryOp) -> Result<(), TooWide> {
        self.depth += 1;
        Ok(())
    }

    fn visit_class_set_binary_op_post(&mut self, _: &ClassSetBinaryOp) -> Result<(), TooWide> {
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str) -> Result<BoundedPatterns, String> {
        BoundedPatterns::read(&[pattern], true)
    }

    #[test]
    fn what_people_write_is_read_and_matches() {
        for (pattern, text) in [
            (r"\bhelp\b", "I need HELP"),
            (r"^/ask\b", "/ask why"),
            (r"^\s*bot[:,]", " Bot, hello"),
            (r"(?-u:\w)+-\d", "abc-1234"),
            (r"[^\x00-\x7f]", "für"),
            ("[а-я]+[一-鿿]?", "да"),
            (r"hey,? (?:bot|assistant)", "hey assistant"),
            ("(?s:.)x", "\nx"),
            ("[[a-c]&&[b-d]]", "B"),
        ] {
            assert!(read(pattern).unwrap().is_match(text), "{pattern}");
        }
        let names: Vec<String> = (0..12).map(|n| format!("\\bname{n}\\b")).collect();
        assert!(BoundedPatterns::read(&names, true).unwrap().is_match("so, Name11?"));
        assert!(!BoundedPatterns::read(&names, false).unwrap().is_match("so, Name11?"));
    }

    #[test]
    fn what_takes_long_to_read_or_to_match_is_refused() {
        let last = char::MAX;
        for (pattern, why) in [
            // Little is left of each, and all are worked out character by character.
            (format!("[a-{last}&&b]"), "characters"),
            ("[\\w&&a]".repeat(60), "characters"),
            ("[[^a]b]".to_owned(), "characters"),
            ("[\\S&&a]".to_owned(), "characters"),
            ("[[:^alpha:]&&a]".to_owned(), "characters"),
            ("\\p{any}".to_owned(), "characters"),
            ("[\\pL&&a]".to_owned(), "characters"),
            (format!("{}一-鿿{}", "[".repeat(9), "]".repeat(9)), "characters"),
            ("a[ab]{900}[^\\x00-\\x7f]".to_owned(), "16384 bytes"),
            ("\\w".to_owned(), "`(?-u:\\w)`"),
            ("x".repeat(513), "512 bytes"),
            ("(".to_owned(), "not a regular expression: unclosed group"),
            ("(?-u:\\xff)".to_owned(), "not a regular expression"),
        ] {
            let error = read(&pattern).expect_err(&pattern);
            assert!(error.contains(why), "{pattern}: {error}");
        }
    }

    #[test]
    fn patterns_share_the_bounds() {
        let one = "a[ab]{100}[^\\x00-\\x7f]".to_owned();
        read(&one).unwrap();
        let error = BoundedPatterns::read(&vec![one; 32], true).unwrap_err();
        assert!(error.contains("fewer or shorter"), "{error}");
        read("[一-鿿]").unwrap();
        assert!(BoundedPatterns::read(&["[一-鿿]"; 4], true).unwrap_err().contains("characters"));
    }

    #[test]
    fn only_the_beginning_of_a_text_is_looked_at() {
        let pattern = read("help").unwrap();
        // Characters of two bytes: the cut falls between two.
        let long = |before: usize| format!("{}help", "ä".repeat(before / 2));
        assert!(pattern.is_match(&long(limit::PATTERN_TEXT_BYTES_MAX - 4)));
        assert!(!pattern.is_match(&long(limit::PATTERN_TEXT_BYTES_MAX - 2)));
        assert!(!pattern.is_match(&format!("x{}", long(limit::PATTERN_TEXT_BYTES_MAX))));
    }
}
