//! An adapter that is not to be trusted: what it takes, claims and floods harms no other channel.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::channel_process::{Adapter, OPEN, Stage, daemon_with, status_of};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::{routes, until};

/// Bytes of a hostile line.
const LINE_BYTES: usize = 62 << 20;
/// Bytes that such a line may cost beside what the daemon takes anyway.
const COST_MAX: u64 = 200 << 20;

fn says(adapter: &mut Adapter, user: &str, text: &str) {
    adapter.say(&json!({ "method": "message", "params": { "user_id": user, "user_name": user, "text": text } }));
}

/// The most memory that the daemon has had, in bytes.
fn peak(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn warns(daemon: &Daemon, name: &str, of: &str) -> bool {
    status_of(daemon, name)["warnings"].to_string().contains(of)
}

#[test]
fn it_gets_no_variable_by_asking_for_it() {
    let (model, stage) = (Model::start(), Stage::new());
    let modules = tempfile::tempdir().expect("a directory");
    let package = modules.path().join("librefang/sidecar/adapters");
    std::fs::create_dir_all(&package).expect("directories");
    let script = std::fs::read_to_string(routes::root().join("tests/http/channel_adapter.py")).expect("the script");
    let fields = "[{\"key\": \"HOOK_TOKEN\"}, {\"key\": \"EVIL_KEY\"}, {\"key\": \"FILE_KEY\"}, {\"key\": \"NTFY_TOKEN\"}, {\"key\": \"X_API_KEY\"}]";
    let script = script
        .replace("    print(json.dumps({\"name\"", &format!("    fields = {fields}\n    print(json.dumps({{\"name\""));
    std::fs::write(package.join("evil.py"), script).expect("a module");
    let entry = stage.entry("evil", &format!("{OPEN}\nenv_passthrough = [\"NAMED\", \"NAMED_KEY\"]"));
    let start = entry.find("args = ").expect("arguments");
    let end = start + entry[start..].find("\nenv = ").expect("variables");
    let entry = format!("{}args = [\"-m\", \"librefang.sidecar.adapters.evil\"]{}", &entry[..start], &entry[end..]);
    let entry = entry.replace("env = { ", &format!("env = {{ PYTHONPATH = {:?}, ", modules.path()));
    let secrets = "EVIL_KEY=0\nFILE_KEY=1\nNAMED_KEY=6\nNTFY_TOKEN=2\nX_API_KEY=3\nUNASKED=4\nALERTS__NTFY_TOKEN=5\n";
    let daemon = Daemon::with_env(&model.config(), &[("HOOK_TOKEN", "a"), ("NAMED", "b"), ("UNNAMED", "c")]);
    daemon.agent_with("scout", "");
    std::fs::write(daemon.home().join("secrets.env"), secrets).expect("secrets");
    let config = daemon.home().join("config.toml");
    let before = std::fs::read_to_string(&config).expect("the configuration");
    std::fs::write(&config, format!("{before}\n{entry}")).expect("written");
    daemon.post("/api/config/reload", &json!({})).expect(200);
    let mut adapter = stage.ready(&[]);
    adapter.line("!env");
    let names = text(&adapter.next_of("send")["text"]);
    assert!(["EVIL_KEY", "NAMED", "NAMED_KEY", "PYTHONPATH"].iter().all(|name| names.contains(name)), "{names}");
    for name in ["FILE_KEY", "HOOK_TOKEN", "UNNAMED", "NTFY_TOKEN", "X_API_KEY", "UNASKED"] {
        assert!(!names.split_whitespace().any(|word| word == name), "{name}: {names}");
    }
}

#[test]
fn it_decides_nothing_for_agents_of_others() {
    let (model, stage) = (Model::start(), Stage::new());
    let entry = stage.entry("bot", &format!("{OPEN}\napproval_recipients = [\"olga\"]"));
    let daemon = Daemon::with(&format!("{}{entry}", model.config()));
    let (scout, careful) = (daemon.agent_with("scout", ""), daemon.agent_with("careful", ""));
    let mut adapter = stage.ready(&["interactive"]);
    let recipients = json!([{ "platform_id": "mallory", "display_name": "x" }]);
    adapter.say(&json!({ "method": "ready", "params": { "notification_recipients": recipients, "capabilities": ["interactive"] } }));
    assert_eq!(adapter.next_of("ready_ack"), Value::Null);
    let ask = |agent: &str| {
        let body = json!({ "agent_id": agent, "action": "deploy", "description": "d", "payload": {} });
        text(&daemon.post("/api/approvals", &body).expect(201)["id"])
    };
    let hers = ask(&careful);
    let own = ask(&scout);
    // Only the configured recipient is told, and only of what its channel's agent asks.
    let told = adapter.next_of("interactive");
    assert_eq!(told["channel_id"], "olga");
    let key = own.replace('-', "");
    assert_eq!(told["message"]["buttons"][0][0]["action"], format!("/approve {key}"));
    says(&mut adapter, "mallory", &format!("/approve {hers}"));
    assert!(!text(&adapter.next_of("send")["text"]).contains("Approved"));
    says(&mut adapter, "olga", &format!("/approve {hers}"));
    assert!(text(&adapter.next_of("send")["text"]).contains("no approval"));
    assert_eq!(daemon.get(&format!("/api/approvals/{hers}")).expect(200)["status"], "pending");
    let pressed = json!({ "ButtonCallback": { "action": format!("/approve {key}"), "message_text": "x" } });
    adapter.say(&json!({ "method": "message", "params": { "user_id": "olga", "user_name": "O", "content": pressed } }));
    assert_eq!(adapter.next_of("send")["text"], "Approved.");
    assert_eq!(daemon.get(&format!("/api/approvals/{own}")).expect(200)["status"], "approved");
}

#[test]
fn a_line_of_62_mib_costs_little() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bad", OPEN));
    let mut bad = stage.ready(&[]);
    let before = peak(&daemon);
    for _ in 0..2 {
        bad.line(&format!("!tree {LINE_BYTES}"));
    }
    until("the lines were read", || warns(&daemon, "bad", "wrote 2 lines").then_some(()));
    let cost = peak(&daemon) - before;
    assert!(cost <= COST_MAX, "{cost} bytes");
    println!("a line of {LINE_BYTES} bytes cost {cost} bytes");
    says(&mut bad, "ann", "hello");
    assert_eq!(bad.next_of("send")["text"], "echo: hello");
}

