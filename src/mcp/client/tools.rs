//! The tools of servers as agents have them: their names, their calls and what becomes of results.

use std::collections::HashSet;
use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::mcp::limits::MCP_TOOL_NAME_BYTES_MAX;
use agentsvc_systems::mcp::tool_prefix;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::asks::Answers;
use super::asks::host::Host;
use super::asks::sampler::Sampler;
use super::call::Caller;
use super::connection::{Answer, Failure};
use super::review::{Judged, Offer};
use super::server::Server;
use super::session::Described;
use crate::tool::toolset::{Context, Ended, Entry, Tool, input};

/// Bytes of the schema of a tool's input.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// In lower case, with `_` for whatever names of tools do not have.
pub(super) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(plain).collect()
}

/// The tools of each server as they were last made. They are made anew when the server offers others, so that a server that comes
/// or goes costs nothing for the tools of the rest.
#[derive(Default)]
pub(super) struct Made(Vec<MadeOf>);

struct MadeOf {
    server: Arc<Server>,
    offer: Arc<Offer>,
    tools: Vec<Arc<Entry>>,
}

impl MadeOf {
    fn new(server: &Arc<Server>, offer: Arc<Offer>, sampler: &Arc<Sampler>) -> Self {
        let prefix = tool_prefix(server.name());
        let made = |judged: &Arc<Judged>| {
            let name = format!("{prefix}{}", judged.name);
            Entry::new(tool(server, sampler, name, (judged, offer.accepted_at)))
        };
        let tools = offer.tools.iter().map(made).collect();
        Self { server: Arc::clone(server), offer, tools }
    }
}

/// All tools of all servers. Of two with one name that of the server with the longer name counts, and of those the first.
pub(super) fn all(servers: &[Arc<Server>], sampler: &Arc<Sampler>, made: &mut Made) -> Vec<Arc<Entry>> {
    let mut by_length: Vec<_> = servers.iter().collect();
    by_length.sort_by_key(|server| std::cmp::Reverse(server.name().len()));
    let mut before = std::mem::take(&mut made.0);
    let of = |server: &Arc<Server>| {
        let offer = server.offer();
        let is_same = |of: &MadeOf| Arc::ptr_eq(&of.server, server) && Arc::ptr_eq(&of.offer, &offer);
        match before.iter().position(is_same) {
            Some(at) => before.swap_remove(at),
            None => MadeOf::new(server, offer, sampler),
        }
    };
    made.0 = by_length.into_iter().map(of).collect();
    let (mut names, mut tools) = (HashSet::new(), Vec::new());
    for MadeOf { server, tools: own, .. } in &made.0 {
        for tool in own {
            if names.insert(&*tool.name) {
                tools.push(Arc::clone(tool));
            } else {
                tracing::warn!(
                    server = server.name(),
                    tool = &*tool.name,
                    "another MCP server has a tool of this name"
                );
            }
        }
    }
    // One order, whichever server is first to answer: prompts begin the same.
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// Why a tool cannot be offered.
pub(super) fn fault(name: &str, described: &Described) -> Option<&'static str> {
    let schema = &described.input_schema;
    if described.name.is_empty() || name.len() > MCP_TOOL_NAME_BYTES_MAX {
        Some("its name is empty or too long")
    } else if schema["type"] != "object" {
        Some("its input is no object")
    } else {
        (schema.to_string().len() > SCHEMA_BYTES_MAX).then_some("its schema is too long")
    }
}

fn tool(
    server: &Arc<Server>,
    sampler: &Arc<Sampler>,
    name: String,
    (judged, accepted_at): (&Arc<Judged>, Timestamp),
) -> Tool {
    let described = &judged.described;
    let description = described.description.clone().unwrap_or_default();
    let (holder, called, sampler) = (Arc::clone(server), Arc::clone(judged), Arc::clone(sampler));
    let tool = Tool::brought(name, description, Arc::clone(&judged.schema), move |context, text| {
        let (server, called, sampler) = (Arc::clone(&holder), Arc::clone(&called), Arc::clone(&sampler));
        Box::pin(async move {
            let arguments: Map<String, Value> = input(&text)?;
            let caller = caller(&server, sampler, &context).await;
            told(server.name(), server.call(&called.described, arguments, caller).await)
        })
    });
    // The server's own time bounds it.
    let tool = tool.of_server(server.name()).untimed();
    if described.is_repeatable() { tool.safe_since(accepted_at) } else { tool }
}

