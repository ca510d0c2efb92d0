//! What other people's tools and agents leave in the world, in backups and snapshots: MCP servers, what was accepted of them,
//! and tasks from and for external agents. Pinned nodes are in `peers.rs`.

use std::fs;

use serde_json::{Value, json};

use super::a2a::{ask, guest, said};
use super::a2a_outbound::{External, begin, discover, ended, status, task_v0};
use super::backup_house::{backup, done, entries, restore, write};
use crate::support::daemon::{Daemon, command, text};
use crate::support::model::Model;
use crate::support::{routes, until};

const SERVER: &str = "/api/mcp/servers/s";
const SECRET: &str = "secret-value-of-a-server";
const SETTINGS: &str =
    "rate_limit_per_second = 1000000\n[exec_policy]\nmode = \"full\"\n[security]\ntaint = \"deny\"\n";

/// A way to bring a world back.
enum Back {
    Backup(String),
    Snapshot(String),
}

impl Back {
    /// One of each, of the world as it is now.
    fn both(daemon: &Daemon) -> [Self; 2] {
        let snapshot = daemon.post("/api/world/snapshots", &json!({ "label": "kept" })).expect(201);
        [Self::Backup(backup(daemon)), Self::Snapshot(text(&snapshot["id"]))]
    }

    fn bring(&self, daemon: &Daemon) {
        match self {
            Self::Backup(filename) => drop(restore(daemon, &json!({ "filename": filename }))),
            Self::Snapshot(id) => drop(daemon.poke(&format!("/api/world/snapshots/{id}/restore")).expect(200)),
        }
    }
}

/// The server has these tools, with these descriptions, when it is asked next.
fn give(daemon: &Daemon, tools: &[(&str, &str)]) {
    let tool = |(name, description): &(&str, &str)| json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
    let tools: Vec<_> = tools.iter().map(tool).collect();
    write(daemon.home(), "mcp_servers/s/tools.json", &json!(tools).to_string());
}

#[track_caller]
fn connected(daemon: &Daemon) -> Value {
    until("the server is connected", || {
        let reply = daemon.get(SERVER);
        (reply.status == 200).then(|| reply.expect(200)).filter(|server| server["connected"] == true)
    })
}

/// It is the server that it was, and of its tools only the one is offered that is as it was accepted.
#[track_caller]
fn is_back(daemon: &Daemon) {
    let server = connected(daemon);
    assert_eq!((&server["env"], &server["timeout_secs"]), (&json!(["TOKEN"]), &json!(7)));
    assert_eq!((&server["tool_count"], &server["tools"][0]["name"]), (&json!(1), &json!("mcp_s_a")));
    assert_eq!(server["tools_review"]["changed"][0]["name"], "mcp_s_b", "{server}");
    assert_eq!(server["tools_review"]["new"], json!([]));
    assert_eq!(fs::read_to_string(daemon.home().join("mcp_servers/s/token.txt")).unwrap(), SECRET);
}

#[test]
fn servers_come_back_with_their_secrets_and_with_what_was_accepted_of_their_tools() {
    let daemon = Daemon::with(SETTINGS);
    let (before, after) = ([("a", "One."), ("b", "Two.")], [("a", "One."), ("b", "Other.")]);
    give(&daemon, &before);
    let script = fs::read_to_string(routes::root().join("tests/http/mcp_changing_server.py")).unwrap();
    let body = json!({ "name": "s", "transport": "stdio", "command": "/usr/bin/python3", "args": ["-c", script],
        "env": { "TOKEN": SECRET }, "timeout_secs": 7 });
    daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!(connected(&daemon)["tool_count"], 2);
    let ways = Back::both(&daemon);
    for way in &ways {
        assert_eq!(daemon.delete(SERVER).status, 204);
        give(&daemon, &after);
        fs::write(daemon.home().join("mcp_servers/s/token.txt"), "").unwrap();
        way.bring(&daemon);
        is_back(&daemon);
    }
    let Back::Backup(filename) = &ways[0] else { panic!("it is the backup") };
    let archive = daemon.home().join("backups").join(filename);
    let leaks = |content: &[u8]| content.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    assert!(entries(&archive).iter().all(|(_, content)| !leaks(content)));
    // In another home, whose key is another one: the operator gives the value again, and what was accepted holds.
    let home = tempfile::tempdir().unwrap();
    done(&command(home.path()).args(["restore", archive.to_str().unwrap()]).output().unwrap());
    let moved = Daemon::on(home);
    let shown = until("the server is there", || {
        let reply = moved.get(SERVER);
        (reply.status == 200).then(|| reply.expect(200)).filter(|server| server["status"] == "disconnected")
    });
    assert!(text(&shown["error"]).contains("the value of TOKEN cannot be decrypted; send it again"), "{shown}");
    give(&moved, &after);
    moved.put(SERVER, &json!({ "env": { "TOKEN": SECRET } })).expect(200);
    is_back(&moved);
}

#[test]
fn tasks_from_and_for_external_agents_come_back_and_go_on() {
    let (model, external) = (Model::start(), External::v0());
    external.results("message/send", &[task_v0("submitted", "")]);
    let key = "0123456789abcdef0123456789abcdef";
    let settings = format!(
        "api_key = \"{key}\"\nrate_limit_per_second = 1000000\n[a2a]\nenabled = true\nagents = [\"scout\"]\n{}",
        model.config()
    );
    let mut daemon = external.daemon(&settings);
    daemon.use_key(key);
    daemon.agent_with("scout", "");
    let guest = guest(&daemon);
    let task = |id: &str| ask(&guest, "tasks/get", &json!({ "id": id }));
    let state = |id: &str| text(&task(id)["status"]["state"]);
    let over = text(&ask(&guest, "message/send", &json!({ "message": said("over") }))["id"]);
    let (known, seen) = (discover(&daemon, &external), task(&over));
    // One from a client and one for an agent are open.
    let unanswered = || {
        model.hold();
        external.results("tasks/get", &[task_v0("working", "")]);
    };
    let answered = |open: &str, sent: &str| {
        model.release();
        external.results("tasks/get", &[task_v0("completed", "sunny")]);
        until("the task has ended", || (state(open) == "completed").then_some(()));
        assert_eq!(task(open)["artifacts"][0]["parts"][0]["text"], "echo: open");
        let ended = ended(&daemon, sent);
        assert_eq!((&ended["status"], &ended["result"]["parts"][0]["text"]), (&json!("completed"), &json!("sunny")));
    };
    unanswered();
    let open = json!({ "message": said("open"), "configuration": { "blocking": false } });
    let open = text(&ask(&guest, "message/send", &open)["id"]);
    let sent = begin(&daemon, &known, "and today?");
    until("both are asked", || (model.waiting() > 0 && status(&daemon, &sent)["status"] == "working").then_some(()));
    let ways = Back::both(&daemon);
    answered(&open, &sent);
    for way in &ways {
        assert_eq!(daemon.delete(&format!("/api/a2a/agents/{}", text(&known["id"]))).status, 204);
        unanswered();
        way.bring(&daemon);
        assert_eq!(daemon.get("/api/a2a/agents").expect(200)["agents"], json!([known]));
        assert_eq!((task(&over), state(&open)), (seen.clone(), "working".to_owned()));
        assert_eq!(status(&daemon, &sent)["status"], "working");
        answered(&open, &sent);
    }
}
