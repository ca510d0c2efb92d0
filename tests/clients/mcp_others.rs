//! Servers that other people wrote and run, as agents use them: the official `mcp` package over each of its transports, and
//! published servers from PyPI and npm.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::serve_page;
use crate::support::clients::{has_node, installed, python, python_of, skipped};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

/// Ends a server when its test does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon with one server of this configuration, and an agent that may call its tools.
pub(crate) struct Harness {
    model: Model,
    pub(crate) daemon: Daemon,
    agent: String,
    server: &'static str,
}

impl Harness {
    /// `first` is a tool of the server, which is waited for.
    #[track_caller]
    pub(crate) fn new(server: &'static str, config: &str, security: &str, first: &str) -> Self {
        let model = Model::start();
        let full = "[exec_policy]\nmode = \"full\"\n";
        let config = format!("{}{full}{security}[mcp_servers.{server}]\n{config}", model.config());
        let daemon = Daemon::with(&config);
        let grants = format!("mcp_servers = [{server:?}]\n[capabilities]\ntools = [\"*\"]\nshell = [\"*\"]\n");
        let agent = daemon.agent_with("ann", &grants);
        let harness = Self { model, daemon, agent, server };
        harness.wait_for(first);
        harness
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, tool: &str) {
        let path = format!("/api/tools/mcp_{}_{tool}", self.server);
        until("the server's tools are there", || (self.daemon.get(&path).status == 200).then_some(()));
    }

    /// The calls of one turn, one after the other, and what the model got as their results.
    #[track_caller]
    pub(crate) fn turn(&self, calls: &[(&str, Value)]) -> Vec<String> {
        let replies = calls.iter().map(|(tool, input)| Reply::calls(&[("c", tool, &input.to_string())]));
        self.model.script(replies.chain([Reply::text("done")]));
        assert_eq!(self.daemon.say(&self.agent, "go on")["response"], "done");
        let last = self.model.requests().pop().unwrap();
        let messages = last["messages"].as_array().unwrap();
        let asked = messages.iter().rposition(|message| message["role"] == "user").unwrap();
        let results = messages[asked..].iter().filter(|message| message["role"] == "tool");
        results.map(|message| text(&message["content"])).collect()
    }

    #[track_caller]
    pub(crate) fn call(&self, tool: &str, input: Value) -> String {
        self.turn(&[(&format!("mcp_{}_{tool}", self.server), input)]).pop().unwrap()
    }
}

/// What a program of a Python environment has to read.
fn readable(python: &str) -> Vec<String> {
    let places = "import sys; print(sys.prefix, sys.base_prefix, *sys.path[1:], sep='\\n')";
    let places = Command::new(python).args(["-c", places]).output().unwrap().stdout;
    let places = String::from_utf8(places).unwrap();
    places.lines().filter(|place| fs::metadata(place).is_ok_and(|it| it.is_dir())).map(str::to_owned).collect()
}

/// The configuration of a Python program with these arguments.
pub(crate) fn program(python: &str, args: &[&str], more: &[String]) -> String {
    // As a path: the programs of `[exec_policy] path` are the system's.
    let command = if python.contains('/') { python.to_owned() } else { format!("/usr/bin/{python}") };
    let readable: Vec<_> = readable(python).into_iter().chain(more.iter().cloned()).collect();
    format!("command = {command:?}\nargs = {args:?}\nreadable_paths = {readable:?}\n")
}

/// Starts the server of the official package. It takes a free port.
fn listen(transport: &str) -> (Running, u16) {
    let mut command = Command::new(python("mcp"));
    command.arg(routes::root().join("tests/clients/mcp_wire_server.py")).arg(transport);
    let mut server = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("Python starts"));
    let mut port = String::new();
    BufReader::new(server.0.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
    (server, port.trim().parse().expect("the server prints its port"))
}

/// Everything that an agent can use of the server, over one transport.
#[track_caller]
fn uses_all(config: &str, transport: &str) {
    let harness = Harness::new("wire", config, "[security]\ntaint = \"audit\"\n", "count");
    assert_eq!(harness.call("count", json!({ "to": 3 })), "counted to 3", "{transport}");
    let listed = harness.call("list_resources", json!({}));
    assert!(listed.contains("note://first") && listed.contains("note://{name}"), "{transport}: {listed}");
    let read = harness.call("read_resource", json!({ "uri": "note://seven" }));
    assert!(read.contains("the note seven"), "{transport}: {read}");
    assert!(harness.call("list_prompts", json!({})).contains("\"subject\""), "{transport}");
    let prompt = harness.call("get_prompt", json!({ "name": "review", "arguments": { "subject": "it" } }));
    assert!(prompt.contains("Review it."), "{transport}: {prompt}");
    assert_eq!(harness.call("change", json!({})), "changed", "{transport}");
    harness.wait_for("late");
    assert_eq!(harness.call("late", json!({})), "late", "{transport}");
}