/// On whose behalf a call is made, and who answers what the server asks in it. A server over pipes is told where the agent's
/// files are.
async fn caller(server: &Server, sampler: Arc<Sampler>, context: &Context) -> Caller {
    let session = context.turn().map(|_| context.run.session.to_string());
    let Some(agent) = context.agent() else { return Caller { session, ..Caller::default() } };
    let host: Arc<dyn Answers> = Arc::new(Host {
        bridge: context.bridge(),
        agent,
        turn: context.turn(),
        server: server.name().into(),
        tool: context.run.call.name.clone(),
        rules: server.definition().asks,
        tokens: Mutex::default(),
        sampler,
        places: server.samplings.clone(),
    });
    let mut caller = Caller { session, agent: Some(agent), workspace: None, host: Some(host) };
    if server.is_program() {
        let (workspaces, run) = (context.parts.workspaces.clone(), Arc::clone(&context.run));
        let found = tokio::task::spawn_blocking(move || workspaces.find(agent, &run.agent_name)).await;
        // Without a workspace it is told of none.
        let workspace = found.ok().and_then(|found| found.ok().flatten());
        caller.workspace = workspace.map(|workspace| workspace.path().to_owned());
    }
    caller
}

/// What the model reads.
pub(super) fn told(server: &str, result: Result<Answer, Failure>) -> Result<Ended, String> {
    let failed = |text: String| Ok(Ended::Failure { text, taint: Taint::TOOL });
    match result {
        Ok(result) if result.value["isError"] == true => failed(text(&result.value)),
        Ok(result) => Ok(Ended::Text(text(&result.value))),
        Err(Failure::Refused(said)) => failed(format!("The MCP server refused the call: {said}")),
        Err(Failure::Unanswered(why)) => Err(format!("The MCP server {server:?} gave no result: {why}.")),
    }
}

/// The text of a result; what is no text is named.
fn text(result: &Value) -> String {
    let parts: Vec<_> = result["content"].as_array().into_iter().flatten().map(part).collect();
    if !parts.is_empty() {
        parts.join("\n")
    } else if result["structuredContent"].is_null() {
        "The result is empty.".to_owned()
    } else {
        result["structuredContent"].to_string()
    }
}

