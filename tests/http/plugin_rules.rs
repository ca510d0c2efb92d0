//! Which hooks run, for whom and when: what plugins are told behind turns, stacks, filters, remembered answers, and secrets.

use std::fs;

use serde_json::{Value, json};

use super::plugin_hooks::{daemon_with, plugin};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// Keeps what it is told.
const HEARS: &str = "import json, os, sys\nr = json.load(sys.stdin)\nopen(os.path.expanduser('~/told.jsonl'), 'a')\
    .write(json.dumps(r) + '\\n')\nprint('{\"type\": \"ok\"}')\n";

/// What a plugin was told.
fn told(daemon: &Daemon, plugin: &str) -> Vec<Value> {
    let path = daemon.home().join("data/plugins").join(plugin).join("home/told.jsonl");
    let lines = fs::read_to_string(path).unwrap_or_default();
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn memory(content: &str) -> String {
    format!("import json\nprint(json.dumps({{'memories': [{{'content': {content:?}}}]}}))\n")
}

fn last_asked(model: &Model) -> String {
    model.requests().pop().expect("a request").to_string()
}

#[test]
fn plugins_are_told_of_their_start_of_turns_subagents_and_events() {
    let model = Model::start();
    let hooks = ["bootstrap", "after_turn", "prepare_subagent", "merge_subagent", "on_event"].map(|hook| (hook, HEARS));
    let daemon = daemon_with(&model, &["hears"], "", |home| plugin(home, "hears", "", &hooks));
    let of = |kind: &str| told(&daemon, "hears").into_iter().filter(|one| one["type"] == kind).collect::<Vec<_>>();
    let started = until("it is told that it runs", || of("bootstrap").pop());
    assert_eq!((&started["stable_prefix_mode"], &started["max_recall_results"]), (&json!(true), &json!(50)));
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"agent_*\"]\nagent_spawn = true\n");
    let spawn = json!({ "name": "kid", "system_prompt": "help" }).to_string();
    let send = json!({ "agent": "kid", "message": "hello kid" }).to_string();
    model.script([
        Reply::calls(&[("1", "agent_spawn", &spawn)]),
        Reply::calls(&[("2", "agent_send", &send)]),
        Reply::text("hello parent"),
        Reply::text("done"),
    ]);
    daemon.say(&agent, "go");
    let turn = until("it is told of the turn", || of("after_turn").into_iter().find(|one| one["agent_id"] == agent));
    let messages = turn["messages"].as_array().expect("messages");
    assert_eq!(messages[0], json!({ "role": "user", "content": "go", "pinned": false }));
    assert_eq!(messages.last().expect("a message")["content"], "done");
    assert!(turn["session_id"].is_string());
    let prepared = until("it is told of the new agent", || of("prepare_subagent").pop());
    let merged = until("it is told of its turn", || of("merge_subagent").pop());
    assert_eq!((&prepared["parent_id"], &merged["parent_id"]), (&json!(agent), &json!(agent)));
    assert!(prepared["child_id"].is_string() && prepared["child_id"] == merged["child_id"]);
    let event = until("it is told of events", || of("on_event").into_iter().find(|one| one["agent_id"] == agent));
    assert!(event["event"].is_string() && event["data"]["at"].is_string(), "{event}");
}

#[test]
fn a_stack_has_an_order_and_filters_leave_hooks_out() {
    let model = Model::start();
    let names = ["later", "first", "only-notes", "only-digits", "only-b"];
    let daemon = daemon_with(&model, &names, "", |home| {
        plugin(home, "later", "", &[("ingest", memory("comes later").as_str())]);
        plugin(home, "first", "priority = 5", &[("ingest", memory("comes first").as_str())]);
        plugin(home, "only-notes", "ingest_filter = \"note\"", &[("ingest", memory("of notes").as_str())]);
        plugin(home, "only-digits", "ingest_regex = '^\\d+$'", &[("ingest", memory("of digits").as_str())]);
        plugin(home, "only-b", "only_for_agent_ids = [\"b\"]", &[("ingest", memory("of b").as_str())]);
    });
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "hello");
    let asked = last_asked(&model);
    let at = |part: &str| asked.find(part);
    assert!(at("comes first").expect("a memory") < at("comes later").expect("a memory"), "{asked}");
    assert!(at("of notes").is_none() && at("of digits").is_none() && at("of b").is_none(), "{asked}");
    let other = daemon.agent_with("b", "");
    for (message, part) in [("my note", "of notes"), ("42", "of digits"), ("hello", "of b")] {
        daemon.say(&other, message);
        assert!(last_asked(&model).contains(part), "{message}");
    }
    let calls = |name: &str| {
        let health = daemon.get(&format!("/api/plugins/{name}/health")).expect(200);
        health["hooks"]["ingest"]["calls"].clone()
    };
    assert_eq!((calls("only-notes"), calls("only-digits"), calls("only-b")), (json!(1), json!(1), json!(3)));
}

