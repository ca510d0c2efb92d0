//! Tools that clients call without a turn (spec 2, Direct tool invocation): the same table, grants, sandbox and time.

use std::sync::{Arc, OnceLock};

use agentsvc_api::tool::toolbox::{Denied, InputFault, Invocation, Invoked, NotRun, Scope, ToolDetail, Toolbox};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Capabilities, Interned, Manifest};
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::taint::{AgentTaint, Taint};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::{AgentId, LogId, SessionId, TurnId};
use agentsvc_systems::approval::Invoker;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::manifest;
use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::validate::{Fault, InputSchema};
use super::{Context, Ended, Need, Place, Repeat, SPECS, TOOLS, Tool, find, grant};
use crate::config::Config;
use crate::daemon::performer::{Performer, Shared};

/// What is said when a tool leaves its result to a turn that is not there; none that clients may call does.
const NO_TURN: &str = "The tool gives its result to a turn, and there is none.";

/// The input schemas of [`TOOLS`], each read when the first client calls its tool.
static INPUTS: [OnceLock<Result<InputSchema, String>>; TOOLS.len()] = [const { OnceLock::new() }; TOOLS.len()];

/// The tools as clients may call them.
pub struct DirectTools {
    shared: Arc<Shared>,
    /// The configuration in force: which tools clients may call, and which calls a person must approve.
    config: Arc<ArcSwap<Config>>,
    places: Arc<Semaphore>,
}

impl DirectTools {
    /// The tools of `performer`, as far as the configuration lets clients call them.
    #[must_use]
    pub fn new(performer: &Performer, config: Arc<ArcSwap<Config>>) -> Self {
        Self {
            shared: Arc::clone(&performer.shared),
            config,
            places: Arc::new(Semaphore::new(limit::TOOLS_DIRECT_MAX)),
        }
    }
}

impl Toolbox for DirectTools {
    fn names(&self) -> Vec<&'static str> {
        TOOLS.iter().map(|tool| tool.name).collect()
    }

    fn tool(&self, name: &str) -> Option<ToolDetail> {
        let (tool, spec) = TOOLS.iter().zip(SPECS.iter()).find(|(tool, _)| tool.name == name)?;
        Some(ToolDetail {
            name: tool.name,
            description: tool.description,
            input_schema: Arc::clone(&spec.input_schema),
            is_repeatable: tool.repeat == Repeat::Safe,
            needs: key_of(tool.needs),
            scope: match tool.place {
                Place::Anywhere => Scope::Anywhere,
                Place::Agent => Scope::Agent,
                Place::Turn => Scope::Turn,
            },
            requires_approval: glob::any(&self.config.load().approval.require_approval, tool.name),
        })
    }

    fn permit(&self, name: &str) -> Result<(), Denied> {
        let rules = &self.config.load().tool_invoke;
        if !rules.enabled {
            return Err(Denied::Disabled);
        }
        // Names, no patterns: what is not written out is not allowed.
        if rules.allowlist.iter().any(|allowed| **allowed == *name) { Ok(()) } else { Err(Denied::NotListed) }
    }

    fn check(&self, name: &str, input: &Value) -> Result<(), InputFault> {
        let whole = |message: &str| InputFault { field: String::new(), message: message.to_owned() };
        let found = TOOLS.iter().zip(&INPUTS).find(|(tool, _)| tool.name == name);
        let (tool, schema) = found.ok_or_else(|| whole("is for no tool"))?;
        let schema =
            schema.get_or_init(|| InputSchema::compile(&(tool.schema)())).as_ref().map_err(|why| whole(why))?;
        schema.check(input).map_err(|Fault { field, message }| InputFault { field, message })
    }

    fn grants(&self, manifest: &Manifest, name: &str) -> bool {
        find(name).is_some_and(|tool| grant::allows(manifest, tool))
    }

    fn invoke(&self, invocation: Invocation) -> BoxFuture<'static, Result<Invoked, NotRun>> {
        let (shared, places) = (Arc::clone(&self.shared), Arc::clone(&self.places));
        Box::pin(async move {
            let place = places.try_acquire_owned().map_err(|_| NotRun::Full)?;
            let tool = find(&invocation.tool).ok_or(NotRun::NotGranted)?;
            let input = invocation.input.clone();
            let run = run_of(invocation, tool);
            // The manifest may have changed since the route looked.
            if !grant::allows(&run.manifest.manifest, tool) {
                return Err(NotRun::NotGranted);
            }
            let context = Context { run: Arc::new(run), shared, direct: true };
            let ended = tool.perform(context, input).await;
            drop(place);
            Ok(told(ended))
        })
    }
}

