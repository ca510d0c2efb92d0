//! Changes one key in the text of the file and leaves everything else as its author wrote it: comments, order, quoting.
//!
//! There are several ways to write a key. Each way that fits is tried in turn, and the first whose result reads as the
//! old text with that one key changed is taken: a way that would catch a neighbour never counts.

use serde_json::Value as Json;
use toml::Value as Toml;
use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Segments that a path over the API may have (spec 2, Limits).
pub const SEGMENTS_MAX: usize = 3;

/// The segments of a path such as `prices."openai/gpt-4.1".input_per_m`: dots divide, save between double quotes.
pub fn segments(path: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = path;
    loop {
        let (segment, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("missing closing quote")?,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        if segment.is_empty() || segment.chars().any(char::is_control) {
            return Err("must be a key path such as \"default_model.model\"".to_owned());
        }
        found.push(segment.to_owned());
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(found),
            None => return Err("expected a dot after a quoted part".to_owned()),
        }
    }
}

/// The path as [`segments`] reads it.
pub fn joined<T: AsRef<str>>(path: &[T]) -> String {
    let written = path
        .iter()
        .map(AsRef::as_ref)
        .map(|segment: &str| if segment.contains('.') { format!("\"{segment}\"") } else { segment.to_owned() });
    written.collect::<Vec<_>>().join(".")
}

/// `text` with the key at `path` set to `value`; null takes the key out.
///
/// # Errors
/// A sentence: the value has no form in the file, the text is not TOML, or the key cannot be written where its table
/// is.
pub fn set(text: &str, path: &[String], value: &Json) -> Result<String, String> {
    let value = if value.is_null() { None } else { Some(toml_of(value)?) };
    let not_toml = |_| "config.toml is not valid TOML".to_owned();
    let before: toml::Table = text.parse().map_err(not_toml)?;
    let document: DocumentMut = text.parse().map_err(|_| "config.toml is not valid TOML".to_owned())?;
    let wanted = expected(&before, path, value.as_ref())?;
    if wanted == before {
        return Ok(text.to_owned());
    }
    let (leaf, parents) = path.split_last().ok_or("the path is empty")?;
    let ways: Vec<Option<String>> = match &value {
        Some(value) => vec![
            replace(&document, parents, leaf, value),
            uncomment(text, parents, leaf, value, false),
            uncomment(text, parents, leaf, value, true),
            insert(&document, parents, leaf, value),
            append(text, parents, leaf, value),
        ],
        None => vec![cut_line(text, path), remove(&document, parents, leaf)],
    };
    let reads_as_wanted = |text: &String| text.parse::<toml::Table>().is_ok_and(|read| read == wanted);
    let found = ways.into_iter().flatten().map(|way| with_ends_of(text, way)).find(reads_as_wanted);
    found.ok_or_else(|| "cannot insert this key into the file automatically; edit the file by hand".to_owned())
}

/// `after` with line ends as `before` has them.
fn with_ends_of(before: &str, after: String) -> String {
    let is_crlf = before.contains("\r\n") && before.matches('\n').count() == before.matches("\r\n").count();
    if is_crlf { after.replace("\r\n", "\n").replace('\n', "\r\n") } else { after }
}

/// A value as the file writes it.
pub(super) fn toml_of(value: &Json) -> Result<Value, String> {
    match value {
        Json::Bool(flag) => Ok((*flag).into()),
        Json::String(text) => Ok(text.as_str().into()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Ok(whole.into()),
            (None, Some(float)) if number.is_f64() && float.is_finite() => Ok(float.into()),
            _ => Err(format!("{number} is too large")),
        },
        Json::Array(items) => {
            let items = items.iter().map(toml_of).collect::<Result<Vec<_>, _>>()?;
            Ok(Value::Array(items.into_iter().collect()))
        }
        Json::Object(_) | Json::Null => Err("must be a string, a number, true, false or a list of those".to_owned()),
    }
}

