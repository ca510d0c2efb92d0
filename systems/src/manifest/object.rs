//! A manifest's text as JSON, whole or flat (spec 2, Agent type).

use agentsvc_components::manifest::Manifest;
use serde_json::{Map, Value};

use super::{Error, ParsedManifest, check_text, parse, render};

/// Everything a text says, known keys or not, as JSON. Dates become strings; numbers that JSON has not, null.
///
/// # Errors
/// When the text is longer than a manifest may be, is not TOML, or nests too deeply.
pub fn object(text: &str) -> Result<Map<String, Value>, Error> {
    check_text(text)?;
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Error::syntax(text, at, error.message().replace('\n', ", "))
    })?;
    Ok(table.into_iter().map(|(key, value)| (key, json(value))).collect())
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(moment) => Value::String(moment.to_string()),
        toml::Value::Array(items) => items.into_iter().map(json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(key, value)| (key, json(value))).collect(),
    }
}

/// The seven keys that the flat shape of an agent type has, but for the name. Each is `None` where it is not to change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flat {
    /// Description in one sentence.
    pub description: Option<String>,
    /// The text that opens every prompt.
    pub system_prompt: Option<String>,
    /// The model's provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The tools that it grants.
    pub tools: Option<Vec<String>>,
    /// Skills, by name.
    pub skills: Option<Vec<String>>,
}

impl Flat {
    /// What a manifest says of them; all are there.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let words = |list: &[Box<str>]| Some(list.iter().map(ToString::to_string).collect());
        Self {
            description: Some(manifest.description.to_string()),
            system_prompt: Some(manifest.system_prompt.to_string()),
            provider: Some(manifest.model.provider.to_string()),
            model: Some(manifest.model.model.to_string()),
            tools: words(&manifest.capabilities.tools),
            skills: words(&manifest.skills),
        }
    }

    /// The text of a new manifest that says `name` and these.
    ///
    /// # Errors
    /// When the result is no manifest.
    pub fn text(self, name: &str) -> Result<String, Error> {
        let manifest = self.over(Manifest::default());
        let text = render("", name, &manifest);
        parse(&text).map(|_| text)
    }

    /// `text` with these merged into it: every other key, comment and layout stays (rule 2). An empty string clears.
    ///
    /// # Errors
    /// When the text, or the result, is no manifest.
    pub fn merge(self, text: &str) -> Result<String, Error> {
        let ParsedManifest { name, manifest } = parse(text)?;
        let merged = render(text, &name, &self.over(manifest));
        parse(&merged).map(|_| merged)
    }

    fn over(self, mut manifest: Manifest) -> Manifest {
        let set = |to: &mut Box<str>, new: Option<String>| {
            if let Some(new) = new {
                *to = new.into();
            }
        };
        set(&mut manifest.description, self.description);
        set(&mut manifest.system_prompt, self.system_prompt);
        set(&mut manifest.model.provider, self.provider);
        set(&mut manifest.model.model, self.model);
        let words = |list: Vec<String>| list.into_iter().map(Into::into).collect();
        if let Some(tools) = self.tools {
            manifest.capabilities.tools = words(tools);
        }
        if let Some(skills) = self.skills {
            manifest.skills = words(skills);
        }
        manifest
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The keys that must survive an edit through the flat shape (spec 2, Agent type), with comments.
    const WRITTEN: &str = r#"# A careful worker.
name = "worker"
system_prompt = "Work." # short
max_history_messages = 40
session_mode = "new"
tool_allowlist = ["file_*"] # only files
mcp_servers = ["github"]
channels = ["slack"]
fallback_models = ["openai/gpt-4o-mini"]
odd = 1979-05-27

# Who answers.
[model]
provider = "builtin"
model = "builtin"

[capabilities]
tools = ["file_read"] # to be careful

[compaction]
threshold = 3

[workspaces]
shared = "x"

[exec_policy]
mode = "deny"

[[triggers]]
pattern = "all"
prompt_template = "{{event}}"
"#;

    #[test]
    fn every_other_key_and_comment_survives_an_edit() {
        let patch = Flat {
            description: Some("Works".to_owned()),
            system_prompt: Some(String::new()),
            model: Some("other".to_owned()),
            tools: Some(vec!["file_read".to_owned(), "file_list".to_owned()]),
            ..Flat::default()
        };
        let merged = patch.merge(WRITTEN).unwrap();
        let expected = WRITTEN
            .replace("system_prompt = \"Work.\"", "system_prompt = \"\"")
            .replace("model = \"builtin\"\n\n[cap", "model = \"other\"\n\n[cap")
            .replace("tools = [\"file_read\"] #", "tools = [\"file_read\", \"file_list\"] #");
        let without = merged.lines().filter(|line| !line.starts_with("description")).collect::<Vec<_>>().join("\n");
        assert_eq!(without, expected.trim_end());
        let parsed = parse(&merged).unwrap();
        assert_eq!(
            (&*parsed.name, &*parsed.manifest.description, &*parsed.manifest.system_prompt),
            ("worker", "Works", "")
        );
        assert_eq!(Flat::default().merge(WRITTEN).unwrap(), WRITTEN, "nothing sent, nothing changed");
    }

    #[test]
    fn what_a_text_says_is_told_whole() {
        let object = object(WRITTEN).unwrap();
        assert_eq!(object["odd"], "1979-05-27");
        assert_eq!(object["triggers"][0]["pattern"], "all");
        assert_eq!(object["exec_policy"], json!({ "mode": "deny" }));
        assert_eq!(object["max_history_messages"], 40);
        assert!(super::object("a = [").is_err() && super::object(&format!("a = {}", "[".repeat(10_000))).is_err());
    }

    #[test]
    fn a_new_text_says_what_was_asked() {
        let flat = Flat { tools: Some(vec!["web_*".to_owned()]), model: Some("m".to_owned()), ..Flat::default() };
        let parsed = parse(&flat.clone().text("x y").unwrap()).unwrap();
        assert_eq!(&*parsed.name, "x y");
        let back = Flat::of(&parsed.manifest);
        assert_eq!((back.tools, back.model.as_deref(), back.provider.as_deref()), (flat.tools, Some("m"), Some("")));
        let long = Flat { system_prompt: Some("x".repeat(1 << 20)), ..Flat::default() };
        assert!(long.text("x").is_err());
        assert!(Flat::default().merge("name = 3").is_err());
    }
}
