//! Phone and card numbers: runs of digits, judged as a whole, so that no part of an id, a date or a table of figures
//! is taken for one.

use super::Kind;
use super::plain::{Span, run};

/// Bytes between two groups of digits at most, such as `) ` or ` - `.
const GAP_BYTES_MAX: usize = 3;
/// Digits of a card number at least and at most.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;
/// Digits of an international number at least and at most (E.164).
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;
/// Digits of what is called a phone number.
const LABELLED_DIGITS: std::ops::RangeInclusive<usize> = 6..=15;

/// Digits that follow each other.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
}

impl Group {
    const fn len(self) -> usize {
        self.end - self.start
    }
}

/// Groups of digits with only blanks, dashes, dots, slashes and brackets in between.
pub(super) struct Unit<'a> {
    text: &'a [u8],
    groups: Vec<Group>,
    /// Where the plus sign or the first digit stands.
    start: usize,
    plus: bool,
    /// Behind the last digit.
    pub(super) end: usize,
}

impl<'a> Unit<'a> {
    /// The unit that begins at `at`, with a digit or with what may stand before one.
    pub(super) fn at(text: &'a [u8], at: usize) -> Option<Self> {
        let mut from = at;
        while from < at + 2 && matches!(text.get(from), Some(b'(' | b'+')) {
            from += 1;
        }
        let plus = text[at..from].contains(&b'+');
        let mut groups = Vec::new();
        let mut end = from;
        loop {
            let length = run(text, from, |byte| byte.is_ascii_digit());
            if length == 0 {
                break;
            }
            end = from + length;
            groups.push(Group { start: from, end });
            from = end + run(text, end, |byte| b" -./()".contains(&byte)).min(GAP_BYTES_MAX);
        }
        if groups.is_empty() {
            return None;
        }
        let mut unit = Self { text, groups, start: at, plus, end };
        unit.drop_mixed();
        Some(unit)
    }

    /// Takes away what goes on in letters, such as the end of a UUID: it is no number.
    fn drop_mixed(&mut self) {
        let word = |at: usize| self.text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let joined = matches!(self.text.get(self.end), Some(b'-' | b'.' | b'/')) && word(self.end + 1);
        if !joined && !word(self.end) {
            return;
        }
        while self.groups.pop().is_some() {
            let last = self.groups.len();
            if last > 0 && self.gap_after(last - 1).contains(&b' ') {
                return;
            }
        }
    }