/// What the changed text must read as.
fn expected(before: &toml::Table, path: &[String], value: Option<&Value>) -> Result<toml::Table, String> {
    let mut wanted = before.clone();
    let Some((leaf, parents)) = path.split_last() else { return Ok(wanted) };
    let mut table = &mut wanted;
    for parent in parents {
        if value.is_none() && !table.contains_key(parent) {
            return Ok(before.clone());
        }
        let inner = table.entry(parent).or_insert_with(|| Toml::Table(toml::Table::new()));
        table = inner.as_table_mut().ok_or_else(|| format!("{parent} is not a table in the file"))?;
    }
    match value {
        None => drop(table.remove(leaf)),
        Some(value) => {
            let line: toml::Table = format!("value = {value}").parse().map_err(|_| {
                "the value cannot be written to \
                the file"
            })?;
            table.extend(line.into_iter().map(|(_, value)| (leaf.clone(), value)));
        }
    }
    Ok(wanted)
}

fn table_at<'d>(document: &'d mut DocumentMut, parents: &[String]) -> Option<&'d mut dyn TableLike> {
    let start: &mut dyn TableLike = document.as_table_mut();
    parents.iter().try_fold(start, |table, parent| table.get_mut(parent)?.as_table_like_mut())
}

/// The key is there: its value changes, the comment behind it stays.
fn replace(document: &DocumentMut, parents: &[String], leaf: &str, value: &Value) -> Option<String> {
    let mut document = document.clone();
    let old = table_at(&mut document, parents)?.get_mut(leaf)?.as_value_mut()?;
    let mut value = value.clone();
    *value.decor_mut() = old.decor().clone();
    *old = value;
    Some(document.to_string())
}

/// The table is there: the key goes behind its others.
fn insert(document: &DocumentMut, parents: &[String], leaf: &str, value: &Value) -> Option<String> {
    let mut document = document.clone();
    let table = table_at(&mut document, parents)?;
    table.insert(leaf, Item::Value(value.clone()));
    Some(document.to_string())
}

/// The name of a table, if the line is its header or would be without the `#` before it.
fn header(line: &str) -> Option<(Vec<String>, bool)> {
    let bare = line.trim();
    let (name, is_commented) = match bare.strip_prefix('#') {
        Some(rest) => (rest, true),
        None => (bare, false),
    };
    let name = name.strip_prefix('[')?.split(']').next()?;
    segments(name).ok().map(|name| (name, is_commented))
}

/// The key stands there as a comment, as in the file that `init` writes: its line counts from now on, and that of its
/// table, too, with `and_header`.
fn uncomment(text: &str, parents: &[String], leaf: &str, value: &Value, and_header: bool) -> Option<String> {
    let mut section: (Vec<String>, Option<usize>) = (Vec::new(), None);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let at = lines.iter().enumerate().find_map(|(at, line)| {
        if let Some((name, is_commented)) = header(line) {
            section = (name, is_commented.then_some(at));
            return None;
        }
        let rest = line.strip_prefix('#')?.strip_prefix(leaf)?;
        (rest.trim_start().starts_with('=') && section.0 == parents).then_some((at, section.1))
    });
    let (at, header_at) = at?;
    if and_header {
        let line = &mut lines[header_at?];
        *line = line.trim_start().trim_start_matches('#').to_owned();
    }
    lines[at] = format!("{} = {value}\n", key(leaf));
    Some(lines.concat())
}

/// The table is not there: it is written at the end.
fn append(text: &str, parents: &[String], leaf: &str, value: &Value) -> Option<String> {
    let name = parents.iter().map(|parent| key(parent)).collect::<Vec<_>>().join(".");
    let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    (!parents.is_empty()).then(|| format!("{text}{end}{gap}[{name}]\n{} = {value}\n", key(leaf)))
}

/// A key as the file writes it.
fn key(name: &str) -> String {
    toml_edit::Key::new(name).to_string()
}

/// The key has lines of its own: they go, the comments above stay.
fn cut_line(text: &str, path: &[String]) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let (leaf, parents) = path.split_last()?;
    let table =
        parents.iter().try_fold(document.get_ref(), |table, parent| match table.get(parent.as_str())?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        })?;
    let (name, value) = table.get_key_value(leaf.as_str())?;
    let start = text[..name.span().start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[value.span().end..].find('\n').map_or(text.len(), |newline| value.span().end + newline + 1);
    Some(format!("{}{}", &text[..start], &text[end..]))
}

/// The key stands in a line with others.
fn remove(document: &DocumentMut, parents: &[String], leaf: &str) -> Option<String> {
    let mut document = document.clone();
    table_at(&mut document, parents)?.remove(leaf)?;
    Some(document.to_string())
}
