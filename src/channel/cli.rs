//! `channel`: the channels through which people write to agents, and pairing chats with them.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, field, items};
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `channel`.
#[derive(Debug, Subcommand)]
pub(crate) enum Channel {
    /// List channels, or the available platforms
    List {
        /// List the platforms for which channels can be set up
        #[arg(long)]
        available: bool,
    },
    /// Set up a channel, or change its values
    Add(Add),
    /// Remove a channel and its secrets
    Remove(Named),
    /// Send a test message
    Test(Test),
    /// Print the last lines of the error output of a channel's adapter
    Logs(Named),
    /// Reload the configuration and start adapters that are down
    Reload,
    /// Pair a chat, list paired chats and codes, or unpair a chat
    Pair(Pair),
    /// List the sites with a web chat, and their tokens
    Sites,
}

/// One channel.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its name
    name: String,
}

/// Options of `channel add`.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the channel
    name: String,
    /// Adapter of a new channel, if it is not the channel's name
    #[arg(long)]
    adapter: Option<String>,
    /// Agent that answers
    #[arg(long)]
    agent: Option<String>,
    /// Value of the channel: KEY=value, or KEY to take the value from the environment
    #[arg(long = "set", value_name = "KEY[=value]")]
    values: Vec<String>,
    /// Remove a value
    #[arg(long = "unset", value_name = "KEY")]
    removed: Vec<String>,
    /// List the values that it accepts, and change nothing
    #[arg(long, conflicts_with_all = ["values", "removed", "agent"])]
    fields: bool,
}

/// Options of `channel test`.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Name of the channel
    name: String,
    /// Conversation that gets the message, if not the channel's `default_conversation`
    #[arg(long)]
    to: Option<String>,
    /// Text of the message
    #[arg(long)]
    text: Option<String>,
}

/// Options of `channel pair`.
#[derive(Debug, Args)]
pub(crate) struct Pair {
    /// Name of the channel; without it, list paired chats and open codes
    name: Option<String>,
    /// Pair this chat without a code
    #[arg(long, requires = "name", value_name = "CONVERSATION")]
    chat: Option<String>,
    /// Unpair the chat, or revoke the code, with this id
    #[arg(long, conflicts_with_all = ["name", "chat"], value_name = "ID")]
    remove: Option<String>,
}

impl Run for Channel {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List { available: false } => context.show("/api/channels", rows),
            Self::List { available: true } => context.show("/api/channels/registry", platforms),
            Self::Add(add) => add.run(context),
            Self::Remove(Named { name }) => {
                let removing = async { context.client()?.delete(&path(&name, "/configure")).await };
                context.print(&context.block_on(removing)?, |it| format!("removed {}\n", field(it, "/name")))
            }
            Self::Test(test) => test.run(context),
            Self::Logs(Named { name }) => context.show(&path(&name, "/logs"), lines),
            Self::Reload => {
                let reloading = async { context.client()?.post("/api/channels/reload", None).await };
                context.print(&context.block_on(reloading)?, reloaded)
            }
            Self::Pair(pair) => pair.run(context),
            Self::Sites => context.show("/api/web-chats", sites),
        }
    }
}

fn path(name: &str, rest: &str) -> String {
    format!("/api/channels/{}{rest}", encoded(name))
}

impl Add {
    fn run(self, context: &Context) -> Result<(), Error> {
        if self.fields {
            return self.show_fields(context);
        }
        let (path, body) = (path(&self.name, "/configure"), self.body(|name| std::env::var(name).ok())?);
        let answer = context.block_on(async { context.client()?.post(&path, Some(&body)).await })?;
        context.print(&answer, saved)
    }

    /// The values of a channel that exists, or of the platform of a new one.
    fn show_fields(&self, context: &Context) -> Result<(), Error> {
        let platform = self.adapter.as_deref().unwrap_or(&self.name);
        let answer = context.block_on(async {
            let client = context.client()?;
            match client.get(&path(&self.name, ""), &[]).await {
                Err(Error::Answer { status: 404, .. }) => {
                    client.get(&format!("/api/channels/registry/{}", encoded(platform)), &[]).await
                }
                answer => answer,
            }
        })?;
        context.print(&answer, fields)
    }

