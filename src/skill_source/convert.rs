//! The manifest of a skill that came from a hub: a `skill.toml` that says where it came from (facts 1.2).

use agentsvc_api::skill_source::sources::{SourceError, ToolTranslation};
use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, value};

use super::staging::Staging;
use crate::kernel::disk;
use crate::skill::{Runtime, Skill, our_tool};

/// The manifest.
pub(super) const MANIFEST: &str = "skill.toml";

/// Where a skill came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// `claw_hub` or `claw_hub_cn`; `local` writes no manifest.
    pub(super) kind: &'static str,
    /// Its id there.
    pub(super) slug: Option<String>,
    /// Its version there.
    pub(super) version: Option<String>,
    /// Handle of its owner there.
    pub(super) author: Option<String>,
    /// Its name, where it has none of its own.
    pub(super) fallback: String,
}

/// What the skill in the staging folder is written in.
///
/// # Errors
/// The disk's.
pub(super) fn form(staging: &Staging, skill: &Skill) -> Result<&'static str, SourceError> {
    let paths = staging.paths()?;
    let has = |name: &str| paths.iter().any(|path| path == name);
    Ok(match (has(MANIFEST), skill.runtime) {
        (true, _) => "skill_toml",
        (false, Runtime::Node) => "openclaw_node",
        _ => "skill_md",
    })
}

/// Writes the manifest, or what a manifest that is there lacks: where the skill came from.
///
/// # Errors
/// [`SourceError::Manifest`], or the disk failed.
pub(super) fn write(staging: &mut Staging, skill: &Skill, name: &str, origin: &Origin) -> Result<(), SourceError> {
    let path = staging.path().join(MANIFEST);
    let there = disk::there(disk::read_text(&path)).map_err(super::folders::FolderError::from)?;
    let mut manifest: DocumentMut = there.as_deref().unwrap_or_default().parse().map_err(|error| {
        let error: toml_edit::TomlError = error;
        SourceError::Manifest(format!("{MANIFEST}: {}", error.message()))
    })?;
    if there.is_none() {
        of_skill(&mut manifest, skill, name, origin);
    } else if manifest.get("skill").is_some_and(Item::is_table_like) {
        manifest["skill"]["name"] = value(name);
    } else {
        // What an earlier release wrote has the keys at top level.
        manifest["name"] = value(name);
    }
    let mut source = Table::new();
    source["type"] = value(origin.kind);
    for (key, text) in [("slug", &origin.slug), ("version", &origin.version)] {
        if let Some(text) = text {
            source[key] = value(text.as_str());
        }
    }
    manifest["source"] = Item::Table(source);
    Ok(staging.replace(MANIFEST, manifest.to_string().as_bytes())?)
}

/// What the skill says of itself, in our words.
fn of_skill(manifest: &mut DocumentMut, skill: &Skill, name: &str, origin: &Origin) {
    let mut head = Table::new();
    head["name"] = value(name);
    let version = origin.version.as_deref().unwrap_or(&skill.version);
    let author = if skill.author.is_empty() { origin.author.as_deref().unwrap_or_default() } else { &skill.author };
    for (key, text) in
        [("version", version), ("description", &skill.description), ("author", author), ("license", &skill.license)]
    {
        if !text.is_empty() {
            head[key] = value(text);
        }
    }
    head["tags"] = value(skill.tags.iter().map(|tag| &**tag).collect::<toml_edit::Array>());
    manifest["skill"] = Item::Table(head);
    let mut runtime = Table::new();
    runtime["type"] = value(match skill.runtime {
        Runtime::PromptOnly => "promptonly",
        Runtime::Python => "python",
        Runtime::Node => "node",
        Runtime::Shell => "shell",
        Runtime::Wasm => "wasm",
        Runtime::Builtin => "builtin",
    });
    if let Some(entry) = &skill.entry {
        runtime["entry"] = value(&**entry);
    }
    manifest["runtime"] = Item::Table(runtime);
    let mut provided = toml_edit::ArrayOfTables::new();
    for tool in &skill.tools {
        let mut table = Table::new();
        table["name"] = value(&*tool.name);
        table["description"] = value(&*tool.description);
        table["input_schema"] = Item::Value(of_json(&tool.input_schema));
        provided.push(table);
    }
    if !provided.is_empty() {
        let mut tools = Table::new();
        tools.set_implicit(true);
        tools["provided"] = Item::ArrayOfTables(provided);
        manifest["tools"] = Item::Table(tools);
    }
}

