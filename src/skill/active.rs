//! Skills that a conversation has read: their instructions outlive its compaction. The summary names them in its last line, and
//! prompts behind it show them again.

use agentsvc_components::manifest::Manifest;
use serde_json::Value;

use super::prompt::Skills;
use super::read::TEXTS;
use super::tools::{READ_FILE, instructions};

/// How the last line of a summary begins.
const MARK: &str = "\n\n[Skills that were read: ";
/// How it ends.
const END: &str = "]";
/// Skills that are kept, those that were read last.
const KEPT_MAX: usize = 5;
/// Bytes of the instructions of one.
const SHOWN_BYTES_MAX: usize = 16_000;

/// The skill whose instructions a call of a tool reads.
pub(crate) fn read_by(tool: &str, input: &str) -> Option<String> {
    if tool != READ_FILE {
        return None;
    }
    let input: Value = serde_json::from_str(input).ok()?;
    let is_text = input["path"].as_str().is_none_or(|path| path.is_empty() || TEXTS.contains(&path));
    is_text.then(|| input["skill"].as_str().map(str::to_owned)).flatten()
}

/// Adds a skill behind those that were read before it.
pub(crate) fn add(skills: &mut Vec<String>, skill: String) {
    skills.retain(|other| *other != skill);
    skills.push(skill);
    let over = skills.len().saturating_sub(KEPT_MAX);
    skills.drain(..over);
}

/// `summary` with the line that names `skills`, within `bytes_max`: a summary that leaves no space for it loses its end, as a skill
/// that is forgotten costs more.
pub(crate) fn marked(mut summary: String, skills: &[String], bytes_max: usize) -> String {
    if !skills.is_empty() {
        let mark = format!("{MARK}{}{END}", Value::from(skills));
        if let Some(most) = bytes_max.checked_sub(mark.len()) {
            summary.truncate(summary.floor_char_boundary(most));
            summary.push_str(&mark);
        }
    }
    summary
}

/// A summary without that line, and the skills that it names.
pub(crate) fn split(summary: &str) -> (&str, Vec<String>) {
    let found = summary.rsplit_once(MARK).and_then(|(text, line)| {
        let skills: Vec<String> = serde_json::from_str(line.trim_end().strip_suffix(END)?).ok()?;
        Some((text, skills))
    });
    let (text, mut skills) = found.unwrap_or((summary, Vec::new()));
    skills.truncate(KEPT_MAX);
    (text, skills)
}

impl Skills {
    /// The instructions of those of `names` that an agent of this manifest has; `None` for none.
    pub(crate) fn instructions(&self, manifest: &Manifest, names: &[String]) -> Option<String> {
        let catalog = self.0.as_ref().filter(|_| !names.is_empty())?.loaded();
        let is_had = |name: &String| catalog.of(manifest).find(|skill| *skill.name == **name && skill.unmet.is_empty());
        let mut text = String::new();
        for skill in names.iter().filter_map(is_had) {
            let mut own = instructions(skill);
            if own.len() > SHOWN_BYTES_MAX {
                own.truncate(own.floor_char_boundary(SHOWN_BYTES_MAX));
                own.push_str("\n[The rest is not shown; skill_read_file shows it.]");
            }
            text.push_str(&format!("\n<skill name={:?}>\n{own}\n</skill>\n", skill.name));
        }
        let before =
            "Instructions of skills that you read earlier in this conversation. They were written by others.\n";
        (!text.is_empty()).then(|| format!("{before}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_the_skills_that_were_read() {
        let skills = vec!["a".to_owned(), "b \"]".to_owned()];
        let summary = marked("What was said.".to_owned(), &skills, 1_000);
        assert_eq!(split(&summary), ("What was said.", skills.clone()));
        assert_eq!(marked("x".to_owned(), &skills, 10), "x");
        assert_eq!(marked("x".to_owned(), &[], 10), "x");
        let full = marked("é".repeat(500), &skills, 1_000);
        assert!(full.len() <= 1_000 && split(&full).1 == skills, "{full}");
        for odd in ["", "x", "x\n\n[Skills that were read: nothing]", "x\n\n[Skills that were read: [\"a\"] and more"] {
            assert_eq!(split(odd), (odd, Vec::new()));
        }
    }

    #[test]
    fn the_last_ones_are_kept() {
        let mut skills = Vec::new();
        for name in ["a", "b", "c", "a", "d", "e", "f"] {
            add(&mut skills, name.to_owned());
        }
        assert_eq!(skills, ["c", "a", "d", "e", "f"]);
    }

    #[test]
    fn only_instructions_count() {
        assert_eq!(read_by("skill_read_file", "{\"skill\":\"a\"}").as_deref(), Some("a"));
        assert_eq!(read_by("skill_read_file", "{\"skill\":\"a\",\"path\":\"SKILL.md\"}").as_deref(), Some("a"));
        for (tool, input) in [
            ("skill_read_file", "{\"skill\":\"a\",\"path\":\"references/x.md\"}"),
            ("skill_read_file", "{broken"),
            ("file_read", "{\"skill\":\"a\"}"),
        ] {
            assert_eq!(read_by(tool, input), None);
        }
    }
}
