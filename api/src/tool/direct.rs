//! One direct call of a tool, from the input to the result (spec 2, Direct tool invocation). Who may call which tool is the
//! caller's to decide.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::error_codes as kernel_codes;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::approval::{CheckInvocation, InvokeTool};
use serde_json::Value;

use crate::approval::waiting::Waiting;
use crate::http::api::Api;
use crate::http::error::Error;
use crate::tool::error_codes;
use crate::tool::toolbox::{InputFault, Invocation, Invoked, NotRun, Scope, ToolDetail, Toolbox};

/// What a direct call costs the client's rate budget.
pub(crate) const COST: u32 = 10;

/// Calls `tool`, on behalf of `agent` or of nobody. A call that needs a person waits for the decision, at most as long as its
/// approval does.
///
/// # Errors
/// 400 for an input that does not match the schema or a tool of another scope; 403 when the agent's manifest does not grant
/// it or a person did not approve; 404 and 409 for the agent; 503 when as many calls run as may.
pub(crate) async fn call(
    api: &Api,
    toolbox: &dyn Toolbox,
    tool: &ToolDetail,
    agent: Option<AgentId>,
    input: Value,
) -> Result<Invoked, Error> {
    let name = &*tool.name;
    check(toolbox, tool, agent, &input)?;
    if let Some(agent) = agent {
        let view = api.bridge.ask(GetAgent(agent)).await?;
        if !toolbox.grants(&view.manifest.manifest, name) {
            return Err(not_granted(name));
        }
    }
    let input = input.to_string();
    let waits = Waiting::new(&api.bridge);
    let id = waits.id();
    let cleared = api.bridge.ask(InvokeTool { id, agent, tool: name.into(), input: input.as_str().into() }).await;
    waits.over();
    invoke(toolbox, Invocation { tool: name.to_owned(), input, invoker: cleared? }).await
}

/// Calls `tool` on behalf of nobody, for a client without the key. `note` puts the call on record before it runs.
///
/// # Errors
/// Those of [`call`].
pub(crate) async fn call_for_anyone(
    api: &Api,
    toolbox: &dyn Toolbox,
    tool: &ToolDetail,
    input: Value,
    note: impl Future<Output = Result<(), Error>>,
) -> Result<Invoked, Error> {
    check(toolbox, tool, None, &input)?;
    api.bridge.ask(CheckInvocation { tool: tool.name.as_ref().into() }).await?;
    note.await?;
    invoke(toolbox, Invocation { tool: tool.name.to_string(), input: input.to_string(), invoker: None }).await
}

fn check(toolbox: &dyn Toolbox, tool: &ToolDetail, agent: Option<AgentId>, input: &Value) -> Result<(), Error> {
    toolbox.check(&tool.name, input).map_err(wrong_input)?;
    check_scope(tool, agent)
}

async fn invoke(toolbox: &dyn Toolbox, invocation: Invocation) -> Result<Invoked, Error> {
    let name = invocation.tool.clone();
    toolbox.invoke(invocation).await.map_err(|why| match why {
        NotRun::NotGranted => not_granted(&name),
        NotRun::Full => {
            Error::unavailable("too many direct tool calls are running; try again later", 1).code(kernel_codes::BUSY)
        }
    })
}

fn wrong_input(fault: InputFault) -> Error {
    let InputFault { field, message } = fault;
    if field.is_empty() {
        return Error::of(error_codes::TOOL_INPUT, format!("the input {message}"));
    }
    Error::bad_field(&field, format!("{field} {message}")).code(error_codes::TOOL_INPUT)
}

fn check_scope(tool: &ToolDetail, agent: Option<AgentId>) -> Result<(), Error> {
    match (tool.scope, agent) {
        (Scope::Turn, _) => {
            let text = format!("{} needs the conversation of a turn; only an agent can call it", tool.name);
            Err(Error::of(error_codes::TOOL_NEEDS_TURN, text))
        }
        (Scope::Agent, None) => {
            let text = format!("agent_id is required for {}", tool.name);
            Err(Error::bad_field("agent_id", text).code(error_codes::TOOL_NEEDS_AGENT))
        }
        _ => Ok(()),
    }
}

fn not_granted(name: &str) -> Error {
    Error::of(error_codes::TOOL_NOT_GRANTED, format!("the agent's manifest does not grant the tool {name}"))
}
