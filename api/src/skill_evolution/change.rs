//! Changes of skills, as clients and agents ask for them, and the rules that they keep.

use agentsvc_systems::skill_evolution::limits::{
    SKILL_CHANGELOG_BYTES_MAX, SKILL_DESCRIPTION_BYTES_MAX, SKILL_PROMPT_BYTES_MAX, SKILL_SUPPORT_FILE_BYTES_MAX,
    SKILL_TAG_BYTES_MAX, SKILL_TAGS_MAX,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::skill_source::sources::SourceError;

/// Bytes of the name of a skill that is created.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of the path of a file, and of a version or hash.
const WORD_BYTES_MAX: usize = 255;
/// Names that the routes of skills have.
const RESERVED: &[&str] = &["create", "install", "uninstall", "reload", "registry", "pending"];
/// Folders of supporting files (spec 2, Skill): other files of a skill are not written one by one.
pub const SUPPORTING: &[&str] = &["references", "templates", "scripts", "assets"];

/// What is done to a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// A new skill of a text alone.
    Create {
        /// What it is for; may be empty.
        description: String,
        /// Text for the model; may be empty.
        prompt_context: String,
        /// Tags.
        tags: Vec<String>,
    },
    /// Another text for the model.
    Update {
        /// The text.
        prompt_context: String,
    },
    /// Another piece of the text for the model.
    Patch {
        /// What stands there.
        old_string: String,
        /// What takes its place.
        new_string: String,
        /// At each place, where there are several.
        replace_all: bool,
    },
    /// The files of an earlier version.
    Rollback {
        /// Version or content hash; `None` is the newest with other files than now.
        version: Option<String>,
    },
    /// The skill goes, with its versions.
    Delete,
    /// A supporting file is written.
    WriteFile {
        /// Path in the skill.
        path: String,
        /// Text.
        content: String,
    },
    /// A supporting file goes.
    RemoveFile {
        /// Path in the skill.
        path: String,
    },
}

/// A change of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Name of the skill.
    pub skill: String,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in a sentence; may be empty.
    #[serde(default)]
    pub changelog: String,
    /// The content hash that the skill must have; `None`: whichever it has.
    #[serde(default)]
    pub content_hash: Option<String>,
}

impl Change {
    /// The word for what is done: `create`, `update`, `patch`, `rollback`, `delete`, `write_file` or `remove_file`.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self.action {
            Action::Create { .. } => "create",
            Action::Update { .. } => "update",
            Action::Patch { .. } => "patch",
            Action::Rollback { .. } => "rollback",
            Action::Delete => "delete",
            Action::WriteFile { .. } => "write_file",
            Action::RemoveFile { .. } => "remove_file",
        }
    }

    /// What the audit log says of it.
    #[must_use]
    pub fn details(&self) -> Value {
        json!({ "skill": self.skill, "action": self.verb(), "changelog": self.changelog })
    }

    /// Checks what can be told without the skill.
    ///
    /// # Errors
    /// [`SourceError::Wrong`] names the field.
    pub fn check(&self) -> Result<(), SourceError> {
        bounded("changelog", &self.changelog, SKILL_CHANGELOG_BYTES_MAX)?;
        one_line("changelog", &self.changelog)?;
        bounded("content_hash", self.content_hash.as_deref().unwrap_or_default(), WORD_BYTES_MAX)?;
        match &self.action {
            Action::Create { description, prompt_context, tags } => {
                new_name(&self.skill)?;
                bounded("description", description, SKILL_DESCRIPTION_BYTES_MAX)?;
                one_line("description", description)?;
                prompt("prompt_context", prompt_context)?;
                check_tags(tags)
            }
            Action::Update { prompt_context } => {
                filled("prompt_context", prompt_context)?;
                prompt("prompt_context", prompt_context)
            }
            Action::Patch { old_string, new_string, .. } => {
                filled("old_string", old_string)?;
                prompt("old_string", old_string)?;
                prompt("new_string", new_string)?;
                if old_string == new_string {
                    return Err(wrong("new_string", "is the same as old_string"));
                }
                Ok(())
            }
            Action::Rollback { version } => bounded("version", version.as_deref().unwrap_or_default(), WORD_BYTES_MAX),
            Action::Delete => Ok(()),
            Action::WriteFile { path, content } => {
                supporting(path)?;
                bounded("content", content, SKILL_SUPPORT_FILE_BYTES_MAX)
            }
            Action::RemoveFile { path } => supporting(path),
        }
    }
}

/// An error about the field.
#[must_use]
pub fn wrong(field: &'static str, message: impl Into<String>) -> SourceError {
    SourceError::Wrong { field, message: message.into() }
}

fn filled(field: &'static str, text: &str) -> Result<(), SourceError> {
    if text.trim().is_empty() { Err(wrong(field, "must not be empty")) } else { Ok(()) }
}

