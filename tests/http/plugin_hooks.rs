//! What hooks of plugins do in turns, and what becomes of turns when they misbehave.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// Writes a plugin with hooks in Python.
pub(crate) fn plugin(home: &Path, name: &str, rest: &str, hooks: &[(&str, &str)]) {
    let folder = home.join("plugins").join(name);
    fs::create_dir_all(folder.join("hooks")).expect("the test can prepare its files");
    let mut manifest = format!("name = \"{name}\"\nversion = \"1.0.0\"\n{rest}\n[hooks]\n");
    for (hook, program) in hooks {
        manifest.push_str(&format!("{hook} = \"hooks/{hook}.py\"\n"));
        fs::write(folder.join(format!("hooks/{hook}.py")), program).expect("the test can prepare its files");
    }
    fs::write(folder.join("plugin.toml"), manifest).expect("the test can prepare its files");
}

/// A daemon whose plugins these are, in order.
pub(crate) fn daemon_with(model: &Model, names: &[&str], rest: &str, write: impl Fn(&Path)) -> Daemon {
    let config = format!("{}[context_engine]\nplugin_stack = {}\n{rest}", model.config(), json!(names));
    let mut daemon = Daemon::with(&config);
    write(daemon.home());
    daemon.restart();
    until("the plugins are read", || (daemon.get("/api/plugins").expect(200)["total"] != 0).then_some(()));
    daemon
}

fn test_hook(daemon: &Daemon, plugin: &str, hook: &str) -> Value {
    daemon.post(&format!("/api/plugins/{plugin}/test-hook"), &json!({ "hook": hook })).expect(200)
}

/// The last message that the model was asked, as a text.
fn last_asked(model: &Model) -> String {
    let request = model.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages");
    text(&messages.last().expect("a message")["content"])
}

const REMEMBER: &str = "import json, os, sys\nr = json.load(sys.stdin)\np = os.path.expanduser('~/.notes/seen.jsonl')\n\
    os.makedirs(os.path.dirname(p), exist_ok=True)\nopen(p, 'a').write(json.dumps(r['messages']) + '\\n')\n\
    print(json.dumps({'type': 'ok'}))\n";
const RECALL: &str = "import json, os, sys\nr = json.load(sys.stdin)\np = os.path.expanduser('~/.notes/seen.jsonl')\n\
    n = len(open(p).readlines()) if os.path.exists(p) else 0\n\
    print('log line')\nprint(json.dumps({'memories': [{'content': f'turns seen: {n}; said: ' + r['message']}]}))\n";

#[test]
fn what_a_plugin_has_seen_comes_back_after_a_kill_and_is_untrusted() {
    let model = Model::start();
    let mut daemon = daemon_with(&model, &["notes"], "", |home| {
        plugin(home, "notes", "", &[("ingest", RECALL), ("after_turn", REMEMBER)]);
    });
    let agent = daemon.agent_with("a", "");
    let said = daemon.say(&agent, "first");
    assert!(
        last_asked(&model).contains("- turns seen: 0; said: first (from the plugin notes) (untrusted content: tool)")
    );
    let seen = daemon.home().join("data/plugins/notes/home/.notes/seen.jsonl");
    until("the plugin is told", || fs::read_to_string(&seen).ok().filter(|text| text.contains("first")));
    daemon.kill();
    daemon.restart();
    daemon.say(&agent, "second");
    assert!(last_asked(&model).contains("turns seen: 1; said: second"), "{}", last_asked(&model));
    until("the plugin is told", || fs::read_to_string(&seen).ok().filter(|text| text.lines().count() == 2));
    // The prompt of the next call of the same turn shows the same, and the plugin is not asked again.
    model.script([Reply::calls(&[("1", "system_time", "{}")])]);
    let tools = daemon.agent_with("b", "[capabilities]\ntools = [\"system_time\"]\n");
    daemon.say(&tools, "third");
    let request = model.requests().pop().expect("a request");
    assert!(request.to_string().matches("said: third").count() == 1, "{request}");
    let health = daemon.get("/api/plugins/notes/health").expect(200);
    assert_eq!((&health["hooks"]["ingest"]["calls"], &health["hooks"]["ingest"]["errors"]), (&json!(2), &json!(0)));
    let traces = daemon.get("/api/plugins/notes/traces").expect(200);
    assert_eq!(traces["traces"].as_array().expect("a list").iter().filter(|one| one["hook"] == "ingest").count(), 2);
    assert!(said["response"].is_string() || said.is_object());
}

