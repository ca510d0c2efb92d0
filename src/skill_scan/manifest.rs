//! Manifests: which of their texts describe tools, and which are Markdown for a model.

use serde_json::Value;
use std::path::{Component, Path};

use super::folder::whole;
use super::{Finding, Place, Scan, scan_text};
use crate::kernel::front_matter;

/// Keys whose texts a program or a model takes for the description of a tool or a skill.
const DESCRIBED: &[&str] = &["tools", "skill", "description"];
/// Keys of texts in Markdown, wherever they are.
const MARKDOWN: &[&str] = &["prompt_context", "system_prompt", "instructions", "template", "prompt"];
/// Tables and lists within each other.
const DEPTH_MAX: usize = 32;
/// Values of a file whose lines are looked for; those of more are not told.
const LINES_MAX: usize = 200;

/// Scans a TOML file: `skill.toml`, `HAND.toml`, `plugin.toml` and others.
pub(super) fn toml(scan: &mut Scan, name: &str, text: &str) {
    let Some(table) = toml::from_str::<toml::Table>(text).ok().and_then(|table| serde_json::to_value(table).ok())
    else {
        // Not TOML: what reads it finds only words.
        return scan.add_text(Place::Tool, name, 1, text);
    };
    let entry = table.get("runtime").unwrap_or(&table).get("entry").and_then(Value::as_str);
    if entry.is_some_and(leaves) {
        scan.refuse(whole(name, "traversal"));
    }
    let mut walk = Walk { scan, name, text, looked: 0 };
    walk.value(&table, Place::Body, 0);
    // Comments say nothing to a model before it reads the file.
    scan.add_text(Place::Code, name, 1, text);
}

/// Scans the values of a YAML head: escapes and folded lines hide words from those who read only the text.
pub(super) fn head(scan: &mut Scan, name: &str, text: &str) {
    if let Ok(head) = front_matter::lenient(&text.replace("\r\n", "\n")) {
        Walk { scan, name, text, looked: 0 }.each(&head, 0);
    }
}

/// Scans a `package.json`: it describes a skill, and its scripts are programs.
pub(super) fn package(scan: &mut Scan, name: &str, text: &str) {
    if let Ok(package) = serde_json::from_str::<Value>(text) {
        let mut walk = Walk { scan, name, text, looked: 0 };
        for key in ["name", "description", "openclaw"] {
            walk.value(&package[key], Place::Tool, 0);
        }
    }
    scan.add_text(Place::Body, name, 1, text);
}

/// Does the path leave the folder?
fn leaves(path: &str) -> bool {
    !Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

struct Walk<'a> {
    scan: &'a mut Scan,
    name: &'a str,
    text: &'a str,
    /// Lines that were looked for.
    looked: usize,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, place: Place, depth: usize) {
        match value {
            Value::String(text) => self.text(place, text),
            Value::Array(values) if depth < DEPTH_MAX => {
                values.iter().for_each(|value| self.value(value, place, depth + 1));
            }
            Value::Object(values) if depth < DEPTH_MAX => {
                for (key, value) in values {
                    let place = match key.as_str() {
                        key if MARKDOWN.contains(&key) => Place::Body,
                        // The tables of a hand's requirements tell people what to install.
                        key if DESCRIBED.contains(&key) && (depth == 0 || key == "description") => Place::Tool,
                        _ => place,
                    };
                    self.value(value, place, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Every text of a head.
    fn each(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) => self.text(Place::FrontMatter, text),
            Value::Array(values) if depth < DEPTH_MAX => values.iter().for_each(|value| self.each(value, depth + 1)),
            Value::Object(values) if depth < DEPTH_MAX => {
                for (key, value) in values {
                    self.text(Place::FrontMatter, key);
                    self.each(value, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, place: Place, text: &str) {
        let found = scan_text(place, text);
        if found == Scan::default() {
            return;
        }
        self.looked += 1;
        let before = if self.looked <= LINES_MAX { self.line(text) - 1 } else { 0 };
        let placed = |finding: Finding| Finding { file: self.name.to_owned(), line: before + finding.line, ..finding };
        found.refused.into_iter().map(placed).for_each(|finding| self.scan.refuse(finding));
        found.warnings.into_iter().map(placed).for_each(|finding| self.scan.warn(finding));
    }

    /// The line where a value begins, as well as that can be told from its first words.
    fn line(&self, value: &str) -> usize {
        let first = value.trim_start().lines().next().unwrap_or_default();
        let blank = value[..value.len() - value.trim_start().len()].matches('\n').count();
        let at = self.text.find(&first[..first.floor_char_boundary(40)]).unwrap_or_default();
        (self.text[..at].matches('\n').count() + 1).saturating_sub(blank).max(1)
    }
}
