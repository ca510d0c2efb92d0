//! Reading the configuration anew: what takes effect, what waits, and that a wrong one changes nothing (spec 2,
//! Configuration).

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::config::started;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::socket::Socket;
use crate::support::stream::Events;
use crate::support::until;

/// Puts other lines behind the listen address.
fn rewrite(daemon: &Daemon, config: &str) {
    let path = daemon.home().join("config.toml");
    fs::write(path, format!("api_listen = \"127.0.0.1:0\"\n{config}")).unwrap();
}

fn reload(daemon: &Daemon) -> Value {
    daemon.poke("/api/config/reload").expect(200)
}

#[test]
fn a_reload_says_what_changed_and_what_waits() {
    let daemon = Daemon::with("log_level = \"info\"\n");
    let nothing =
        json!({ "status": "unchanged", "changed": [], "applied": [], "restart_required": [], "warnings": [] });
    assert_eq!(reload(&daemon), nothing);
    rewrite(&daemon, "log_level = \"debug\"\n[world]\ntick_hz = 30\n[compaction]\nx = 1\n");
    let done = reload(&daemon);
    assert_eq!((&done["status"], &done["changed"]), (&json!("reloaded"), &json!(["log_level", "world.tick_hz"])));
    assert_eq!((&done["applied"], &done["restart_required"]), (&json!(["log_level"]), &json!(["world.tick_hz"])));
    assert_eq!(done["warnings"], json!(["line 5: table [compaction] has no effect in this release"]));
    let warnings = daemon.get("/api/health/detail").expect(200)["config_warnings"].to_string();
    assert!(warnings.contains("[compaction]") && warnings.contains("world.tick_hz"), "{warnings}");
    let again = reload(&daemon);
    assert_eq!((&again["status"], &again["restart_required"]), (&json!("unchanged"), &json!(["world.tick_hz"])));
    rewrite(&daemon, "");
    assert_eq!(reload(&daemon)["restart_required"], json!([]), "what is taken back waits for nothing");
}

#[test]
fn a_wrong_file_changes_nothing_and_every_problem_is_named() {
    let daemon = Daemon::with("[triggers]\nmax_depth = 3\n");
    rewrite(&daemon, "log_levle = \"debug\"\n[triggers]\nmax_depth = 0\n[world]\ntick_hz = \"x\"\n");
    let refused = daemon.poke("/api/config/reload");
    let body = refused.expect(400);
    assert_eq!(body["code"], "config_invalid");
    assert!(
        refused
            .refused(400)
            .contains("config.toml:2:1: log_levle: unknown key; did you mean `log_level`? (and 2 more)"),
        "{body}"
    );
    let places: Vec<_> =
        body["problems"].as_array().unwrap().iter().map(|p| (&p["line"], &p["column"], &p["key"])).collect();
    let expected = [
        (&json!(2), &json!(1), &json!("log_levle")),
        (&json!(4), &json!(13), &json!("triggers.max_depth")),
        (&json!(6), &json!(11), &json!("world.tick_hz")),
    ];
    assert_eq!(places, expected);
    assert_eq!(daemon.get("/api/config").expect(200)["triggers"]["max_depth"], 3);
    fs::write(daemon.home().join("config.toml"), b"api_key = \"\xff\"\n").unwrap();
    assert!(daemon.poke("/api/config/reload").refused(400).contains("not UTF-8"));
}

