//! `event list`: what happened lately.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::sentences;
use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Table, items};
use crate::kernel::cli::{Error, Example, Run, output};

/// What the help shows of how it is used.
pub(crate) const EXAMPLES: &[Example] = &[
    Example::new("event create --event-type deployed --payload '{\"version\": 3}'", "Publish an event"),
    Example::new("event list --kind turn_failed", "List the recent turns that failed"),
    Example::of("list", "event list -n 20", "The newest 20"),
    Example::of(
        "list",
        "event list --agent assistant --kind turn_failed,tool_refused",
        "What went wrong with an agent",
    ),
    Example::of(
        "create",
        "event create --event-type deployed --payload '{\"version\": 3}'",
        "Wake the triggers for `custom` events of this type",
    ),
];

/// Subcommands of `event`.
#[derive(Debug, Subcommand)]
pub(crate) enum Event {
    /// List recent events, the newest last
    List(List),
}

/// Options of `event list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Maximum number of events
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Only events of these kinds, separated by commas, such as `turn_failed,task_posted`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only events of this agent: its name or id
    #[arg(long)]
    agent: Option<String>,
}

impl Run for Event {
    fn run(self, context: &Context) -> Result<(), Error> {
        let Self::List(list) = self;
        let client = context.client()?;
        context.block_on(async {
            let mut answer = json!({ "events": list.read(&client).await? });
            if context.json() {
                return output::json(&answer);
            }
            client.name_agents(&mut answer).await;
            for event in answer["events"].as_array_mut().into_iter().flatten() {
                event["sentence"] = sentences::of(&event["event"]).into();
            }
            let noun = if list.kind.is_some() || list.agent.is_some() { "matching events" } else { "events" };
            let columns = [("TIME", "/at"), ("KIND", "/kind"), ("AGENT", "/agent"), ("WHAT HAPPENED", "/sentence")];
            context.print(&answer, |answer| Table::of(noun, items(answer, "events"), &columns))
        })
    }
}

impl List {
    /// The stored events, at most so many of the newest, the newest last.
    async fn read(&self, client: &Client) -> Result<Vec<Value>, Error> {
        let limit = self.limit.to_string();
        let mut query = vec![("limit", limit.as_str()), ("kind", self.kind.as_deref().unwrap_or_default())];
        let agent = match &self.agent {
            Some(agent) => Some(client.agent_id(agent).await?),
            None => None,
        };
        query.extend(agent.as_deref().map(|agent| ("agent_id", agent)));
        let (mut events, _) = client.page("/api/events", &query).await?;
        events.reverse();
        Ok(events)
    }
}