#[test]
fn answers_are_remembered_as_long_as_the_plugin_says() {
    let model = Model::start();
    let counts = "import json, os\np = os.path.expanduser('~/n')\nn = len(open(p).read()) if os.path.exists(p) else 0\n\
        open(p, 'a').write('x')\nprint(json.dumps({'memories': [], 'n': n}))\n";
    let daemon = daemon_with(&model, &[], "", |home| {
        plugin(home, "remembers", "hook_cache_ttl_secs = 3600", &[("ingest", counts)]);
        plugin(home, "asks", "", &[("ingest", counts)]);
    });
    let asked = |name: &str, message: &str| {
        let body = json!({ "hook": "ingest", "input": { "type": "ingest", "message": message } });
        daemon.post(&format!("/api/plugins/{name}/test-hook"), &body).expect(200)["output"]["n"].clone()
    };
    assert_eq!([asked("remembers", "one"), asked("remembers", "one"), asked("remembers", "two")], [0, 0, 1]);
    assert_eq!([asked("asks", "one"), asked("asks", "one")], [0, 1]);
    let health = daemon.get("/api/plugins/remembers/health").expect(200);
    assert_eq!((&health["hooks"]["ingest"]["calls"], &health["hooks"]["ingest"]["cached"]), (&json!(2), &json!(1)));
    assert_eq!(daemon.get("/api/plugins/remembers/traces").expect(200)["traces"][1]["cached"], true);
}

#[test]
fn settings_and_secrets_reach_only_the_plugin_that_may_have_them() {
    let shows = "import json, os\nc = json.load(open(os.environ['LIBREFANG_PLUGIN_CONFIG']))\n\
        print(json.dumps({'memories': [], 'config': c, 'env': dict(os.environ)}))\n";
    let rest = "allowed_secrets = [\"NOTES_SECRET\"]\nenable_shared_state = true\n[env]\nKEY = \"${NOTES_SECRET}\"\n\
        [config.limit]\ntype = \"number\"\ndefault = 5\n[config.colour]\ndefault = \"red\"";
    let config = "[context_engine]\nenv_allowed = { mine = [\"NOTES_SECRET\"] }\nconfig = { \"mine.limit\" = 20 }\n";
    let mut daemon = Daemon::with_env(config, &[("NOTES_SECRET", "s3cret")]);
    for name in ["mine", "other"] {
        plugin(daemon.home(), name, rest, &[("ingest", shows)]);
    }
    daemon.restart();
    until("the plugins are read", || (daemon.get("/api/plugins").expect(200)["total"] == 2).then_some(()));
    let shown = |name: &str| {
        let done = daemon.post(&format!("/api/plugins/{name}/test-hook"), &json!({ "hook": "ingest" })).expect(200);
        assert_eq!(done["ok"], true, "{done}");
        done["output"].clone()
    };
    let (mine, other) = (shown("mine"), shown("other"));
    assert_eq!(mine["config"], json!({ "limit": 20, "colour": "red" }));
    assert_eq!(other["config"], json!({ "limit": 5, "colour": "red" }));
    assert_eq!(
        (&mine["env"]["AGENTSVC_SECRET_NOTES_SECRET"], &mine["env"]["KEY"]),
        (&json!("s3cret"), &json!("s3cret"))
    );
    assert!(text(&mine["env"]["AGENTSVC_STATE_FILE"]).contains("data/plugins/mine/home"), "{mine}");
    assert!(!other.to_string().contains("s3cret"), "{other}");
    let env = daemon.get("/api/plugins/mine/env").expect(200);
    assert_eq!((&env["env"]["KEY"], &env["allowed_secrets"]["NOTES_SECRET"]), (&json!("***"), &json!(true)), "{env}");
}