/// A file with every kind of mistake: behind `#!` the keys that are wrong in the line.
const MISTAKES: &str = r#"api_lisen = "127.0.0.1:1" #! api_lisen
api_key = "two words" #! api_key
cors_origin = "https://a" #! cors_origin
log_level = "wran" #! log_level
mode = 3 #! mode
data_dir = "relative" #! data_dir
rate_limit_per_second = 0 #! rate_limit_per_second
network_enabled = "yes" #! network_enabled
zzzzzzzzzzzz = 1 #! zzzzzzzzzzzz
tick_hz = 20 #! tick_hz
memory = 3 #! memory
audit = "all" #! audit
api_listen = "0.0.0.0:4545" #! api_listen
[default_model]
provider = "" #! default_model.provider
model = 1.5 #! default_model.model
api_key_env = "sk-123" #! default_model.api_key_env
base_url = "localhost:80" #! default_model.base_url
[providers.mine]
base_url = "https://u:p@h/v1" #! providers.mine.base_url
context_tokens = 100 #! providers.mine.context_tokens
[providers.other] #! providers.other
[world]
tick_hz = 1001 #! world.tick_hz
cors_origin = [] #! world.cors_origin
[queue]
claim_timeout_secs = -1 #! queue.claim_timeout_secs
[queue.concurrency]
provider_calls = 1e3 #! queue.concurrency.provider_calls
providers = { openai = 0, mine = "x" } #! queue.concurrency.providers.openai queue.concurrency.providers.mine
[triggers]
max_depth = true #! triggers.max_depth
[web]
fecth = {} #! web.fecth
[web.fetch]
ssrf_allowed_hosts = ["wiki.corp", "http://x"] #! web.fetch.ssrf_allowed_hosts
timeout_secs = 99999999999999999999 #! web.fetch.timeout_secs
[web.search]
provider = "brve" #! web.search.provider
base_url = "https://h/?key=1" #! web.search.base_url
[exec_policy]
mode = "allow" #! exec_policy.mode
allowed_commands = ["/bin/ls"] #! exec_policy.allowed_commands
env_passthrough = ["A=B", "PATH", 7] #! exec_policy.env_passthrough exec_policy.env_passthrough exec_policy.env_passthrough
path = ["bin"] #! exec_policy.path
[approval]
require_approval = [""] #! approval.require_approval
timeout_secs = 1979-05-27 #! approval.timeout_secs
[uploads]
max_bytes = 0x1_0000_0000 #! uploads.max_bytes
[budget]
daily_limit_usd = -1 #! budget.daily_limit_usd
monthly_limit_usd = nan #! budget.monthly_limit_usd
unknown_price_per_m = "cheap" #! budget.unknown_price_per_m
[prices.gpt] #! prices.gpt
[log]
format = "xml" #! log.format
"#;

#[test]
fn forty_kinds_of_mistakes_are_answered_by_forty_messages_and_change_nothing() {
    let daemon = Daemon::with("[triggers]\nmax_depth = 3\n");
    let write = |text: &str| fs::write(daemon.home().join("config.toml"), text).unwrap();
    let before = (daemon.get("/api/config").text(), daemon.get("/api/config/export").text());
    write(MISTAKES);
    let refused = daemon.poke("/api/config/reload");
    let body = refused.expect(400);
    let problems = body["problems"].as_array().unwrap();
    let found: Vec<(u64, String)> =
        problems.iter().map(|problem| (problem["line"].as_u64().unwrap(), text(&problem["key"]))).collect();
    let marked = MISTAKES.lines().zip(1..).filter_map(|(line, at)| Some((at, line.split_once(" #! ")?.1)));
    let expected: Vec<(u64, String)> =
        marked.flat_map(|(at, keys)| keys.split(' ').map(move |key| (at, key.to_owned()))).collect();
    assert_eq!(found, expected);
    let said: BTreeSet<String> =
        problems.iter().map(|problem| format!("{}: {}", text(&problem["key"]), text(&problem["message"]))).collect();
    assert!(said.len() == found.len() && said.len() >= 40, "each has words of its own: {said:?}");
    for secret in ["two words", "sk-123", "u:p@h"] {
        assert!(!refused.text().contains(secret), "{secret}");
    }
    for no_toml in ["api_key = hunter2-canary\n", "api_key = \"hunter2-canary\n", "api_key = \"hunter2-canary\" x\n"] {
        write(no_toml);
        let refused = daemon.poke("/api/config/reload");
        assert!(refused.refused(400).contains("config.toml:1:"), "{}", refused.text());
        assert!(!refused.text().contains("canary"), "{}", refused.text());
    }
    assert!(!daemon.stderr().contains("canary"));
    assert_eq!((daemon.get("/api/config").text(), daemon.get("/api/config/export").text()), before);
}

