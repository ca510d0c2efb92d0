//! `mcp list`, `add`, `remove`, `test`, `accept`, `logs` and `catalog`: the MCP servers that the daemon runs.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::login::{Login, logout};
use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, field, items};
use crate::kernel::percent::encoded;

/// Subcommands of `mcp`.
#[derive(Debug, Subcommand)]
pub(super) enum Servers {
    /// List the MCP servers
    List,
    /// Add an MCP server: from the catalog, a program, or a URL
    Add(Add),
    /// Remove an MCP server
    Remove(Named),
    /// Reconnect an MCP server and list its tools
    Test(Named),
    /// Accept new and changed tools of an MCP server
    Accept(Accept),
    /// Sign in at an MCP server that asks for it
    Login(Login),
    /// Sign out at an MCP server
    Logout(Named),
    /// Print the end of the error output of an MCP server
    Logs(Named),
    /// List the servers that can be installed
    Catalog,
}

/// One server.
#[derive(Debug, Args)]
pub(super) struct Named {
    /// Its name
    name: String,
}

/// Options of `mcp accept`.
#[derive(Debug, Args)]
pub(super) struct Accept {
    /// Name of the server
    name: String,
    /// Show the tools without accepting them
    #[arg(long)]
    show: bool,
    /// Accept the tools that are shown without asking
    #[arg(long, short, conflicts_with = "show")]
    yes: bool,
}

/// Options of `mcp add`.
#[derive(Debug, Args)]
pub(super) struct Add {
    /// Name of the server; without `--url` and a command, the entry of the catalog
    name: String,
    /// URL of a server over streamable HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// The URL is that of a server with the older transport (server-sent events)
    #[arg(long, requires = "url")]
    sse: bool,
    /// Environment variable of the program: NAME=value, or NAME to take the value that it has here
    #[arg(long, value_name = "NAME[=value]")]
    env: Vec<String>,
    /// Header of requests: "Name: value"
    #[arg(long, value_name = "NAME: value", requires = "url")]
    header: Vec<String>,
    /// Let the program use the network
    #[arg(long, requires = "command")]
    network: bool,
    /// Timeout of a call in seconds
    #[arg(long)]
    timeout: Option<u16>,
    /// The program and its arguments, behind `--`
    #[arg(last = true)]
    command: Vec<String>,
}

impl Servers {
    /// Does it.
    pub(super) fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => context.show("/api/mcp/servers", rows),
            Self::Catalog => context.show("/api/mcp/catalog", entries),
            Self::Logs(Named { name }) => context.show(&path(&name, "/logs"), |answer| field(answer, "/log") + "\n"),
            Self::Login(login) => login.run(context),
            Self::Logout(Named { name }) => logout(context, &name),
            Self::Add(add) => add.run(context),
            Self::Accept(accept) => accept.run(context),
            Self::Remove(Named { name }) => {
                let answer = context.block_on(async { context.client()?.delete(&path(&name, "")).await })?;
                context.print(&answer, |_| format!("removed {name}\n"))
            }
            Self::Test(Named { name }) => {
                let answer = context.block_on(async {
                    let client = context.client()?;
                    client.post(&path(&name, "/reconnect"), None).await?;
                    client.get(&path(&name, ""), &[]).await
                })?;
                context.print(&answer, tools)
            }
        }
    }
}

impl Accept {
    fn run(self, context: &Context) -> Result<(), Error> {
        let server = context.block_on(async { context.client()?.get(&path(&self.name, ""), &[]).await })?;
        let review = &server["tools_review"];
        if context.json() && (self.show || review.is_null()) {
            return output::json(&server);
        }
        if review.is_null() {
            output::note(&format!("{} has no tools to accept", self.name));
            return Ok(());
        }
        if !context.json() {
            output::print(&reviewed(review))?;
        }
        if self.show {
            return Ok(());
        }
        if !self.yes && context.json() {
            return Err(Error::Usage("--json needs --yes or --show here".to_owned()));
        }
        if !self.yes && !output::confirmed(&format!("Accept these tools of {}?", self.name))? {
            return Err(Error::Failed("the tools were not accepted".to_owned()));
        }
        // Only what was read here: the server may list others by now.
        let body = json!({ "hash": review["hash"] });
        let accepting = async { context.client()?.post(&path(&self.name, "/accept-tools"), Some(&body)).await };
        let answer = context.block_on(accepting)?;
        if context.json() {
            return output::json(&answer);
        }
        output::note(&format!("accepted the tools of {}", self.name));
        Ok(())
    }
}