#[test]
fn another_channel_answers_whatever_it_does() {
    let (model, stage, other) = (Model::start(), Stage::new(), Stage::new());
    let entry = stage.entry("bad", &format!("{OPEN}\nshutdown_grace_secs = 1"));
    let daemon = daemon_with(&model, &format!("{entry}{}", other.entry("good", OPEN)));
    let (mut bad, mut good) = (stage.ready(&[]), other.ready(&[]));
    let mut asked = 0;
    let mut answers = |good: &mut Adapter| {
        asked += 1;
        let said = format!("hello {asked}");
        says(good, "ann", &said);
        assert_eq!(good.next_of("send")["text"], format!("echo: {said}"));
    };
    // Lines that are too large for anything, messages in the name of others, and a flood of chats.
    bad.line(&format!("!tree {LINE_BYTES}"));
    answers(&mut good);
    for at in 0..2_000 {
        says(&mut bad, &format!("c{}", at % 500), "flood");
        if at % 500 == 0 {
            answers(&mut good);
        }
    }
    says(&mut bad, "ann", "what did I say in the other channel?");
    answers(&mut good);
    // It ends again and again.
    for _ in 0..3 {
        bad.line("!exit 1");
        bad = stage.ready(&[]);
        answers(&mut good);
    }
    // It does not end when it is told to.
    bad.line("!deaf");
    let begun = Instant::now();
    assert!(daemon.cli(&["stop"]).status.success());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn one_that_reads_nothing_keeps_no_other_waiting() {
    let (model, stage, other) = (Model::start(), Stage::new(), Stage::new());
    let entry = stage.entry("bad", &format!("{OPEN}\nshutdown_grace_secs = 1"));
    let daemon = daemon_with(&model, &format!("{entry}{}", other.entry("good", OPEN)));
    let (mut bad, mut good) = (stage.ready(&[]), other.ready(&[]));
    bad.line("!stuck");
    // More than its pipe holds: the write of an answer does not come to its end.
    for at in 0..40 {
        says(&mut bad, &format!("c{at}"), &"x".repeat(if at < 8 { 60_000 } else { 10 }));
    }
    let open = |daemon: &Daemon| {
        let list = daemon.get("/api/channels/bad/sends?limit=100").expect(200);
        let all = list["sends"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|send| send["status"] == "queued").count()
    };
    until("its answers wait", || (open(&daemon) >= 30).then_some(()));
    // A write that is stuck is given up after many seconds. Whoever waited for one would not be here in time.
    let begun = Instant::now();
    for at in 0..20 {
        let said = format!("hello {at}");
        says(&mut good, "ann", &said);
        assert_eq!(good.next_of("send")["text"], format!("echo: {said}"));
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(open(&daemon) > 0);
    let begun = Instant::now();
    assert!(daemon.cli(&["stop"]).status.success());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
