//! `session_search`: finds what was said in the agent's own sessions.

use agentsvc_api::http::cpu::Asker;
use agentsvc_api::session::search::{Found, SearchFor, search};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// Sessions of one answer, unless the model asks for fewer or more.
const HITS_DEFAULT: usize = 10;
/// Sessions of one answer at most.
const HITS_MAX: usize = 50;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "session_search",
    "Searches the labels and messages of your own past conversations for a text, case-insensitively. Returns the \
     sessions and the position in the message. If the answer has a `next`, continue with it as `cursor`.",
    |context, text| on_input(context, text, run),
)
.safe()
.order(21);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The text to search for.
    query: String,
    /// Maximum number of sessions, 1 to 50. Default: 10.
    limit: Option<usize>,
    /// `next` of the previous result.
    cursor: Option<String>,
}

async fn run(context: Context, Input { query, limit, cursor }: Input) -> Result<Ended, String> {
    if query.trim().is_empty() {
        return Err("The `query` is empty.".to_owned());
    }
    // Outsiders, and each of several users of an agent, have the conversation that they are in, and no other.
    let is_guest = !context.run.taint.of_outsiders().is_none() || context.run.user.is_some();
    let wanted = SearchFor {
        text: Some(query),
        label: None,
        agent: Some(context.run.agent),
        session: is_guest.then_some(context.run.session),
        limit: limit.unwrap_or(HITS_DEFAULT).clamp(1, HITS_MAX),
    };
    let cursor = cursor.map(|cursor| cursor.parse()).transpose();
    let cursor = cursor.map_err(|()| "The `cursor` is not valid.".to_owned())?;
    let content = std::sync::Arc::clone(&context.stores.content);
    let asker = Asker::agent(context.run.holder);
    let found = match search(&context.parts.bridge, (content, asker), wanted, cursor).await {
        Ok(found) => found,
        // A conversation of strangers with another agent is hidden: it holds one message, which the model has read.
        Err(error) if is_guest && error.status().as_u16() == 404 => Found { hits: Vec::new(), next: None },
        Err(error) => return Err(format!("The search failed: {}.", error.message())),
    };
    let hits = found.hits.iter().map(|hit| {
        json!({
            "session_id": hit.session.id.0,
            "label": hit.session.label,
            "updated_at": hit.session.updated_at.to_string(),
            "current": hit.session.id == context.run.session,
            "matched": hit.matched,
            "excerpt": hit.excerpt,
        })
    });
    let mut told = json!({ "sessions": hits.collect::<Vec<_>>() });
    if is_guest {
        told["searched"] = json!(
            "This conversation only, because a client without a key, another node, a chat or one of several users began it."
        );
    }
    if let Some(next) = found.next {
        told["next"] = json!(next.to_string());
    }
    Ok(Ended::Text(told.to_string()))
}
