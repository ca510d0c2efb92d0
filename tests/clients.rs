//! Clients that other people wrote: `curl`, the official `openai`, `mcp` and `a2a-sdk` and the `websockets` Python packages, and
//! `EventSource` of a browser; and those of `api/clients`.
//!
//! `tests/set_up.sh` installs them; `AGENTSVC_CLIENTS=skip` skips the tests.

#[path = "clients/a2a_servers.rs"]
mod a2a_servers;
#[path = "clients/generated.rs"]
mod generated;
#[path = "clients/mcp_failures.rs"]
mod mcp_failures;
#[path = "clients/mcp_oauth.rs"]
mod mcp_oauth;
#[path = "clients/mcp_others.rs"]
mod mcp_others;
#[path = "clients/mcp_servers.rs"]
mod mcp_servers;
#[path = "clients/refusing.rs"]
mod refusing;
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use support::PATIENCE;
use support::clients::{python, python_of, skipped, tool};
use support::daemon::{Daemon, text};
use support::model::Model;
use support::model_server::Reply;
use support::stream::Events;

fn curl() -> String {
    tool(&["curl".into()], &["--version"], "curl is missing: apt-get install curl")
}

#[test]
fn curl_reads_a_message_stream_as_it_comes() {
    if skipped() {
        return;
    }
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let url = format!("http://{}/api/agents/{agent}/message/stream", daemon.addr);
    let mut command = Command::new(curl());
    command.args(["-sS", "-N", "-H", "content-type: application/json", "-d", r#"{"message":"hello"}"#, &url]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let body = String::from_utf8(output.stdout).unwrap();
    let blocks: Vec<_> = body.split("\n\n").filter(|block| block.contains("data:")).collect();
    let names: Vec<_> = blocks.iter().map(|b| b.lines().next().unwrap().trim_start_matches("event: ")).collect();
    assert_eq!(names.last(), Some(&"done"), "{body}");
    assert!(names.len() > 1 && names[..names.len() - 1].iter().all(|name| *name == "chunk"), "{body}");
    for block in blocks {
        let data = block.lines().nth(1).and_then(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str::<Value>(data).unwrap();
    }
}

#[test]
fn curl_speaks_http2_and_1() {
    if skipped() {
        return;
    }
    let daemon = Daemon::start();
    let url = format!("http://{}/api/health", daemon.addr);
    let advice = "this curl has no HTTP/2: install a curl with nghttp2";
    let curl = tool(&["curl".into()], &["--http2-prior-knowledge", "-sSf", &url], advice);
    for (version, shown) in [("--http2-prior-knowledge", "2"), ("--http1.1", "1.1"), ("--http1.0", "1")] {
        let mut command = Command::new(&curl);
        command.args(["-sS", version, "-o", "/dev/null", "-w", "%{http_code} %{http_version}", &url]);
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(said.starts_with("200 ") && said.ends_with(shown) || said.starts_with("200 1"), "{version}: {said}");
    }
}

/// Runs one case of `clients/openai_sdk.py` against a daemon that asks `model`.
#[track_caller]
fn openai(case: &str, model: &Model) {
    if skipped() {
        return;
    }
    let daemon = Daemon::with(&format!("api_key = \"k\"\n{}", model.config()));
    daemon.keyed("k").agent_with("ada", "");
    let script = support::routes::root().join("tests/clients/openai_sdk.py");
    let mut command = Command::new(python("openai"));
    command.arg(script).args([&format!("http://{}/v1", daemon.addr), "k", case]);
    command.env("NO_PROXY", "*").env_remove("ALL_PROXY").env_remove("all_proxy");
    let output = command.output().expect("Python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"passed"), "{case}: {said}");
}

#[test]
fn the_openai_client_gets_answers() {
    for case in ["sync", "asynchronous", "stream", "stream_accumulated", "models"] {
        openai(case, &Model::start());
    }
}

#[test]
fn the_openai_client_runs_its_own_tools() {
    for case in ["tools", "streamed_tools"] {
        let model = Model::start();
        model.server.respond(|request| match request.messages().last() {
            Some(last) if last["role"] == "tool" => {
                Reply::text(format!("You told me: {}", last["content"].as_str().unwrap_or_default()))
            }
            _ => Reply::calls(&[("c1", "look", "{\"where\": \"up\"}")]),
        });
        openai(case, &model);
    }
}

#[test]
fn the_openai_client_sends_images() {
    let model = Model::start();
    model.server.respond(|request| {
        let url = request.messages().last().map(|last| last["content"][1]["image_url"]["url"].clone());
        let url = url.as_ref().and_then(Value::as_str).unwrap_or_default();
        let (kind, encoded) = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).unwrap_or_default();
        Reply::text(format!("I see {kind} of {}", encoded.len()))
    });
    openai("image", &model);
}

#[test]
fn the_openai_client_understands_our_errors() {
    openai("errors", &Model::start());
    let failing = Model::start();
    failing.fail(400);
    openai("provider_fails", &failing);
    let breaking = Model::start();
    breaking.script([Reply::text("one two three four").break_after(3)]);
    openai("stream_breaks", &breaking);
}

#[test]
fn the_a2a_clients_of_both_versions_send_tasks() {
    if skipped() {
        return;
    }
    let model = Model::start();
    let on = "[a2a]\nenabled = true\nagents = [\"scout\"]\nrate_per_minute = 1000\ntotal_rate_per_minute = 1000\n";
    let daemon = Daemon::with(&format!("{on}{}", model.config()));
    let agent = daemon.agent_with("scout", "");
    for (script, venv) in [("a2a_sdk_v0.py", "a2a0"), ("a2a_sdk_v1.py", "a2a1")] {
        let root = support::routes::root();
        let mut command = Command::new(python_of(venv, "a2a"));
        command.arg(root.join("tests/clients").join(script)).args([&format!("http://{}", daemon.addr), &agent]);
        let output = command.output().unwrap();
        let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && told.trim() == "ok", "{script}: {told}{wrong}{}", daemon.stderr());
    }
}

#[test]
fn the_mcp_client_lists_and_calls_tools() {
    if skipped() {
        return;
    }
    let allowed = "allowlist = [\"web_fetch\", \"file_read\", \"file_write\"]";
    let model = Model::start();
    let tool_invoke = format!("[tool_invoke]\nenabled = true\n{allowed}\n");
    let daemon = Daemon::with(&format!("api_key = \"k\"\n{}{tool_invoke}", model.config()));
    let tools = "[capabilities]\ntools = [\"system_time\", \"file_*\"]\n";
    let agent = daemon.keyed("k").agent_with("ada", tools);
    let script = support::routes::root().join("tests/clients/mcp_sdk.py");
    let of = |path: &str| format!("http://{}{path}", daemon.addr);
    let stdio = format!("stdio:{}:{}", env!("CARGO_BIN_EXE_agentsvc"), daemon.home().display());
    for (path, mode) in [
        (of("/mcp"), "auto"),
        (of("/api/mcp"), "auto"),
        (of("/mcp"), "legacy"),
        (of("/mcp"), "public"),
        (stdio.clone(), "auto"),
        (stdio, "legacy"),
    ] {
        let mut command = Command::new(python("mcp"));
        command.arg(&script).args([&path, "k", &agent, mode]);
        command.env("NO_PROXY", "*").env_remove("ALL_PROXY").env_remove("all_proxy");
        let output = command.output().expect("Python starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout.starts_with(b"passed"), "{path} {mode}: {said}");
    }
}

/// What the `websockets` client sees of a conversation; prints one JSON line per message.
const WEBSOCKETS: &str = r#"
import asyncio, json, sys, websockets
async def main(url):
    async with websockets.connect(url, open_timeout=180, ping_timeout=180, close_timeout=180) as socket:
        print(await socket.recv())
        await socket.send(json.dumps({"type": "ping"}))
        print(await socket.recv())
        for text in (json.dumps({"type": "message", "content": "hello"}), "/help", "plain text"):
            await socket.send(text)
            while True:
                message = await socket.recv()
                print(message)
                if json.loads(message)["type"] == "response":
                    break
        await (await socket.ping())
    print(json.dumps({"type": "closed", "code": socket.close_code}))
asyncio.run(main(sys.argv[1]))
"#;

#[test]
fn the_websockets_client_holds_a_conversation() {
    if skipped() {
        return;
    }
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let python = python("websockets");
    let url = format!("ws://{}/api/agents/{agent}/ws", daemon.addr);
    let mut command = Command::new(python);
    command.args(["-c", WEBSOCKETS, &url]).env("NO_PROXY", "*").env_remove("ALL_PROXY").env_remove("all_proxy");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let messages: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut types: Vec<String> = messages.iter().map(|message| text(&message["type"])).collect();
    types.retain(|kind| kind != "agents_updated");
    types.dedup();
    let turn = ["thinking", "text_delta", "response"];
    let all = [&["connected", "pong"], &turn[..], &["response"], &turn[..], &["closed"]].concat();
    // The command's response stands right behind the first turn's.
    let mut expected: Vec<&str> = all;
    expected.dedup();
    assert_eq!(types, expected, "{said}");
    assert_eq!(messages.last().unwrap()["code"], 1000);
}

/// A page that follows `attach` with `EventSource` and posts back what it saw when the turn ends.
const PAGE: &str = r#"<!doctype html><title>watch</title><script>
const seen = [];
const source = new EventSource("%URL%");
const tell = (path, value) => fetch(path, { method: "POST", body: JSON.stringify(value) });
source.onopen = () => tell("/open", []);
for (const name of ["chunk", "tool_use", "tool_result", "owner_notice", "lagged"])
  source.addEventListener(name, e => seen.push({ name, data: JSON.parse(e.data) }));
source.addEventListener("done", e => {
  seen.push({ name: "done", data: JSON.parse(e.data) });
  source.close();
  tell("/seen", seen);
});
source.onerror = e => { if (source.readyState === EventSource.CLOSED) tell("/failed", ["the browser gave up"]); };
</script>"#;

/// Ends the browser when the test does.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves the page and hands on what it posts: the path and the JSON.
fn serve_page(page: String) -> (u16, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free loopback port");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (page, sender) = (page.clone(), sender.clone());
            thread::spawn(move || answer_browser(&stream, &page, &sender));
        }
    });
    (port, receiver)
}

