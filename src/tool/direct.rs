//! Tools that clients call without a turn (spec 2, Direct tool invocation): the same table, grants, sandbox and time.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_api::tool::toolbox::{Denied, InputFault, Invocation, Invoked, NotRun, Scope, ToolDetail, Toolbox};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::{Capabilities, Interned, Manifest};
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp};
use agentsvc_systems::approval::Invoker;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::manifest;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::run::ToolRunner;
use crate::tool::toolset::{Ended, Fault, Need, Place, Repeat, Tool, ToolSpec, Tools, grant};

/// What is said when a tool leaves its result to a turn that is not there; none that clients may call does.
const NO_TURN: &str = "This tool only works inside a turn.";

/// What the operator says of direct calls. Nothing may be called unless it is named.
#[derive(Clone, Debug, Default)]
pub struct DirectRules {
    /// Whether clients may call tools at all.
    pub enabled: bool,
    /// The tools that they may call, by their exact names.
    pub allowlist: Vec<Box<str>>,
    /// Names and patterns of tools whose calls a person must approve.
    pub require_approval: Vec<Box<str>>,
}

/// The tools as clients may call them.
pub struct DirectTools {
    runner: ToolRunner,
    places: Arc<Semaphore>,
}

impl DirectTools {
    /// The tools that `runner` runs, as far as the [`DirectRules`] in force let clients call them.
    pub(crate) fn new(runner: ToolRunner) -> Self {
        Self { runner, places: Arc::new(Semaphore::new(limit::TOOLS_DIRECT_MAX)) }
    }

    fn rules(&self) -> Arc<DirectRules> {
        self.runner.parts.settings.get()
    }

    fn tools(&self) -> Arc<Tools> {
        self.runner.parts.set.get()
    }
}

impl Toolbox for DirectTools {
    fn names(&self) -> Vec<Cow<'static, str>> {
        self.tools().iter().map(|tool| tool.name.clone()).collect()
    }

    fn tool(&self, name: &str) -> Option<ToolDetail> {
        let tools = self.tools();
        let (tool, ToolSpec { name, description, input_schema, .. }) = (tools.find(name)?, tools.spec(name)?.clone());
        Some(ToolDetail {
            requires_approval: glob::any(&self.rules().require_approval, &name),
            name,
            description,
            input_schema,
            is_repeatable: tool.repeat == Repeat::Safe,
            needs: key_of(tool.needs),
            scope: match tool.place {
                Place::Anywhere => Scope::Anywhere,
                Place::Agent => Scope::Agent,
                Place::Turn => Scope::Turn,
            },
        })
    }

    fn permit(&self, name: &str) -> Result<(), Denied> {
        let rules = self.rules();
        if !rules.enabled {
            return Err(Denied::Disabled);
        }
        // Names, no patterns: what is not written out is not allowed.
        if rules.allowlist.iter().any(|allowed| **allowed == *name) { Ok(()) } else { Err(Denied::NotListed) }
    }

    fn check(&self, name: &str, input: &Value) -> Result<(), InputFault> {
        self.tools().check(name, input).map_err(|Fault { field, message }| InputFault { field, message })
    }

    fn grants(&self, manifest: &Manifest, name: &str) -> bool {
        self.tools().find(name).is_some_and(|tool| grant::allows(manifest, tool))
    }

    fn invoke(&self, invocation: Invocation) -> BoxFuture<'static, Result<Invoked, NotRun>> {
        let (runner, places) = (self.runner.clone(), Arc::clone(&self.places));
        Box::pin(async move {
            let place = places.try_acquire_owned().map_err(|_| NotRun::Full)?;
            let tools = runner.parts.set.get();
            let tool = tools.find(&invocation.tool).ok_or(NotRun::NotGranted)?;
            let input = invocation.input.clone();
            let run = run_of(invocation, tool);
            // The manifest may have changed since the route looked.
            if !grant::allows(&run.manifest.manifest, tool) {
                return Err(NotRun::NotGranted);
            }
            let context = runner.context(Arc::new(run), true);
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
        holder: Holder::Family(AgentId(Uuid::nil())),
        name: Box::default(),
        session: SessionId(Uuid::nil()),
        log: LogId(0),
        manifest: Arc::new(of_nobody(tool)),
    };
    let Invoker { agent, holder, name: agent_name, session, log, manifest } = invoker.unwrap_or_else(nobody);
    ToolRun {
        attempt: Attempt { job: JobId(Uuid::nil()), number: 0 },
        agent,
        holder,
        agent_name,
        session,
        log,
        ordinal: 0,
        manifest,
        index: 0,
        call: ToolCall { id: String::new(), name, input },
        runs_before: 0,
        sent_at: Timestamp(0),
        // What a client calls by itself is its own will.
        taint: Taint::default(),
        agent_taint: AgentTaint::default(),
        trace: None,
        user: None,
        consolidates: false,
    }
}

/// What a call on nobody's behalf may do: the operator has named the tool, and it may reach every public host.
fn of_nobody(tool: &Tool) -> Interned {
    let (tools, network) = (vec![(*tool.name).into()], vec!["*".into()]);
    let capabilities = Capabilities { tools, network, file_system: Some(false), ..Capabilities::default() };
    let manifest = Manifest { capabilities, ..Manifest::default() };
    Interned { hash: manifest::hash(&manifest), manifest }
}

fn told(ended: Result<Ended, String>) -> Invoked {
    let (mut content, is_error) = match ended {
        Ok(Ended::Text(text) | Ended::Notice { text, .. } | Ended::Read { text, .. } | Ended::Web { text, .. }) => {
            (text, false)
        }
        Ok(Ended::Failure { text, .. } | Ended::Unknown(text)) => (text, true),
        Ok(Ended::Adopted) => (NO_TURN.to_owned(), true),
        Err(text) => (text, true),
    };
    let whole = content.len();
    content.truncate(content.floor_char_boundary(limit::TOOL_RESULT_STORED_BYTES_MAX));
    Invoked { cut_bytes: whole - content.len(), content, is_error }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::UserId;

    use super::*;
    use crate::tool::toolset::built_in;

    #[test]
    fn a_call_of_nobody_has_the_named_tool_and_the_web() {
        for tool in built_in().iter().filter(|tool| tool.place == Place::Anywhere) {
            let manifest = of_nobody(tool).manifest;
            assert!(grant::allows(&manifest, tool), "{}", tool.name);
            assert!(built_in().iter().all(|other| other.name == tool.name || !grant::allows(&manifest, other)));
        }
        let shell = built_in().find("shell_exec").unwrap();
        assert!(!grant::allows(&of_nobody(shell).manifest, shell), "nobody has no shell");
    }

    #[test]
    fn a_call_takes_the_places_of_those_who_share_them_with_its_agent() {
        let tools = built_in();
        let tool = tools.find("system_time").unwrap();
        let (agent, holder) = (AgentId(Uuid::from_u128(1)), Holder::User(UserId(Uuid::from_u128(2))));
        let invoker = Invoker {
            agent,
            holder,
            name: "a".into(),
            session: SessionId(Uuid::nil()),
            log: LogId(1),
            manifest: Arc::new(of_nobody(tool)),
        };
        let of = |invoker| {
            let run = run_of(Invocation { tool: "system_time".to_owned(), input: "{}".to_owned(), invoker }, tool);
            (run.agent, run.holder)
        };
        assert_eq!(of(Some(invoker)), (agent, holder));
        assert_eq!(
            of(None),
            (AgentId(Uuid::nil()), Holder::Family(AgentId(Uuid::nil()))),
            "calls of no agent share one"
        );
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