#[test]
fn key_origins_and_rate_change_while_the_server_runs() {
    let daemon = Daemon::with("api_key = \"old\"\n");
    let (old, new) = (daemon.keyed("old"), daemon.keyed("new"));
    old.get("/api/status").expect(200);
    rewrite(&daemon, "api_key = \"new\"\ncors_origin = [\"https://chat.example.org\"]\nrate_limit_per_second = 2\n");
    let done = old.poke("/api/config/reload").expect(200);
    assert_eq!(done["applied"], json!(["api_key", "cors_origin", "rate_limit_per_second"]));
    old.get("/api/status").refused(401);
    new.get("/api/status").expect(200);
    let page = new.send("GET", "/api/status", &[("origin", "https://chat.example.org")], None);
    assert_eq!(page.header("access-control-allow-origin"), Some("https://chat.example.org"));
    until("the new rate holds", || (new.get("/api/version").status == 429).then_some(()));
}

#[test]
fn another_key_ends_the_streams_that_the_old_one_let_in() {
    let mut daemon = Daemon::with("api_key = \"old\"\n");
    daemon.use_key("old");
    let agent = daemon.agent("a");
    let query = "/api/world/query/stream?q=agents%20select%20name&every=3600s";
    let attach = format!("/api/agents/{agent}/attach");
    let paths = ["/api/world/events", "/api/world/stream", "/api/logs/stream", query, &attach];
    let mut old: Vec<_> = paths.iter().map(|path| Events::open(&daemon, "GET", path, None)).collect();
    let end = |streams: Vec<Events>| {
        let reads: Vec<_> = streams.into_iter().map(|events| thread::spawn(|| events.all())).collect();
        until("the streams end", || reads.iter().all(thread::JoinHandle::is_finished).then_some(()));
        reads.into_iter().for_each(|read| drop(read.join().expect("it ends cleanly")));
    };
    let mut socket = Socket::open(&daemon, &agent);
    rewrite(&daemon, "api_key = \"old\"\nrate_limit_per_second = 5000\n");
    reload(&daemon);
    socket.send(r#"{"type":"ping"}"#);
    assert_eq!(socket.next()["type"], "pong", "another rate ends nothing");
    assert!(old[1].nth(2).is_some(), "the measurements go on");
    rewrite(&daemon, "api_key = \"new\"\nrate_limit_per_second = 5000\n");
    reload(&daemon);
    end(old);
    assert_eq!(socket.closed(), 1008);
    assert_eq!(
        Socket::ask(&daemon, &format!("/api/agents/{agent}/ws"), &[]).err().map(|refused| refused.status),
        Some(401)
    );
    daemon.use_key("new");
    let mut socket = Socket::open(&daemon, &agent);
    let world = Events::open(&daemon, "GET", "/api/world/stream", None);
    // Without a key the same.
    rewrite(&daemon, "api_key = \"\"\nrate_limit_per_second = 5000\n");
    reload(&daemon);
    assert_eq!(socket.closed(), 1008);
    end(vec![world]);
}

/// As long as a key must be beyond loopback.
const KEY: &str = "01234567890123456789012345678901";

#[test]
fn a_key_may_not_go_while_the_daemon_can_be_reached_from_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(home.path().join("config.toml"), text).unwrap();
    let (everywhere, here) = ("api_listen = \"0.0.0.0:0\"\n", "api_listen = \"127.0.0.1:0\"\n");
    write(&format!("{everywhere}api_key = \"{KEY}\"\n"));
    let refuses = |client: &Client| {
        let refused = client.poke("/api/config/reload");
        assert!(refused.refused(400).contains("needs an `api_key`"), "{}", refused.text());
        Client { key: None, ..client.clone() }.get("/api/status").refused(401);
    };
    {
        let (_child, client) = started(home.path(), &[], Some(KEY));
        write(&format!("{everywhere}api_key = \"\"\n"));
        refuses(&client);
        // The file listens elsewhere, but the daemon does not until its next start.
        write(&format!("{here}api_key = \"\"\n"));
        refuses(&client);
        write(&format!("{here}api_key = \"{KEY}\"\n"));
        assert_eq!(client.poke("/api/config/reload").expect(200)["restart_required"], json!(["api_listen"]));
    }
    let (_child, client) = started(home.path(), &["--listen", "0.0.0.0:0"], Some(KEY));
    write(&format!("{here}api_key = \"\"\n"));
    refuses(&client);
    // What the command line said holds, whatever the file says.
    write(&format!("api_listen = \"127.0.0.1:1\"\napi_key = \"{KEY}\"\n"));
    assert_eq!(client.poke("/api/config/reload").expect(200)["status"], "unchanged");
}