fn answer_browser(stream: &TcpStream, page: &str, sender: &mpsc::Sender<(String, Value)>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, path) =
        line.split_once(' ').and_then(|(m, rest)| Some((m.to_owned(), rest.split(' ').next()?.to_owned())))?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if method == "POST" {
        sender.send((path, serde_json::from_slice(&body).ok()?)).ok()?;
    }
    let page = if method == "GET" { page } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        page.len()
    );
    (&*stream).write_all((head + page).as_bytes()).ok()
}

fn browse(port: u16, profile: &std::path::Path) -> Browser {
    let names = ["chromium", "chromium-browser", "google-chrome"].map(String::from);
    let program = tool(&names, &["--version"], "Chromium is missing: apt-get install chromium");
    let mut command = Command::new(program);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--no-proxy-server"]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg("--remote-debugging-port=0");
    // The page stands on another port than the daemon: another origin, but a local one.
    command.arg(format!("http://localhost:{port}/")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Browser(command.spawn().expect("the browser starts"))
}

#[test]
fn a_browsers_event_source_follows_attach() {
    if skipped() {
        return;
    }
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let page = PAGE.replace("%URL%", &format!("http://{}/api/agents/{agent}/attach", daemon.addr));
    let (port, posts) = serve_page(page);
    let profile = tempfile::tempdir().unwrap();
    let _browser = browse(port, profile.path());
    let next = || posts.recv_timeout(PATIENCE).expect("the browser reports back");
    assert_eq!(next().0, "/open");
    let told = Events::message(&daemon, &agent, &json!({ "message": "hello browser" })).all();
    let (path, seen) = next();
    assert_eq!(path, "/seen", "{seen}");
    let told: Vec<_> = told.iter().map(|event| json!({ "name": event.name, "data": event.data })).collect();
    assert_eq!(seen, Value::Array(told));
}
