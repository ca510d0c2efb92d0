//! The way of one tool call: grant, run, outcome; and what subscribers see of it.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::effect::ToolRun;
use agentsvc_components::outcome::ToolEnd;
use agentsvc_components::stream::{StreamEvent, StreamItem};
use serde_json::value::RawValue;

use super::{TOOLS, Tool, grant};
use crate::effects::Shared;
use crate::effects::reply::{Debt, Reply};

/// How long a tool may run.
const TOOL_TIME_MAX: Duration = Duration::from_secs(120);
/// What the model reads as the result of a call that was told to give up.
const ABORTED: &str = "The tool call was stopped before it ended.";

/// Begins a tool call. Never blocks.
pub(crate) fn begin(shared: &Arc<Shared>, run: Box<ToolRun>) {
    let panicked = end(&run, Err("The tool failed inside the daemon.".to_owned()));
    let ticket = shared.in_flight.enter(run.attempt);
    let reply = Reply::new(Arc::clone(&shared.parts.outcomes), ticket, Debt::Tool(panicked));
    let task = Running { shared: Arc::clone(shared), run, reply }.run();
    drop(shared.parts.handle.spawn(task));
}

/// One call under way.
struct Running {
    shared: Arc<Shared>,
    run: Box<ToolRun>,
    reply: Reply,
}

impl Running {
    async fn run(self) {
        let name = &self.run.call.name;
        self.publish(|| StreamEvent::ToolUse { tool: name.clone() });
        let result = tokio::select! {
            biased;
            () = self.reply.ticket().aborted() => Err(ABORTED.to_owned()),
            result = tokio::time::timeout(TOOL_TIME_MAX, self.call()) => {
                result.unwrap_or_else(|_| Err(format!("The tool took more than {} seconds.", TOOL_TIME_MAX.as_secs())))
            }
        };
        self.publish(|| StreamEvent::ToolResult { tool: name.clone(), input: shown_input(&self.run.call.input) });
        self.reply.tool(end(&self.run, result));
    }

    async fn call(&self) -> Result<String, String> {
        let tool = find(&self.run)?;
        (tool.run)(self.run.call.input.clone()).await
    }

    /// Tells the subscribers of the session, if there are any.
    fn publish(&self, event: impl FnOnce() -> StreamEvent) {
        let ToolRun { session, attempt, .. } = *self.run;
        if (self.shared.parts.subscribed)(session) {
            (self.shared.parts.publish)(StreamItem { session, turn: attempt.turn, event: event() });
        }
    }
}

fn end(run: &ToolRun, result: Result<String, String>) -> ToolEnd {
    let is_error = result.is_err();
    let content = result.unwrap_or_else(|error| error);
    ToolEnd { index: run.index, call: run.call.clone(), content, is_error }
}

/// The tool, if there is one and the agent may call it. The grant is checked here again: a model may call what it was
/// never offered.
fn find(run: &ToolRun) -> Result<&'static Tool, String> {
    let (manifest, name) = (&run.manifest.manifest, &run.call.name);
    let granted = || TOOLS.iter().filter(|tool| grant::is_granted(manifest, tool.name));
    if let Some(tool) = granted().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let offered: Vec<&str> = granted().map(|tool| tool.name).collect();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    let known = TOOLS.iter().any(|tool| tool.name == name);
    let why = if known { "This agent may not call the tool" } else { "There is no tool called" };
    Err(format!("{why} {name:?}. Tools you may call: {offered}."))
}

/// The input as valid JSON, for subscribers: as the model wrote it where that is valid.
fn shown_input(input: &str) -> String {
    if input.trim().is_empty() {
        "{}".to_owned()
    } else if serde_json::from_str::<&RawValue>(input).is_ok() {
        input.to_owned()
    } else {
        serde_json::json!({ "malformed": input }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentsvc_components::effect::{Attempt, ToolRun};
    use agentsvc_components::manifest::{Interned, Manifest, ManifestHash};
    use agentsvc_components::message::ToolCall;
    use agentsvc_components::{AgentId, SessionId, TurnId};

    use super::{find, shown_input};

    fn refusal(tools: &[&str], name: &str) -> Option<String> {
        let mut manifest = Manifest::default();
        manifest.capabilities.tools = tools.iter().map(|tool| Box::from(*tool)).collect();
        let id = uuid::Uuid::nil();
        let run = ToolRun {
            attempt: Attempt { turn: TurnId(id), number: 1 },
            agent: AgentId(id),
            session: SessionId(id),
            manifest: Arc::new(Interned { hash: ManifestHash([0; 32]), manifest }),
            index: 2,
            call: ToolCall { id: "1".to_owned(), name: name.to_owned(), input: "{}".to_owned() },
        };
        find(&run).err()
    }

    #[test]
    fn refusals_tell_the_model_what_it_may_do() {
        assert_eq!(refusal(&["*"], "system_time"), None);
        let unknown = refusal(&["*"], "rm").unwrap();
        assert_eq!(unknown, "There is no tool called \"rm\". Tools you may call: system_time.");
        let forbidden = refusal(&["web_*"], "system_time").unwrap();
        assert_eq!(forbidden, "This agent may not call the tool \"system_time\". Tools you may call: none.");
    }

    #[test]
    fn shown_input_is_always_json() {
        assert_eq!(shown_input(""), "{}");
        assert_eq!(shown_input("{\"x\": 1}"), "{\"x\": 1}");
        assert_eq!(shown_input("{oops"), "{\"malformed\":\"{oops\"}");
    }
}