    /// The request, with variables of the environment.
    fn body(self, variable: impl Fn(&str) -> Option<String>) -> Result<Value, Error> {
        let mut values = Map::new();
        for given in &self.values {
            let (key, value) = match given.split_once('=') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (&**given, variable(given)),
            };
            let missing = || Error::Usage(format!("the environment has no variable {key}; use --set {key}=value"));
            values.insert(key.to_owned(), value.ok_or_else(missing)?.into());
        }
        values.extend(self.removed.into_iter().map(|key| (key, Value::Null)));
        let mut body = json!({ "values": values });
        for (key, value) in [("adapter", self.adapter), ("agent", self.agent)] {
            if let Some(value) = value {
                body[key] = value.into();
            }
        }
        Ok(body)
    }
}

impl Test {
    fn run(self, context: &Context) -> Result<(), Error> {
        let body = json!({ "recipient": self.to, "message": self.text });
        let sending = async { context.client()?.post(&path(&self.name, "/test"), Some(&body)).await };
        context.print(&context.block_on(sending)?, |answer| {
            let (status, to) = (field(answer, "/status"), field(answer, "/recipient"));
            format!("{status}: test message to {to}\n")
        })
    }
}

impl Pair {
    fn run(self, context: &Context) -> Result<(), Error> {
        const PAIRINGS: &str = "/api/channels/pairings";
        if let Some(id) = self.remove {
            let path = format!("{PAIRINGS}/{}", encoded(&id));
            let answer = context.block_on(async { context.client()?.delete(&path).await })?;
            return context.print(&answer, |_| format!("removed {id}\n"));
        }
        let Some(name) = self.name else { return context.show(PAIRINGS, pairings) };
        let body = json!({ "channel": name, "conversation": self.chat });
        let answer = context.block_on(async { context.client()?.post(PAIRINGS, Some(&body)).await })?;
        context.print(&answer, paired)
    }
}

fn rows(answer: &Value) -> Table {
    let columns = [
        ("NAME", "/name"),
        ("PLATFORM", "/display_name"),
        ("STATE", "/state"),
        ("AGENT", "/agent"),
        ("RECEIVED", "/messages_received"),
        ("SENT", "/messages_sent"),
        ("REFUSED", "/messages_refused"),
        ("LAST ERROR", "/last_error"),
    ];
    let hint = "Add one with `agentsvc channel add`; `agentsvc channel list --available` lists the platforms.";
    Table::of("channels", items(answer, "channels"), &columns).hint(hint)
}

fn platforms(answer: &Value) -> Table {
    let columns =
        [("PLATFORM", "/id"), ("CATEGORY", "/category"), ("CHANNELS", "/channels"), ("DESCRIPTION", "/description")];
    Table::of("platforms", items(answer, "channels"), &columns)
}

fn sites(answer: &Value) -> Table {
    let columns = [("NAME", "/name"), ("AGENT", "/agent"), ("TOKEN", "/token"), ("ORIGINS", "/allowed_origins")];
    Table::of("web chats", items(answer, "web_chats"), &columns)
        .hint("Add one to config.toml under `[channels.web_chat]`.")
}

/// The values of a channel or of a platform; why they are not known otherwise.
fn fields(answer: &Value) -> Shown {
    let of_platform = answer.get("schema").filter(|schema| !schema.is_null());
    let schema = of_platform.unwrap_or(answer);
    if !schema["fields"].is_array() {
        let why = if answer["fields_error"].is_string() { "/fields_error" } else { "/schema_error" };
        return format!("the values are not known: {}\n", field(answer, why)).into();
    }
    let columns = [
        ("KEY", "/key"),
        ("TYPE", "/type"),
        ("REQUIRED", "/required"),
        ("SET", "/is_set"),
        ("VALUE", "/value"),
        ("LABEL", "/label"),
    ];
    Table::of("values", items(schema, "fields"), &columns).into()
}

fn saved(answer: &Value) -> String {
    let done = if answer["created"] == true { "added" } else { "saved" };
    let mut text = format!("{done} {}\n", field(answer, "/name"));
    for action in items(answer, "hot_actions_applied").filter_map(Value::as_str) {
        text += &format!("  {action}\n");
    }
    for key in items(answer, "shadowed_secrets").filter_map(Value::as_str) {
        text += &format!("  {key} is stored but not used: the environment or config.toml has another value\n");
    }
    if answer["restart_required"] == true {
        text += "  restart the daemon to apply it\n";
    }
    text
}

fn reloaded(answer: &Value) -> String {
    let names = |key: &str| items(answer, key).filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let (started, stopped) = (names("started"), names("stopped"));
    let total = field(answer, "/total");
    let line =
        |what: &str, names: String| if names.is_empty() { String::new() } else { format!("  {what}: {names}\n") };
    format!("reloaded {total} channels\n{}{}", line("started", started), line("stopped", stopped))
}