impl Add {
    fn run(self, context: &Context) -> Result<(), Error> {
        let body = self.body(|name| std::env::var(name).ok())?;
        let answer = context.block_on(async { context.client()?.post("/api/mcp/servers", Some(&body)).await })?;
        let name = field(&answer, "/name");
        match answer["connected"].as_bool() {
            _ if context.json() => {}
            Some(true) => output::note(&format!("added {name}; it is connected")),
            _ if answer["error"].is_null() => output::note(&format!("added {name}; it is connecting")),
            _ => output::note(&format!("added {name}; it is not connected: {}", field(&answer, "/error"))),
        }
        context.print(&answer, tools)
    }

    /// The request, with variables of the environment.
    fn body(self, variable: impl Fn(&str) -> Option<String>) -> Result<Value, Error> {
        let env = variables(&self.env, variable)?;
        let mut body = match (self.url, self.command.split_first()) {
            (Some(url), _) => {
                let kind = if self.sse { "sse" } else { "http" };
                json!({ "name": self.name, "transport": { "type": kind, "url": url }, "headers": self.header, "env": env })
            }
            (None, Some((command, args))) => {
                let transport = json!({ "type": "stdio", "command": command, "args": args });
                json!({ "name": self.name, "transport": transport, "env": env, "network": self.network })
            }
            (None, None) => json!({ "template_id": self.name, "credentials": env }),
        };
        if let Some(secs) = self.timeout {
            body["timeout_secs"] = secs.into();
        }
        Ok(body)
    }
}

/// The values of `--env`: each is given, or that of the variable here.
///
/// # Errors
/// A variable that is not here.
pub(crate) fn variables(
    given: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Map<String, Value>, Error> {
    let mut env = Map::new();
    for given in given {
        let (name, value) = match given.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&**given, variable(given)),
        };
        let missing = || Error::Usage(format!("the environment has no variable {name}; use --env {name}=value"));
        env.insert(name.to_owned(), value.ok_or_else(missing)?.into());
    }
    Ok(env)
}

pub(super) fn path(name: &str, rest: &str) -> String {
    format!("/api/mcp/servers/{}{rest}", encoded(name))
}

fn rows(answer: &Value) -> Table {
    let columns = [
        ("NAME", "/name"),
        ("STATUS", "/status"),
        ("TOOLS", "/tool_count"),
        ("SIGN-IN", "/auth/state"),
        ("TRANSPORT", "/transport/type"),
        ("FROM", "/source"),
        ("ERROR", "/error"),
    ];
    let hint = "Add one with `agentsvc mcp add`; `agentsvc mcp catalog` lists those that are known.";
    Table::of("MCP servers", items(answer, "servers"), &columns).hint(hint)
}

fn entries(answer: &Value) -> Table {
    let columns = [
        ("ID", "/id"),
        ("INSTALLED", "/installed"),
        ("CATEGORY", "/category"),
        ("VARIABLES", "/variables"),
        ("DESCRIPTION", "/description"),
    ];
    let entries = items(answer, "entries").cloned().map(|mut entry| {
        let variables: Vec<Value> = items(&entry, "required_env").map(|required| required["name"].clone()).collect();
        entry["variables"] = variables.into();
        entry
    });
    let entries: Vec<Value> = entries.collect();
    Table::of("entries of the catalog", &entries, &columns)
}