    /// What stands behind the group; empty behind the last.
    fn gap_after(&self, group: usize) -> &'a [u8] {
        let from = self.groups[group].end;
        let length = run(self.text, from, |byte| b" -./()".contains(&byte)).min(GAP_BYTES_MAX);
        let next = self.text.get(from + length);
        if next.is_some_and(u8::is_ascii_digit) { &self.text[from..from + length] } else { &[] }
    }

    fn digits(&self, from: usize, to: usize) -> impl Iterator<Item = u8> + '_ {
        self.groups[from..to].iter().flat_map(|group| &self.text[group.start..group.end]).copied()
    }

    fn count(&self, from: usize, to: usize) -> usize {
        self.groups[from..to].iter().map(|group| group.len()).sum()
    }

    fn first(&self, group: usize) -> u8 {
        self.text[self.groups[group].start]
    }

    /// Where the piece begins that begins with this group: a bracket before it belongs to it.
    fn piece_start(&self, group: usize) -> usize {
        let start = self.groups[group].start;
        if group == 0 {
            self.start
        } else if self.text[start - 1] == b'(' {
            start - 1
        } else {
            start
        }
    }

    fn span(&self, from: usize, to: usize, kind: Kind) -> Span {
        Span::new(self.piece_start(from), self.groups[to - 1].end, kind)
    }

    /// The numbers in the unit. `labelled`: a name before it says that it is a phone number.
    pub(super) fn spans(&self, labelled: bool) -> Vec<Span> {
        let (mut spans, mut from, mut at) = (Vec::new(), 0, 0);
        while at < self.groups.len() {
            let found = self.card(at).map(|to| (to, Kind::Card));
            let found = found.or_else(|| self.phone_window(at).map(|to| (to, Kind::Phone)));
            let Some((to, kind)) = found else {
                at += 1;
                continue;
            };
            spans.extend(self.piece(from, at, labelled));
            spans.push(self.span(at, to, kind));
            (from, at) = (to, to);
        }
        spans.extend(self.piece(from, at, labelled));
        spans
    }

    /// What is left between the numbers that were found, as a phone number.
    fn piece(&self, from: usize, to: usize, labelled: bool) -> Option<Span> {
        let is_phone = from < to && (self.is_phone(from, to) || labelled && from == 0 && self.is_labelled(to));
        is_phone.then(|| self.span(from, to, Kind::Phone))
    }

    fn is_labelled(&self, to: usize) -> bool {
        LABELLED_DIGITS.contains(&self.count(0, to))
    }

    /// The end of a card number that begins with this group: the longest that holds.
    fn card(&self, from: usize) -> Option<usize> {
        let (mut best, mut count) = (None, 0);
        for to in from + 1..=self.groups.len() {
            let length = self.groups[to - 1].len();
            count += length;
            if count > *CARD_DIGITS.end() {
                break;
            }
            if self.is_card(from, to, count) {
                best = Some(to);
            }
            let gap = self.gap_after(to - 1);
            if !(3..=6).contains(&length) || !(gap == b" " || gap == b"-") {
                break;
            }
        }
        best
    }

    fn is_card(&self, from: usize, to: usize, count: usize) -> bool {
        if !CARD_DIGITS.contains(&count) || to > from + 1 && !(3..=6).contains(&self.groups[to - 1].len()) {
            return false;
        }
        let head = self.digits(from, to).take(4).fold(0_u32, |head, digit| head * 10 + u32::from(digit - b'0'));
        let network = match head {
            4000..=4999 => matches!(count, 13 | 16 | 19),
            5000..=5899 | 2221..=2720 => count == 16,
            3000..=3059 | 3600..=3699 | 3800..=3999 => matches!(count, 14 | 16),
            3400..=3499 | 3700..=3799 => count == 15,
            3500..=3599 => (16..=19).contains(&count),
            6000..=6999 => (16..=19).contains(&count),
            _ => false,
        };
        network && luhn(self.digits(from, to), count)
    }

    /// The end of a phone number that begins with this group and can be told from what follows: one with a plus sign,
    /// or `555-123-4567` and `(555) 123-4567`.
    fn phone_window(&self, from: usize) -> Option<usize> {
        if from == 0 && self.plus {
            let ends = (1..=self.groups.len()).take_while(|to| self.count(0, *to) <= *PHONE_DIGITS.end());
            return ends.last().filter(|to| self.is_phone(0, *to));
        }
        let area = if self.groups[from].len() == 1 && self.first(from) == b'1' { from + 1 } else { from };
        let to = area + 3;
        if to > self.groups.len() || !self.is_american(area, to) {
            return None;
        }
        let bracket = self.text[self.groups[area].start.saturating_sub(1)] == b'(' && self.groups[area].start > 0;
        let tight = |gap: &[u8]| gap == b"-" || gap == b".";
        let (first, second) = (self.gap_after(area), self.gap_after(area + 1));
        let grouped = if bracket { first.starts_with(b")") } else { tight(first) && tight(second) };
        let apart = |gap: &[u8]| gap.is_empty() || gap.contains(&b' ');
        let alone = (from == 0 || apart(self.gap_after(from - 1))) && apart(self.gap_after(to - 1));
        (grouped && alone).then_some(to)
    }

    /// Three, three and four digits as North America groups them.
    fn is_american(&self, from: usize, to: usize) -> bool {
        let lengths = self.groups[from..to].iter().map(|group| group.len());
        lengths.eq([3, 3, 4]) && self.first(from) >= b'2' && self.first(from + 1) >= b'2'
    }

    /// Is the whole piece a phone number?
    fn is_phone(&self, from: usize, to: usize) -> bool {
        let (count, groups) = (self.count(from, to), to - from);
        let first = self.groups[from];
        let digit = |at: usize| self.text.get(first.start + at).copied().filter(|_| at < first.len()).unwrap_or(0);
        if from == 0 && self.plus {
            return PHONE_DIGITS.contains(&count) && digit(0) != b'0';
        }
        if digit(0) == b'0' && digit(1) == b'0' && (b'1'..=b'9').contains(&digit(2)) {
            return groups > 1 && (10..=15).contains(&count);
        }
        let area = if first.len() == 1 && digit(0) == b'1' { from + 1 } else { from };
        if to == area + 3 && self.is_american(area, to) {
            return true;
        }
        // A national number with its leading zero, in two to five groups, such as 0170 1234567 or 06 12 34 56 78.
        let national = digit(0) == b'0' && (b'1'..=b'9').contains(&digit(1));
        let lengths = || self.groups[from..to].iter().map(|group| group.len());
        let pairs = groups == 5 && lengths().eq([2; 5]);
        let date = groups >= 3 && lengths().take(3).eq([2, 2, 4]);
        let grouped = (2..=4).contains(&groups) && lengths().any(|length| length >= 3) && !date;
        national && (9..=12).contains(&count) && (pairs || grouped)
    }
}

/// Is the check digit right (ISO/IEC 7812)?
fn luhn(digits: impl Iterator<Item = u8>, count: usize) -> bool {
    let sum: u32 = digits
        .enumerate()
        .map(|(at, digit)| {
            let value = u32::from(digit - b'0');
            let doubled = (count - at).is_multiple_of(2);
            if doubled { value * 2 - if value > 4 { 9 } else { 0 } } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// What a number of a JSON document is, when it is one of ours.
pub(super) fn whole(token: &[u8], labelled: bool) -> Option<Kind> {
    let unit = Unit::at(token, 0).filter(|unit| unit.end == token.len())?;
    let spans = unit.spans(labelled);
    spans.first().map(|span| span.kind)
}
