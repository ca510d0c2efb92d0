//! The words of a folded text. Characters of scripts that write without blanks are words of their own.

/// Letters that stand apart and make one word, at least.
const APART_MIN: usize = 5;

/// The words of a text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Their letters, one word behind the other, each between blanks.
    letters: String,
    list: Vec<Word>,
}

/// One word.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Where it begins in the folded text.
    at: usize,
    /// Where it ends there.
    end: usize,
    /// Its letters.
    from: usize,
    to: usize,
    /// A sentence ends before it.
    stop: bool,
    /// It was written with its letters apart.
    apart: bool,
}

impl Words {
    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// The letters of all, each word between blanks.
    pub(super) fn letters(&self) -> &str {
        &self.letters
    }

    /// The number of the word whose letters begin there.
    pub(super) fn at(&self, from: usize) -> usize {
        self.list.partition_point(|word| word.from < from)
    }

    /// The letters of one.
    pub(super) fn get(&self, word: usize) -> &str {
        self.list.get(word).map_or("", |word| &self.letters[word.from..word.to])
    }

    /// Where one begins and ends in the folded text.
    pub(super) fn place(&self, word: usize) -> (usize, usize) {
        self.list.get(word).map_or((0, 0), |word| (word.at, word.end))
    }

    /// Does a sentence end before it?
    pub(super) fn is_behind_stop(&self, word: usize) -> bool {
        self.list.get(word).is_some_and(|word| word.stop)
    }

    /// Was it written with its letters apart?
    pub(super) fn is_apart(&self, word: usize) -> bool {
        self.list.get(word).is_some_and(|word| word.apart)
    }

    fn push(&mut self, text: &str, at: usize, end: usize, stop: bool) {
        let word = &text[at..end];
        let (from, to) = match plain(word) {
            Some(plain) => self.push_letters([plain.as_str()]),
            None => self.push_letters([word]),
        };
        self.list.push(Word { at, end, from, to, stop, apart: false });
    }

    /// Puts the letters of one word behind those of the others; gives where they begin and end.
    fn push_letters<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> (usize, usize) {
        if self.letters.is_empty() {
            self.letters.push(' ');
        }
        let from = self.letters.len();
        self.letters.extend(parts);
        let to = self.letters.len();
        self.letters.push(' ');
        (from, to)
    }

    /// Makes one word of letters that stand apart: `i g n o r e`. Two blanks part words.
    fn join(self) -> Self {
        let single = |word: &Word| word.to - word.from == 1 && self.letters.as_bytes()[word.from].is_ascii_alphabetic();
        let mut joined = Self { letters: String::with_capacity(self.letters.len()), list: Vec::new() };
        let mut at = 0;
        while at < self.list.len() {
            let run = self.list[at..].iter().take_while(|word| single(word)).count();
            if run < APART_MIN {
                for word in &self.list[at..at + run.max(1)] {
                    joined.copy(&self, &[*word]);
                }
                at += run.max(1);
                continue;
            }
            let run = &self.list[at..at + run];
            at += run.len();
            for word in run.chunk_by(|left, right| right.at - left.end <= 1) {
                joined.copy(&self, word);
            }
        }
        joined
    }

    /// Takes one word over from others, made of these.
    fn copy(&mut self, of: &Self, parts: &[Word]) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return };
        let (from, to) = self.push_letters(parts.iter().map(|part| &of.letters[part.from..part.to]));
        self.list.push(Word { end: last.end, from, to, apart: parts.len() > 1, ..*first });
    }
}

/// The words of a folded text.
pub(super) fn words(text: &str) -> Words {
    let mut words = Words::default();
    let (mut start, mut stop, mut before) = (None, false, ' ');
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        let joins = c == '\'' && before.is_alphanumeric() && next.is_alphanumeric();
        // What stands for letters in a word: `1gn@re`.
        let stands_for = matches!(c, '@' | '$') && next.is_alphanumeric() && before.is_alphanumeric();
        let is_part = c.is_alphanumeric() || joins || stands_for;
        if is_part && !stands_alone(c) {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            words.push(text, from, at, std::mem::take(&mut stop));
        }
        if is_part && stands_alone(c) {
            words.push(text, at, at + c.len_utf8(), std::mem::take(&mut stop));
        }
        let ends = matches!(c, '.' | '!' | '?') && next.is_whitespace();
        stop |= start.is_none() && (ends || (c == '\n' && next == '\n'));
        before = c;
    }
    if let Some(from) = start {
        words.push(text, from, text.len(), stop);
    }
    words.join()
}

/// Scripts that write without blanks between words.
const fn stands_alone(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The word with letters in place of the digits and signs that stand for them, when that makes a word of letters.
fn plain(word: &str) -> Option<String> {
    let stands_for = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'@' | b'$');
    let is_mixed = word.is_ascii() && word.len() >= 4 && word.bytes().any(stands_for);
    if !is_mixed || word.bytes().filter(u8::is_ascii_alphabetic).count() * 2 < word.len() {
        return None;
    }
    let letter = |c: char| match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    };
    let plain: String = word.chars().map(letter).collect();
    plain.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        let words = words(text);
        (0..words.len()).map(|word| words.get(word).to_owned()).collect()
    }

    #[test]
    fn words_are_found_however_they_are_written() {
        assert_eq!(list("don't ignore: it's <fine>"), ["don't", "ignore", "it's", "fine"]);
        assert_eq!(list("1gn0re pr3v10us p@ssw0rd h264 2024"), ["ignore", "previous", "password", "h264", "2024"]);
        assert_eq!(list("i g n o r e  a l l"), ["ignore", "all"]);
        assert_eq!(list("i.g.n.o.r.e a b c"), ["ignoreabc"]);
        assert_eq!(list("a b c"), ["a", "b", "c"]);
        assert_eq!(list("忽略 api 指令"), ["忽", "略", "api", "指", "令"]);
        assert_eq!(list(""), Vec::<String>::new());
    }

    #[test]
    fn sentences_end() {
        let words = words("one two. three 1.5 four\n\nfive");
        let stops: Vec<bool> = (0..words.len()).map(|word| words.is_behind_stop(word)).collect();
        assert_eq!(stops, [false, false, true, false, false, false, true]);
    }
}