/// The tools of a review with all that models would read of them, and the hints that decide whether calls are repeated.
fn reviewed(review: &Value) -> String {
    let mut text = String::new();
    let kinds = ["new", "changed"].into_iter().flat_map(|kind| items(review, kind).map(move |tool| (kind, tool)));
    for (kind, tool) in kinds {
        text += &format!("{kind}: {}\n", visible(&field(tool, "/name")));
        text += &format!("  description: {}\n", visible(&field(tool, "/description")));
        for (hint, value) in tool["annotations"].as_object().into_iter().flatten() {
            text += &format!("  {}: {}\n", visible(hint), visible(&value.to_string()));
        }
        let schema = serde_json::to_string_pretty(&tool["input_schema"]).unwrap_or_default();
        text += &format!("  input schema: {}\n\n", visible(&schema));
    }
    for name in items(review, "removed").filter_map(Value::as_str) {
        text += &format!("removed: {}\n", visible(name));
    }
    text
}

/// A text of a server within the lines of a review: none of its lines begins as one of the review, and characters that are not
/// seen are shown by their numbers.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n    "),
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

fn tools(answer: &Value) -> Table {
    Table::of("tools", items(answer, "tools"), &[("TOOL", "/name"), ("DESCRIPTION", "/description")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add() -> Add {
        let (name, url, timeout) = ("s".to_owned(), None, None);
        let (env, header, command) = (Vec::new(), Vec::new(), Vec::new());
        Add { name, url, sse: false, env, header, network: false, timeout, command }
    }

    fn body(add: Add) -> Value {
        add.body(|name| (name == "HERE").then(|| "v".to_owned())).unwrap()
    }

    #[test]
    fn the_three_kinds_of_servers() {
        let env = vec!["A=1=2".to_owned(), "HERE".to_owned()];
        let entry = body(Add { env: env.clone(), ..add() });
        assert_eq!(entry, json!({ "template_id": "s", "credentials": { "A": "1=2", "HERE": "v" } }));
        let command = vec!["npx".to_owned(), "-y".to_owned()];
        let program = body(Add { command, network: true, timeout: Some(9), ..add() });
        assert_eq!(program["transport"], json!({ "type": "stdio", "command": "npx", "args": ["-y"] }));
        assert_eq!((&program["network"], &program["timeout_secs"]), (&json!(true), &json!(9)));
        let web = body(Add { url: Some("https://h".to_owned()), header: vec!["X: y".to_owned()], ..add() });
        assert_eq!((&web["transport"]["type"], &web["headers"]), (&json!("http"), &json!(["X: y"])));
        let old = body(Add { url: Some("https://h".to_owned()), sse: true, ..add() });
        assert_eq!(old["transport"]["type"], "sse");
        let missing = Add { env: vec!["NOT_HERE".to_owned()], ..add() }.body(|_| None);
        assert!(missing.unwrap_err().to_string().contains("no variable NOT_HERE"));
    }

    #[test]
    fn a_review_shows_all_that_is_accepted_and_nothing_hides_in_it() {
        let new = json!({ "name": "mcp_s_a", "description": "One.\nnew: mcp_s_b\u{202e}\u{1b}[8m", "annotations": { "readOnlyHint": true },
            "input_schema": { "type": "object", "properties": { "x\u{200b}": { "description": "é" } } } });
        let text = reviewed(&json!({ "hash": "h", "new": [new], "changed": [], "removed": ["mcp_s_z"] }));
        let expected = "new: mcp_s_a\n  description: One.\n    new: mcp_s_b\\u{202e}\\u{1b}[8m\n  readOnlyHint: true\n  \
            input schema: {\n      \"properties\": {\n        \"x\\u{200b}\": {\n          \"description\": \"é\"\n        }\n      },\n      \
            \"type\": \"object\"\n    }\n\nremoved: mcp_s_z\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn servers_and_entries_are_rows() {
        let list = json!({ "servers": [{ "name": "a", "status": "connected", "tool_count": 2, "source": "api", "error": null,
            "auth": { "state": "authorized" }, "transport": { "type": "stdio" } }] });
        assert_eq!(rows(&list).render().lines().nth(1), Some("a     connected      2  authorized  stdio      api"));
        let catalog = json!({ "entries": [{ "id": "n", "installed": false, "category": "c", "description": "d",
            "required_env": [{ "name": "A" }, { "name": "B" }] }] });
        assert!(entries(&catalog).render().contains("A, B"), "{:?}", entries(&catalog));
    }
}
