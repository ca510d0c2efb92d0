//! Text in one spelling: what looks alike, or is not seen, is one. Linear, and never longer than a few times the text.

use std::str::CharIndices;

/// Characters that an entity such as `&#x69;` may have.
const ENTITY_CHARS_MAX: usize = 10;

/// A text in one spelling, and what was left out of it.
#[derive(Debug, Default)]
pub(super) struct Folded {
    /// Lower case, without accents and invisible characters; runs of blanks are one or two spaces or one newline.
    pub(super) text: String,
    /// What tag characters (U+E0020 to U+E007E) say.
    tagged: String,
    /// Where the first of them stands in the text.
    tagged_at: usize,
    /// Invisible characters between two letters of the Latin alphabet, and the place of the first.
    pub(super) invisible: (usize, usize),
    /// Characters that turn the direction of what follows round, and the place of the first.
    pub(super) overrides: (usize, usize),
}

impl Folded {
    /// What tag characters say, and where they begin.
    pub(super) fn tagged_text(&self) -> Option<(usize, String)> {
        (!self.tagged.is_empty()).then(|| (self.tagged_at, self.tagged.clone()))
    }

    /// How many tag characters there are, and where they begin.
    pub(super) fn tags(&self) -> (usize, usize) {
        (self.tagged.len(), self.tagged_at)
    }
}

/// Folds a text.
pub(super) fn fold(text: &str) -> Folded {
    let mut folder = Folder::new(text);
    while folder.step().is_some() {}
    folder.out
}

/// Where the folded places begin in the text.
pub(super) fn places(text: &str, folded: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..folded.len()).collect();
    order.sort_by_key(|at| folded[*at]);
    let mut found = vec![0; folded.len()];
    let (mut folder, mut last) = (Folder::new(text), 0);
    for at in order {
        while folder.out.text.len() <= folded[at]
            && let Some(place) = folder.step()
        {
            last = place;
        }
        found[at] = last;
    }
    found
}

struct Folder<'a> {
    text: &'a str,
    chars: CharIndices<'a>,
    out: Folded,
    /// The last character that is seen was a Latin letter.
    after_letter: bool,
    /// Invisible characters since then.
    unseen: usize,
    unseen_at: usize,
    /// A flag of a region is spelled with tags.
    in_flag: bool,
}

impl<'a> Folder<'a> {
    fn new(text: &'a str) -> Self {
        let chars = text.char_indices();
        let out = Folded::default();
        Self { text, chars, out, after_letter: false, unseen: 0, unseen_at: 0, in_flag: false }
    }

    /// Takes the next character; gives its place.
    fn step(&mut self) -> Option<usize> {
        let (at, c) = self.chars.next()?;
        match c {
            '\\' => {
                let (c, length) = escape(&self.text[at..]);
                self.skip(length - 1);
                self.seen(c);
            }
            '&' => {
                let (c, length) = entity(&self.text[at..]);
                self.skip(length - 1);
                self.seen(c);
            }
            '\u{1f3f4}' => self.in_flag = true,
            '\u{e0020}'..='\u{e007e}' if !self.in_flag => {
                if self.out.tagged.is_empty() {
                    self.out.tagged_at = at;
                }
                self.out.tagged.push(char::from((c as u32 - 0xe0000) as u8));
            }
            '\u{e0000}'..='\u{e007f}' => self.in_flag &= c != '\u{e007f}',
            '\u{202d}' | '\u{202e}' => note(&mut self.out.overrides, at),
            _ if is_unseen(c) => {
                if self.unseen == 0 {
                    self.unseen_at = at;
                }
                self.unseen += 1;
            }
            _ => {
                self.in_flag = false;
                self.seen(c);
            }
        }
        Some(at)
    }

    /// Leaves out bytes of ASCII.
    fn skip(&mut self, bytes: usize) {
        for _ in 0..bytes {
            self.chars.next();
        }
    }

    /// A character that people see.
    fn seen(&mut self, c: char) {
        let is_letter = c.is_ascii_alphabetic();
        if self.after_letter && is_letter && self.unseen > 0 {
            for _ in 0..self.unseen {
                note(&mut self.out.invisible, self.unseen_at);
            }
        }
        (self.after_letter, self.unseen) = (is_letter, 0);
        push(&mut self.out.text, c);
    }
}

