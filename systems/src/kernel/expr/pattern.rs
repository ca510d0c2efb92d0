//! Regular expressions: how large they are, which is told from how they are written, and what is too large is never compiled.

use regex::RegexBuilder;
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags, GroupKind, RepetitionKind, RepetitionRange,
};

use super::ast::Pattern;

/// Bytes of a regular expression that is compiled. What is larger is too large as it is written, too.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Bytes that one may use to remember what it has seen of a text. Beyond, it looks at each of its states.
const SEEN_BYTES_MAX: usize = 64 << 10;
/// Groups and sets that stand in each other.
const NESTED_MAX: u32 = 32;
/// Size of a set such as `\w`, which has hundreds of ranges.
const WIDE: usize = 1_024;
/// Characters of a set that are one of its size where their case is ignored, since all of them are looked up.
const FOLDED: usize = 32;
/// Size of all characters where their case is ignored.
const ALL_FOLDED: usize = char::MAX as usize / FOLDED;

pub(super) const TOO_LARGE: &str = "the regular expressions are too large; most of it are \\w, \\W and \\p, parts that are \
    repeated by a count such as {100}, and with i large sets such as [\\s\\S]";

/// Compiles a pattern of at most this size.
pub(crate) fn compiled(source: &str, ignore_case: bool, size_max: usize) -> Result<Pattern, String> {
    if source.is_empty() {
        return Err("the regular expression is empty".to_owned());
    }
    let invalid = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        format!("invalid regular expression: {}", last.trim_start_matches("error: "))
    };
    let parsed = ParserBuilder::new().nest_limit(NESTED_MAX).build().parse(source).map_err(|error| invalid(&error))?;
    let Size { size, width } = Measure { ignore_case: ignore_case || ignores_case(&parsed) }.of(&parsed);
    if size > size_max {
        return Err(TOO_LARGE.to_owned());
    }
    let mut builder = RegexBuilder::new(source);
    builder.case_insensitive(ignore_case).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(SEEN_BYTES_MAX);
    let regex = builder.nest_limit(NESTED_MAX).build().map_err(|error| invalid(&error))?;
    Ok(Pattern { source: source.into(), ignore_case, size, width, regex })
}

/// Does it say within that case is ignored?
fn ignores_case(ast: &Ast) -> bool {
    let is_said = |flags: &Flags| flags.flag_state(Flag::CaseInsensitive) == Some(true);
    match ast {
        Ast::Flags(set) => is_said(&set.flags),
        Ast::Group(group) => {
            matches!(&group.kind, GroupKind::NonCapturing(flags) if is_said(flags)) || ignores_case(&group.ast)
        }
        Ast::Repetition(repeated) => ignores_case(&repeated.ast),
        Ast::Alternation(ways) => ways.asts.iter().any(ignores_case),
        Ast::Concat(row) => row.asts.iter().any(ignores_case),
        _ => false,
    }
}

/// What a pattern takes.
#[derive(Clone, Copy, Default)]
struct Size {
    /// To compile it.
    size: usize,
    /// To look at one byte of a text: the states that it can be in at once, and the ways between them.
    width: usize,
}

impl Size {
    const fn new(size: usize, width: usize) -> Self {
        Self { size, width }
    }

    const fn plus(self, other: Self) -> Self {
        Self { size: self.size.saturating_add(other.size), width: self.width.saturating_add(other.width) }
    }

    const fn times(self, count: usize) -> Self {
        Self { size: self.size.saturating_mul(count), width: self.width.saturating_mul(count) }
    }
}

#[derive(Clone, Copy)]
struct Measure {
    ignore_case: bool,
}

impl Measure {
    fn of(self, ast: &Ast) -> Size {
        let sum = |parts: &[Ast]| parts.iter().fold(Size::default(), |sum, part| sum.plus(self.of(part)));
        match ast {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => Size::new(1, 1),
            Ast::Literal(_) => Size::new(4, 1),
            Ast::Dot(_) => Size::new(32, 2),
            Ast::ClassUnicode(_) => Size::new(WIDE + if self.ignore_case { ALL_FOLDED } else { 0 }, 4),
            Ast::ClassPerl(set) => Size::new(perl(&set.kind), 4),
            Ast::ClassBracketed(set) => Size::new(self.set(set, false), 4),
            Ast::Repetition(repeated) => self.of(&repeated.ast).plus(Size::new(1, 1)).times(count(&repeated.op.kind)),
            Ast::Group(group) => self.of(&group.ast).plus(Size::new(1, 1)),
            Ast::Alternation(ways) => sum(&ways.asts).plus(Size::new(1, 1).times(ways.asts.len())),
            Ast::Concat(row) => sum(&row.asts),
        }
    }

