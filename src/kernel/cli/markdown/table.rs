//! Tables of Markdown, with columns as wide as their cells.

use super::{BOLD, DIM, RESET};

/// Cells that are wider than this do not widen their column.
const WIDTH_MAX: usize = 40;

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Center,
    Right,
}

/// `text` as a table, if its second line has the dashes of one. `inline` styles the text of a cell.
pub(super) fn aligned(text: &str, inline: fn(&str) -> String) -> Option<String> {
    let mut rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    let sides = rows.get(1)?.iter().map(|cell| side(cell)).collect::<Option<Vec<Side>>>()?;
    if sides.is_empty() {
        return None;
    }
    rows.remove(1);
    for cell in rows.iter_mut().flatten() {
        *cell = inline(cell);
    }
    for heading in rows.iter_mut().take(1).flatten() {
        *heading = format!("{BOLD}{heading}{RESET}");
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).min(WIDTH_MAX)).collect();
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths, &sides)).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
    lines.insert(1, format!("{DIM}{}{RESET}", rule.join("  ")));
    let end = if text.ends_with('\n') { "\n" } else { "" };
    Some(lines.join("\n") + end)
}

/// The cells of a row. A bar behind a backslash belongs to its cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut characters = row.strip_prefix('|').unwrap_or(row).chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&'|').is_some() => cell.push('|'),
            '|' => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    // Behind the last bar is no cell.
    if !cell.trim().is_empty() {
        cells.push(cell);
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// What dashes such as `:--:` say of their column.
fn side(cell: &str) -> Option<Side> {
    let dashes = cell.trim_matches(':');
    if dashes.is_empty() || !dashes.chars().all(|character| character == '-') {
        return None;
    }
    Some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Side::Center,
        (false, true) => Side::Right,
        (_, false) => Side::Left,
    })
}

fn line(row: &[String], widths: &[usize], sides: &[Side]) -> String {
    let padded = row.iter().zip(widths).enumerate().map(|(column, (cell, &wide))| {
        let space = wide.saturating_sub(width(cell));
        let before = match sides.get(column) {
            Some(Side::Center) => space / 2,
            Some(Side::Right) => space,
            Some(Side::Left) | None => 0,
        };
        format!("{}{cell}{}", " ".repeat(before), " ".repeat(space - before))
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Characters of a cell that are shown: styles take no place.
fn width(cell: &str) -> usize {
    let mut parts = cell.split('\u{1b}');
    let first = parts.next().unwrap_or_default().chars().count();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, shown)| shown).chars().count());
    first + rest.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<String> {
        let shown = aligned(text, str::to_owned)?;
        Some([BOLD, DIM, RESET].iter().fold(shown, |text, style| text.replace(style, "")))
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let text = "| a | long | n |\n|---|:-:|--:|\n| one | x | 10 |\n| b \\| c || 9\n";
        let shown = "a      long   n\n─────  ────  ──\none     x    10\nb | c         9\n";
        assert_eq!(plain(text).as_deref(), Some(shown));
        let whole = aligned("|a|\n|-|", str::to_owned).unwrap();
        assert_eq!(whole, format!("{BOLD}a{RESET}\n{DIM}─{RESET}"));
    }

    #[test]
    fn long_cells_and_rows_stay_whole() {
        let long = "x".repeat(WIDTH_MAX + 5);
        let rule = "─".repeat(WIDTH_MAX);
        let text = format!("|a|b|\n|-|-|\n|{long}|y|more|\n");
        let shown = format!("a{}b\n{rule}  ─  ────\n{long}  y  more\n", " ".repeat(WIDTH_MAX + 1));
        assert_eq!(plain(&text), Some(shown));
    }

    #[test]
    fn other_lines_with_bars_are_no_table() {
        for text in ["|a|\n", "|a|b|\n|c|d|\n", "|a|\n||\n", "|a|\n|\n", "|a|\n|:|\n", ""] {
            assert_eq!(aligned(text, str::to_owned), None, "{text:?}");
        }
    }

    #[test]
    fn styles_take_no_place() {
        assert_eq!(width(&format!("a{BOLD}bä{RESET}m")), 4);
    }
}
