//! Plain HTTP.

use super::*;
use crate::mcp::client::wire::{Compat, CompatMethod, CompatTool, RequestMode, ResponseMode};

fn tool(name: &str, path: &str, method: CompatMethod, request: RequestMode, response: ResponseMode) -> CompatTool {
    let input_schema = json!({ "type": "object" });
    let (name, path) = (name.to_owned(), path.to_owned());
    let description = "Does something.".to_owned();
    CompatTool { name, description, path, method, request_mode: request, response_mode: response, input_schema }
}

#[tokio::test]
async fn tools_are_requests() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/mcp/missing" => Reply::status(404),
        "/mcp/close" => Reply::Close,
        _ => Reply::json(&json!({ "method": seen.method, "path": seen.path, "body": seen.text })),
    })
    .await;
    let tools = vec![
        tool("get", "/weather/{city}", CompatMethod::Get, RequestMode::Query, ResponseMode::Json),
        tool("put", "things", CompatMethod::Put, RequestMode::JsonBody, ResponseMode::Text),
        tool("patch", "things", CompatMethod::Patch, RequestMode::None, ResponseMode::Text),
        tool("missing", "missing", CompatMethod::Delete, RequestMode::None, ResponseMode::Json),
        tool("close", "close", CompatMethod::Post, RequestMode::None, ResponseMode::Json),
    ];
    let headers = vec![("X-Key".into(), Secret::new("k1"))];
    let compat = Compat { base_url: server.url.clone(), headers, trusted: true, tools };
    let (connection, _carry) = begun(Transport::HttpCompat(compat)).await;
    let listed = session::list(&connection).await.unwrap();
    assert_eq!(listed.iter().filter(|tool| tool.is_repeatable()).map(|tool| &*tool.name).collect::<Vec<_>>(), ["get"]);

    let call = async |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = connection.request("tools/call", params, PATIENCE).await?;
        Ok::<_, Failure>((result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true))
    };
    let (text, _) = call("get", json!({ "city": "Bern/x", "units": "m", "days": 2, "none": null })).await.unwrap();
    assert!(text.contains('\n'), "JSON is written anew: {text}");
    let got: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(got, json!({ "method": "GET", "path": "/mcp/weather/Bern%2Fx?days=2&units=m", "body": "" }));
    let (text, _) = call("put", json!({ "a": [1] })).await.unwrap();
    let got: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&got["method"], &got["path"], &got["body"]),
        (&json!("PUT"), &json!("/mcp/things"), &json!("{\"a\":[1]}"))
    );
    let (text, _) = call("patch", json!({ "a": 1 })).await.unwrap();
    assert!(text.contains("\"PATCH\"") && text.contains("\"body\":\"\""), "{text}");
    assert_eq!(call("missing", json!({})).await, Ok(("it answered with status 404: some words".to_owned(), true)));
    let missing = call("get", json!({})).await.unwrap_err();
    assert_eq!(missing, Failure::Unanswered("the argument \"city\" is missing".to_owned()));
    assert!(matches!(call("close", json!({})).await, Err(Failure::Unanswered(_))));
    assert_eq!(server.seen().iter().filter(|seen| seen.path == "/mcp/close").count(), 1);
    assert!(server.seen().iter().all(|seen| seen.header("x-key") == Some("k1")));
}