    /// The size of a set in brackets, which may stand in another one.
    fn set(self, set: &ClassBracketed, is_within: bool) -> usize {
        let negated = if set.negated { self.without(is_within) } else { 0 };
        self.parts(&set.kind).saturating_add(negated)
    }

    fn parts(self, set: &ClassSet) -> usize {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(both) => self.parts(&both.lhs).saturating_add(self.parts(&both.rhs)),
        }
    }

    fn item(self, item: &ClassSetItem) -> usize {
        match item {
            ClassSetItem::Empty(_) => 1,
            ClassSetItem::Literal(_) => 4,
            ClassSetItem::Range(range) if range.end.c.is_ascii() => 4,
            ClassSetItem::Range(range) => {
                let characters = u32::from(range.end.c).saturating_sub(u32::from(range.start.c)) as usize;
                32 + if self.ignore_case { characters / FOLDED } else { 0 }
            }
            ClassSetItem::Ascii(set) => 16 + if set.negated { self.without(true) } else { 0 },
            ClassSetItem::Unicode(_) => WIDE + self.without(true),
            ClassSetItem::Perl(set) => perl(&set.kind) + if set.negated { self.without(true) } else { 0 },
            ClassSetItem::Bracketed(set) => self.set(set, true),
            ClassSetItem::Union(all) => all.items.iter().fold(0, |sum, item| sum.saturating_add(self.item(item))),
        }
    }

    /// What it adds that a set is of all characters but some.
    const fn without(self, is_within: bool) -> usize {
        if self.ignore_case && is_within { ALL_FOLDED } else { 32 }
    }
}

const fn perl(kind: &ClassPerlKind) -> usize {
    match kind {
        ClassPerlKind::Digit => 64,
        ClassPerlKind::Space => 32,
        ClassPerlKind::Word => WIDE,
    }
}

/// How often what is repeated stands there.
fn count(kind: &RepetitionKind) -> usize {
    let count = match kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(RepetitionRange::Exactly(count)) => *count,
        RepetitionKind::Range(RepetitionRange::AtLeast(least)) => least.saturating_add(1),
        RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => *least.max(most),
    };
    count.max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4_096;

    fn size(source: &str, ignore_case: bool) -> Result<(usize, usize), String> {
        compiled(source, ignore_case, MOST).map(|pattern| (pattern.size, pattern.width))
    }

    #[test]
    fn what_people_write_is_small() {
        for source in [
            r"^no\b",
            "approved|rejected",
            r"^\s*verdict:\s*(yes|ok|approved)\s*$",
            r"score:\s*([89]|10)",
            r"\d{4}-\d{2}-\d{2}",
            "[^a-zäöü,]+",
            ".{1,100}",
        ] {
            for ignore_case in [false, true] {
                let (size, width) = size(source, ignore_case).unwrap();
                assert!(size < MOST && width <= 300, "{source}: {size}, {width}");
            }
        }
        assert!(size(r"\b\w+@\w+\.\w+\b", true).is_ok());
        assert_eq!(size(r"ab|c\d?", false), Ok((4 + 4 + 4 + 65 + 2, 1 + 1 + 1 + 5 + 2)));
    }

    #[test]
    fn what_is_slow_to_compile_is_never_compiled() {
        for (source, ignore_case) in [
            ("[01]*1[01]{8000}x", false),
            ("((((a{10}){10}){10}){10}){10}", false),
            (r"\w{5}", false),
            (r"\pL\pL\pL\pL\pL", false),
            (r"\pL", true),
            (r"[b-\x{10ffff}]", true),
            (r"(?i)[b-\x{10ffff}]", false),
            (r"(?s-m:a(?i:[b-\x{10ffff}]))", false),
            (r"(?x)( ?i:[b-\x{10ffff}])", false),
            (
                r"(?x)( # say
                ?i)[b-\x{10ffff}]",
                false,
            ),
            (r"[\s\S]", true),
            (r"[[^a]b]", true),
            (r"[[:^alpha:]]", true),
            (r"[^\pL&&\pN]", true),
            (r"[a--[^b]]", true),
        ] {
            assert_eq!(size(source, ignore_case), Err(TOO_LARGE.to_owned()), "{source}");
        }
        let deep = format!("{}a{}", "(".repeat(33), ")".repeat(33));
        assert!(size(&deep, false).unwrap_err().contains("nest"));
        // Without a difference of case, they are sets as others are.
        for source in [r"[\s\S]*", r"[b-\x{10ffff}]", r"[[^a]b]"] {
            assert!(size(source, false).is_ok(), "{source}");
        }
    }
}