#[test]
fn the_default_model_and_its_provider_change_between_two_messages() {
    let (first, second) = (Model::start(), Model::start());
    let daemon = Daemon::with(&first.config());
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "one");
    rewrite(&daemon, &second.config().replace("echo-1", "echo-2"));
    let done = reload(&daemon);
    assert_eq!(done["applied"], json!(["default_model.base_url", "default_model.model"]));
    daemon.say(&agent, "two");
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
    assert_eq!(second.requests()[0]["model"], "echo-2");
    assert_eq!(daemon.get("/api/status").expect(200)["default_model"], "echo-2");
    // A provider that was not there before.
    let own = first
        .config()
        .replace("[default_model]\nprovider = \"openai\"", "[providers.mine]")
        .replace("model = \"echo-1\"\n", "");
    rewrite(&daemon, &format!("[default_model]\nprovider = \"mine\"\nmodel = \"m\"\n{own}"));
    reload(&daemon);
    daemon.say(&agent, "three");
    assert_eq!(first.requests().len(), 2, "the provider of the new table was asked");
}

#[test]
fn budgets_approvals_and_uploads_follow() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    daemon.upload(&agent, "a.txt", b"twelve bytes");
    rewrite(&daemon, &format!("{}[uploads]\nmax_bytes = 5\n[budget]\nagent_hourly_token_limit = 1\n", model.config()));
    let done = reload(&daemon);
    assert_eq!(done["applied"], json!(["budget.agent_hourly_token_limit", "uploads.max_bytes"]));
    assert_eq!(daemon.upload_as(&agent, "b.txt", None, b"twelve bytes").status, 413);
    assert_eq!(daemon.get(&format!("/api/budget/agents/{agent}")).expect(200)["hourly_token_limit"], 1);
    let message = json!({ "message": "x" });
    let path = format!("/api/agents/{agent}/message");
    let refused = (0..3).any(|_| daemon.post(&path, &message).status == 429);
    assert!(refused, "the new limit binds");
    rewrite(&daemon, &format!("{}[approval]\nrequire_approval = [\"system_*\"]\n", model.config()));
    reload(&daemon);
    model.script([Reply::calls(&[("1", "system_time", "{}")])]);
    let (client, id) = (daemon.client(), agent.clone());
    let asked = std::thread::spawn(move || client.say(&id, "what time is it?"));
    let pending = until("the call waits for a person", || {
        let waiting = daemon.get("/api/approvals").expect(200);
        waiting["approvals"].as_array()?.first().cloned()
    });
    daemon.post(&format!("/api/approvals/{}/approve", text(&pending["id"])), &json!({})).expect(200);
    asked.join().unwrap();
}

#[test]
fn more_calls_may_be_out_at_once_for_those_that_wait_already() {
    let model = Model::start();
    let config = |calls: u32| format!("{}[queue.concurrency]\nprovider_calls = {calls}\n", model.config());
    let daemon = Daemon::with(&config(1));
    let agents: Vec<_> = ["a", "b", "c"].iter().map(|name| daemon.agent_with(name, "")).collect();
    model.hold();
    std::thread::scope(|scope| {
        for agent in &agents {
            let client = daemon.client();
            scope.spawn(move || client.say(agent, "x"));
        }
        until("one call is out", || (model.waiting() == 1).then_some(()));
        rewrite(&daemon, &config(3));
        assert_eq!(reload(&daemon)["applied"], json!(["queue.concurrency.provider_calls"]));
        until("the others follow without an arrival", || (model.waiting() == 3).then_some(()));
        model.release();
    });
}