fn note(count: &mut (usize, usize), at: usize) {
    if count.0 == 0 {
        count.1 = at;
    }
    count.0 += 1;
}

/// Puts a character at the end in its one spelling.
fn push(out: &mut String, c: char) {
    if c.is_ascii() {
        return push_plain(out, c.to_ascii_lowercase());
    }
    for c in c.to_lowercase() {
        match pair(c) {
            Some(pair) => out.push_str(pair),
            None => push_plain(out, alike(c)),
        }
    }
}

fn push_plain(out: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
            let end = out.trim_end_matches([' ', '\n']).len();
            // A blank line stays one.
            let is_blank = out[end..].contains('\n');
            out.truncate(end);
            out.push_str(if is_blank { "\n\n" } else { "\n" });
        }
        c if c.is_whitespace() => {
            if !out.ends_with("  ") && !out.ends_with('\n') {
                out.push(' ');
            }
        }
        c => out.push(c),
    }
}

/// Characters that are not seen.
pub(crate) const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202c}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0100}'..='\u{e01ef}'
        // Marks that stand on the letter before them.
        | '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Letters that are two.
const fn pair(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ĳ' => "ij",
        '…' => "...",
        _ => return None,
    })
}

/// The plain character that `c`, in lower case, looks like; `c` itself when there is none.
fn alike(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' | 'ạ' | 'ả' | 'ấ' | 'ầ' | 'а' | 'α' | 'ɑ' | 'ᴀ' => 'a',
        'ʙ' | 'ƀ' => 'b',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' | 'с' | 'ϲ' | 'ᴄ' => 'c',
        'ď' | 'đ' | 'ԁ' | 'ᴅ' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'ẹ' | 'ẻ' | 'ế' | 'е' | 'ё' | 'ε' | 'ᴇ' => 'e',
        'ƒ' | 'ꜰ' | 'ғ' => 'f',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' | 'ɡ' | 'ɢ' => 'g',
        'ĥ' | 'ħ' | 'һ' | 'ʜ' => 'h',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' | 'і' | 'ї' | 'ι' | 'ɪ' | 'ɩ' | 'ị' => 'i',
        'ĵ' | 'ј' | 'ᴊ' => 'j',
        'ķ' | 'κ' | 'ᴋ' => 'k',
        'ĺ' | 'ļ' | 'ľ' | 'ł' | 'ʟ' | 'ӏ' => 'l',
        'ᴍ' => 'm',
        'ñ' | 'ń' | 'ņ' | 'ň' | 'ɴ' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'ơ' | 'ọ' | 'ỏ' | 'ố' | 'о' | 'ο' | 'σ' | 'ᴏ' => 'o',
        'р' | 'ρ' | 'ᴘ' => 'p',
        'ԛ' => 'q',
        'ŕ' | 'ř' | 'ʀ' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' | 'ѕ' | 'ꜱ' => 's',
        'ţ' | 'ť' | 'ț' | 'τ' | 'ᴛ' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'ư' | 'ụ' | 'ủ' | 'υ' | 'ᴜ' => 'u',
        'ν' | 'ᴠ' => 'v',
        'ŵ' | 'ԝ' | 'ᴡ' => 'w',
        'х' | 'χ' => 'x',
        'ý' | 'ÿ' | 'ŷ' | 'у' | 'ʏ' => 'y',
        'ź' | 'ż' | 'ž' | 'ᴢ' => 'z',
        '‘' | '’' | '‚' | '‛' | '′' | 'ʼ' => '\'',
        '“' | '”' | '„' | '‟' | '«' | '»' | '「' | '」' | '『' | '』' => '"',
        '‐'..='―' | '−' => '-',
        '‹' | '〈' | '⟨' => '<',
        '›' | '〉' | '⟩' => '>',
        '。' | '｡' => '.',
        '、' => ',',
        '\u{ff01}'..='\u{ff5e}' => shifted(c, 0xff01, 0x21, 94).to_ascii_lowercase(),
        '\u{1d400}'..='\u{1d6a3}' => letter((c as u32 - 0x1d400) % 26),
        '\u{1d7ce}'..='\u{1d7ff}' => shifted(c, 0x1d7ce, 0x30, 10),
        '\u{24b6}'..='\u{24e9}' => letter((c as u32 - 0x24b6) % 26),
        '\u{1f130}'..='\u{1f149}' => letter(c as u32 - 0x1f130),
        '\u{1f150}'..='\u{1f169}' => letter(c as u32 - 0x1f150),
        '\u{1f170}'..='\u{1f189}' => letter(c as u32 - 0x1f170),
        _ => c,
    }
}

