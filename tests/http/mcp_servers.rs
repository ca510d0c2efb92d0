//! The managed set of MCP servers (spec 3, MCP servers): a scripted server in Python, added, changed, ended and restarted.

use std::fs;

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{routes, until};

/// Everything may run, as clients' commands need it.
const FULL: &str = "[exec_policy]\nmode = \"full\"\n";
const PYTHON: &str = "/usr/bin/python3";

fn script() -> String {
    fs::read_to_string(routes::root().join("tests/http/mcp_server.py")).unwrap()
}

/// The body of a server that runs the script in this mode. As an argument: its file is not readable in the sandbox.
fn raw(name: &str, mode: &str) -> Value {
    json!({ "name": name, "transport": "stdio", "command": PYTHON, "args": ["-c", script(), mode] })
}

/// A catalog entry that runs the script.
fn install_entry(daemon: &Daemon, id: &str) {
    let catalog = daemon.home().join("mcp/catalog");
    fs::create_dir_all(&catalog).unwrap();
    let entry = format!(
        "id = \"{id}\"\nname = \"Notes\"\ndescription = \"d\"\ncategory = \"new\"\n[transport]\ntype = \"stdio\"\n\
         command = \"{PYTHON}\"\nargs = [\"-c\", {:?}, \"$HOME\"]\n[[required_env]]\nname = \"TOKEN\"\nis_secret = true\n\
         [health_check]\ninterval_secs = 60\nsetup_instructions = \"Sign in.\"\n",
        script()
    );
    fs::write(catalog.join(format!("{id}.toml")), entry).unwrap();
}

#[track_caller]
fn connected(daemon: &Daemon, name: &str) -> Value {
    until("the server is connected", || {
        let reply = daemon.get(&format!("/api/mcp/servers/{name}"));
        (reply.status == 200).then(|| reply.expect(200)).filter(|server| server["connected"] == true)
    })
}

#[track_caller]
fn disconnected(daemon: &Daemon, name: &str) -> Value {
    until("the server is not connected", || {
        Some(daemon.get(&format!("/api/mcp/servers/{name}")).expect(200)).filter(|it| it["status"] == "disconnected")
    })
}

#[test]
fn a_server_is_added_listed_changed_and_removed() {
    let daemon = Daemon::with(FULL);
    let mut body = raw("files", "");
    body["env"] = json!({ "TOKEN": "secret-value" });
    let added = daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!(
        (&added["status"], &added["name"], &added["reload"]),
        (&json!("added"), &json!("files"), &json!("reloaded"))
    );
    let server = connected(&daemon, "files");
    assert_eq!(server["env"], json!(["TOKEN"]));
    assert_eq!(server["tools"][0]["name"], "mcp_files_echo");
    let list = daemon.get("/api/mcp/servers").expect(200);
    assert_eq!(
        (&list["total"], &list["connected"], &list["total_connected"]),
        (&json!(1), &json!(["files"]), &json!(1))
    );
    assert!(!list.to_string().contains("secret-value"), "{list}");
    assert_eq!(daemon.post("/api/mcp/servers", &raw("Files", "")).expect(409)["code"], "mcp_server_exists");
    let health = &daemon.get("/api/mcp/health").expect(200)["health"][0];
    assert_eq!((&health["status"], &health["consecutive_failures"]), (&json!("connected"), &json!(0)));
    // A value that is left out is kept; the log does not show it.
    let changed = daemon
        .put(&format!("/api/mcp/servers/{}", "files"), &json!({ "env": ["TOKEN"], "timeout_secs": 9 }))
        .expect(200);
    assert_eq!((&changed["status"], &changed["timeout_secs"]), (&json!("updated"), &json!(9)));
    connected(&daemon, "files");
    let log = text(&daemon.get(&format!("/api/mcp/servers/{}/logs", "files")).expect(200)["log"]);
    assert!(log.contains("started with ***") && !log.contains("secret-value"), "{log}");
    let again = daemon.post(&format!("/api/mcp/servers/{}/reconnect", "files"), &json!({})).expect(200);
    assert_eq!((&again["status"], &again["tool_count"]), (&json!("connected"), &json!(5)));
    assert_eq!(daemon.delete(&format!("/api/mcp/servers/{}", "files")).status, 204);
    daemon.get(&format!("/api/mcp/servers/{}", "files")).refused(404);
    assert_eq!(daemon.get("/api/tools/mcp_files_echo").status, 404);
}

#[test]
fn commands_of_clients_do_not_start_unless_everything_may_run() {
    let daemon = Daemon::start();
    let added = daemon.post("/api/mcp/servers", &raw("files", "")).expect(201);
    assert_eq!(added["connected"], false);
    assert!(text(&added["error"]).contains("[exec_policy] mode"), "{added}");
    assert_eq!(daemon.get(&format!("/api/mcp/servers/{}/logs", "files")).expect(200)["log"], "");
    daemon.post(&format!("/api/mcp/servers/{}/reconnect", "files"), &json!({})).refused(502);
}

#[test]
fn a_server_that_cannot_start_or_floods_is_there_with_its_reason() {
    let daemon = Daemon::with(FULL);
    daemon.post("/api/mcp/servers", &raw("exits", "exit")).expect(201);
    let server = disconnected(&daemon, "exits");
    assert!(text(&server["error"]).contains("exit code 3"), "{server}");
    assert!(
        text(&daemon.get(&format!("/api/mcp/servers/{}/logs", "exits")).expect(200)["log"]).contains("it cannot start")
    );
    daemon.post("/api/mcp/servers", &raw("floods", "flood")).expect(201);
    let server = disconnected(&daemon, "floods");
    assert!(text(&server["error"]).contains("message of more than"), "{server}");
}

