//! Markdown on a terminal while it is written: bold, italics, code and headings. What it does not know stays as it is.

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const ITALIC: &str = "\u{1b}[3m";
const CODE: &str = "\u{1b}[36m";

/// Marks are held back until the character behind them says what they mean.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    held: String,
    /// The line has more than spaces.
    is_within_line: bool,
    is_fenced: bool,
    is_fence_line: bool,
    is_heading: bool,
    is_bold: bool,
    is_italic: bool,
    is_code: bool,
}

impl Markdown {
    /// `piece` as a terminal shows it. Its control characters are gone already.
    pub(crate) fn add(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + 16);
        for character in piece.chars() {
            let goes_on = self.held.is_empty() || self.held.starts_with(character);
            if matches!(character, '*' | '`' | '#') && goes_on {
                self.held.push(character);
                continue;
            }
            self.resolve(Some(character), &mut out);
            // Another mark begins right behind the one that ended.
            if matches!(character, '*' | '`' | '#') {
                self.held.push(character);
            } else {
                self.plain(character, &mut out);
            }
        }
        out
    }

    /// What is left at the end of a text.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        self.resolve(None, &mut out);
        if self.is_styled() {
            out.push_str(RESET);
        }
        *self = Self::default();
        out
    }

    fn is_styled(&self) -> bool {
        self.is_fence_line || self.is_heading || self.is_bold || self.is_italic || self.is_code
    }

    fn plain(&mut self, character: char, out: &mut String) {
        if character != '\n' {
            out.push(character);
            self.is_within_line |= !character.is_whitespace();
            return;
        }
        // A style that was never closed ends with its line.
        if self.is_styled() {
            out.push_str(RESET);
        }
        out.push('\n');
        *self = Self { is_fenced: self.is_fenced, ..Self::default() };
    }

    /// Writes the held marks, or what they mean before `next`.
    fn resolve(&mut self, next: Option<char>, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let Some(mark) = held.chars().next() else { return };
        let is_first = !self.is_within_line;
        self.is_within_line = true;
        let is_before_text = next.is_some_and(|next| !next.is_whitespace());
        match (mark, held.len()) {
            ('`', 3..) if is_first => {
                (self.is_fenced, self.is_fence_line) = (!self.is_fenced, true);
                out.push_str(DIM);
                out.push_str(&held);
            }
            _ if self.is_fenced => out.push_str(&held),
            ('`', 1) => self.turn(|style| &mut style.is_code, out),
            _ if self.is_code => out.push_str(&held),
            ('#', 1..=6) if is_first && next == Some(' ') => self.turn(|style| &mut style.is_heading, out),
            ('*', 1) if is_first && next == Some(' ') => out.push('•'),
            ('*', 1) if self.is_italic || is_before_text => self.turn(|style| &mut style.is_italic, out),
            ('*', 2) if self.is_bold || is_before_text => self.turn(|style| &mut style.is_bold, out),
            _ => out.push_str(&held),
        }
    }

    /// Turns one style on or off, and writes those that are on now.
    fn turn(&mut self, style: impl Fn(&mut Self) -> &mut bool, out: &mut String) {
        let style = style(self);
        *style = !*style;
        out.push_str(RESET);
        let all = [(self.is_bold || self.is_heading, BOLD), (self.is_italic, ITALIC), (self.is_code, CODE)];
        out.extend(all.iter().filter(|(is_on, _)| *is_on).map(|(_, code)| *code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text, whole and in pieces of one character.
    fn shown(text: &str) -> String {
        let mut whole = Markdown::default();
        let mut out = whole.add(text);
        out.push_str(&whole.end());
        let mut pieces = Markdown::default();
        let mut same: String = text.chars().map(|character| pieces.add(&character.to_string())).collect();
        same.push_str(&pieces.end());
        assert_eq!(out, same);
        out
    }

    #[test]
    fn marks_become_styles() {
        assert_eq!(shown("a **b** c"), format!("a {RESET}{BOLD}b{RESET} c"));
        assert_eq!(shown("*i* `c*d*`\n"), format!("{RESET}{ITALIC}i{RESET} {RESET}{CODE}c*d*{RESET}\n"));
        assert_eq!(shown("## Head\nnext"), format!("{RESET}{BOLD} Head{RESET}\nnext"));
        assert_eq!(shown("* one\n* two"), "• one\n• two");
        assert_eq!(shown("**a `b`**"), format!("{RESET}{BOLD}a {RESET}{BOLD}{CODE}b{RESET}{BOLD}{RESET}"));
    }

    #[test]
    fn what_is_no_mark_stays() {
        assert_eq!(shown("2 * 3 ** 4 #5 ***"), "2 * 3 ** 4 #5 ***");
        assert_eq!(shown("**open\nnext"), format!("{RESET}{BOLD}open{RESET}\nnext"));
        let fenced = "```rust\nlet a = **b; // *c*\n```\n";
        assert_eq!(shown(fenced), format!("{DIM}```rust{RESET}\nlet a = **b; // *c*\n{DIM}```{RESET}\n"));
    }
}