#[test]
fn every_misbehaviour_has_a_name_and_ends_in_time() {
    let model = Model::start();
    let daemon = daemon_with(&model, &[], "", |home| {
        for (name, program) in [
            ("hangs", "import signal\nsignal.pause()\n"),
            ("dies", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),
            ("garbage", "print('hello')\nprint('{oops')\n"),
            ("large", "print('x' * (5 << 20))\n"),
            ("wrong", "print('[1, 2]')\n"),
            ("fails", "import sys\nprint('no luck', file=sys.stderr)\nsys.exit(3)\n"),
            ("complains", "print('{\"error\": \"no data\"}')\n"),
            ("slow", "import select\nselect.select([], [], [], 0.3)\nprint('{\"memories\": []}')\n"),
            ("chatty", "print('a')\nprint('{\"memories\": []}')\nprint('bye')\n"),
        ] {
            plugin(home, name, "hook_timeout_secs = 1", &[("ingest", program)]);
        }
        plugin(
            home,
            "picky",
            "[hook_schemas.ingest]\noutput = { type = \"object\", required = [\"memories\"] }",
            &[("ingest", "print('{}')\n")],
        );
        plugin(home, "greedy", "max_memory_mb = 64", &[("ingest", "x = bytearray(300 << 20)\nprint('{}')\n")]);
        plugin(
            home,
            "escapes",
            "",
            &[(
                "ingest",
                "import json, os\nr = {}\nfor p in ['/etc/shadow', '../../config.toml', 'x.txt']:\n    try:\n        open(p, 'a' if p == 'x.txt' else 'r')\n        \
             r[p] = True\n    except OSError:\n        r[p] = False\nprint(json.dumps({'memories': [], 'r': r, 'env': dict(os.environ)}))\n",
            )],
        );
    });
    for (name, code, part) in [
        ("hangs", "timed_out", "1 s"),
        ("dies", "exited", "137"),
        ("garbage", "no_json", "{oops"),
        ("large", "too_long", "bytes"),
        ("wrong", "wrong_answer", "object"),
        ("fails", "exited", "exit code 3: no luck"),
        ("complains", "wrong_answer", "no data"),
        ("picky", "wrong_answer", "memories"),
        ("greedy", "exited", ""),
    ] {
        let begun = Instant::now();
        let done = test_hook(&daemon, name, "ingest");
        assert_eq!((&done["ok"], &done["code"]), (&json!(false), &json!(code)), "{name}: {done}");
        assert!(text(&done["error"]).contains(part), "{name}: {done}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
    }
    for name in ["slow", "chatty"] {
        assert_eq!(test_hook(&daemon, name, "ingest")["ok"], true, "{name}");
    }
    let escaped = test_hook(&daemon, "escapes", "ingest");
    let output = &escaped["output"];
    assert_eq!(output["r"], json!({ "/etc/shadow": false, "../../config.toml": false, "x.txt": false }), "{escaped}");
    assert!(text(&output["env"]["HOME"]).ends_with("data/plugins/escapes/home"), "{escaped}");
    assert_eq!(
        (&output["env"]["LIBREFANG_RUNTIME"], &output["env"]["AGENTSVC_AGENT_ID"]),
        (&json!("python"), &json!("test"))
    );
    assert!(output["env"].get("TEST_MODEL_KEY").is_none(), "{escaped}");
}

#[test]
fn a_failure_warns_is_skipped_or_ends_the_turn_as_the_plugin_says() {
    let model = Model::start();
    let fails = "import sys\nsys.exit(3)\n";
    let daemon = daemon_with(&model, &["soft", "silent"], "", |home| {
        plugin(home, "soft", "on_hook_failure = \"warn\"", &[("ingest", fails)]);
        plugin(home, "silent", "on_hook_failure = \"skip\"", &[("ingest", fails)]);
        plugin(home, "hard", "on_hook_failure = \"abort\"\nmax_retries = 1\nretry_delay_ms = 1", &[("ingest", fails)]);
        plugin(home, "absent", "on_hook_failure = \"abort\"\nruntime = \"lua\"", &[("ingest", fails)]);
    });
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "hello");
    let engine = |names: &[&str]| {
        let path = daemon.home().join("config.toml");
        let config = format!("{}[context_engine]\nplugin_stack = {}\n", model.config(), json!(names));
        let before = fs::read_to_string(&path).expect("a configuration");
        let kept: String = before.split("[default_model]").next().expect("a beginning").to_owned();
        fs::write(&path, format!("{kept}{config}")).expect("the test can write its configuration");
        daemon.poke("/api/config/reload").expect(200);
    };
    engine(&["hard"]);
    let failed = daemon.post(&format!("/api/agents/{agent}/message"), &json!({ "message": "hello" }));
    assert_eq!(failed.status / 100, 5, "{}", failed.text());
    assert!(failed.text().contains("plugin_failed") && failed.text().contains("hard"), "{}", failed.text());
    let traces = daemon.get("/api/plugins/hard/traces").expect(200);
    assert_eq!((&traces["traces"][0]["tries"], &traces["traces"][0]["code"]), (&json!(2), &json!("exited")));
    if !daemon.get("/api/plugins/doctor").expect(200)["plugins"][0]["runtime_available"].as_bool().expect("a flag") {
        engine(&["absent"]);
        daemon.say(&agent, "the default context engine is used");
        let traces = daemon.get("/api/plugins/absent/traces").expect(200);
        assert_eq!(traces["traces"][0]["code"], "launcher_not_found");
    }
    // Five failures, one after the other, and the hook is left alone.
    for _ in 0..6 {
        test_hook(&daemon, "soft", "ingest");
    }
    let done = test_hook(&daemon, "soft", "ingest");
    assert_eq!(done["code"], "circuit_open", "{done}");
    assert_eq!(daemon.get("/api/plugins/soft/health").expect(200)["hooks"]["ingest"]["circuit_open"], true);
}

