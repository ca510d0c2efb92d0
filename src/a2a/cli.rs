//! `a2a list`, `discover`, `remove`, `send` and `status`: the external agents that agents here call.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Table, field, items};
use crate::kernel::cli::{Error, Run};
use crate::kernel::percent::encoded;

/// Subcommands of `a2a`.
#[derive(Debug, Subcommand)]
pub(crate) enum A2aCommand {
    /// List the external agents
    List,
    /// Discover an external agent by its URL, or refresh its card
    Discover(Discover),
    /// Remove an external agent
    Remove(Named),
    /// Send a message to an external agent and print its answer
    Send(Send),
    /// Print the state of a task that was sent to an external agent
    Status(Task),
}

/// One external agent.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its name, id or URL
    agent: String,
}

/// Options of `a2a discover`.
#[derive(Debug, Args)]
pub(crate) struct Discover {
    /// URL of the agent
    // Not `url`: that is the daemon's, which all commands have.
    #[arg(value_name = "URL")]
    address: String,
    /// Local name of the agent [default: the name on its card]
    #[arg(long)]
    name: Option<String>,
    /// Request header: "Name: value", or "Name: $VARIABLE" to take the value from the environment
    #[arg(long, value_name = "NAME: value", conflicts_with = "no_header")]
    header: Option<String>,
    /// Delete the request header
    #[arg(long)]
    no_header: bool,
}

/// Options of `a2a send`.
#[derive(Debug, Args)]
pub(crate) struct Send {
    /// Name, id or URL of the external agent
    agent: String,
    /// Message to send
    message: String,
    /// Task to continue
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Do not wait for the answer
    #[arg(long)]
    no_wait: bool,
}

/// One task.
#[derive(Debug, Args)]
pub(crate) struct Task {
    /// Its id
    task: String,
}

impl Run for A2aCommand {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => context.show("/api/a2a/agents", rows),
            Self::Discover(discover) => discover.run(context),
            Self::Remove(Named { agent }) => {
                let path = format!("/api/a2a/agents/{}", encoded(&agent));
                let answer = context.block_on(async { context.client()?.delete(&path).await })?;
                context.print(&answer, |_| format!("removed {agent}\n"))
            }
            Self::Send(send) => send.run(context),
            Self::Status(Task { task }) => {
                let path = format!("/api/a2a/tasks/{}/status", encoded(&task));
                let answer = context.block_on(async { context.client()?.get(&path, &[]).await })?;
                show(context, &answer)
            }
        }
    }
}

impl Discover {
    fn run(self, context: &Context) -> Result<(), Error> {
        let body = self.body(|name| std::env::var(name).ok())?;
        let answer = context.block_on(async { context.client()?.post("/api/a2a/discover", Some(&body)).await })?;
        if !context.json() {
            output::note(&format!("discovered {}", field(&answer, "/name")));
        }
        let columns = [("SKILL", "/name"), ("ID", "/id"), ("DESCRIPTION", "/description")];
        context.print(&answer, |answer| Table::of("skills", items(answer, "skills"), &columns))
    }

    /// The request, with the value of a variable of the environment.
    fn body(self, variable: impl Fn(&str) -> Option<String>) -> Result<Value, Error> {
        let mut body = json!({ "url": self.address });
        if let Some(name) = self.name {
            body["name"] = name.into();
        }
        if self.no_header {
            body["headers"] = Value::Null;
        }
        if let Some(header) = self.header {
            let wrong = || Error::Usage("the header must be \"Name: value\"".to_owned());
            let (name, value) = header.split_once(':').ok_or_else(wrong)?;
            let value = match value.trim().strip_prefix('$') {
                Some(named) => variable(named).ok_or_else(|| Error::Usage(format!("there is no variable {named}")))?,
                None => value.trim().to_owned(),
            };
            body["headers"] = Value::Object(Map::from_iter([(name.trim().to_owned(), value.into())]));
        }
        Ok(body)
    }
}

impl Send {
    fn run(self, context: &Context) -> Result<(), Error> {
        let mut body = json!({ "message": self.message, "blocking": !self.no_wait });
        let key = if self.agent.contains("://") { "url" } else { "agent_id" };
        body[key] = self.agent.into();
        if let Some(task) = self.task {
            body["task_id"] = task.into();
        }
        let answer = context.block_on(async {
            let _waiting = (!self.no_wait).then(|| output::Waiting::on("waiting for the external agent"));
            context.client()?.post("/api/a2a/send", Some(&body)).await
        })?;
        show(context, &answer)
    }
}

/// Prints a task.
fn show(context: &Context, answer: &Value) -> Result<(), Error> {
    if context.json() {
        return output::json(answer);
    }
    output::note(&format!("task {}: {}", field(answer, "/task_id"), field(answer, "/status")));
    if !answer["error"].is_null() {
        output::note(&field(answer, "/error"));
    }
    let text = field(answer, "/result/parts/0/text");
    if text.is_empty() { Ok(()) } else { output::line(&output::clean(&text)) }
}

fn rows(answer: &Value) -> Table {
    let columns = [
        ("NAME", "/name"),
        ("URL", "/url"),
        ("PROTOCOL", "/protocol_version"),
        ("HEADER", "/header"),
        ("DESCRIPTION", "/description"),
    ];
    let hint = "Discover one with `agentsvc a2a discover <URL>`.";
    Table::of("external agents", items(answer, "agents"), &columns).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(header: Option<&str>, no_header: bool) -> Result<Value, Error> {
        let (address, header) = ("https://a.example".to_owned(), header.map(str::to_owned));
        let discover = Discover { address, name: Some("a".to_owned()), header, no_header };
        discover.body(|name| (name == "HERE").then(|| "v".to_owned()))
    }

    #[test]
    fn headers_come_from_the_command_or_the_environment() {
        assert_eq!(body(None, false).unwrap(), json!({ "url": "https://a.example", "name": "a" }));
        assert_eq!(body(Some("X-Key: a:b"), false).unwrap()["headers"], json!({ "X-Key": "a:b" }));
        assert_eq!(body(Some("X-Key: $HERE"), false).unwrap()["headers"], json!({ "X-Key": "v" }));
        assert!(body(None, true).unwrap()["headers"].is_null());
        assert!(body(Some("X-Key: $GONE"), false).unwrap_err().to_string().contains("GONE"));
        assert!(body(Some("no header"), false).is_err());
    }

    #[test]
    fn agents_are_rows() {
        let list = json!({ "agents": [{ "name": "a", "url": "https://a.example", "protocol_version": "1.0", "header": null, "description": "d" }] });
        assert!(
            rows(&list).render().lines().nth(1).is_some_and(|row| row.starts_with("a     https://a.example       1.0")),
            "{}",
            rows(&list).render()
        );
    }
}
