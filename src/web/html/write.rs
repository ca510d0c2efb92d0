//! Writes readable text: runs of blanks become one, blocks are parted by blank lines, lists are indented.

/// Lists and quotes that are indented; deeper ones stand as deep as these.
const INDENT_MAX: usize = 8;

/// The text so far, and what has to come before the next character.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    /// Line ends that are due before the next text, 2 at most.
    breaks: usize,
    /// A blank is due before the next text on this line.
    blank: bool,
    /// The open lists, innermost last; a number is the next of an ordered list.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// Open preformatted elements.
    pre: usize,
    /// A list item's bullet that waits for its text.
    bullet: Option<String>,
    /// Where the text of the open row of a table begins, and that of its last cell.
    row: Option<usize>,
    cell: Option<usize>,
}

impl Writer {
    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// What was written from a length on.
    pub(super) fn since(&self, begin: usize) -> &str {
        self.text.get(begin..).unwrap_or_default()
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        let end = self.text.trim_end().len();
        let mut text = self.text;
        text.truncate(end);
        text
    }

    /// Text of the page.
    pub(super) fn text(&mut self, text: &str) {
        if self.pre > 0 {
            for (nth, line) in text.split('\n').enumerate() {
                if nth > 0 {
                    self.newline();
                }
                let line = line.trim_end_matches('\r');
                if !line.is_empty() {
                    self.put(line);
                }
            }
            return;
        }
        if text.starts_with(is_blank) {
            self.blank = true;
        }
        for word in text.split(is_blank).filter(|word| !word.is_empty()) {
            self.put(word);
            self.blank = true;
        }
        if !text.ends_with(is_blank) && !text.is_empty() {
            self.blank = false;
        }
    }

    /// Marks of our own, such as `# `: as text, but its last blank stands.
    pub(super) fn mark(&mut self, mark: &str) {
        self.put(mark);
        self.blank = false;
    }

    /// Parts what follows by so many line ends; 2 is a blank line.
    pub(super) fn block(&mut self, breaks: usize) {
        self.blank = false;
        // Nothing parts a bullet from its text.
        if !self.text.is_empty() && self.bullet.is_none() {
            self.breaks = self.breaks.max(breaks);
        }
    }

    /// A line end that is written although another is due.
    pub(super) fn newline(&mut self) {
        self.blank = false;
        if !self.text.is_empty() {
            self.breaks = (self.breaks + 1).min(if self.pre > 0 { 3 } else { 2 });
        }
    }

    /// True within a list.
    pub(super) fn in_list(&self) -> bool {
        !self.lists.is_empty()
    }

    /// A list begins; ordered ones with their first number.
    pub(super) fn enter_list(&mut self, first: Option<u64>) {
        self.lists.push(first);
    }

    /// A list ends.
    pub(super) fn leave_list(&mut self) {
        self.lists.pop();
        self.bullet = None;
    }

    /// A list item begins.
    pub(super) fn item(&mut self) {
        self.bullet = None;
        self.block(1);
        self.bullet = Some(match self.lists.last_mut() {
            Some(Some(next)) => {
                let bullet = format!("{next}. ");
                *next = next.saturating_add(1);
                bullet
            }
            _ => "- ".to_owned(),
        });
    }

    /// A quote begins.
    pub(super) fn enter_quote(&mut self) {
        self.quotes += 1;
    }

    /// A quote ends.
    pub(super) fn leave_quote(&mut self) {
        self.quotes = self.quotes.saturating_sub(1);
    }

    /// Preformatted text begins.
    pub(super) fn enter_pre(&mut self) {
        self.mark("```");
        self.breaks = 1;
        self.pre += 1;
    }

    /// Preformatted text ends.
    pub(super) fn leave_pre(&mut self) {
        self.pre = self.pre.saturating_sub(1);
        self.breaks = 1;
        self.mark("```");
        self.block(2);
    }

    /// Code within a line begins.
    pub(super) fn enter_code(&mut self) {
        if self.pre == 0 {
            self.mark("`");
        }
    }

    /// Code within a line ends.
    pub(super) fn leave_code(&mut self) {
        if self.pre == 0 {
            let blank = std::mem::take(&mut self.blank);
            self.put("`");
            self.blank = blank;
        }
    }

    /// Adds to what was written last, before any line end that is due.
    pub(super) fn suffix(&mut self, suffix: &str) {
        self.text.push_str(suffix);
    }

    /// A row of a table begins.
    pub(super) fn row(&mut self) {
        self.block(1);
        (self.row, self.cell) = (Some(self.text.len()), None);
    }

    /// A cell begins: on the line of the one before, unless that one has lines of its own.
    pub(super) fn cell(&mut self) {
        if let Some(before) = self.cell {
            if self.since(before).trim_start().contains('\n') {
                self.block(1);
            } else if self.row.is_some_and(|row| self.text.len() > row) {
                (self.breaks, self.blank) = (0, false);
                self.put(" | ");
            }
        }
        self.blank = false;
        self.cell = Some(self.text.len());
    }

    /// A table ends; cells that follow are those of a table around it.
    pub(super) fn leave_table(&mut self) {
        (self.row, self.cell) = (None, None);
        self.block(2);
    }

    fn put(&mut self, text: &str) {
        if self.breaks > 0 {
            // Blanks at the end of a line say nothing.
            self.text.truncate(self.text.trim_end_matches(' ').len());
            for _ in 0..self.breaks {
                self.text.push('\n');
            }
        }
        if self.breaks > 0 || self.text.is_empty() {
            self.indent();
        } else if self.blank {
            self.text.push(' ');
        }
        (self.breaks, self.blank) = (0, false);
        if let Some(bullet) = self.bullet.take() {
            self.text.push_str(&bullet);
        }
        self.text.push_str(text);
    }

    fn indent(&mut self) {
        for _ in 0..self.quotes.min(INDENT_MAX) {
            self.text.push_str("> ");
        }
        // An item stands as deep as the lists around it; what follows in the item, one deeper.
        let depth = if self.bullet.is_some() { self.lists.len().saturating_sub(1) } else { self.lists.len() };
        for _ in 0..depth.min(INDENT_MAX) {
            self.text.push_str("  ");
        }
    }
}

/// Blanks of HTML, and the no-break space, which is for the eye only.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}' | '\u{200b}' | '\u{feff}')
}
