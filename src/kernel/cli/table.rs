//! The one writer of tables, and what is said where a list has no rows.

use serde_json::Value;

use super::output::clean;
use super::screen::{Screen, Style};
use super::words;

/// The narrowest that a column becomes on a screen that is too narrow for its cells.
const COLUMN_MIN: usize = 8;
/// What stands between two columns.
const GAP: &str = "  ";
/// Headings of columns that say how something is.
const STATES: [&str; 4] = ["STATE", "STATUS", "OUTCOME", "HEALTH"];
/// Words for what goes well, for what waits, and for what does not go on.
const GOOD: [&str; 13] = [
    "active",
    "approved",
    "authorized",
    "available",
    "completed",
    "configured",
    "connected",
    "done",
    "ok",
    "pass",
    "ready",
    "running",
    "started",
];
const WAITS: [&str; 8] = ["connecting", "paused", "pending", "queued", "skipped", "stopped", "waiting", "warn"];
const BAD: [&str; 9] =
    ["crashed", "degraded", "disconnected", "error", "expired", "fail", "failed", "rejected", "unreachable"];

/// What a command shows to people.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// For standard output. It does not drive the terminal, but for styles of our own.
    pub(crate) text: String,
    /// What is said beside it, on standard error.
    pub(crate) note: Option<String>,
}

impl Shown {
    /// With more below.
    pub(crate) fn and(mut self, more: impl Into<Self>) -> Self {
        let Self { text, note } = more.into();
        self.text.push_str(&text);
        self.note = match (self.note, note) {
            (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
            (one, other) => one.or(other),
        };
        self
    }

    /// With a table below an empty line, if that has rows.
    pub(crate) fn and_below(self, table: Table) -> Self {
        if table.is_empty() { self } else { self.and("\n".to_owned()).and(table) }
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self { text: clean(&text).into_owned(), note: None }
    }
}

impl From<Table> for Shown {
    fn from(table: Table) -> Self {
        if table.is_empty() {
            return Self { text: String::new(), note: Some(table.nothing()) };
        }
        Self { text: table.render(), note: None }
    }
}

/// Rows under headings, columns as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    /// What its rows are, such as `schedules`.
    noun: String,
    /// What to do where there are none.
    hint: String,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The column whose words have a color.
    state: Option<usize>,
}

impl Table {
    /// An empty table without headings: each row is a name and a value.
    pub(crate) fn pairs() -> Self {
        Self::with("", Vec::new())
    }

