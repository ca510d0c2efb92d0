//! MCP servers list their tools again and again, and the operator accepts them.

use agentsvc_systems::config::taint::TaintPolicy;
use agentsvc_systems::mcp::{AcceptMcpTools, ForgetMcpTools, FoundPin, ListedTool, NoteMcpTools};

use super::action::What;
use super::facts::GONE;
use super::harness::Harness;

/// One request. A server has one tool, so that the last list is what is accepted where taint is only noted.
pub(crate) fn act(harness: &mut Harness, what: What) {
    let server = harness.rng.pick(&["files", "web", "notes"]).to_owned();
    let key = format!("mcp_pin/{server}");
    if what == What::ForgetMcpTools {
        let fact = harness.facts.submit(key, GONE);
        return harness.ask(ForgetMcpTools(server), move |harness, ()| harness.facts.acknowledge(fact));
    }
    let hash = harness.rng.pick(&["0", "1", "2"]).repeat(64);
    let flagged = harness.rng.chance(20);
    let tools = vec![ListedTool { name: "tool".to_owned(), hash: hash.clone(), flagged }];
    let is_strict = matches!(harness.settings.security.taint, TaintPolicy::Approve | TaintPolicy::Deny);
    if is_strict && what == What::NoteMcpTools {
        // What is accepted then depends on what was, so it is the answer that says it.
        let server = "held".to_owned();
        return harness.ask(NoteMcpTools { server, hash, tools }, |_, accepted| assert!(accepted.len() <= 1));
    }
    let fact = harness.facts.submit(key, hash.as_str());
    if what == What::AcceptMcpTools {
        harness.ask(AcceptMcpTools { server, tools }, move |harness, ()| harness.facts.acknowledge(fact));
    } else {
        harness.ask(NoteMcpTools { server, hash, tools }, move |harness, _| harness.facts.acknowledge(fact));
    }
}

/// What is accepted, as a fact.
pub(crate) fn accepted(found: FoundPin) -> String {
    let tool = |tools: Vec<_>| tools.first().map(|tool: &agentsvc_components::mcp::PinnedTool| tool.hash.to_string());
    found.tools.and_then(tool).unwrap_or_else(|| GONE.to_owned())
}
