//! Requests, one after the other, to every route: the front never panics, never answers 5xx (but for a run of a workflow
//! that failed), always answers, and leaves a world that is as it should be.
//!
//! An input is text. Each request is a line such as `POST /api/agents/{agent}/message?x=1`, lines of headers, an empty
//! line and a body, up to a line `---`. `{agent}` and the like are the ids of what is there (see [`names`]). A first line
//! that begins with `@` and two characters takes that route of the table; a query or body that begins with `@` is made
//! of what follows, in the shape that the served OpenAPI document says.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use agentsvc_api::chat::fuzzing;
use agentsvc_api::http::reply;
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, BodyStream, Full};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use serde_json::{Value, json};

use super::feed::{Feed, parts};
use super::harness::Harness;
use super::shape::{Doc, Operation};

/// Requests of one input.
const REQUESTS_MAX: usize = 8;
/// Pieces that are read of an answer that may go on for ever.
const PIECES_MAX: usize = 12;
/// What a route says whose part of the daemon a harness does not have.
const ABSENT: &[&str] = &["not ready", "loading"];
/// The code of the one 500 that is meant: a run of a workflow that failed.
const RUN_FAILED: &str = "run_failed";

/// `input` is text; see above.
pub fn run(input: &[u8]) {
    drop(lived(input, Harness::new()));
}

/// `harness` after the requests of `input`.
pub fn lived(input: &[u8], harness: Harness) -> Harness {
    let mut names = furnish(&harness);
    for text in parts(input, "---").into_iter().take(REQUESTS_MAX) {
        let Some(request) = read(text, &names) else { continue };
        let line = format!("{} {}", request.method(), request.uri());
        let (status, answer) = ask(&harness, request, &line);
        learn(&mut names, &answer);
        let absent = status == 503 && ABSENT.iter().any(|text| answer.to_string().contains(text));
        assert!(status < 500 || absent || answer["code"] == RUN_FAILED, "{line}: {status} {answer}");
    }
    let wrong = harness.check();
    assert!(wrong.is_empty(), "{wrong:#?}");
    harness
}

/// The answer to a request: its status, and its body as far as that is one JSON document.
pub fn ask(harness: &Harness, request: Request<Full<Bytes>>, line: &str) -> (u16, Value) {
    let is_head = request.method() == Method::HEAD;
    let response = harness.wait(fuzzing::answer(&harness.api, request));
    let response = response.unwrap_or_else(|| panic!("{line}: there is no answer"));
    let status = response.status();
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| *kind == reply::JSON);
    let mut body = Vec::new();
    let mut pieces = Box::pin(BodyStream::new(response.into_body()));
    for _ in 0..PIECES_MAX {
        match harness.wait(pieces.next()) {
            Some(Some(Ok(frame))) => body.extend(frame.into_data().unwrap_or_default()),
            Some(Some(Err(error))) => panic!("{line}: {error}"),
            Some(None) | None => break,
        }
    }
    let answer = serde_json::from_slice(&body);
    let is_whole = !is_json || is_head || status == StatusCode::NO_CONTENT || answer.is_ok();
    assert!(is_whole || body.len() > 1 << 16, "{line}: {status} is no JSON: {:?}", String::from_utf8_lossy(&body));
    let answer = answer.unwrap_or(Value::Null);
    let is_error = status.is_client_error() && !is_head;
    let says = |answer: &Value| answer["error"].is_string() || answer["error"]["message"].is_string();
    assert!(!is_error || says(&answer), "{line}: {status} says nothing: {answer}");
    (status.as_u16(), answer)
}

/// The served document, once a harness was asked for it.
static DOC: OnceLock<Doc> = OnceLock::new();

/// The routes of the served document.
fn doc(harness: &Harness) -> &'static Doc {
    DOC.get_or_init(|| {
        let request =
            Request::get("/api/openapi.json").header(HOST, "localhost").body(Full::default()).expect("a request");
        let response = harness.wait(fuzzing::answer(&harness.api, request)).expect("an answer");
        let body = harness.wait(response.into_body().collect()).expect("it ends").expect("it is whole");
        Doc::new(serde_json::from_slice(&body.to_bytes()).expect("it is JSON"))
    })
}

/// Names and ids that requests may use, by what they are: `agent`, `session`, `task`...
pub type Names = BTreeMap<String, String>;

