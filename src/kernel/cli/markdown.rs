//! Markdown on a terminal while it is written: bold, italics, code, headings and tables. What it does not know stays as it is.

mod table;

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const ITALIC: &str = "\u{1b}[3m";
const CODE: &str = "\u{1b}[36m";

/// Bytes of a table that are held back. More: what is held is shown, and its next row begins another one.
const TABLE_BYTES_MAX: usize = 64 * 1024;

/// Marks are held back until the character behind them says what they mean, and tables until they end.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    held: String,
    /// The spaces that a line begins with, while it has nothing else.
    indent: String,
    /// The rows of a table, as they came.
    table: String,
    /// The line is a row of a table.
    is_row: bool,
    /// The line has more than spaces.
    is_within_line: bool,
    /// Backticks of the fence that opened a block of code; 0 outside of one.
    fence: usize,
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
            if self.is_held_back(character, &mut out) {
                continue;
            }
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
        self.end_table(&mut out);
        if self.is_styled() {
            out.push_str(RESET);
        }
        *self = Self::default();
        out
    }

    fn is_styled(&self) -> bool {
        self.is_heading || self.is_bold || self.is_italic || self.is_code
    }

    /// Keeps the spaces that a line begins with, and the rows of a table.
    fn is_held_back(&mut self, character: char, out: &mut String) -> bool {
        if self.is_row {
            self.table.push(character);
            self.is_row = character != '\n';
            if !self.is_row && self.table.len() > TABLE_BYTES_MAX {
                self.end_table(out);
            }
            return true;
        }
        if self.is_within_line || !self.held.is_empty() {
            return false;
        }
        if character != '\n' && character.is_whitespace() {
            self.indent.push(character);
            return true;
        }
        self.is_row = character == '|' && self.fence == 0;
        if self.is_row {
            self.indent.clear();
            self.table.push(character);
        } else {
            self.end_table(out);
        }
        self.is_row
    }

    /// Writes the rows that were held back: in columns, or as they are if they are no table.
    fn end_table(&mut self, out: &mut String) {
        let rows = std::mem::take(&mut self.table);
        match table::aligned(&rows, inline) {
            Some(table) => out.push_str(&table),
            None => out.extend(rows.split_inclusive('\n').map(inline)),
        }
    }

    fn plain(&mut self, character: char, out: &mut String) {
        if character != '\n' {
            // Of a fence nothing is shown, nor of the language that it names.
            if !self.is_fence_line {
                self.begin(out);
                out.push(character);
            }
            return;
        }
        // A style that was never closed ends with its line.
        if self.is_styled() {
            out.push_str(RESET);
        }
        if !self.is_fence_line {
            out.push('\n');
        }
        *self = Self { fence: self.fence, ..Self::default() };
    }

    /// Writes what a line begins with, if it has not begun.
    fn begin(&mut self, out: &mut String) {
        if std::mem::replace(&mut self.is_within_line, true) {
            return;
        }
        if self.fence > 0 {
            self.is_code = true;
            out.push_str(CODE);
        }
        out.push_str(&std::mem::take(&mut self.indent));
    }

    /// Writes the held marks, or what they mean before `next`.
    fn resolve(&mut self, next: Option<char>, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let Some(mark) = held.chars().next() else { return };
        let is_first = !self.is_within_line;
        let is_before_text = next.is_some_and(|next| !next.is_whitespace());
        if mark == '`' && is_first && self.is_fence(held.len(), is_before_text) {
            self.fence = if self.fence == 0 { held.len() } else { 0 };
            (self.is_fence_line, self.is_within_line) = (true, true);
        }
        if self.is_fence_line {
            return;
        }
        self.begin(out);
        match (mark, held.len()) {
            _ if self.fence > 0 => out.push_str(&held),
            ('`', 1) => self.turn(|style| &mut style.is_code, out),
            _ if self.is_code => out.push_str(&held),
            ('#', 1..=6) if is_first && next == Some(' ') => self.turn(|style| &mut style.is_heading, out),
            ('*', 1) if is_first && next == Some(' ') => out.push('•'),
            ('*', 1) if self.is_italic || is_before_text => self.turn(|style| &mut style.is_italic, out),
            ('*', 2) if self.is_bold || is_before_text => self.turn(|style| &mut style.is_bold, out),
            _ => out.push_str(&held),
        }
    }

    /// Do so many backticks at the begin of a line open a block of code, or close the one that is open?
    fn is_fence(&self, backticks: usize, is_before_text: bool) -> bool {
        if self.fence == 0 { backticks >= 3 } else { backticks >= self.fence && !is_before_text }
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

/// One line or cell with its styles; nothing in it begins a line.
fn inline(text: &str) -> String {
    let mut style = Markdown { is_within_line: true, ..Markdown::default() };
    let mut out = style.add(text);
    out.push_str(&style.end());
    out
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
    }

    #[test]
    fn fences_are_not_shown() {
        let code = |line: &str| format!("{CODE}{line}{RESET}\n");
        let fenced = "a\n```rust *\nlet a = **b; // *c*\n\n  # d\n|e|\n```\nf";
        let lines = [code("let a = **b; // *c*"), "\n".to_owned(), code("  # d"), code("|e|")].concat();
        assert_eq!(shown(fenced), format!("a\n{lines}f"));
        assert_eq!(shown("- a\n  ```\n  b\n  ```"), format!("- a\n{}", code("  b")));
        assert_eq!(shown("````\n```\n```` \nc"), code("```") + "c");
        assert_eq!(shown("```\na"), format!("{CODE}a{RESET}"));
    }

    #[test]
    fn tables_have_columns() {
        let table = "| *a* | b |\n|---|---|\n| cc | `d` |\n";
        let head = format!("{BOLD}{RESET}{ITALIC}a{RESET}{RESET}   {BOLD}b{RESET}\n{DIM}──  ─{RESET}");
        let rows = format!("{head}\ncc  {RESET}{CODE}d{RESET}\n");
        assert_eq!(shown(table), rows);
        assert_eq!(shown(&format!("x\n\n  {table}\n**y**")), format!("x\n\n{rows}\n{RESET}{BOLD}y{RESET}"));
        assert_eq!(shown(table.trim_end()), rows.trim_end());
    }

    #[test]
    fn other_bars_stay() {
        assert_eq!(shown("|x| **a**\n|y\nz | w"), format!("|x| {RESET}{BOLD}a{RESET}\n|y\nz | w"));
        let long = "|abcdefg|\n".repeat(TABLE_BYTES_MAX / 10 + 1);
        let mut style = Markdown::default();
        assert_eq!(style.add(&long), long, "rows are not held back without end");
    }
}