fn bounded(field: &'static str, text: &str, most: usize) -> Result<(), SourceError> {
    if text.len() > most { Err(wrong(field, format!("longer than {most} bytes"))) } else { Ok(()) }
}

fn prompt(field: &'static str, text: &str) -> Result<(), SourceError> {
    bounded(field, text, SKILL_PROMPT_BYTES_MAX)?;
    if text.contains('\0') { Err(wrong(field, "must not have zero bytes")) } else { Ok(()) }
}

fn one_line(field: &'static str, text: &str) -> Result<(), SourceError> {
    if text.contains(char::is_control) {
        Err(wrong(field, "must be one line without control characters"))
    } else {
        Ok(())
    }
}

fn new_name(name: &str) -> Result<(), SourceError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let begins = name.bytes().next().is_some_and(is_plain);
    if !begins || name.len() > NAME_BYTES_MAX || !name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'_' | b'-'))
    {
        let rule = "must be 1 to 64 of a-z, 0-9, `_` and `-`, the first a letter or digit";
        return Err(wrong("name", rule));
    }
    if RESERVED.contains(&name) {
        return Err(wrong("name", format!("{name:?} is reserved; choose another name")));
    }
    Ok(())
}

fn check_tags(tags: &[String]) -> Result<(), SourceError> {
    if tags.len() > SKILL_TAGS_MAX {
        return Err(wrong("tags", format!("more than {SKILL_TAGS_MAX}")));
    }
    for tag in tags {
        filled("tags", tag)?;
        bounded("tags", tag, SKILL_TAG_BYTES_MAX)?;
        one_line("tags", tag)?;
    }
    Ok(())
}

/// A path below one of the folders of supporting files.
fn supporting(path: &str) -> Result<(), SourceError> {
    bounded("path", path, WORD_BYTES_MAX)?;
    let is_below = path.split_once('/').is_some_and(|(folder, rest)| SUPPORTING.contains(&folder) && !rest.is_empty());
    // Files whose names begin with a dot are those of version control and of the daemon.
    let is_plain = path.split('/').all(|name| !name.is_empty() && !name.starts_with('.'));
    if !is_below || !is_plain || path.contains(['\\', ':']) || path.contains(char::is_control) {
        let rule =
            "must be a file in references/, templates/, scripts/ or assets/, without names that begin with a dot";
        return Err(wrong("path", rule));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(skill: &str, action: Action) -> Change {
        Change { skill: skill.to_owned(), action, changelog: String::new(), content_hash: None }
    }

    fn field(change: &Change) -> Option<&'static str> {
        match change.check() {
            Ok(()) => None,
            Err(SourceError::Wrong { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn names_of_new_skills_are_plain_and_not_those_of_routes() {
        let create = |name: &str| {
            let (description, prompt_context) = (String::new(), String::new());
            field(&change(name, Action::Create { description, prompt_context, tags: Vec::new() }))
        };
        for name in ["a", "9-lives", "a_b-c"] {
            assert_eq!(create(name), None, "{name}");
        }
        for name in ["", "-a", "A", "a.b", "a/b", "..", "ä", "pending", "create", &"a".repeat(65)] {
            assert_eq!(create(name), Some("name"), "{name}");
        }
    }

    #[test]
    fn files_stay_in_the_folders_of_supporting_files() {
        let write =
            |path: &str| field(&change("a", Action::WriteFile { path: path.to_owned(), content: String::new() }));
        for path in ["references/a.md", "scripts/deep/run.py", "assets/a", "templates/ä b.txt"] {
            assert_eq!(write(path), None, "{path}");
        }
        for path in [
            "",
            "SKILL.md",
            "skill.toml",
            "references",
            "references/",
            "references//a",
            "references/../a",
            "references/.a",
            "/references/a",
            "./references/a",
            "src/main.py",
            "references/a\\b",
            "references/a\nb",
            ".evolution.json",
        ] {
            assert_eq!(write(path), Some("path"), "{path}");
        }
    }

    #[test]
    fn texts_are_bounded_and_not_empty() {
        let text = |length: usize| "x".repeat(length);
        let update = |text: String| field(&change("a", Action::Update { prompt_context: text }));
        assert_eq!(update(text(SKILL_PROMPT_BYTES_MAX)), None);
        assert_eq!(update(text(SKILL_PROMPT_BYTES_MAX + 1)), Some("prompt_context"));
        assert_eq!(
            (update(" \n".to_owned()), update("a\0".to_owned())),
            (Some("prompt_context"), Some("prompt_context"))
        );
        let patch = |old: &str, new: &str| {
            let (old_string, new_string) = (old.to_owned(), new.to_owned());
            field(&change("a", Action::Patch { old_string, new_string, replace_all: false }))
        };
        assert_eq!((patch("a", ""), patch("", "a"), patch("a", "a")), (None, Some("old_string"), Some("new_string")));
        let with_log = Change { changelog: "a\nb".to_owned(), ..change("a", Action::Delete) };
        assert_eq!(field(&with_log), Some("changelog"));
    }
}
