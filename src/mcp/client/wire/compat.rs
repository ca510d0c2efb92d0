//! Plain HTTP: a tool is one request, as the configuration describes it. There is no server that speaks MCP; what it would
//! say of itself is said here.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::{Client, Trouble, refusal};
use super::message::{Parsed, memory_for, parsed};
use super::{CompatMethod, CompatTool, RequestMode, ResponseMode};
use crate::mcp::client::connection::{Answer, Connection, Failure, Outgoing};
use crate::mcp::client::session::Version;

/// Requests under way. More wait.
const CALLS_MAX: usize = 64;
/// Characters of a value that stand in a path as they are.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Carries messages until none is needed.
pub(super) async fn carry(
    connection: Connection,
    client: Client,
    tools: Vec<CompatTool>,
    mut messages: mpsc::Receiver<Outgoing>,
) -> String {
    let _closing = connection.closing();
    let tools: Arc<[CompatTool]> = tools.into();
    let mut calls = FuturesUnordered::new();
    loop {
        tokio::select! {
            outgoing = messages.recv(), if calls.len() < CALLS_MAX => {
                let Some(outgoing) = outgoing else { return "it is not needed any more".to_owned() };
                let (Some(id), Some(gone)) = (outgoing.id(), outgoing.gone) else { continue };
                let (message, client, tools, connection) = (outgoing.message, &client, &tools, &connection);
                calls.push(async move {
                    tokio::select! {
                        _ = gone => {}
                        answer = answer(client, tools, &message) => connection.settle(id, answer),
                    }
                });
            }
            Some(()) = calls.next() => {}
        }
    }
}

async fn answer(client: &Client, tools: &[CompatTool], message: &Value) -> Result<Answer, Failure> {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let version = Version::INITIALIZED.as_str();
            Ok(json!({ "protocolVersion": version, "capabilities": { "tools": {} } }).into())
        }
        "ping" => Ok(json!({}).into()),
        "tools/list" => {
            let tools = tools.iter().map(|tool| {
                let is_read = tool.method == CompatMethod::Get;
                json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
                    "annotations": { "readOnlyHint": is_read } })
            });
            Ok(json!({ "tools": tools.collect::<Vec<_>>() }).into())
        }
        "tools/call" => {
            let tool = tools.iter().find(|tool| params["name"] == *tool.name);
            let tool = tool.ok_or_else(|| Failure::Unanswered("it has no such tool".to_owned()))?;
            let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
            match call(client, tool, arguments).await {
                Ok(result) => Ok(result),
                Err(Trouble::Request(why) | Trouble::Wire(why)) => Err(Failure::Unanswered(why)),
            }
        }
        _ => Err(Failure::Refused("method not found".to_owned())),
    }
}

async fn call(client: &Client, tool: &CompatTool, mut arguments: Map<String, Value>) -> Result<Answer, Trouble> {
    let mut url = url(client.url(), &tool.path, &mut arguments).map_err(Trouble::Request)?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/plain, */*"));
    let mut body = None;
    match tool.request_mode {
        RequestMode::None => {}
        RequestMode::Query => {
            for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
                url.query_pairs_mut().append_pair(name, &plain(value));
            }
        }
        RequestMode::JsonBody => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body = Some(Value::Object(arguments).to_string());
        }
    }
    let method = match tool.method {
        CompatMethod::Get => Method::GET,
        CompatMethod::Post => Method::POST,
        CompatMethod::Put => Method::PUT,
        CompatMethod::Patch => Method::PATCH,
        CompatMethod::Delete => Method::DELETE,
    };
    let response = client.send(&method, &url, &headers, body.as_deref()).await?;
    result(client, tool.response_mode, response).await
}

async fn result(client: &Client, mode: ResponseMode, response: Response) -> Result<Answer, Trouble> {
    let status = response.status();
    let (bytes, held) = client.read(response).await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let read = match mode {
        ResponseMode::Json if status.is_success() => parsed(bytes).await,
        ResponseMode::Json | ResponseMode::Text => Parsed::Noise,
    };
    let (text, memory) = match read {
        Parsed::Messages(json, memory) => (serde_json::to_string_pretty(&json).unwrap_or(text), memory),
        // It is shown as it is.
        Parsed::Noise | Parsed::Refused(_) => {
            let memory = memory_for(text.len()).await.map_err(Trouble::Request)?;
            (if status.is_success() { text } else { format!("{}: {text}", refusal(status)) }, memory)
        }
    };
    drop(held);
    let value = json!({ "content": [{ "type": "text", "text": text }], "isError": !status.is_success() });
    Ok(Answer { value, memory })
}

/// The URL of a call. Arguments that stand in the path are taken out; they cannot lead out of it.
fn url(base: &Url, path: &str, arguments: &mut Map<String, Value>) -> Result<Url, String> {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or("the path of the tool has no `}` for a `{`")?;
        let value = arguments.remove(name).ok_or_else(|| format!("the argument {name:?} is missing"))?;
        let value = plain(&value);
        if value.is_empty() || value == "." || value == ".." {
            return Err(format!("the argument {name:?} cannot stand in a path"));
        }
        filled.push_str(before);
        filled.extend(utf8_percent_encode(&value, PATH));
        rest = behind;
    }
    filled.push_str(rest);
    let mut url = base.clone();
    url.set_query(None);
    let prefix = base.path().trim_end_matches('/');
    let (path, query) = filled.split_once('?').map_or((&*filled, None), |(path, query)| (path, Some(query)));
    url.set_path(&format!("{prefix}/{}", path.trim_start_matches('/')));
    url.set_query(query);
    if url.path().starts_with(&format!("{prefix}/")) {
        Ok(url)
    } else {
        Err("the path leads out of the base URL".to_owned())
    }
}

/// A value as it stands in a path or a query.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_in_their_part_of_the_path() {
        let base = Url::parse("http://h/api/v1/").unwrap();
        let made = |path: &str, arguments: Value| {
            let mut arguments = arguments.as_object().unwrap().clone();
            url(&base, path, &mut arguments).map(|url| (url.to_string(), arguments.len()))
        };
        let weather = made("/weather/{city}", json!({ "city": "São Paulo/../x?y#z", "units": "m" })).unwrap();
        assert_eq!(weather, ("http://h/api/v1/weather/S%C3%A3o%20Paulo%2F..%2Fx%3Fy%23z".to_owned(), 1));
        assert_eq!(made("a/{n}?fix=1", json!({ "n": 7 })).unwrap().0, "http://h/api/v1/a/7?fix=1");
        for value in [".", "..", ""] {
            assert!(made("/a/{n}/b", json!({ "n": value })).is_err(), "{value}");
        }
        assert!(made("/a/{n}", json!({})).unwrap_err().contains("\"n\" is missing"));
        assert!(made("/a/{n", json!({})).is_err());
        assert!(made("/../../secret", json!({})).unwrap_err().contains("out of the base URL"));
        // Nor do two values together that are harmless each.
        assert!(made("/a/{n}{m}", json!({ "n": ".", "m": "." })).is_err());
    }
}
