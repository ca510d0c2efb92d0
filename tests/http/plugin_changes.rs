//! Plugins while the configuration changes: processes that stay, signatures, and floods of events.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::plugin_hooks::{daemon_with, plugin};
use crate::support::daemon::Daemon;
use crate::support::model::Model;
use crate::support::until;

/// Stays, and tells which process it is and the settings that it was started with.
const TELLS: &str = "import json, os, sys\nSTART = json.load(open(os.environ['AGENTSVC_PLUGIN_CONFIG']))\nBORN = os.urandom(8).hex()\nfor line in sys.stdin:\n    \
    print(json.dumps({'memories': [], 'born': BORN, 'settings': START}), flush=True)\n";

/// `[context_engine]` of a running daemon.
fn set(daemon: &Daemon, model: &Model, engine: &str) {
    let path = daemon.home().join("config.toml");
    let before = fs::read_to_string(&path).expect("a configuration");
    let kept = before.split("[default_model]").next().expect("a beginning");
    fs::write(&path, format!("{kept}{}[context_engine]\n{engine}\n", model.config())).expect("a configuration");
    daemon.poke("/api/config/reload").expect(200);
}

fn tested(daemon: &Daemon, name: &str) -> Value {
    daemon.post(&format!("/api/plugins/{name}/test-hook"), &json!({ "hook": "ingest" })).expect(200)
}

#[test]
fn a_process_ends_when_its_settings_change_or_its_plugin_is_not_in_force_any_more() {
    let model = Model::start();
    let daemon = daemon_with(&model, &["tells"], "", |home| {
        let rest = "persistent_subprocess = true\n[config.limit]\ntype = \"number\"\ndefault = 1\n";
        plugin(home, "tells", rest, &[("ingest", TELLS)]);
    });
    let asked = || {
        let output = tested(&daemon, "tells")["output"].clone();
        (output["born"].clone(), output["settings"]["limit"].clone())
    };
    let (first, limit) = asked();
    assert_eq!((limit, asked().0), (json!(1), first.clone()), "it stays");
    set(&daemon, &model, "plugin_stack = [\"tells\"]\nconfig = { \"tells.limit\" = 2 }");
    let second = until("it is started with its new settings", || {
        let (process, limit) = asked();
        (limit == 2).then_some(process)
    });
    assert_ne!(second, first);
    assert_eq!(asked(), (second, json!(2)), "and stays");
    set(&daemon, &model, "plugin_stack = []");
    until("its process is ended", || {
        let shown = daemon.get("/api/plugins/tells/status").expect(200);
        assert_eq!(shown["active"], false);
        let script = daemon.home().join("plugins/tells/hooks/ingest.py").display().to_string();
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let lines = processes.filter_map(|one| fs::read_to_string(one.path().join("cmdline")).ok());
        (!lines.into_iter().any(|line| line.contains(&script))).then_some(())
    });
}

#[test]
fn a_process_that_was_started_before_its_first_call_may_read_to_the_end() {
    let model = Model::start();
    let reads =
        "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({'memories': [{'content': 'read to the end'}]}))\n";
    let daemon = daemon_with(&model, &[], "", |home| {
        plugin(home, "reads", "persistent_subprocess = true\nhook_timeout_secs = 20", &[("ingest", reads)]);
    });
    let warmed = daemon.post("/api/plugins/prewarm", &json!({ "plugins": ["reads"] })).expect(200);
    assert_eq!(warmed["results"]["reads"]["ok"], true, "{warmed}");
    let begun = Instant::now();
    let done = tested(&daemon, "reads");
    assert_eq!(done["output"]["memories"][0]["content"], "read to the end", "{done}");
    assert!(begun.elapsed() < Duration::from_secs(15), "it does not wait for its timeout");
}

#[test]
fn signatures_are_wanted_as_soon_as_the_configuration_says_so() {
    let model = Model::start();
    let answers = "print('{\"memories\": []}')\n";
    let daemon = daemon_with(&model, &["plain", "signed"], "", |home| {
        plugin(home, "plain", "", &[("ingest", answers)]);
        plugin(home, "signed", "", &[("ingest", answers)]);
    });
    daemon.poke("/api/plugins/signed/sign").expect(200);
    set(&daemon, &model, "plugin_stack = [\"plain\", \"signed\"]\nrequire_signature = true");
    let failed = until("the plugins are read again", || {
        daemon.get("/api/plugins").expect(200)["failed"].as_array().expect("a list").first().cloned()
    });
    assert_eq!(failed["name"], "plain");
    assert!(failed["error"].as_str().is_some_and(|why| why.contains("require_signature")), "{failed}");
    assert_eq!(tested(&daemon, "signed")["ok"], true);
    daemon.get("/api/plugins/plain").expect(422);
    // None is installed without.
    let source = tempfile::tempdir().expect("a folder");
    plugin(source.path(), "other", "", &[("ingest", answers)]);
    let refused = daemon.post("/api/plugins/install", &json!(source.path().join("plugins/other"))).expect(422);
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("require_signature")), "{refused}");
    set(&daemon, &model, "plugin_stack = [\"plain\"]");
    until("it is used again", || (daemon.get("/api/plugins/plain").status == 200).then_some(()));
}

#[test]
fn a_hook_leads_the_daemon_nowhere_else_by_links_in_its_home() {
    let model = Model::start();
    let outside = tempfile::tempdir().expect("a folder");
    let victim = outside.path().join("victim");
    fs::write(&victim, "kept").expect("a file");
    let links = format!(
        "import json, os\nhome = os.path.expanduser('~/.plugin')\nfor name in ['config.json', 'config.json.new']:\n    \
         path = os.path.join(home, name)\n    if os.path.lexists(path): os.remove(path)\n    os.symlink({victim:?}, path)\n\
         settings = os.path.dirname(os.environ['AGENTSVC_PLUGIN_CONFIG'])\n\
         try:\n    open(os.path.join(settings, 'x'), 'w')\n    wrote = True\nexcept OSError:\n    wrote = False\n\
         limit = json.load(open(os.environ['AGENTSVC_PLUGIN_CONFIG']))['limit']\n\
         print(json.dumps({{'memories': [], 'wrote': wrote, 'limit': limit}}))\n"
    );
    let moves = format!(
        "import os\nos.rename(os.path.expanduser('~/.plugin'), os.path.expanduser('~/.moved'))\n\
         os.symlink({:?}, os.path.expanduser('~/.plugin'))\nprint('{{\"memories\": []}}')\n",
        outside.path()
    );
    let daemon = daemon_with(&model, &[], "", |home| {
        plugin(home, "links", "[config.limit]\ntype = \"number\"\ndefault = 7\n", &[("ingest", &links)]);
        plugin(home, "moves", "enable_shared_state = true", &[("ingest", &moves)]);
    });
    for _ in 0..2 {
        let done = tested(&daemon, "links");
        assert_eq!((&done["output"]["wrote"], &done["output"]["limit"]), (&json!(false), &json!(7)), "{done}");
    }
    assert_eq!(tested(&daemon, "moves")["ok"], true);
    let refused = tested(&daemon, "moves");
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("not a folder")), "{refused}");
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "kept");
    assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 1, "nothing was put there");
}