/// JSON as TOML. TOML has no null: keys and items that are null are left out.
fn of_json(json: &Value) -> toml_edit::Value {
    match json {
        Value::Null => "".into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) => float.into(),
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            items.iter().filter(|item| !item.is_null()).map(of_json).collect::<toml_edit::Array>().into()
        }
        Value::Object(map) => {
            let mut table = toml_edit::InlineTable::new();
            for (key, item) in map.iter().filter(|(_, item)| !item.is_null()) {
                table.insert(key, of_json(item));
            }
            table.into()
        }
    }
}

/// Names of tools in `allowed-tools` of a text that mean others here.
pub(super) fn translations(text: &str) -> Vec<ToolTranslation> {
    let mut lines = text.strip_prefix("---").unwrap_or_default().lines();
    let line = lines.find_map(|line| line.strip_prefix("allowed-tools:")).unwrap_or_default();
    let mut all: Vec<ToolTranslation> = Vec::new();
    for word in line.split([' ', ',', '[', ']', '"', '\'']) {
        let from = word.split('(').next().unwrap_or_default();
        let to = our_tool(from);
        if !from.is_empty() && *to != *from && all.iter().all(|known| known.from != from) && all.len() < 50 {
            all.push(ToolTranslation { from: from.to_owned(), to: to.into() });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill_source::folders::Folders;

    fn origin() -> Origin {
        Origin {
            kind: "claw_hub",
            slug: Some("gif.grep".to_owned()),
            version: Some("1.2.3".to_owned()),
            author: Some("peter".to_owned()),
            fallback: "gif.grep".to_owned(),
        }
    }

    fn converted(files: &[(&str, &str)]) -> (Skill, &'static str, String) {
        let dir = tempfile::tempdir().unwrap();
        let mut staging = Folders::new(dir.path().to_owned()).stage().unwrap();
        for (path, text) in files {
            staging.write(path, &mut text.as_bytes(), false).unwrap();
        }
        let skill = crate::skill::read(&staging.path()).unwrap();
        let form = form(&staging, &skill).unwrap();
        write(&mut staging, &skill, "gifgrep", &origin()).unwrap();
        let text = std::fs::read_to_string(staging.path().join(MANIFEST)).unwrap();
        (crate::skill::read(&staging.path()).unwrap(), form, text)
    }

    #[test]
    fn a_text_gets_a_manifest_and_keeps_what_it_says() {
        let text = "---\nname: GifGrep\ndescription: Finds \"GIFs\"\ntags: [media]\nmetadata:\n  openclaw:\n    requires: {bins: [gifgrep]}\n---\nUse it.\n";
        let (skill, form, _) = converted(&[("SKILL.md", text)]);
        assert_eq!((&*skill.name, &*skill.version, &*skill.author, form), ("gifgrep", "1.2.3", "peter", "skill_md"));
        assert_eq!((&*skill.description, &*skill.prompt_context), ("Finds \"GIFs\"", "Use it.\n"));
        assert_eq!((&*skill.source.kind, skill.source.slug.as_deref()), ("claw_hub", Some("gif.grep")));
        assert_eq!((skill.requirements.bins.len(), skill.runtime), (1, Runtime::PromptOnly));
    }

    #[test]
    fn a_package_keeps_its_tools() {
        let package = r#"{"name":"p","description":"d","openclaw":{"tools":[{"name":"run_it","description":"x",
            "parameters":{"type":"object","properties":{"n":{"type":"integer","minimum":1.5,"default":null}},"required":["n"]}}]}}"#;
        let (skill, form, text) = converted(&[("package.json", package), ("index.js", "x")]);
        assert_eq!((skill.runtime, skill.entry.as_deref(), form), (Runtime::Node, Some("index.js"), "openclaw_node"));
        let properties = &skill.tools[0].input_schema["properties"]["n"];
        assert_eq!((properties["minimum"].as_f64(), properties.get("default")), (Some(1.5), None), "{text}");
    }

    #[test]
    fn a_manifest_is_kept_and_told_where_it_came_from() {
        let manifest = "# mine\n[skill]\nname = \"x\"\nversion = \"9\"\n[source]\ntype = \"native\"\n";
        let (skill, form, text) = converted(&[("skill.toml", manifest)]);
        assert_eq!((&*skill.name, &*skill.version, form), ("gifgrep", "9", "skill_toml"));
        assert!(text.starts_with("# mine") && &*skill.source.kind == "claw_hub", "{text}");
    }

    #[test]
    fn names_of_tools_are_translated() {
        let text = "---\nname: x\nallowed-tools: Bash(git:*), Read web_fetch Read\n---\n";
        let all: Vec<_> = translations(text).into_iter().map(|one| (one.from, one.to)).collect();
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        assert_eq!(all, [pair("Bash", "shell_exec"), pair("Read", "file_read")]);
        assert!(translations("no front matter").is_empty());
    }
}
