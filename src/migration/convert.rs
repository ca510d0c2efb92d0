//! From what other homes say of an agent to a manifest of ours.

use agentsvc_systems::manifest;
use toml::{Table, Value};

/// Tools of other programs by the names that they have here; what is not in the table and not here has no place.
const TOOLS: &[(&str, &[&str])] = &[
    ("*", &["*"]),
    ("exec", &["shell_exec"]),
    ("bash", &["shell_exec"]),
    ("shell", &["shell_exec"]),
    ("run_command", &["shell_exec"]),
    ("execute_command", &["shell_exec"]),
    ("read", &["file_read"]),
    ("read_file", &["file_read"]),
    ("write", &["file_write"]),
    ("write_file", &["file_write"]),
    ("edit", &["apply_patch"]),
    ("edit_file", &["apply_patch"]),
    ("list", &["file_list"]),
    ("list_files", &["file_list"]),
    ("glob", &["file_list"]),
    ("fetch", &["web_fetch"]),
    ("fetch_url", &["web_fetch"]),
    ("search", &["web_search"]),
    ("memory_search", &["memory_recall"]),
    ("memory_get", &["memory_recall"]),
    ("memory_save", &["memory_store"]),
    ("sessions_send", &["agent_send"]),
    ("send_to_agent", &["agent_send"]),
    ("sessions_spawn", &["agent_spawn"]),
    ("spawn_agent", &["agent_spawn"]),
    ("sessions_list", &["agent_list"]),
    ("agents_list", &["agent_list"]),
    ("list_agents", &["agent_list"]),
    ("sessions_history", &["session_search"]),
    ("cron", &["cron_create", "cron_list", "cron_cancel"]),
    ("group:fs", &["file_read", "file_write", "file_list", "apply_patch"]),
    ("group:runtime", &["shell_exec"]),
    ("group:web", &["web_search", "web_fetch"]),
    ("group:memory", &["memory_recall", "memory_store", "memory_list"]),
    ("group:sessions", &["agent_send", "agent_spawn", "agent_list"]),
    ("group:automation", &["cron_create", "cron_list", "cron_cancel"]),
];

/// What another home says of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// What it is called there.
    pub(super) name: String,
    pub(super) description: String,
    /// `provider/model`, or a model alone.
    pub(super) model: String,
    /// The provider, where it is said apart.
    pub(super) provider: String,
    pub(super) base_url: String,
    /// The environment variable with the key.
    pub(super) api_key_env: String,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<i64>,
    /// Models to ask when the first fails, as `provider/model`.
    pub(super) fallbacks: Vec<String>,
    /// Tools by their names there.
    pub(super) tools: Vec<String>,
    /// Tools that it must not call, by their names there.
    pub(super) denied: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) tags: Vec<String>,
    /// The parts of the system prompt, in order.
    pub(super) prompt: Vec<String>,
}

impl Draft {
    /// The name that the agent gets here.
    pub(super) fn name(&self) -> String {
        plain_name(&self.name)
    }

    /// The manifest, once our own reader has accepted it, and what of the draft has no place in it.
    pub(super) fn into_manifest(self) -> (Result<String, String>, Vec<String>) {
        let name = self.name();
        let mut warnings = Vec::new();
        let mut manifest = Table::new();
        let mut text = |key: &str, value: &str| {
            if !value.is_empty() {
                manifest.insert(key.to_owned(), Value::from(value));
            }
        };
        text("name", &name);
        text("description", &self.description);
        text("system_prompt", &self.prompt.join("\n\n"));
        let mut lists = vec![("tags", self.tags), ("skills", self.skills)];
        lists.push(("tools", tools(&name, &self.tools, &mut warnings)));
        lists.push(("tool_blocklist", tools(&name, &self.denied, &mut warnings)));
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            manifest.insert(key.to_owned(), Value::from(list));
        }
        let mut model = model(&self.provider, &self.model);
        for (key, value) in [("base_url", self.base_url), ("api_key_env", self.api_key_env)] {
            if !value.is_empty() {
                model.insert(key.to_owned(), Value::from(value));
            }
        }
        self.temperature.map(|value| model.insert("temperature".to_owned(), Value::from(value)));
        self.max_tokens.map(|value| model.insert("max_tokens".to_owned(), Value::from(value)));
        if !model.is_empty() {
            manifest.insert("model".to_owned(), Value::from(model));
        }
        if !self.fallbacks.is_empty() {
            let all: Vec<Value> = self.fallbacks.iter().map(|choice| Value::from(model_of(choice))).collect();
            manifest.insert("fallback_models".to_owned(), Value::from(all));
        }
        let written = toml::to_string(&manifest).map_err(|error| error.to_string());
        let accepted = written.and_then(|text| manifest::parse(&text).map(|_| text).map_err(|error| error.to_string()));
        (accepted, warnings)
    }
}