#[test]
fn commands_follow_the_policy_of_the_moment() {
    let model = Model::start();
    let policy = |mode: &str| format!("{}[exec_policy]\nmode = \"{mode}\"\n", model.config());
    let daemon = Daemon::with(&policy("deny"));
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"shell_exec\"]\nshell = [\"*\"]\n");
    let call = || {
        model.script([Reply::calls(&[("1", "shell_exec", r#"{"command":"echo it-ran"}"#)])]);
        daemon.say(&agent, "run");
        let request = model.requests().pop().unwrap();
        request["messages"].as_array().unwrap().last().unwrap().to_string()
    };
    assert!(call().contains("disabled"));
    rewrite(&daemon, &policy("full"));
    reload(&daemon);
    let said = call();
    assert!(said.contains("it-ran"), "{said}");
    assert_eq!(daemon.get("/api/health/detail").expect(200)["sandbox"]["commands"], "full");
    rewrite(&daemon, &policy("deny"));
    reload(&daemon);
    assert!(call().contains("disabled"));
}

#[test]
fn the_log_gets_louder_and_quieter_and_hides_new_secrets() {
    let daemon = Daemon::with("log_level = \"warn\"\n");
    daemon.get("/api/version").expect(200);
    assert!(!daemon.stderr().contains("answered"));
    rewrite(&daemon, "log_level = \"debug\"\napi_key = \"another-secret\"\n");
    reload(&daemon);
    let owner = daemon.keyed("another-secret");
    owner.get("/api/agents?name=another-secret").expect(200);
    until("requests are logged", || daemon.stderr().contains("answered").then_some(()));
    rewrite(&daemon, "log_level = \"warn\"\napi_key = \"another-secret\"\n");
    owner.poke("/api/config/reload").expect(200);
    assert!(!daemon.stderr().contains("another-secret"));
}

#[test]
fn a_hangup_is_a_reload() {
    let daemon = Daemon::with("[triggers]\nmax_depth = 3\n");
    let hang_up = || kill_process(Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap(), Signal::HUP).unwrap();
    let depth = || daemon.get("/api/config").expect(200)["triggers"]["max_depth"].clone();
    rewrite(&daemon, "[triggers]\nmax_depth = 4\n");
    hang_up();
    until("the file is read anew", || (depth() == 4).then_some(()));
    let trail =
        || daemon.get("/api/audit/recent?limit=10").expect(200)["entries"].as_array().cloned().unwrap_or_default();
    let entry =
        until("it is on the trail", || trail().into_iter().find(|entry| entry["event_type"] == "config_reloaded"));
    assert_eq!(entry["actor"], "system");
    rewrite(&daemon, "[triggers]\nmax_depth = 0\n");
    hang_up();
    until("the log says why not", || daemon.stderr().contains("triggers.max_depth: must be 1 to 100").then_some(()));
    assert_eq!(depth(), 4);
}

#[test]
fn wrong_and_right_reloads_under_load_disturb_nobody() {
    let model = Model::start();
    let lines =
        |depth: u32| format!("rate_limit_per_second = 1000000\n{}[triggers]\nmax_depth = {depth}\n", model.config());
    let daemon = Daemon::with(&lines(3));
    let agents: Vec<_> = (0..3).map(|n| daemon.agent_with(&format!("agent-{n}"), "")).collect();
    let (is_over, shown) = (AtomicBool::new(false), || daemon.get("/api/config").expect(200));
    let before = shown();
    std::thread::scope(|scope| {
        for agent in &agents {
            let (client, is_over) = (daemon.client(), &is_over);
            scope.spawn(move || {
                let mut said = 0;
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.say(agent, "x")["response"], "echo: x");
                    client.get("/api/status").expect(200);
                    said += 1;
                }
                assert!(said > 0);
            });
        }
        for _ in 0..10 {
            rewrite(&daemon, &lines(0));
            daemon.poke("/api/config/reload").refused(400);
            assert_eq!(shown(), before, "a wrong configuration changes nothing");
        }
        rewrite(&daemon, &lines(5));
        // Two at once wait for each other, and one of them finds nothing to do.
        let (client, other) = (daemon.client(), daemon.client());
        let first = scope.spawn(move || client.poke("/api/config/reload").expect(200));
        let second = other.poke("/api/config/reload").expect(200);
        let mut statuses = [text(&first.join().unwrap()["status"]), text(&second["status"])];
        statuses.sort();
        assert_eq!(statuses, ["reloaded", "unchanged"]);
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(shown()["triggers"]["max_depth"], 5);
    assert_eq!(daemon.get("/api/health").expect(200)["panic_count"], 0);
}
