//! `agent create`: an agent from an agent type, from a manifest file, from standard input, or from options.

use std::path::Path;

use clap::Args;
use serde_json::json;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::kernel::cli::Error;
use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{field, read_stdin};
use crate::kernel::percent::encoded;

/// Options of `agent create`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Create {
    /// An agent type of the daemon (`coder`), or a manifest file (`./my.toml`); `-` reads it from standard input
    #[arg(value_name = "TYPE_OR_FILE")]
    manifest: Option<String>,
    /// The agent's name; overrides the manifest
    #[arg(long)]
    name: Option<String>,
    /// The model id; overrides the manifest
    #[arg(long)]
    model: Option<String>,
    /// The model provider; overrides the manifest
    #[arg(long)]
    provider: Option<String>,
    /// The system prompt; overrides the manifest
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
}

impl Create {
    /// Creates the agent and prints its id.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let text = match self.manifest.as_deref() {
            None => String::new(),
            Some("-") => read_stdin()?,
            Some(path) if is_path(path) => {
                std::fs::read_to_string(path).map_err(Error::io(format!("cannot read {path}")))?
            }
            Some(name) => context.block_on(agent_type(&client, name))?,
        };
        let body = json!({ "manifest_toml": self.merged(text)? });
        let created = context.block_on(client.post("/api/agents", Some(&body)))?;
        context.print(&created, |agent| {
            let (name, id) = (field(agent, "/name"), field(agent, "/agent_id"));
            format!("Created agent {name} ({id}); talk to it with `agentsvc chat {}`\n", typed(&name))
        })
    }

    /// The manifest with the options set in it. Untouched when there are none, so that the daemon sees, and
    /// judges, exactly what was written.
    fn merged(&self, text: String) -> Result<String, Error> {
        let (name, model, provider, prompt) = (&self.name, &self.model, &self.provider, &self.prompt);
        if [name, model, provider, prompt].into_iter().all(Option::is_none) {
            return Ok(text);
        }
        let mut manifest: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            Error::Usage(format!("the manifest is not TOML: {}", error.message()))
        })?;
        let top = [("name", name), ("system_prompt", prompt)];
        for (key, text) in top.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
            manifest[key] = value(text);
        }
        let below = [("provider", provider), ("model", model)];
        for (key, text) in below.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
            let table = manifest.entry("model").or_insert(Item::Table(Table::new())).as_table_like_mut();
            let table = table.ok_or_else(|| Error::Usage("`model` in the manifest is not a table".to_owned()))?;
            table.insert(key, value(text));
        }
        // A prompt may also stand under [model]; two of them would contradict each other.
        if prompt.is_some() {
            manifest.get_mut("model").and_then(Item::as_table_like_mut).and_then(|model| model.remove("system_prompt"));
        }
        Ok(manifest.to_string())
    }
}

/// A name as it is typed: one with spaces has quotes.
fn typed(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("'{name}'") } else { name.to_owned() }
}

/// Is a file meant? What names no file that is there and looks like none is an agent type.
fn is_path(text: &str) -> bool {
    text.contains('/') || text.ends_with(".toml") || Path::new(text).exists()
}

/// The manifest of an agent type of the daemon.
async fn agent_type(client: &Client, name: &str) -> Result<String, Error> {
    let path = format!("/api/templates/{}", encoded(name));
    match client.get(&path, &[]).await {
        Ok(found) => Ok(field(&found, "/manifest_toml")),
        Err(Error::Answer { status: 404, message }) if message.contains("did you mean") => {
            Err(Error::NotFound(message))
        }
        Err(Error::Answer { status: 404, .. }) => {
            let text =
                format!("no agent type or file named {name:?}; list agent types with `agentsvc agent-type list`");
            Err(Error::NotFound(text))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::{Create, encoded, is_path};

    fn new(name: Option<&str>, model: Option<&str>, prompt: Option<&str>) -> Create {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Create { manifest: None, name: own(name), model: own(model), provider: None, prompt: own(prompt) }
    }

    #[test]
    fn a_name_is_a_type_and_a_path_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("x");
        std::fs::write(&there, "").unwrap();
        assert!(is_path("./coder") && is_path("coder.toml") && is_path(there.to_str().unwrap()));
        assert!(!is_path("coder") && !is_path("no-such-type"));
        assert_eq!(encoded("my type/é"), "my%20type%2F%C3%A9");
    }

    #[test]
    fn options_make_a_manifest() {
        let text = new(Some("a \"b\""), Some("m"), Some("line\nline")).merged(String::new()).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["name"].as_str(), Some("a \"b\""));
        assert_eq!(table["system_prompt"].as_str(), Some("line\nline"));
        assert_eq!(table["model"]["model"].as_str(), Some("m"));
    }

    #[test]
    fn options_override_and_keep_the_rest() {
        let written = "# mine\nname = \"a\"\nodd = 1\n[model]\nmodel = \"x\"\nsystem_prompt = \"old\"\n";
        let text = new(Some("b"), None, Some("new")).merged(written.to_owned()).unwrap();
        assert!(text.starts_with("# mine\nname = \"b\"\nodd = 1\n"), "{text}");
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["system_prompt"].as_str(), Some("new"));
        assert!(table["model"].get("system_prompt").is_none());
    }

    #[test]
    fn without_options_nothing_is_touched() {
        assert_eq!(new(None, None, None).merged("not [ toml".to_owned()).unwrap(), "not [ toml");
        assert!(new(Some("a"), None, None).merged("not [ toml".to_owned()).is_err());
        assert!(new(None, Some("m"), None).merged("model = 3".to_owned()).is_err());
    }
}
