//! Edits of a skill's files: where its text and its version stand, and what a change makes of them.

use agentsvc_api::http::files::FilesError;
use agentsvc_api::skill_evolution::change::{Action, wrong};
use agentsvc_api::skill_source::sources::SourceError;
use toml_edit::DocumentMut;

use super::content::Content;

/// The names that the text of a skill has.
const TEXTS: &[&str] = &["SKILL.md", "skill.md", "skills.md"];
/// The manifest.
const MANIFEST: &str = "skill.toml";
/// A text beside the manifest.
const PROMPT: &str = "prompt_context.md";
/// The version of a new skill.
pub(super) const FIRST_VERSION: &str = "0.1.0";
/// Characters of a description that is taken from the text.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// A skill of a text alone.
pub(super) fn create(name: &str, action: (&str, &str, &[String]), author: &str) -> Content {
    let (description, prompt, tags) = action;
    let first = prompt.lines().map(|line| line.trim_start_matches(['#', ' ']).trim()).find(|line| !line.is_empty());
    let description = match (description.trim(), first) {
        ("", Some(first)) => first.chars().filter(|c| !c.is_control()).take(DESCRIPTION_CHARS_MAX).collect(),
        ("", None) => format!("Skill {name}"),
        (description, _) => description.to_owned(),
    };
    let mut text = format!("---\nname: {}\ndescription: {}\n", quoted(name), quoted(&description));
    text.push_str(&format!("version: {}\nauthor: {}\n", quoted(FIRST_VERSION), quoted(author)));
    if !tags.is_empty() {
        let tags: Vec<String> = tags.iter().map(|tag| quoted(tag)).collect();
        text.push_str(&format!("tags: [{}]\n", tags.join(", ")));
    }
    let body = if prompt.trim().is_empty() { format!("# {name}\n") } else { prompt.to_owned() };
    text.push_str("---\n");
    text.push_str(&body);
    let mut content = Content::default();
    content.put(TEXTS[0], &text);
    content
}

/// A text in YAML: what is quoted in JSON is.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a change makes of the files. Neither a new skill nor a rollback is made of them.
///
/// # Errors
/// [`SourceError::Wrong`] names the field; [`SourceError::NotFound`]: the skill has no such file.
pub(super) fn edited(content: &Content, action: &Action) -> Result<Content, SourceError> {
    let mut content = content.clone();
    match action {
        Action::Update { prompt_context } => set_prompt(&mut content, prompt_context)?,
        Action::Patch { old_string, new_string, replace_all } => {
            let prompt = prompt_of(&content)?;
            let patched = match prompt.matches(old_string.as_str()).count() {
                0 => return Err(wrong("old_string", "not found in the instructions of the skill")),
                1 => prompt.replace(old_string, new_string),
                _ if *replace_all => prompt.replace(old_string, new_string),
                count => {
                    let why =
                        format!("occurs {count} times in the instructions; add text around it, or set replace_all");
                    return Err(wrong("old_string", why));
                }
            };
            if patched.trim().is_empty() {
                return Err(wrong("new_string", "would leave no instructions"));
            }
            set_prompt(&mut content, &patched)?;
        }
        Action::WriteFile { path, content: text } => content.put(path, text),
        Action::RemoveFile { path } => {
            if !content.remove(path) {
                return Err(SourceError::NotFound(format!("path: the skill has no file {path:?}")));
            }
        }
        Action::Create { .. } | Action::Rollback { .. } | Action::Delete => {}
    }
    Ok(content)
}

/// The text for the model, as the file has it that it stands in.
fn prompt_of(content: &Content) -> Result<String, SourceError> {
    if let Some(text) = inline(content)? {
        return Ok(text);
    }
    if content.has(MANIFEST) && content.has(PROMPT) {
        return Ok(content.text(PROMPT).ok_or_else(no_text)?.to_owned());
    }
    Ok(text_file(content).map(|(_, text)| split(text).1).unwrap_or_default().to_owned())
}