    /// An empty list of `noun`, such as `schedules`.
    pub(crate) fn list(noun: &str, headings: &[&'static str]) -> Self {
        Self::with(noun, headings.iter().map(|&heading| heading.to_owned()).collect())
    }

    /// An empty list whose headings are known only now.
    pub(crate) fn with(noun: &str, headings: Vec<String>) -> Self {
        let state = headings.iter().position(|heading| STATES.contains(&heading.as_str()));
        Self { noun: noun.to_owned(), hint: String::new(), headings, rows: Vec::new(), state }
    }

    /// A list with a row for each of `values`, with what is at the pointer of each column. A terminal shows moments as distances.
    pub(crate) fn of<'v>(
        noun: &str,
        values: impl IntoIterator<Item = &'v Value>,
        columns: &[(&'static str, &str)],
    ) -> Self {
        let mut table = Self::list(noun, &columns.iter().map(|(heading, _)| *heading).collect::<Vec<_>>());
        let now = Screen::of_stdout().now;
        for value in values {
            table.push(columns.iter().map(|(_, pointer)| words::said(value, pointer, now)));
        }
        table
    }

    /// Says `hint` where there are no rows: how to make the first.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The words of this column have a color.
    pub(crate) fn states_in(mut self, column: usize) -> Self {
        self.state = Some(column);
        self
    }

    /// True without rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row; each cell becomes one line.
    pub(crate) fn push(&mut self, cells: impl Iterator<Item = impl AsRef<str>>) {
        let flat = |cell: &str| clean(cell).split_whitespace().collect::<Vec<_>>().join(" ");
        self.rows.push(cells.map(|cell| flat(cell.as_ref())).collect());
    }

    /// Adds a row; each cell becomes one line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.push(cells.iter());
    }

    /// What is said in the place of a list without rows.
    fn nothing(&self) -> String {
        let hint = if self.hint.is_empty() { String::new() } else { format!(" {}", self.hint) };
        format!("No {}.{hint}", self.noun)
    }

    /// The table as text for standard output, a newline after each row. No headings, no heading line.
    pub(crate) fn render(&self) -> String {
        self.render_for(&Screen::of_stdout())
    }

    fn render_for(&self, screen: &Screen) -> String {
        self.without_empty().render_all(screen)
    }

    /// The table without the columns that have a heading alone.
    fn without_empty(&self) -> Self {
        let is_kept =
            |column: &usize| self.rows.iter().any(|row| row.get(*column).is_some_and(|cell| !cell.is_empty()));
        let kept: Vec<usize> = (0..self.headings.len()).filter(is_kept).collect();
        let of = |cells: &Vec<String>| match kept.len() {
            // Pairs have no headings.
            0 => cells.clone(),
            _ => kept.iter().filter_map(|column| cells.get(*column).cloned()).collect(),
        };
        let state = self.state.map(|state| kept.iter().position(|column| *column == state).unwrap_or(state));
        Self {
            noun: self.noun.clone(),
            hint: self.hint.clone(),
            headings: of(&self.headings),
            rows: self.rows.iter().map(of).collect(),
            state,
        }
    }

    fn render_all(&self, screen: &Screen) -> String {
        let columns = self.rows.iter().chain([&self.headings]).map(Vec::len).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..columns).map(|column| self.width(column)).collect();
        if let Some(width) = screen.width.filter(|_| !self.headings.is_empty()) {
            let is_id: Vec<bool> = (0..columns).map(|column| self.all(column, is_id)).collect();
            fit(&mut widths, &is_id, width);
        }
        let is_right: Vec<bool> = (0..columns).map(|column| self.all(column, is_number)).collect();
        let mut text = String::new();
        let heading = Some(&self.headings).filter(|headings| !headings.is_empty());
        for (cells, is_heading) in
            heading.map(|cells| (cells, true)).into_iter().chain(self.rows.iter().map(|row| (row, false)))
        {
            let mut line = String::new();
            for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                let cell = cut(cell, width);
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                let styled = self.styled(&cell, column, is_heading, screen);
                let gap = if column == 0 { "" } else { GAP };
                match is_right[column] {
                    true => line.push_str(&format!("{gap}{space}{styled}")),
                    // No spaces at the end of a line.
                    false if column + 1 == cells.len() => line.push_str(&format!("{gap}{styled}")),
                    false => line.push_str(&format!("{gap}{styled}{space}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Characters of the widest cell of a column.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().chain([&self.headings]).filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// Are there cells in a column of a list, and are all of them so?
    fn all(&self, column: usize, is_so: fn(&str) -> bool) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty()).peekable();
        !self.headings.is_empty() && cells.peek().is_some() && cells.all(|cell| is_so(cell))
    }

    fn styled(&self, cell: &str, column: usize, is_heading: bool, screen: &Screen) -> String {
        let style = match is_heading {
            true => Some(Style::Bold),
            false if self.state == Some(column) => style_of(cell),
            false if self.headings.is_empty() && column == 0 && self.state.is_none() => Some(Style::Dim),
            false => None,
        };
        style.map_or_else(|| cell.to_owned(), |style| screen.styled(cell, style).into_owned())
    }
}

/// The color of a word that says how something is.
fn style_of(state: &str) -> Option<Style> {
    let state = state.to_lowercase();
    let is_in = |words: &[&str]| words.contains(&state.as_str());
    match () {
        () if is_in(&GOOD) => Some(Style::Green),
        () if is_in(&WAITS) => Some(Style::Yellow),
        () if is_in(&BAD) => Some(Style::Red),
        () => None,
    }
}

/// Is it the id of something? A part of one is of no use.
fn is_id(cell: &str) -> bool {
    cell.len() == 36 && cell.parse::<uuid::Uuid>().is_ok()
}

fn is_number(cell: &str) -> bool {
    cell.trim_start_matches(['-', '$']).parse::<f64>().is_ok()
}

/// Makes the widest columns narrower until a row fits into `width`. Those with ids stay as they are.
fn fit(widths: &mut [usize], is_id: &[bool], width: usize) {
    loop {
        let whole = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        if whole <= width {
            return;
        }
        let others = widths.iter().zip(is_id).filter(|(_, is_id)| !**is_id).map(|(width, _)| *width);
        let Some(widest) = others.max().filter(|widest| *widest > COLUMN_MIN) else { return };
        let last = widths.iter().zip(is_id).rposition(|(width, is_id)| *width == widest && !is_id);
        if let Some(last) = last {
            widths[last] -= 1;
        }
    }
}

/// The beginning of `cell`, if it is longer than `width` characters.
fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let beginning: String = cell.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", beginning.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn screen(width: usize) -> Screen {
        Screen { width: Some(width), ..Screen::default() }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::list("agents", &["NAME", "STATE", "TURNS"]);
        table.row(["a", "Running", "5"]);
        table.row(["änne\nb", "", "1000"]);
        assert_eq!(table.render(), "NAME    STATE    TURNS\na       Running      5\nänne b            1000\n");
        let mut sparse = Table::list("agents", &["NAME", "MODEL", "STATE"]);
        sparse.row(["a", "", "Running"]);
        assert_eq!(sparse.render(), "NAME  STATE\na     Running\n");
        let mut plain = Table::pairs();
        plain.row(["k", "5"]);
        plain.row(["key", "x"]);
        assert_eq!(plain.render(), "k    5\nkey  x\n");
    }

    #[test]
    fn a_narrow_screen_cuts_texts_and_never_ids() {
        let id = "01890000-0000-7000-8000-000000000000";
        let mut table = Table::list("goals", &["ID", "TITLE", "N"]);
        table.row([id, "Ship the second version of it", "1"]);
        let cut = format!("ID{}  TITLE           N\n{id}  Ship the seco…  1\n", " ".repeat(34));
        assert_eq!(table.render_for(&screen(55)), cut);
        let narrow = table.render_for(&screen(20));
        assert!(narrow.contains(id) && narrow.contains("  Ship th…  1\n"), "{narrow}");
        assert!(table.render_for(&screen(500)).contains("Ship the second version of it"));
        let mut pairs = Table::pairs();
        pairs.row(["description", "Ship the second version of it"]);
        assert!(pairs.render_for(&screen(20)).contains("version of it"), "a terminal wraps it");
    }

    #[test]
    fn styles_take_no_place() {
        let mut table = Table::list("tasks", &["NAME", "STATUS", "N"]);
        table.row(["a", "Failed", "1"]);
        table.row(["b", "strange", "10"]);
        let styled = table.render_for(&Screen { is_styled: true, ..Screen::default() });
        assert!(styled.contains("\u{1b}[31mFailed\u{1b}[0m    1\n"), "{styled:?}");
        let plain = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m"].iter().fold(styled, |text, style| text.replace(style, ""));
        assert_eq!(plain, table.render());
        assert_eq!(
            (style_of("Completed"), style_of("pending"), style_of("x")),
            (Some(Style::Green), Some(Style::Yellow), None)
        );
    }

    #[test]
    fn a_list_without_rows_is_said_beside_the_output() {
        let empty =
            || Table::of("schedules", &[], &[("ID", "/id")]).hint("Create one with `agentsvc schedule create`.");
        let shown = Shown::from(empty());
        assert_eq!(
            (shown.text.as_str(), shown.note.as_deref()),
            ("", Some("No schedules. Create one with `agentsvc schedule create`."))
        );
        let shown = Shown::from("head\n".to_owned()).and_below(empty());
        assert_eq!((shown.text.as_str(), shown.note), ("head\n", None));
        let rows = [json!({ "id": "1" })];
        let shown = Shown::from("head\u{1b}\n".to_owned()).and_below(Table::of("x", &rows, &[("ID", "/id")]));
        assert_eq!(shown.text, "head\n\nID\n 1\n");
    }

    #[test]
    fn nothing_drives_the_terminal() {
        let mut table = Table::pairs();
        table.row(["\u{1b}]0;x\u{7}"]);
        assert_eq!(table.render(), "]0;x\n");
    }
}
