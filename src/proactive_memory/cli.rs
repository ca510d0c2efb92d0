//! `memory`: search, list, export and import the entries that agents keep.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Table};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Search memory entries
    Search(Search),
    /// List memory entries
    List(List),
    /// Export the memory entries of an agent as JSON
    Export(Export),
    /// Import memory entries from a file that `export` wrote
    Import(Import),
}

/// Which entries.
#[derive(Debug, Args)]
struct Scope {
    /// Only entries of this agent: its name or id
    #[arg(long)]
    agent: Option<String>,
    /// Only entries about this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only entries of this level
    #[arg(long, value_parser = ["user", "session", "agent"])]
    level: Option<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
}

/// Options of `memory search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to search for
    query: String,
    #[command(flatten)]
    scope: Scope,
}

/// Options of `memory list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    scope: Scope,
}

/// Options of `memory export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The agent's name or id
    agent: String,
    /// File to write. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Options of `memory import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The agent's name or id
    agent: String,
    /// File to read, at most 96 MiB
    file: PathBuf,
}

impl Run for Memory {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        match self {
            Self::Search(Search { query, scope }) => {
                show(context, scope.get(&client, "/api/memory/search", Some(("q", query))), &client)
            }
            Self::List(List { scope }) => show(context, scope.get(&client, "/api/memory", None), &client),
            Self::Export(export) => context.block_on(export.run(&client)),
            Self::Import(import) => {
                let done = context.block_on(import.run(&client))?;
                if context.json() {
                    return output::json(&done);
                }
                let count = |key: &str| done[key].as_u64().unwrap_or(0);
                let text =
                    format!("{} created, {} updated, {} skipped", count("created"), count("updated"), count("skipped"));
                output::line(&text)
            }
        }
    }
}

impl Scope {
    async fn get(&self, client: &Client, path: &str, more: Option<(&str, String)>) -> Result<Value, Error> {
        let agent = match &self.agent {
            Some(agent) => Some(client.agent_id(agent).await?),
            None => None,
        };
        let limit = self.limit.map(|limit| limit.to_string());
        let given =
            [("agent_id", agent), ("user_id", self.user.clone()), ("level", self.level.clone()), ("limit", limit)];
        let given = given.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let query: Vec<(&str, String)> = more.into_iter().chain(given).collect();
        let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
        client.get(path, &query).await
    }
}

impl Export {
    async fn run(&self, client: &Client) -> Result<(), Error> {
        let id = client.agent_id(&self.agent).await?;
        let path = format!("/api/memory/agents/{id}/export");
        match &self.output {
            Some(file) => client.save(&path, file).await,
            None => client.download(&path, &mut std::io::stdout().lock()).await,
        }
    }
}

impl Import {
    async fn run(&self, client: &Client) -> Result<Value, Error> {
        let id = client.agent_id(&self.agent).await?;
        let text = std::fs::read_to_string(&self.file).map_err(Error::io("cannot read the file"))?;
        let answer = client.post_text(&format!("/api/memory/agents/{id}/import"), &[], text).await?;
        serde_json::from_str(&answer).map_err(|error| Error::Protocol(error.to_string()))
    }
}

fn show(context: &Context, asked: impl Future<Output = Result<Value, Error>>, client: &Client) -> Result<(), Error> {
    let answer = context.block_on(client.shown_answer(context.json(), asked))?;
    context.print(&answer, render)
}

fn render(answer: &Value) -> Table {
    let columns = [
        ("ID", "/id"),
        ("AGENT", "/agent"),
        ("USER", "/user_id"),
        ("LEVEL", "/level"),
        ("CATEGORY", "/category"),
        ("CONFIDENCE", "/confidence"),
        ("CONTENT", "/line"),
    ];
    let rows: Vec<Value> = answer["memories"].as_array().into_iter().flatten().map(of_one_line).collect();
    Table::of("memory entries", &rows, &columns)
}

/// The entry with the beginning of its content on one line.
fn of_one_line(entry: &Value) -> Value {
    const CHARS: usize = 80;
    let content = entry["content"].as_str().unwrap_or_default();
    let mut line: String = content.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(CHARS) {
        line.truncate(end);
        line.push('…');
    }
    let mut shown = entry.clone();
    shown["line"] = json!(line);
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn a_row_per_entry_with_a_short_line() {
        let long = "long ".repeat(40);
        let entry =
            |content: &str| json!({ "id": "i", "agent": "a", "user_id": null, "level": "user", "content": content });
        let text = render(&json!({ "memories": [entry("likes\n tea"), entry(&long)] })).render();
        assert!(text.contains("likes tea\n") && text.contains("…\n"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