/// Puts something of everything into the world.
pub fn furnish(harness: &Harness) -> Names {
    let mut names = Names::from([("none".to_owned(), "00000000-0000-0000-0000-000000000000".to_owned())]);
    doc(harness);
    let manifest = "name = \"ada\"\n[capabilities]\ntools = [\"*\"]\nagent_message = [\"*\"]\nmemory_write = [\"*\"]\n";
    let add = |names: &mut Names, path: &str, body: Value| {
        let text = format!("POST {path}\n\n{body}");
        let Some(request) = read(text.as_bytes(), names) else { panic!("{text}: is no request") };
        let (status, answer) = ask(harness, request, path);
        assert!(status < 300, "{path}: {status} {answer}");
        learn(names, &answer);
        answer
    };
    add(&mut names, "/api/agents", json!({"manifest_toml": manifest}));
    add(&mut names, "/api/agents/{agent}/message", json!({"message": "hello"}));
    let sessions = add(&mut names, "/api/agents/{agent}/sessions", json!({"label": "second"}));
    names.insert("session".to_owned(), sessions["session_id"].as_str().unwrap_or_default().to_owned());
    for (path, body) in FURNITURE {
        let name = path.trim_start_matches("/api/").trim_end_matches('s').replace('-', "_");
        let body = serde_json::from_str(&fill(body, &names)).expect("JSON");
        let answer = add(&mut names, path, body);
        if let Some(id) = first_id(&answer) {
            names.insert(name, id);
        }
    }
    names
}

/// What is made at the beginning, beside an agent and its sessions.
const FURNITURE: &[(&str, &str)] = &[
    ("/api/goals", r#"{"title": "g"}"#),
    ("/api/tasks", r#"{"title": "t", "description": "d"}"#),
    ("/api/triggers", r#"{"agent_id": "{agent}", "pattern": {"all": {}}, "prompt_template": "go", "max_fires": 2}"#),
    ("/api/schedules", r#"{"agent_id": "{agent}", "name": "s", "cron": "every 1h", "prompt": "go"}"#),
    ("/api/workflows", r#"{"name": "w", "steps": [{"name": "one", "agent_id": "{agent}", "prompt": "{{input}}"}]}"#),
];

fn first_id(answer: &Value) -> Option<String> {
    let object = answer.as_object()?;
    let id = object.iter().find(|(key, value)| key.ends_with("id") && *key != "agent_id" && value.is_string());
    id.and_then(|(_, value)| value.as_str()).map(str::to_owned)
}

/// Keeps the ids of an answer under their names.
fn learn(names: &mut Names, answer: &Value) {
    for (key, value) in answer.as_object().into_iter().flatten() {
        if let (Some(name), Some(id)) = (key.strip_suffix("_id"), value.as_str()) {
            names.insert(name.to_owned(), id.to_owned());
        }
    }
}

/// `text` with the ids in place of their names.
fn fill(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("{{{name}}}"), id))
}

fn read(text: &[u8], names: &Names) -> Option<Request<Full<Bytes>>> {
    let (head, body) = match text.windows(2).position(|end| end == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &b""[..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let (method, uri, operation) = first_line(lines.next()?, names)?;
    let mut request = Request::builder().method(method).uri(uri);
    let mut has_type = false;
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        has_type |= name == CONTENT_TYPE;
        request = request.header(name, HeaderValue::from_str(fill(value.trim(), names).as_str()).ok()?);
    }
    let has_host = request.headers_ref().is_some_and(|headers| headers.contains_key(HOST));
    if !has_host {
        let authority = request.uri_ref().and_then(Uri::authority).map(ToString::to_string);
        request = request.header(HOST, authority.unwrap_or_else(|| "localhost".to_owned()));
    }
    if !has_type && !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = match (body.split_first(), operation) {
        (Some((b'@', rest)), Some(operation)) => operation.body(&mut Feed(rest), names).to_string().into_bytes(),
        _ => match std::str::from_utf8(body) {
            Ok(text) => fill(text, names).into_bytes(),
            Err(_) => body.to_vec(),
        },
    };
    request.body(Full::new(body.into())).ok()
}

/// Method, address and what the document says of it.
fn first_line(line: &str, names: &Names) -> Option<(Method, Uri, Option<&'static Operation>)> {
    let doc = DOC.get()?;
    if let Some(rest) = line.strip_prefix('@') {
        let mut feed = Feed(rest.as_bytes());
        let operation = doc.operation(feed.pair());
        let path = operation.address(&mut feed, names);
        return Some((operation.method.clone(), path.parse().ok()?, Some(operation)));
    }
    let (method, rest) = line.split_once(' ')?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let operation = doc.find(&method, path);
    let query = match (query.strip_prefix('@'), operation) {
        (Some(rest), Some(operation)) => operation.query(&mut Feed(rest.as_bytes()), names),
        _ => fill(query, names),
    };
    let mark = if query.is_empty() { "" } else { "?" };
    Some((method, format!("{}{mark}{query}", fill(path, names)).parse().ok()?, operation))
}