#[test]
fn the_catalog_installs_with_credentials_and_survives_a_kill() {
    let mut daemon = Daemon::start();
    install_entry(&daemon, "notes");
    let entry = daemon.get(&format!("/api/mcp/catalog/{}", "notes")).expect(200);
    assert_eq!((&entry["setup_instructions"], &entry["installed"]), (&json!("Sign in."), &json!(false)));
    daemon.get(&format!("/api/mcp/catalog/{}", "none")).refused(404);
    daemon.post("/api/mcp/servers", &json!({ "template_id": "none" })).refused(404);
    let wrong = json!({ "template_id": "notes", "credentials": { "LD_PRELOAD": "x" } });
    daemon.post("/api/mcp/servers", &wrong).refused_field(400, "credentials");
    let added = daemon.post("/api/mcp/servers", &json!({ "template_id": "notes" })).expect(201);
    assert_eq!(added["error"], "it needs a value for TOKEN");
    daemon
        .put(&format!("/api/mcp/servers/{}", "notes"), &json!({ "credentials": { "TOKEN": "secret-value" } }))
        .expect(200);
    assert_eq!(connected(&daemon, "notes")["template_id"], "notes");
    assert_eq!(daemon.get("/api/mcp/catalog").expect(200)["entries"][0]["installed"], true);
    daemon.kill();
    daemon.restart();
    connected(&daemon, "notes");
    assert_eq!(daemon.post("/api/mcp/reload", &json!({})).expect(200)["status"], "reloaded");
}

#[test]
fn servers_of_the_configuration_follow_its_reload() {
    let daemon = Daemon::start();
    let config = daemon.home().join("config.toml");
    let before = fs::read_to_string(&config).unwrap();
    let list = format!(
        "{before}\n[[mcp_servers]]\nname = \"mine\"\n[mcp_servers.transport]\ntype = \"stdio\"\ncommand = \"{PYTHON}\"\n\
         args = [\"-c\", {:?}]\n",
        script()
    );
    fs::write(&config, list).unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    assert_eq!(connected(&daemon, "mine")["source"], "config");
    assert_eq!(
        daemon.put(&format!("/api/mcp/servers/{}", "mine"), &json!({})).expect(409)["code"],
        "mcp_server_configured"
    );
    daemon.delete(&format!("/api/mcp/servers/{}", "mine")).refused(409);
    fs::write(&config, before).unwrap();
    daemon.post("/api/config/reload", &json!({})).expect(200);
    until("the server is gone", || (daemon.get(&format!("/api/mcp/servers/{}", "mine")).status == 404).then_some(()));
}

/// Lets an agent call tools in turn, and gives what the model got as their results.
fn results(model: &Model, daemon: &Daemon, agent: &str, calls: &[(&str, &str)]) -> Vec<String> {
    let call = |(tool, input): &(&str, &str)| {
        model.script([Reply::calls(&[("c", tool, input)]), Reply::text("done")]);
        daemon.say(agent, "go on");
        let requests = model.requests();
        let last = requests.iter().rev().filter_map(|request| request["messages"].as_array()?.last());
        text(&last.into_iter().find(|message| message["role"] == "tool").expect("a result")["content"])
    };
    calls.iter().map(call).collect()
}

#[test]
fn a_server_that_dies_or_hangs_in_a_call_or_changes_its_tools_holds_no_turn() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}{FULL}", model.config()));
    let mut body = raw("bad", "");
    body["timeout_secs"] = json!(1);
    daemon.post("/api/mcp/servers", &body).expect(201);
    connected(&daemon, "bad");
    let agent = daemon.agent_with("ann", "mcp_servers = [\"bad\"]\n[capabilities]\ntools = [\"mcp_*\"]\n");
    let said = results(&model, &daemon, &agent, &[("mcp_bad_echo", r#"{"text":"hi"}"#), ("mcp_bad_change", "{}")]);
    assert_eq!((said[0].contains("echo hi"), said[1].contains("changed")), (true, true), "{said:?}");
    until("the tool that came later is there", || (daemon.get("/api/tools/mcp_bad_late").status == 200).then_some(()));
    let said = results(&model, &daemon, &agent, &[("mcp_bad_hang", "{}")]);
    assert!(said[0].contains("did not answer within 1 seconds"), "{said:?}");
    daemon.post(&format!("/api/mcp/servers/{}/reconnect", "bad"), &json!({})).expect(200);
    let said = results(&model, &daemon, &agent, &[("mcp_bad_die", "{}")]);
    assert!(said[0].contains("ended before it answered"), "{said:?}");
    let server = disconnected(&daemon, "bad");
    assert!(text(&server["error"]).contains("exit code 7"), "{server}");
    let health = &daemon.get("/api/mcp/health").expect(200)["health"][0];
    assert_eq!((&health["reconnecting"], &health["status"]), (&json!(true), &json!("disconnected")));
}

#[test]
fn many_tools_do_not_fill_prompts() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}{FULL}", model.config()));
    let mut body = raw("many", "");
    body["env"] = json!({ "EXTRA": "900" });
    daemon.post("/api/mcp/servers", &body).expect(201);
    assert_eq!(connected(&daemon, "many")["tool_count"], 905);
    let grants = "mcp_servers = [\"many\"]\n[capabilities]\ntools = [\"mcp_*\", \"tool_search\", \"tool_load\"]\n";
    let agent = daemon.agent_with("ann", grants);
    let said = results(&model, &daemon, &agent, &[("tool_search", r#"{"query":"extra_777"}"#)]);
    assert!(said[0].contains("mcp_many_extra_777"), "{said:?}");
    let offered = model.requests().last().unwrap()["tools"].as_array().unwrap().len();
    assert!(offered < 300, "{offered} tools in a prompt");
}