/// Decides the next approval that asks for something.
fn decide(harness: &Harness, how: &'static str, body: Value) -> JoinHandle<Value> {
    let client = harness.daemon.client();
    thread::spawn(move || {
        let path = "/api/approvals?status=pending";
        let found =
            until("a person is asked", || client.get(path).expect(200)["approvals"].as_array()?.first().cloned());
        client.post(&format!("/api/approvals/{}/{how}", text(&found["id"])), &body).expect(200);
        found
    })
}

/// What the server can ask in its calls, over one transport.
#[track_caller]
fn asks_all(config: &str, transport: &str) {
    let harness = Harness::new("wire", &format!("{config}sampling = \"on\"\n"), "", "greet");
    let person = decide(&harness, "approve", json!({ "answer": { "name": "Ann", "age": 8, "sure": false } }));
    assert_eq!(harness.call("greet", json!({})), "hello Ann, 8, False", "{transport}");
    let asked = person.join().unwrap();
    assert_eq!((&asked["action"], &asked["payload"]["message"]), (&json!("mcp_elicitation"), &json!("Who are you?")));
    assert_eq!(asked["answer_schema"]["required"], json!(["name"]), "{transport}");
    let person = decide(&harness, "reject", json!({}));
    assert_eq!(harness.call("greet", json!({})), "decline", "{transport}");
    person.join().unwrap();
    let person = decide(&harness, "approve", json!({}));
    assert_eq!(harness.call("sign_in", json!({})), "accept", "{transport}");
    assert_eq!(person.join().unwrap()["payload"]["url"], "https://sign.in/");
    let call = Reply::calls(&[("c", "mcp_wire_summarize", "{\"text\": \"it\"}")]);
    harness.model.script([call, Reply::text("short"), Reply::text("done")]);
    assert_eq!(harness.daemon.say(&harness.agent, "go on")["response"], "done");
    let requests = harness.model.requests();
    let [.., sampled, last] = &requests[..] else { panic!("two requests") };
    let said = text(&last["messages"].as_array().unwrap().last().unwrap()["content"]);
    assert_eq!(said, "assistant echo-1 endTurn: short", "{transport}");
    assert_eq!((&sampled["max_tokens"], &sampled["tools"]), (&json!(20), &Value::Null));
}

#[test]
fn the_official_server_asks_over_pipes() {
    if skipped() {
        return;
    }
    let script = routes::root().join("tests/clients/mcp_wire_server.py").display().to_string();
    let directory = routes::root().join("tests/clients").display().to_string();
    asks_all(&program(&python("mcp"), &[&script, "stdio"], &[directory]), "stdio");
}

#[test]
fn the_official_server_asks_over_http_and_events() {
    if skipped() {
        return;
    }
    for (transport, kind, path) in [("streamable-http", "http", "mcp"), ("sse", "sse", "sse")] {
        let (_server, port) = listen(transport);
        let url = format!("http://127.0.0.1:{port}/{path}");
        asks_all(&format!("transport = {{ type = {kind:?}, url = {url:?} }}\n"), transport);
    }
}

#[test]
fn the_official_server_is_used_over_pipes() {
    if skipped() {
        return;
    }
    let script = routes::root().join("tests/clients/mcp_wire_server.py").display().to_string();
    let directory = routes::root().join("tests/clients").display().to_string();
    uses_all(&program(&python("mcp"), &[&script, "stdio"], &[directory]), "stdio");
}

#[test]
fn the_official_server_is_used_over_http_and_events() {
    if skipped() {
        return;
    }
    for (transport, kind, path) in [("streamable-http", "http", "mcp"), ("sse", "sse", "sse")] {
        let (_server, port) = listen(transport);
        let url = format!("http://127.0.0.1:{port}/{path}");
        uses_all(&format!("transport = {{ type = {kind:?}, url = {url:?} }}\n"), transport);
    }
}

#[test]
fn a_turn_that_read_a_result_runs_no_command() {
    if skipped() {
        return;
    }
    let (_server, port) = listen("streamable-http");
    let config = format!("transport = {{ type = \"http\", url = \"http://127.0.0.1:{port}/mcp\" }}\n");
    let harness = Harness::new("wire", &config, "[security]\ntaint = \"deny\"\n", "count");
    let shell = ("shell_exec", json!({ "argv": ["echo", "it ran"] }));
    assert!(harness.turn(std::slice::from_ref(&shell))[0].contains("it ran"));
    let told = harness.turn(&[("mcp_wire_count", json!({ "to": 1 })), shell]);
    assert_eq!(told[0], "counted to 1");
    assert!(!told[1].contains("it ran") && told[1].contains("untrusted content"), "{told:?}");
}

/// The Python environment of the published servers.
fn published() -> String {
    python_of("mcpservers", "mcp_server_fetch, mcp_server_git, mcp_server_time")
}