/// Answers each line, and says how long it took itself.
const STAYS: &str = "import json, sys, time\nn = 0\nfor line in sys.stdin:\n    t = time.perf_counter()\n    r = json.loads(line)\n    n += 1\n    \
    out = {'memories': [], 'n': n}\n    out['us'] = (time.perf_counter() - t) * 1e6\n    print(json.dumps(out), flush=True)\n";

#[test]
fn processes_that_stay_are_fast_and_are_started_again() {
    let model = Model::start();
    let daemon = daemon_with(&model, &["stays"], "", |home| {
        plugin(home, "stays", "persistent_subprocess = true", &[("ingest", STAYS)]);
        plugin(home, "to-end", "persistent_subprocess = true", &[("ingest", RECALL)]);
        plugin(
            home,
            "once",
            "persistent_subprocess = true\nhook_timeout_secs = 5",
            &[(
                "ingest",
                "import sys\nfor line in sys.stdin:\n    print('{\"memories\": []}', flush=True)\n    break\n",
            )],
        );
    });
    let mut overheads = Vec::new();
    for n in 0..200 {
        let done = test_hook(&daemon, "stays", "ingest");
        assert_eq!(done["ok"], true, "{done}");
        let elapsed_ms = done["elapsed_ms"].as_f64().expect("a number");
        if n > 0 {
            overheads.push(elapsed_ms - done["output"]["us"].as_f64().expect("a number") / 1_000.0);
        }
    }
    overheads.sort_unstable_by(f64::total_cmp);
    let (median, p99) = (overheads[overheads.len() / 2], overheads[overheads.len() * 99 / 100]);
    println!("a call of a hook that stays adds {median:.2} ms (median), {p99:.2} ms (p99) to its own time");
    assert!(median < 2.0, "a call of a process that stays takes {median} ms more than itself");
    assert!(test_hook(&daemon, "stays", "ingest")["output"]["n"].as_u64().expect("a number") >= 200, "it stayed");
    // One that reads to the end is asked so from then on.
    let begun = Instant::now();
    assert_eq!(test_hook(&daemon, "to-end", "ingest")["ok"], true);
    assert!(begun.elapsed() >= Duration::from_secs(2), "its input was ended after two seconds");
    let again = Instant::now();
    assert_eq!(test_hook(&daemon, "to-end", "ingest")["ok"], true);
    assert!(again.elapsed() < Duration::from_secs(2));
    // One that ends after each answer is started again.
    for _ in 0..3 {
        assert_eq!(test_hook(&daemon, "once", "ingest")["ok"], true);
    }
}

