//! A server of the official `mcp` package that asks for a sign-in, with its authorization server.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::json;

use crate::support::clients::{python, skipped};
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::{PATIENCE, routes, until};

/// The script of the server.
const SCRIPT: &str = "tests/clients/mcp_oauth_server.py";

/// The server, and the lines that it prints.
struct Guarded {
    child: Child,
    root: String,
    lines: Receiver<String>,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Guarded {
    fn start(token_secs: &str) -> Self {
        let mut command = Command::new(python("mcp"));
        command.arg(routes::root().join(SCRIPT)).env("TOKEN_SECS", token_secs);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("Python starts");
        let (output, (sender, lines)) = (child.stdout.take().unwrap(), channel());
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let root = lines.recv_timeout(PATIENCE).expect("the server starts");
        Self { child, root, lines }
    }

    /// Lines so far that begin so.
    fn printed(&self, start: &str) -> usize {
        self.lines.try_iter().filter(|line| line.starts_with(start)).count()
    }
}

/// What a browser does with the URL: the authorization server agrees at once and sends it on to the daemon.
fn browse(daemon: &Daemon, root: &str, auth_url: &str) {
    let addr = root.trim_start_matches("http://").parse().unwrap();
    let sent = Client::new(addr).get(auth_url.strip_prefix(root).unwrap());
    let back = sent.header("location").expect("the browser is sent back");
    let path = back.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap();
    assert_eq!(daemon.get(path).expect(200)["auth"]["state"], "authorized");
}

#[test]
fn the_daemon_signs_in_at_a_server_of_the_official_package() {
    if skipped() {
        return;
    }
    let server = Guarded::start("4");
    let daemon = Daemon::with(&format!(
        "[tool_invoke]\nenabled = true\nallowlist = [\"mcp_guarded_whoami\"]\n\
         [[mcp_servers]]\nname = \"guarded\"\n[mcp_servers.transport]\ntype = \"http\"\nurl = \"{}/mcp\"\n",
        server.root
    ));
    let path = "/api/mcp/servers/guarded";
    let state = || text(&daemon.get(&format!("{path}/auth/status")).expect(200)["auth"]["state"]);
    until("the server asks for a sign-in", || (state() == "needs_auth").then_some(()));
    let begun = daemon.poke(&format!("{path}/auth/start")).expect(200);
    browse(&daemon, &server.root, &text(&begun["auth_url"]));
    until("the server is connected", || (daemon.get(path).expect(200)["connected"] == true).then_some(()));
    let agent = daemon.agent_with("ann", "mcp_servers = [\"guarded\"]\n[capabilities]\ntools = [\"mcp_*\"]\n");
    // Calls go on while tokens of four seconds end and are refreshed.
    let mut tokens = 0;
    until("the token was refreshed twice", || {
        let called = daemon.post(&format!("/api/tools/mcp_guarded_whoami/invoke?agent_id={agent}"), &json!({}));
        assert!(called.expect(200)["content"].as_str().unwrap().starts_with("client "), "{}", called.text());
        tokens += server.printed("tokens");
        (tokens >= 3).then_some(())
    });
    assert_eq!(state(), "authorized");
    assert_eq!(daemon.delete(&format!("{path}/auth/revoke")).expect(200)["revoked"], true);
    until("the token is revoked there", || (server.printed("revoked") == 1).then_some(()));
    until("the server asks for a sign-in again", || (daemon.get(path).expect(200)["connected"] == false).then_some(()));
    assert_eq!(state(), "needs_auth");
}