/// The letter of this number, counted from 0.
fn letter(number: u32) -> char {
    char::from(b'a' + (number % 26) as u8)
}

/// The character as far behind `to` as `c` is behind `from`, counted in rounds of `round`.
fn shifted(c: char, from: u32, to: u8, round: u32) -> char {
    char::from(to + ((c as u32 - from) % round) as u8)
}

/// What a backslash and what follows stand for, and how many bytes of ASCII that is.
fn escape(text: &str) -> (char, usize) {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'n' | b'r') => ('\n', 2),
        Some(b't') => (' ', 2),
        Some(b'"') => ('"', 2),
        Some(b'/') => ('/', 2),
        Some(b'u') => {
            let digits = bytes.get(2..6).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
            let code = digits.and_then(|_| u32::from_str_radix(text.get(2..6)?, 16).ok());
            code.and_then(char::from_u32).map_or(('\\', 1), |c| (c, 6))
        }
        _ => ('\\', 1),
    }
}

/// What an entity of HTML stands for, and how many bytes of ASCII it has.
fn entity(text: &str) -> (char, usize) {
    let end = text.bytes().take(ENTITY_CHARS_MAX).position(|byte| byte == b';');
    let Some(name) = end.and_then(|end| text.get(1..end)) else { return ('&', 1) };
    let code = name.strip_prefix('#').and_then(|code| match code.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => code.parse().ok(),
    });
    let c = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        _ => match code.and_then(char::from_u32) {
            Some(c) => c,
            None => return ('&', 1),
        },
    };
    (c, name.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_is_one() {
        for (text, expected) in [
            ("IGNORE  All", "ignore  all"),
            ("іgnоrе", "ignore"),
            ("ｉｇｎｏｒｅ", "ignore"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞 𝗶𝗴𝗻𝗼𝗿𝗲", "ignore ignore"),
            ("ⓘⓖⓝⓞⓡⓔ", "ignore"),
            ("ɪɢɴᴏʀᴇ", "ignore"),
            ("Ígñòrê Straße", "ignore strasse"),
            ("i\u{200b}g\u{ad}nore", "ignore"),
            ("i\u{301}gnore", "ignore"),
            ("ig&#110;&#x6f;re &lt;b&gt;", "ignore <b>"),
            ("a\\nb\\u0069 \\\"c\\\"", "a\nbi \"c\""),
            ("a \n\n\n b\t \tc", "a\n\nb  c"),
            ("&;&#xffffffff;&", "&;&#xffffffff;&"),
            ("\\u12", "\\u12"),
        ] {
            assert_eq!(fold(text).text, expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_seen_is_noted() {
        let folded = fold("say\u{e0068}\u{e0069} a\u{200b}\u{200b}b \u{202e}c");
        assert_eq!(folded.tagged_text(), Some((3, "hi".to_owned())));
        assert_eq!((folded.invisible.0, folded.overrides.0), (2, 1));
        // Joined emoji, flags of regions and scripts that need joiners are no tricks.
        let plain = fold("👩\u{200d}💻 🏴\u{e0067}\u{e0062}\u{e007f} می\u{200c}خواهم");
        assert_eq!((plain.tags().0, plain.invisible.0, plain.overrides.0), (0, 0, 0));
    }

    #[test]
    fn places_lead_back() {
        let text = "ä  \u{200b}Ｂ &amp; ß!";
        let folded = fold(text).text;
        assert_eq!(folded, "a  b & ss!");
        let of = |part: &str| places(text, &[folded.find(part).unwrap()])[0];
        assert_eq!(&text[of("b")..][..3], "Ｂ");
        assert_eq!(&text[of("&")..][..5], "&amp;");
        assert_eq!(&text[of("!")..], "!");
        assert_eq!(places(text, &[9, 0]), [text.len() - 1, 0]);
    }
}
