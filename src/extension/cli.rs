//! `ext`: extensions on the command line.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::kernel::cli::output::{self, Shown, Table, field, items};
use crate::kernel::cli::{Context, Error, Run};
use crate::kernel::percent::encoded;
use crate::mcp::cli::servers::variables;

/// Subcommands of `ext`.
#[derive(Debug, Subcommand)]
pub(crate) enum Extensions {
    /// List the installed extensions
    List,
    /// List the extensions that can be installed
    Search(Search),
    /// Install an extension: from the catalog, or from a path
    Install(Install),
    /// Uninstall an extension, with its credentials
    Remove(Named),
    /// Show an extension: its requirements, state and tools
    Info(Named),
}

/// One extension.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its name
    name: String,
}

/// Options of `ext search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words in the name, description, category or tags; omit to list all
    words: Vec<String>,
}

/// Options of `ext install`.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Name of an entry of the catalog, or the path of a template on the daemon's machine
    name: String,
    /// Credential: NAME=value, or NAME to take the value from the environment
    #[arg(long, value_name = "NAME[=value]")]
    env: Vec<String>,
}

impl Run for Extensions {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => {
                let answer = context.block_on(async { context.client()?.get("/api/extensions", &[]).await })?;
                context.print(&answer, |answer| rows("extensions", items(answer, "extensions")))
            }
            Self::Search(search) => search.run(context),
            Self::Install(install) => install.run(context),
            Self::Remove(Named { name }) => {
                let body = json!({ "name": name });
                let removing = async { context.client()?.post("/api/extensions/uninstall", Some(&body)).await };
                context.print(&context.block_on(removing)?, |_| format!("removed {name}\n"))
            }
            Self::Info(Named { name }) => {
                let path = format!("/api/extensions/{}", encoded(&name));
                let answer = context.block_on(async { context.client()?.get(&path, &[]).await })?;
                context.print(&answer, details)
            }
        }
    }
}

impl Search {
    fn run(self, context: &Context) -> Result<(), Error> {
        let query = [("available", "true")];
        let mut answer = context.block_on(async { context.client()?.get("/api/extensions", &query).await })?;
        if let Some(extensions) = answer["extensions"].as_array_mut() {
            extensions.retain(|extension| self.finds(extension));
            answer["total"] = extensions.len().into();
        }
        context.print(&answer, |answer| rows("matching extensions", items(answer, "extensions")))
    }

    /// Does the extension have all of the words?
    fn finds(&self, extension: &Value) -> bool {
        let texts = ["name", "display_name", "description", "category", "tags"].map(|key| extension[key].to_string());
        let text = texts.join(" ").to_lowercase();
        self.words.iter().all(|word| text.contains(&word.to_lowercase()))
    }
}

impl Install {
    fn run(self, context: &Context) -> Result<(), Error> {
        let body = self.body(|name| std::env::var(name).ok())?;
        let installing = async { context.client()?.post("/api/extensions/install", Some(&body)).await };
        let answer = context.block_on(installing)?;
        if context.json() {
            return output::json(&answer);
        }
        let name = field(&answer, "/name");
        let missing: Vec<&str> = items(&answer, "missing").filter_map(Value::as_str).collect();
        output::note(&match (answer["connected"] == true, missing.is_empty()) {
            (true, _) => format!("installed {name} with {} tools", field(&answer, "/tool_count")),
            (false, false) => {
                let names = missing.join(", ");
                format!("installed {name}; it needs {names}: remove it, and install it with --env")
            }
            (false, true) if answer["error"].is_null() => format!("installed {name}; it is connecting"),
            (false, true) => format!("installed {name}; it is not connected: {}", field(&answer, "/error")),
        });
        Ok(())
    }

    /// The request, with variables of the environment.
    fn body(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Value, Error> {
        let credentials = variables(&self.env, variable)?;
        let is_path = self.name.contains('/') || self.name.starts_with('.') || self.name.ends_with(".toml");
        if !is_path {
            return Ok(json!({ "name": self.name, "credentials": credentials }));
        }
        let path = std::path::absolute(Path::new(&self.name)).map_err(Error::io("cannot find the template"))?;
        Ok(json!({ "source": path, "credentials": credentials }))
    }
}

fn rows<'v>(noun: &str, extensions: impl Iterator<Item = &'v Value>) -> Table {
    let columns = [
        ("NAME", "/name"),
        ("STATUS", "/status"),
        ("TOOLS", "/tool_count"),
        ("CATEGORY", "/category"),
        ("DESCRIPTION", "/description"),
    ];
    Table::of(noun, extensions, &columns).hint("`agentsvc ext search` lists those that can be installed.")
}

fn details(extension: &Value) -> Shown {
    let mut table = Table::pairs();
    for (label, pointer) in [
        ("Name", "/name"),
        ("Title", "/display_name"),
        ("Description", "/description"),
        ("Category", "/category"),
        ("Status", "/status"),
        ("Error", "/error"),
        ("Server", "/server"),
        ("Installed", "/installed_at"),
    ] {
        let value = field(extension, pointer);
        if !value.is_empty() {
            table.row([label, &value]);
        }
    }
    let columns = [("VARIABLE", "/name"), ("SET", "/is_set"), ("HELP", "/help"), ("FROM", "/get_url")];
    let needs = Table::of("variables", items(extension, "required_env"), &columns);
    let instructions = field(extension, "/setup_instructions");
    let instructions = match instructions.trim() {
        "" => String::new(),
        instructions => format!("\n{instructions}\n"),
    };
    let columns = [("TOOL", "/name"), ("DESCRIPTION", "/description")];
    let tools = Table::of("tools", items(extension, "tools"), &columns);
    Shown::from(table).and_below(needs).and(instructions).and_below(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_are_told_apart() {
        let body = |name: &str| Install { name: name.to_owned(), env: vec!["A=1".to_owned()] }.body(|_| None).unwrap();
        assert_eq!(body("github"), json!({ "name": "github", "credentials": { "A": "1" } }));
        for path in ["/srv/notes.toml", "./notes", "notes.toml", "a/b"] {
            let source = body(path)["source"].as_str().map(str::to_owned).unwrap();
            assert!(Path::new(&source).is_absolute(), "{source}");
        }
        let missing = Install { name: "x".to_owned(), env: vec!["NOT_HERE".to_owned()] }.body(|_| None);
        assert!(missing.unwrap_err().to_string().contains("no variable NOT_HERE"));
    }

    #[test]
    fn a_search_needs_all_words_somewhere() {
        let extension = json!({ "name": "github", "display_name": "GitHub", "description": "Issues", "category": "devtools",
            "tags": ["vcs"] });
        let finds =
            |words: &[&str]| Search { words: words.iter().map(ToString::to_string).collect() }.finds(&extension);
        assert!(finds(&[]) && finds(&["GITHUB"]) && finds(&["vcs", "issue"]) && !finds(&["vcs", "mail"]));
    }

    #[test]
    fn details_show_what_is_needed() {
        let text =
            details(&json!({ "name": "notes", "status": "setup", "error": null, "setup_instructions": "Sign in.\n",
            "required_env": [{ "name": "TOKEN", "is_set": false, "help": "h", "get_url": "https://example.com" }],
            "tools": [{ "name": "mcp_notes_add", "description": "Adds" }] }))
            .text;
        for part in ["Status  setup", "TOKEN", "no ", "\n\nSign in.\n", "mcp_notes_add"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("Error"), "{text}");
    }
}
