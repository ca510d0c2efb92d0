//! Calls of what a server has.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::connection::{Connection, Failure};
use super::session::{Described, Means, memory_of, pages};

/// The key of `_meta` that says on whose behalf a call is made.
const CALLER_KEY: &str = "io.librefang/caller";
/// What models must not say for the daemon.
const CALLER_ARGUMENT: &str = "_librefang_caller";
/// Bytes of a description in a list.
const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// On whose behalf a call is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Caller {
    /// The session of the turn, where there is one.
    pub(super) session: Option<String>,
    /// The workspace of the agent, where it has one.
    pub(super) workspace: Option<PathBuf>,
}

/// Calls something of the server: once, whatever comes of it. The result is that of a tool.
pub(super) async fn call(
    connection: &Connection,
    called: &Described,
    mut arguments: Map<String, Value>,
    caller: Caller,
    time_max: Duration,
) -> Result<Value, Failure> {
    arguments.remove(CALLER_ARGUMENT);
    let _visit = connection.visit(caller.workspace);
    let calling = async {
        match called.means {
            Means::Tool => {
                let mut params = json!({ "name": called.name, "arguments": arguments });
                let session = caller.session.map(|session| json!({ "session_id": session }));
                params["_meta"] = json!({ CALLER_KEY: session.unwrap_or_else(|| json!({})) });
                connection.request("tools/call", params, time_max).await
            }
            Means::ListResources => {
                let keep = |entry| shown(&entry, &["uri", "uriTemplate", "name", "description", "mimeType", "size"]);
                let resources = pages(connection, "resources/list", "resources", keep).await?;
                // Not all servers have them.
                let templates = pages(connection, "resources/templates/list", "resourceTemplates", keep).await;
                let listed = json!({ "resources": resources, "templates": templates.unwrap_or_default() });
                Ok(text(&listed.to_string()))
            }
            Means::ReadResource => {
                let params = json!({ "uri": arguments.remove("uri") });
                let mut read = connection.request("resources/read", params, time_max).await?;
                let Value::Array(contents) = taken(&mut read, "contents") else {
                    return Err(Failure::Unanswered("its resource has no contents".to_owned()));
                };
                let parts = contents.into_iter().map(|content| json!({ "type": "resource", "resource": content }));
                Ok(json!({ "content": parts.collect::<Vec<_>>(), "resultType": read["resultType"] }))
            }
            Means::ListPrompts => {
                let keep = |entry| shown(&entry, &["name", "description", "arguments"]);
                let prompts = pages(connection, "prompts/list", "prompts", keep).await?;
                Ok(text(&Value::Array(prompts).to_string()))
            }
            Means::GetPrompt => {
                let arguments_of = arguments.remove("arguments").unwrap_or_else(|| json!({}));
                let params = json!({ "name": arguments.remove("name"), "arguments": arguments_of });
                let mut got = connection.request("prompts/get", params, time_max).await?;
                let Value::Array(messages) = taken(&mut got, "messages") else {
                    return Err(Failure::Unanswered("its prompt has no messages".to_owned()));
                };
                let parts = messages.into_iter().flat_map(|mut message| {
                    let role =
                        json!({ "type": "text", "text": format!("{}:", message["role"].as_str().unwrap_or("user")) });
                    [role, taken(&mut message, "content")]
                });
                Ok(json!({ "content": parts.collect::<Vec<_>>(), "resultType": got["resultType"] }))
            }
        }
    };
    let late = || Failure::Unanswered(format!("it did not answer within {} seconds", time_max.as_secs()));
    let result = tokio::time::timeout(time_max, calling).await.unwrap_or_else(|_| Err(late()))?;
    if result["resultType"] == "input_required" {
        return Err(Failure::Unanswered("it asks for more input, which is not supported".to_owned()));
    }
    Ok(result)
}

/// A result that is one text.
fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A member of what a server sent, whatever that is.
fn taken(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// An entry of a list with these keys alone, and what it takes: a list is for models to choose from.
fn shown(entry: &Value, keys: &[&str]) -> Option<(usize, Value)> {
    let pairs = keys.iter().filter_map(|key| {
        let value = match entry.get(*key)? {
            Value::String(text) => text[..text.floor_char_boundary(DESCRIPTION_BYTES_MAX)].into(),
            value => value.clone(),
        };
        Some(((*key).to_owned(), value))
    });
    let shown: Map<String, Value> = pairs.collect();
    let shown = (!shown.is_empty()).then_some(Value::Object(shown))?;
    Some((memory_of(&shown), shown))
}