fn set_prompt(content: &mut Content, prompt: &str) -> Result<(), SourceError> {
    if inline(content)?.is_some() {
        return edit_manifest(content, |manifest| manifest["prompt_context"] = toml_edit::value(prompt));
    }
    let beside = content.has(MANIFEST) && content.has(PROMPT);
    match text_file(content).map(|(name, text)| (name, split(text).0.to_owned())) {
        Some((name, head)) if !beside => content.put(name, &format!("{head}{prompt}")),
        _ => content.put(PROMPT, prompt),
    }
    Ok(())
}

/// `prompt_context` of the manifest.
fn inline(content: &Content) -> Result<Option<String>, SourceError> {
    let Some(manifest) = manifest(content)? else { return Ok(None) };
    Ok(manifest.get("prompt_context").and_then(toml_edit::Item::as_str).map(str::to_owned))
}

fn manifest(content: &Content) -> Result<Option<DocumentMut>, SourceError> {
    if !content.has(MANIFEST) {
        return Ok(None);
    }
    let parsed = content.text(MANIFEST).ok_or_else(no_text)?.parse::<DocumentMut>();
    parsed.map(Some).map_err(|_| SourceError::Manifest("skill.toml is not valid TOML".to_owned()))
}

fn edit_manifest(content: &mut Content, edit: impl FnOnce(&mut DocumentMut)) -> Result<(), SourceError> {
    if let Some(mut manifest) = manifest(content)? {
        edit(&mut manifest);
        content.put(MANIFEST, &manifest.to_string());
    }
    Ok(())
}

/// Writes the version where the skill says it.
///
/// # Errors
/// [`SourceError::Manifest`]: `skill.toml` cannot be read.
pub(super) fn set_version(content: &mut Content, version: &str) -> Result<(), SourceError> {
    if content.has(MANIFEST) {
        return edit_manifest(content, |manifest| {
            let of_skill = manifest.get_mut("skill").and_then(toml_edit::Item::as_table_like_mut);
            match of_skill {
                Some(skill) => drop(skill.insert("version", toml_edit::value(version))),
                None => manifest["version"] = toml_edit::value(version),
            }
        });
    }
    let Some((name, text)) = text_file(content) else { return Ok(()) };
    let (head, body) = split(text);
    let line = format!("version: {}", quoted(version));
    let mut lines: Vec<&str> = head.lines().collect();
    let end = lines.len().saturating_sub(1);
    match lines.iter().position(|line| line.starts_with("version:")) {
        Some(at) => lines[at] = &line,
        None if end > 0 => lines.insert(end, &line),
        None => return Ok(()),
    }
    let text = format!("{}\n{body}", lines.join("\n"));
    content.put(name, &text);
    Ok(())
}

/// The file that the text stands in, and its content.
fn text_file(content: &Content) -> Option<(&'static str, &str)> {
    TEXTS.iter().find_map(|name| Some((*name, content.text(name)?)))
}

/// The head with both its `---` lines, and the body. A text without one is all body.
fn split(text: &str) -> (&str, &str) {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|first| first.trim_start_matches('\u{feff}').trim_end() == "---") else {
        return ("", text);
    };
    let mut at = first.len();
    for line in lines {
        at += line.len();
        if line.trim_end() == "---" {
            return text.split_at(at);
        }
    }
    ("", text)
}

/// The version behind all of these: the last number of the highest one, and one more.
pub(super) fn next_version<'a>(versions: impl Iterator<Item = &'a str>) -> String {
    let numbers = |version: &str| -> Option<[u64; 3]> {
        let plain = version.split(['-', '+']).next().unwrap_or_default();
        let mut parts = plain.split('.').map(|part| part.parse().ok());
        let numbers = [parts.next()??, parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?];
        parts.next().is_none().then_some(numbers)
    };
    let [major, minor, patch] = versions.filter_map(numbers).max().unwrap_or([0, 1, 0]);
    format!("{major}.{minor}.{}", patch.saturating_add(1))
}