fn lines(answer: &Value) -> String {
    let line = |line: &Value| match line["level"].as_str() {
        Some(level) => format!("{level}: {}\n", field(line, "/message")),
        None => field(line, "/message") + "\n",
    };
    items(answer, "lines").map(line).collect()
}

fn pairings(answer: &Value) -> Table {
    let columns = [
        ("ID", "/id"),
        ("CHANNEL", "/channel"),
        ("STATE", "/state"),
        ("CHAT", "/conversation"),
        ("NAME", "/name"),
        ("SINCE", "/created_at"),
        ("EXPIRES", "/expires_at"),
    ];
    let hint = "Pair one with `agentsvc channel pair <CHANNEL>`.";
    Table::of("paired chats", items(answer, "pairings"), &columns).hint(hint)
}

fn paired(answer: &Value) -> String {
    match answer["code"].as_str() {
        Some(code) => format!(
            "Send this message to {} from the chat to pair; the code is valid until {}:\n\n/start {code}\n",
            field(answer, "/channel"),
            field(answer, "/expires_at"),
        ),
        None => format!("{} of {} is paired\n", field(answer, "/conversation"), field(answer, "/channel")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(values: &[&str], removed: &[&str]) -> Add {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let (values, removed) = (owned(values), owned(removed));
        Add { name: "bot".to_owned(), adapter: None, agent: None, values, removed, fields: false }
    }

    #[test]
    fn values_are_given_taken_from_here_or_removed() {
        let here = |name: &str| (name == "HERE").then(|| "v".to_owned());
        let body = add(&["A=1=2", "HERE", "EMPTY="], &["OLD"]).body(here).unwrap();
        assert_eq!(body, json!({ "values": { "A": "1=2", "HERE": "v", "EMPTY": "", "OLD": null } }));
        let own = Add { adapter: Some("ntfy".to_owned()), agent: Some("a".to_owned()), ..add(&[], &[]) };
        assert_eq!(own.body(here).unwrap(), json!({ "values": {}, "adapter": "ntfy", "agent": "a" }));
        assert!(add(&["GONE"], &[]).body(here).unwrap_err().to_string().contains("no variable GONE"));
    }

    #[test]
    fn answers_are_rows_and_sentences() {
        let list = json!({ "channels": [{ "name": "bot", "display_name": "Ntfy", "state": "started", "messages_received": 2 }] });
        let row = rows(&list).render().lines().nth(1).unwrap().to_owned();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["bot", "Ntfy", "started", "2"]);
        let list = json!({ "web_chats": [{ "name": "shop", "agent": "a", "token": "t", "allowed_origins": ["https://x", "https://y"] }] });
        let row = sites(&list).render().lines().nth(1).unwrap().to_owned();
        assert!(row.starts_with("shop") && row.contains("https://x") && row.contains("https://y"), "{row}");
        let schema = json!({ "fields": [{ "key": "K", "type": "secret", "required": true, "is_set": false }] });
        for answer in [schema.clone(), json!({ "schema": schema })] {
            assert!(fields(&answer).text.contains("K    secret"), "{:?}", fields(&answer));
        }
        assert_eq!(fields(&json!({ "schema": null, "schema_error": "x" })).text, "the values are not known: x\n");
        assert_eq!(fields(&json!({ "fields": null, "fields_error": "y" })).text, "the values are not known: y\n");
        let stored =
            json!({ "name": "bot", "created": true, "hot_actions_applied": ["started"], "shadowed_secrets": ["K"] });
        assert!(saved(&stored).starts_with("added bot\n  started\n  K is stored but not used"), "{}", saved(&stored));
        let told = json!({ "total": 2, "started": ["bot"], "stopped": [] });
        assert_eq!(reloaded(&told), "reloaded 2 channels\n  started: bot\n");
        let log = json!({ "lines": [{ "level": "error", "message": "no" }, { "level": null, "message": "raw" }] });
        assert_eq!(lines(&log), "error: no\nraw\n");
        let offer = json!({ "channel": "bot", "code": "ABCD2345", "expires_at": "t" });
        assert!(paired(&offer).ends_with("\n\n/start ABCD2345\n"));
        assert_eq!(paired(&json!({ "channel": "bot", "conversation": "c" })), "c of bot is paired\n");
    }
}