fn part(part: &Value) -> String {
    let of = |key: &str| part[key].as_str().unwrap_or_default();
    let resource = &part["resource"];
    match (of("type"), resource["text"].as_str()) {
        ("text", _) => of("text").to_owned(),
        ("resource", Some(text)) => text.to_owned(),
        ("resource", None) => format!("[resource {}]", resource["uri"].as_str().unwrap_or_default()),
        ("resource_link", _) => format!("[resource {}]", of("uri")),
        (kind, _) => format!("[{kind} {}, {} bytes of Base64]", of("mimeType"), of("data").len()),
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::mcp::PinnedTool;
    use agentsvc_systems::injection::InjectionPolicy;
    use agentsvc_systems::mcp::ListedTool;
    use serde_json::json;

    use super::*;
    use crate::kernel::config::Secret;
    use crate::kernel::sandbox::config::ExecMode;
    use crate::kernel::settings::Settings;
    use crate::mcp::catalog::Catalog;
    use crate::mcp::client::config::McpClient;
    use crate::mcp::client::definition::Sources;
    use crate::mcp::client::review::judge;

    fn server(name: &str, tools: &[&str]) -> Arc<Server> {
        let sources = Sources {
            catalog: &Catalog::new("/none".into()),
            variable: &|_| None,
            unseal: &|text| Ok(Secret::new(text)),
            mode: ExecMode::Deny,
        };
        let definition = sources.configured(name, &McpClient::default());
        let server = Server::new(definition, "/h".as_ref(), None, Settings::default());
        let described = tools.iter().map(|name| described(name, json!({ "type": "object" })));
        let listing = Arc::new(judge(name, described.collect(), InjectionPolicy::Mark));
        let pin = |tool: ListedTool| PinnedTool { name: tool.name.into(), hash: tool.hash.into() };
        let accepted: Vec<_> = listing.listed().into_iter().map(pin).collect();
        server.set_offer(Offer::of(listing, &accepted, Timestamp(1)));
        Arc::new(server)
    }

    fn described(name: &str, input_schema: Value) -> Described {
        Described { name: name.to_owned(), input_schema, ..Described::default() }
    }

    #[test]
    fn names_are_those_of_the_longest_server() {
        let servers = [server("a", &["b_c", "Get-It"]), server("A-b", &["c", "c"])];
        let (sampler, mut made) = (Sampler::new(Arc::default(), Settings::default()), Made::default());
        let tools = all(&servers, &sampler, &mut made);
        let found: Vec<_> = tools.iter().map(|tool| (&*tool.name, tool.server.as_deref())).collect();
        assert_eq!(found, [("mcp_a_b_c", Some("A-b")), ("mcp_a_get_it", Some("a"))]);
        // What stays is shared with the list before.
        let [first, second] = servers;
        let third = server("c", &["d"]);
        let after = all(&[first, third], &sampler, &mut made);
        let names: Vec<_> = after.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["mcp_a_b_c", "mcp_a_get_it", "mcp_c_d"]);
        assert!(Arc::ptr_eq(&after[1], &tools[1]) && !Arc::ptr_eq(&after[0], &tools[0]));
        drop(tools);
        assert_eq!(Arc::strong_count(&second), 1, "nothing keeps a server that is gone");
    }

    #[test]
    fn tools_that_no_provider_takes_are_left_out() {
        let object = json!({ "type": "object" });
        assert_eq!(fault("mcp_a_b", &described("b", object.clone())), None);
        assert!(fault(&"x".repeat(65), &described("x", object.clone())).is_some());
        assert!(fault("mcp_a_", &described("", object)).is_some());
        assert!(fault("mcp_a_b", &described("b", json!({ "type": "string" }))).is_some());
        assert!(fault("mcp_a_b", &described("b", json!(7))).is_some());
        let long = json!({ "type": "object", "description": "x".repeat(SCHEMA_BYTES_MAX) });
        assert!(fault("mcp_a_b", &described("b", long)).is_some());
    }

    #[test]
    fn only_what_the_server_says_may_be_repeated() {
        let hinted = |annotations: Value| {
            let annotations = annotations.as_object().unwrap().clone();
            Described { annotations, ..Described::default() }.is_repeatable()
        };
        assert!(hinted(json!({ "readOnlyHint": true })) && hinted(json!({ "idempotentHint": true })));
        assert!(!hinted(json!({})) && !hinted(json!({ "readOnlyHint": "true", "idempotentHint": false })));
    }

    #[test]
    fn results_are_text() {
        let content = json!([
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "two" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "file:///c" },
        ]);
        let all = "one\n[image image/png, 4 bytes of Base64]\ntwo\n[resource file:///b]\n[resource file:///c]";
        assert_eq!(text(&json!({ "content": content })), all);
        assert_eq!(text(&json!({ "content": [], "structuredContent": { "a": 1 } })), "{\"a\":1}");
        assert_eq!(text(&json!({})), "The result is empty.");
        let is_failure = |result| matches!(told("s", result), Ok(Ended::Failure { taint: Taint::TOOL, .. }));
        assert!(is_failure(Ok(json!({ "isError": true, "content": [] }).into())));
        assert!(is_failure(Err(Failure::Refused("no".to_owned()))));
        assert!(told("s", Err(Failure::Unanswered("it ended".to_owned()))).is_err());
    }
}