/// The key of `[capabilities]` that a tool needs.
const fn key_of(need: Need) -> Option<&'static str> {
    match need {
        Need::Nothing => None,
        Need::Files => Some("file_system"),
        Need::Shell => Some("shell"),
        Need::Network => Some("network"),
        Need::Spawn => Some("agent_spawn"),
        Need::MemoryRead => Some("memory_read"),
        Need::MemoryWrite => Some("memory_write"),
    }
}

/// The call as the performer knows calls: of the agent, outside of any turn; or of nobody.
fn run_of(invocation: Invocation, tool: &Tool) -> ToolRun {
    let Invocation { tool: name, input, invoker } = invocation;
    let nobody = || Invoker {
        agent: AgentId(Uuid::nil()),
        name: Box::default(),
        session: SessionId(Uuid::nil()),
        log: LogId(0),
        manifest: Arc::new(of_nobody(tool)),
    };
    let Invoker { agent, name: agent_name, session, log, manifest } = invoker.unwrap_or_else(nobody);
    ToolRun {
        attempt: Attempt { turn: TurnId(Uuid::nil()), number: 0 },
        agent,
        agent_name,
        session,
        log,
        ordinal: 0,
        manifest,
        index: 0,
        call: ToolCall { id: String::new(), name, input },
        resumed: false,
        // What a client calls by itself is its own will.
        taint: Taint::default(),
        agent_taint: AgentTaint::default(),
        trace: None,
    }
}

/// What a call on nobody's behalf may do: the operator has named the tool, and it may reach every public host.
fn of_nobody(tool: &Tool) -> Interned {
    let (tools, network) = (vec![tool.name.into()], vec!["*".into()]);
    let capabilities = Capabilities { tools, network, file_system: Some(false), ..Capabilities::default() };
    let manifest = Manifest { capabilities, ..Manifest::default() };
    Interned { hash: manifest::hash(&manifest), manifest }
}

fn told(ended: Result<Ended, String>) -> Invoked {
    let (mut content, is_error) = match ended {
        Ok(Ended::Text(text) | Ended::Notice { text, .. } | Ended::Read { text, .. }) => (text, false),
        Ok(Ended::Adopted) => (NO_TURN.to_owned(), true),
        Err(text) => (text, true),
    };
    let whole = content.len();
    content.truncate(content.floor_char_boundary(limit::TOOL_RESULT_STORED_BYTES_MAX));
    Invoked { cut_bytes: whole - content.len(), content, is_error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_nobody_has_the_named_tool_and_the_web() {
        for tool in TOOLS.iter().filter(|tool| tool.place == Place::Anywhere) {
            let manifest = of_nobody(tool).manifest;
            assert!(grant::allows(&manifest, tool), "{}", tool.name);
            assert!(TOOLS.iter().all(|other| other.name == tool.name || !grant::allows(&manifest, other)));
        }
        let shell = find("shell_exec").unwrap();
        assert!(!grant::allows(&of_nobody(shell).manifest, shell), "nobody has no shell");
    }

    #[test]
    fn long_results_are_cut_between_characters() {
        let long = "é".repeat(limit::TOOL_RESULT_STORED_BYTES_MAX);
        let cut = told(Ok(Ended::Text(long)));
        assert_eq!((cut.content.len(), cut.cut_bytes), (1 << 20, 1 << 20));
        let failed = told(Err("No.".to_owned()));
        assert_eq!((&*failed.content, failed.is_error, failed.cut_bytes), ("No.", true, 0));
        assert!(told(Ok(Ended::Adopted)).is_error);
    }
}
