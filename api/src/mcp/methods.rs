//! The methods that clients may call, one line each.

use serde_json::{Map, Value, json};

use crate::http::call::Call;
use crate::mcp::message::{Failure, Params};
use crate::mcp::tools::{self, Caller};
use crate::mcp::version::Version;

/// What a model of the client is told of this server.
const INSTRUCTIONS: &str = "Tools of a daemon that hosts agents. The tools that act for an agent are offered to requests with \
the header x-agentsvc-agent-id.";

/// Carries out `method`.
///
/// # Errors
/// [`Failure`].
pub(crate) async fn run(
    call: &Call,
    caller: &Caller,
    version: Version,
    method: &str,
    params: Params,
) -> Result<Map<String, Value>, Failure> {
    version.check_request(call.headers(), method, &params)?;
    let (mut result, is_cacheable) = match method {
        "initialize" if !version.is_stateless() => (initialize(call, &params)?, false),
        "server/discover" => (discover(call), true),
        "ping" if !version.is_stateless() => (Map::new(), false),
        "tools/list" => (tools::list(call, caller, &params).await?, true),
        "tools/call" => (tools::call(call, caller, params).await?, false),
        other => return Err(Failure::method(other)),
    };
    version.complete(&mut result, is_cacheable);
    Ok(result)
}

fn server_info(call: &Call) -> Value {
    json!({ "name": "agentsvc", "version": call.api.settings.build.version })
}

fn initialize(call: &Call, params: &Params) -> Result<Map<String, Value>, Failure> {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let asked = asked.ok_or_else(|| Failure::params("`protocolVersion` must be a string"))?;
    Ok(fields(json!({
        "protocolVersion": Version::negotiated(asked).as_str(),
        "capabilities": { "tools": {} },
        "serverInfo": server_info(call),
        "instructions": INSTRUCTIONS,
    })))
}

fn discover(call: &Call) -> Map<String, Value> {
    fields(json!({
        "supportedVersions": Version::supported(),
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info(call) },
    }))
}

/// The fields of an object; none of any other value.
pub(crate) fn fields(value: Value) -> Map<String, Value> {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}