fn no_text() -> SourceError {
    SourceError::Files(FilesError::Conflict("the instructions of the skill are not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Content {
        let mut content = Content::default();
        files.iter().for_each(|(path, text)| content.put(path, text));
        content
    }

    fn update(content: &Content, text: &str) -> Content {
        edited(content, &Action::Update { prompt_context: text.to_owned() }).unwrap()
    }

    #[test]
    fn the_text_is_changed_where_it_stands() {
        let md = of(&[("SKILL.md", "---\nname: a\n# kept\n---\nold")]);
        assert_eq!(update(&md, "new").text("SKILL.md"), Some("---\nname: a\n# kept\n---\nnew"));
        let inline =
            of(&[("skill.toml", "prompt_context = \"old\" # kept\n[skill]\nname = \"a\"\n"), ("SKILL.md", "x")]);
        let changed = update(&inline, "new");
        assert!(changed.text("skill.toml").unwrap().contains("prompt_context = \"new\""), "{changed:?}");
        assert_eq!(changed.text("SKILL.md"), Some("x"));
        let beside = of(&[("skill.toml", "[skill]\nname = \"a\"\n"), ("prompt_context.md", "old"), ("SKILL.md", "x")]);
        let changed = update(&beside, "new");
        assert_eq!((changed.text("prompt_context.md"), changed.text("SKILL.md")), (Some("new"), Some("x")));
        let alone = of(&[("skill.toml", "[skill]\nname = \"a\"\n")]);
        assert_eq!(update(&alone, "new").text("prompt_context.md"), Some("new"));
    }

    #[test]
    fn a_patch_must_be_unambiguous() {
        let content = of(&[("SKILL.md", "---\nname: one\n---\none two two")]);
        let patch = |old: &str, new: &str, replace_all| {
            let (old_string, new_string) = (old.to_owned(), new.to_owned());
            edited(&content, &Action::Patch { old_string, new_string, replace_all })
        };
        let text = |result: Result<Content, SourceError>| result.unwrap().text("SKILL.md").unwrap().to_owned();
        // The head is not the text.
        assert_eq!(text(patch("one", "1", false)), "---\nname: one\n---\n1 two two");
        assert_eq!(text(patch("two", "2", true)), "---\nname: one\n---\none 2 2");
        for (old, new) in [("two", "2"), ("three", "3"), ("one two two", " ")] {
            assert!(matches!(patch(old, new, false), Err(SourceError::Wrong { .. })), "{old}");
        }
    }

    #[test]
    fn versions_go_up_and_are_written() {
        let next = |versions: &[&str]| next_version(versions.iter().copied());
        assert_eq!(next(&["0.1.0"]), "0.1.1");
        assert_eq!(next(&["0.1.9", "0.1.10", "0.0.99"]), "0.1.11");
        assert_eq!(
            (next(&["1.2", "odd"]), next(&["2"]), next(&["v1"]), next(&[])),
            ("1.2.1".into(), "2.0.1".into(), "0.1.1".into(), "0.1.1".into())
        );
        let mut md = of(&[("SKILL.md", "---\nname: a\nversion: 1.0.0\n---\nx")]);
        set_version(&mut md, "1.0.1").unwrap();
        assert_eq!(md.text("SKILL.md"), Some("---\nname: a\nversion: \"1.0.1\"\n---\nx"));
        let mut without = of(&[("SKILL.md", "---\nname: a\n---\nx")]);
        set_version(&mut without, "0.1.1").unwrap();
        assert_eq!(without.text("SKILL.md"), Some("---\nname: a\nversion: \"0.1.1\"\n---\nx"));
        let mut toml = of(&[("skill.toml", "[skill]\nname = \"a\"\nversion = \"1.0.0\" # kept\n")]);
        set_version(&mut toml, "1.0.1").unwrap();
        assert!(toml.text("skill.toml").unwrap().contains("version = \"1.0.1\""));
    }

    #[test]
    fn a_new_skill_quotes_what_it_is_given() {
        let tags = ["a: b".to_owned(), "c".to_owned()];
        let content = create("null", ("x: \"y\"\u{2028}", "# Title\ntext", &tags), "api");
        let text = content.text("SKILL.md").unwrap();
        assert!(text.starts_with("---\nname: \"null\"\ndescription: \"x: \\\"y\\\""), "{text}");
        assert!(text.contains("tags: [\"a: b\", \"c\"]\n---\n# Title\ntext"), "{text}");
        assert!(
            create("a", ("", "## Title\n", &[]), "api").text("SKILL.md").unwrap().contains("description: \"Title\"")
        );
        assert!(create("a", ("", "", &[]), "api").text("SKILL.md").unwrap().ends_with("---\n# a\n"));
    }
}