/// `provider` and `model`, of which the first may stand before the second and a slash.
fn model(provider: &str, model: &str) -> Table {
    let (provider, model) = match model.split_once('/') {
        Some((before, after)) if provider.is_empty() => (before, after),
        Some((before, after)) if provider == before => (provider, after),
        _ => (provider, model),
    };
    let parts = [("provider", provider), ("model", model)].into_iter().filter(|(_, value)| !value.is_empty());
    parts.map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
}

fn model_of(choice: &str) -> Table {
    model("", choice)
}

/// Our names of these tools; what has none is said once.
fn tools(agent: &str, theirs: &[String], warnings: &mut Vec<String>) -> Vec<String> {
    let mut ours: Vec<&str> = Vec::new();
    for tool in theirs {
        let lower = tool.to_ascii_lowercase();
        match TOOLS.iter().find(|(name, _)| *name == lower) {
            Some((_, names)) => ours.extend(*names),
            None if crate::tool::toolset::built_in().is_called(&lower) => ours.push(tool),
            // Tools of MCP servers keep their names; they are there once the server is.
            None if lower.starts_with("mcp_") => ours.push(tool),
            None => warnings.push(format!("agent {agent:?}: tool {tool:?} does not exist here")),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    ours.into_iter().filter(|tool| seen.insert(*tool)).map(str::to_owned).collect()
}

/// A name that an agent may have here: what it may not hold becomes a dash.
pub(super) fn plain_name(name: &str) -> String {
    let fits = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ') { c } else { '-' };
    let plain: String = name.trim().chars().map(fits).collect();
    let mut plain = plain.trim_matches(['-', '.', ' ']).to_owned();
    plain.truncate(plain.floor_char_boundary(agentsvc_components::kernel::limit::NAME_BYTES_MAX - 16));
    match manifest::validate_name(&plain) {
        Ok(()) => plain,
        Err(_) => "imported".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_becomes_a_manifest() {
        let draft = Draft {
            name: "My Coder".to_owned(),
            description: "codes".to_owned(),
            model: "anthropic/claude-sonnet-4-5".to_owned(),
            temperature: Some(0.2),
            max_tokens: Some(4_096),
            fallbacks: vec!["openai/gpt-4o".to_owned()],
            tools: ["exec", "Read", "file_read", "teleport", "group:web"].map(str::to_owned).to_vec(),
            denied: vec!["write".to_owned()],
            tags: vec!["x".to_owned()],
            prompt: vec!["one".to_owned(), "two".to_owned()],
            ..Draft::default()
        };
        let (text, warnings) = draft.into_manifest();
        let parsed = manifest::parse(&text.unwrap()).unwrap();
        let found = parsed.manifest;
        assert_eq!(
            (&*parsed.name, &*found.model.provider, &*found.model.model),
            ("My Coder", "anthropic", "claude-sonnet-4-5")
        );
        assert_eq!((found.model.max_tokens, &*found.fallback_models[0].provider), (Some(4_096), "openai"));
        let tools: Vec<&str> = found.capabilities.tools.iter().map(AsRef::as_ref).collect();
        assert_eq!(tools, ["shell_exec", "file_read", "web_search", "web_fetch"]);
        assert_eq!((&*found.system_prompt, &*found.tool_blocklist[0]), ("one\n\ntwo", "file_write"));
        assert_eq!(warnings, ["agent \"My Coder\": tool \"teleport\" does not exist here"]);
    }

    #[test]
    fn what_our_reader_refuses_is_said() {
        let draft = Draft { name: "a".to_owned(), temperature: Some(9.0), ..Draft::default() };
        assert!(draft.into_manifest().0.unwrap_err().contains("temperature"));
    }

    #[test]
    fn names_are_made_to_fit() {
        for (theirs, ours) in [("a/b:c", "a-b-c"), ("../../etc", "etc"), ("", "imported"), ("..", "imported")] {
            assert_eq!(plain_name(theirs), ours, "{theirs}");
        }
        assert!(manifest::validate_name(&plain_name(&"é".repeat(500))).is_ok());
    }
}