#[test]
fn messages_and_results_are_changed_and_what_breaks_them_is_not_used() {
    let model = Model::start();
    let assemble = "import json, sys\nr = json.load(sys.stdin)\nm = r['messages']\n\
        if 'break' in json.dumps(m[0]): m = [x for x in m if x['role'] != 'tool']\n\
        else: m = [{'role': 'user', 'content': 'assembled note'}] + m\n\
        print(json.dumps({'type': 'assemble_result', 'messages': m}))\n";
    let transform = "import json, sys\nr = json.load(sys.stdin)\n\
        print(json.dumps({'type': 'transformed', 'result': r['tool_name'] + ': ' + r['result'][:0] + 'changed'}))\n";
    let daemon = daemon_with(&model, &["changes"], "", |home| {
        plugin(home, "changes", "", &[("assemble", assemble), ("transform_tool_result", transform)]);
    });
    let agent = daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    model.script([Reply::calls(&[("1", "system_time", "{}")])]);
    daemon.say(&agent, "go");
    let request = model.requests().pop().expect("a request").to_string();
    assert!(request.contains("assembled note") && request.contains("system_time: changed"), "{request}");
    let other = daemon.agent_with("b", "[capabilities]\ntools = [\"system_time\"]\n");
    model.script([Reply::calls(&[("1", "system_time", "{}")])]);
    daemon.say(&other, "break it");
    let request = model.requests().pop().expect("a request").to_string();
    assert!(!request.contains("assembled note") && request.contains("system_time: changed"), "{request}");
}

#[test]
fn a_sidecar_and_scripts_of_the_configuration_take_part() {
    let model = Model::start();
    let sidecar = "import json, sys\nfor line in sys.stdin:\n    r = json.loads(line)\n    ok = {'memories': [{'content': 'from the sidecar'}]} \
        if r['method'] == 'ingest' else None\n    print(json.dumps({'id': r['id'], 'ok': ok}), flush=True)\n";
    let scripts = tempfile::tempdir().expect("a directory");
    let script = scripts.path().join("ingest.py");
    fs::write(&script, "print('{\"memories\": [\"from a script\"]}')\n").expect("the test can prepare its files");
    let config = format!(
        "{}[context_engine]\nengine = \"sidecar\"\nsidecar_command = {}\n[context_engine.hooks]\ningest = {script:?}\n",
        model.config(),
        json!(["python3", "-c", sidecar]),
    );
    let daemon = Daemon::with(&config);
    let agent = daemon.agent_with("a", "");
    daemon.say(&agent, "hello");
    let asked = last_asked(&model);
    assert!(asked.contains("from the sidecar (from the plugin _sidecar)"), "{asked}");
    assert!(asked.contains("from a script (from the plugin _hooks)"), "{asked}");
}

#[test]
fn a_plugin_compacts_a_session_or_asks_for_a_summary() {
    let model = Model::start();
    let compact = "import json, sys\nr = json.load(sys.stdin)\nfirst = json.dumps(r['messages'][0])\n\
        if 'model' in first: print(json.dumps({'request_llm_summary': {'prompt': 'mention otters', 'keep': [{'role': 'user', 'content': 'kept whole'}]}}))\n\
        else: print(json.dumps({'type': 'compact_result', 'messages': [{'role': 'user', 'content': 'all in one line'}]}))\n";
    model.server.respond(|request| {
        Reply::text(if request.wants_summary() { "They spoke.".to_owned() } else { "answered".to_owned() })
    });
    let daemon = daemon_with(&model, &["short"], "", |home| plugin(home, "short", "", &[("compact", compact)]));
    for (name, message, part) in [("a", "hello", "all in one line"), ("b", "by the model", "kept whole")] {
        let agent = daemon.agent_with(name, "");
        for n in 0..6 {
            daemon.say(&agent, &format!("{message} {n} {}", "and more ".repeat(40)));
        }
        daemon.poke(&format!("/api/agents/{agent}/session/compact")).expect(200);
        daemon.say(&agent, "and now");
        let request = model.requests().pop().expect("a request").to_string();
        assert!(request.contains(part), "{name}: {request}");
    }
    let mut asked = model.server.requests().into_iter().filter(|request| request.wants_summary());
    assert!(
        asked.any(|request| request.body.to_string().contains("mention otters")),
        "the summary is as the plugin asks"
    );
}