#[test]
fn the_published_time_server_tells_the_time() {
    if skipped() {
        return;
    }
    let config = program(&published(), &["-m", "mcp_server_time", "--local-timezone", "UTC"], &[]);
    let harness = Harness::new("time", &config, "", "get_current_time");
    let said = harness.call("get_current_time", json!({ "timezone": "Europe/Warsaw" }));
    assert!(said.contains("\"timezone\": \"Europe/Warsaw\"") && said.contains("\"is_dst\""), "{said}");
    let wrong = harness.call("get_current_time", json!({ "timezone": "Nowhere/None" }));
    assert!(wrong.contains("timezone") && !wrong.contains("is_dst"), "{wrong}");
}

#[test]
fn the_published_git_server_reads_a_repository() {
    if skipped() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let repository = directory.path().canonicalize().unwrap().display().to_string();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-C", &repository, "-c", "user.name=Ann", "-c", "user.email=ann@example.com"]).args(args);
        assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    git(&["add", "a.txt"]);
    git(&["commit", "-q", "-m", "The first change"]);
    let config = program(&published(), &["-m", "mcp_server_git", "--repository", &repository], &[]);
    let config = format!("{config}writable_paths = [{repository:?}]\n");
    let harness = Harness::new("git", &config, "", "git_log");
    let said = harness.call("git_log", json!({ "repo_path": repository }));
    assert!(said.contains("The first change"), "{said}");
    fs::write(directory.path().join("a.txt"), "two\n").unwrap();
    let said = harness.call("git_diff_unstaged", json!({ "repo_path": repository }));
    assert!(said.contains("-one") && said.contains("+two"), "{said}");
}

#[test]
fn the_published_fetch_server_fetches_a_page() {
    if skipped() {
        return;
    }
    let (port, _posts) = serve_page("<!doctype html><title>t</title><p>Seven swans a-swimming.</p>".to_owned());
    let config = program(&published(), &["-m", "mcp_server_fetch", "--ignore-robots-txt", "--allow-private-ips"], &[]);
    let harness = Harness::new("fetch", &format!("{config}network = true\n"), "", "fetch");
    let input = json!({ "url": format!("http://127.0.0.1:{port}/"), "raw": true });
    let said = harness.call("fetch", input);
    assert!(said.contains("Seven swans a-swimming."), "{said}");
}

/// The configuration of a published server of npm; `None` where there is no Node, with a line that says so.
#[track_caller]
fn node(package: &str, args: &[&str]) -> Option<String> {
    if !has_node(package) {
        return None;
    }
    let directory = installed().join("npm");
    let script = directory.join(format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    assert!(script.exists(), "{package} is missing: run tests/set_up.sh (or set AGENTSVC_CLIENTS=skip)");
    let args: Vec<_> = [script.display().to_string()].into_iter().chain(args.iter().map(ToString::to_string)).collect();
    Some(format!("command = \"node\"\nargs = {args:?}\nreadable_paths = [{directory:?}]\n"))
}

#[test]
fn the_published_file_server_reads_and_writes_what_it_may() {
    if skipped() {
        return;
    }
    let shared = tempfile::tempdir().unwrap();
    let path = shared.path().canonicalize().unwrap();
    let Some(config) = node("server-filesystem", &[path.to_str().unwrap()]) else { return };
    fs::write(path.join("a.txt"), "inside").unwrap();
    let harness = Harness::new("files", &format!("{config}writable_paths = [{path:?}]\n"), "", "write_file");
    assert!(harness.call("read_text_file", json!({ "path": path.join("a.txt") })).contains("inside"));
    harness.call("write_file", json!({ "path": path.join("b.txt"), "content": "written" }));
    assert_eq!(fs::read_to_string(path.join("b.txt")).unwrap(), "written");
    let said = harness.call("read_text_file", json!({ "path": harness.daemon.home().join("config.toml") }));
    assert!(!said.contains("api_listen") && said.to_lowercase().contains("denied"), "{said}");
}

#[test]
fn the_published_memory_server_remembers() {
    if skipped() {
        return;
    }
    let Some(config) = node("server-memory", &[]) else { return };
    // Beside its program by default, which it cannot change here.
    let shared = tempfile::tempdir().unwrap();
    let path = shared.path().canonicalize().unwrap();
    let file = format!("MEMORY_FILE_PATH={}", path.join("memory.jsonl").display());
    let config = format!("{config}env = [{file:?}]\nwritable_paths = [{path:?}]\n");
    let harness = Harness::new("memory", &config, "", "create_entities");
    let entity = json!({ "name": "Ann", "entityType": "person", "observations": ["likes swans"] });
    harness.call("create_entities", json!({ "entities": [entity] }));
    let said = harness.call("search_nodes", json!({ "query": "swans" }));
    assert!(said.contains("likes swans"), "{said}");
}
