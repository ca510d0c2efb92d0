//! The typed clients in `api/clients`: that they are what the OpenAPI document says; and packed, installed, checked and run as
//! their users do, with the examples of `docs/clients.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::refusing::{Refusing, Script};
use crate::support;
use crate::support::clients::{has_node, installed, python, skipped};
use crate::support::daemon::Daemon;

const KEY: &str = "a-key";

const SCRIPT: Script = &[
    (
        "GET /api/agents",
        &[
            "HTTP/1.1 503 -\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 429 -\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 -\r\nconnection: close\r\ncontent-length: 2\r\n\r\n[]",
        ],
    ),
    ("POST /api/agents", &["HTTP/1.1 503 -\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"]),
    (
        "POST /api/hooks/wake",
        &[
            "HTTP/1.1 503 -\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 -\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
        ],
    ),
    ("GET /api/version", &["HTTP/1.1 503 -\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"]),
    (
        "GET /api/status",
        &["HTTP/1.1 429 -\r\nretry-after: 3600\r\nconnection: close\r\n\r\n\
           {\"error\":\"slow down\",\"code\":\"too_many\"}"],
    ),
    ("GET /api/ready", &[""]),
    (
        "GET /api/logs/stream",
        &["HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 1000\r\n\r\n\
           : a comment\n\nevent: log\ndata: {\"n\": 1}\n\nevent: log\ndata: {"],
    ),
    (
        "GET /api/world/stream",
        &["HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
           event: error\ndata: {\"error\": \"it broke\", \"code\": \"broken\"}\n\n"],
    ),
];

/// Runs a command in `folder`; panics with its output when it fails.
#[track_caller]
fn run(
    folder: &Path,
    program: impl AsRef<std::ffi::OsStr>,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(environment.iter().copied());
    command.env("NO_PROXY", "*").env_remove("ALL_PROXY").env_remove("all_proxy");
    let output = command.output().expect("the program starts");
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {told}");
    told
}

/// The code blocks of a language in `docs/clients.md`, as one program.
fn examples(language: &str) -> String {
    let page = fs::read_to_string(support::routes::root().join("docs/clients.md")).expect("a page");
    let blocks = page.split("\n```").skip(1).step_by(2);
    let found: Vec<_> = blocks.filter_map(|block| block.strip_prefix(&format!("{language}\n"))).collect();
    assert!(found.len() > 5, "docs/clients.md has examples in {language}");
    found.join("\n\n")
}

/// A copy of a client, a place to use it in, and the programs that use it.
fn copy(client: &str, programs: &[(&str, String)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let from = support::routes::root().join("api/clients").join(client);
    run(folder.path(), "cp", &["-r", from.to_str().expect("a path of text"), "client"], &[]);
    let app = folder.path().join("app");
    fs::create_dir(&app).expect("a new directory");
    for (name, text) in programs {
        fs::write(app.join(name), text).expect("a new file");
    }
    folder
}

fn program(name: &str) -> (&str, String) {
    (name, fs::read_to_string(support::routes::root().join("tests/clients").join(name)).expect("a program"))
}

/// What the program of a client asked of the server that refuses.
#[track_caller]
fn assert_asked(server: &Refusing) {
    let times = |route: &str| server.asked(route).len();
    assert_eq!((times("GET /api/agents"), times("GET /api/version")), (3, 3), "sent again after 503 and 429, twice");
    assert_eq!(times("POST /api/agents"), 1, "a change is not sent again");
    assert_eq!(times("GET /api/status"), 1, "an hour is too long to wait");
    assert_eq!(times("GET /api/ready"), 1, "a timeout is not sent again");
    let key = Some("build-1".to_owned());
    assert_eq!(server.asked("POST /api/hooks/wake"), [key.clone(), key], "unless it has an idempotency key");
}

#[test]
fn the_clients_are_what_the_document_says() {
    if skipped() {
        return;
    }
    let daemon = Daemon::start();
    let document = daemon.home().join("openapi.json");
    fs::write(&document, daemon.get("/api/openapi.json").body).unwrap();
    let clients = support::routes::root().join("api/clients");
    let mut command = Command::new(python("json"));
    command.arg(clients.join("generate.py")).arg(&document).env("PYTHONDONTWRITEBYTECODE", "1");
    if std::env::var_os("WRITE_CLIENTS").is_none() {
        command.arg("--check");
    }
    let output = command.output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let advice = "write them with WRITE_CLIENTS=1 cargo test --test clients the_clients_are";
    assert!(output.status.success(), "{told}{advice}");
    let package = fs::read_to_string(clients.join("typescript/package.json")).unwrap();
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(package.contains(&version), "package.json has the version of the daemon");
}

#[test]
fn the_python_client_is_packed_checked_and_run() {
    if skipped() {
        return;
    }
    let python = python("hatchling, httpx2, mypy");
    let folder = copy("python", &[program("client.py"), ("examples.py", examples("python"))]);
    let app = folder.path().join("app");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"];
    run(folder.path(), &python, &[&pip[..], &["--no-index", "--target", "app", "./client"]].concat(), &[]);
    // The client too, as it is on the path and not in a place for packages.
    run(&app, &python, &["-m", "mypy", "--strict", "client.py", "examples.py"], &[("MYPYPATH", ".")]);

    let daemon = Daemon::with(&format!("api_key = \"{KEY}\"\n"));
    let (server, url) = (Refusing::start(SCRIPT), format!("http://{}", daemon.addr));
    assert!(run(&app, &python, &["client.py", &url, KEY, &server.url], &[]).ends_with("passed\n"));
    assert_asked(&server);
    let said = run(&app, &python, &["examples.py"], &[("AGENTSVC_URL", &url), ("AGENTSVC_API_KEY", KEY)]);
    assert_examples(&said, "scout-py");
}

#[test]
fn the_typescript_client_is_packed_checked_and_run() {
    if skipped() || !has_node("the TypeScript client") {
        return;
    }
    let modules = installed().join("npm/node_modules");
    let folder = copy("typescript", &[program("client.ts"), ("examples.ts", examples("ts"))]);
    let app = folder.path().join("app");
    let client = folder.path().join("client");
    // As `npm install` puts the compiler there; who works on the client has done that.
    let _ = fs::remove_dir_all(client.join("node_modules"));
    std::os::unix::fs::symlink(&modules, client.join("node_modules")).unwrap();
    run(&client, "npm", &["pack", "--silent"], &[]);
    let package = format!("../client/agentsvc-client-{}.tgz", env!("CARGO_PKG_VERSION"));
    fs::write(app.join("package.json"), "{\"type\": \"module\"}").unwrap();
    run(&app, "npm", &["install", "--offline", "--no-audit", "--no-fund", "--silent", &package], &[]);
    let compiler = modules.join(".bin/tsc");
    let options = "--strict --module nodenext --target es2022 --lib es2022,dom,dom.asynciterable --types";
    let options: Vec<_> = options.split(' ').chain(["", "client.ts", "examples.ts"]).collect();
    run(&app, compiler, &options, &[]);

    let daemon = Daemon::with(&format!("api_key = \"{KEY}\"\n"));
    let (server, url) = (Refusing::start(SCRIPT), format!("http://{}", daemon.addr));
    assert!(run(&app, "node", &["client.js", &url, KEY, &server.url], &[]).ends_with("passed\n"));
    assert_asked(&server);
    let said = run(&app, "node", &["examples.js"], &[("AGENTSVC_URL", &url), ("AGENTSVC_API_KEY", KEY)]);
    assert_examples(&said, "scout-ts");
}

#[test]
fn the_transcripts_of_the_documentation_are_what_happens() {
    if skipped() {
        return;
    }
    let root = support::routes::root();
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.chain([root.join("README.md")]);
    let blocks = ["\n```console\n", "\n```sh run\n"];
    let has_blocks = |text: String| blocks.iter().any(|block| text.contains(block));
    // Other blocks, such as `sh`, are for the reader's machine only: they install programs, or need a key.
    let is_run = |page: &PathBuf| page.is_file() && has_blocks(fs::read_to_string(page).unwrap());
    let pages: Vec<_> = pages.filter(is_run).collect();
    assert!(pages.len() > 1, "{pages:?}");
    let script = root.join("tests/clients/transcripts.py");
    for page in pages {
        let daemon = Daemon::start();
        // A page may start it again, at the address that it shows.
        let (address, home) = (daemon.addr.to_string(), daemon.home().to_str().unwrap());
        fs::write(daemon.home().join("config.toml"), format!("api_listen = \"{address}\"\n")).unwrap();
        let [script, page] = [&script, &page].map(|path| path.to_str().unwrap());
        run(root, python("json"), &[script, env!("CARGO_BIN_EXE_agentsvc"), home, &address, page], &[]);
    }
}

/// The examples print what they show.
#[track_caller]
fn assert_examples(said: &str, agent: &str) {
    let taken = format!("choose another name: agent \"{agent}\" already exists");
    for expected in ["Hello! I am", "calls system_time", &format!("{agent} Running"), "1 sessions", &taken] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
