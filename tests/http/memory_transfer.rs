//! Entries of the memory that agents keep, out and in as a whole, over HTTP and by the command line (spec 2, Memory).

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply};
use crate::support::until;

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

fn count(client: &Client, agent: &str) -> Value {
    client.get(&format!("/api/memory/agents/{agent}/count")).expect(200)["count"].clone()
}

fn import(client: &Client, agent: &str, body: &Value) -> Reply {
    client.post(&format!("/api/memory/agents/{agent}/import"), body)
}

#[test]
fn an_export_goes_into_another_agent_and_twice_changes_nothing() {
    let mut daemon = Daemon::start();
    let (from, to) = (daemon.agent("from"), daemon.agent("to"));
    let many: Vec<_> = (0..1_200)
        .map(|n| json!({ "content": format!("fact {n}"), "confidence": 0.5, "user_id": "ana", "taint": ["web"] }))
        .collect();
    let done = import(&daemon, &from, &json!(many[..900])).expect(200);
    assert_eq!((&done["status"], &done["imported"], &done["done"]), (&json!("completed"), &json!(900), &json!(900)));
    let id = text(&daemon.get(&format!("/api/memory/agents/{from}?limit=1")).expect(200)["memories"][0]["id"]);
    daemon.put(&format!("/api/memory/items/{id}"), &json!({ "content": "changed" })).expect(200);
    let exported = daemon.get(&format!("/api/memory/agents/{from}/export")).expect(200);
    assert_eq!((&exported["count"], &exported["agent_id"]), (&json!(900), &json!(from)));
    let memories = exported["memories"].as_array().unwrap();
    assert_eq!((memories.len(), &memories[1]["taint"]), (900, &json!(["web"])), "the taint stays");
    let reply = import(&daemon, &from, &exported);
    assert!(reply.header("warning").is_none(), "every key of an export is known");
    let same = reply.expect(200);
    assert_eq!((&same["skipped"], &same["imported"]), (&json!(900), &json!(0)));
    daemon.restart();
    let copied = import(&daemon, &to, &exported).expect(200);
    assert_eq!(copied["created"], 900, "another agent gets entries of its own");
    let twice = import(&daemon, &to, &exported).expect(200);
    assert_eq!((&twice["skipped"], &twice["created"]), (&json!(900), &json!(0)));
    assert_eq!((count(&daemon, &from), count(&daemon, &to)), (json!(900), json!(900)));
    let copy = daemon.get(&format!("/api/memory/agents/{to}/export")).expect(200);
    let changed =
        |list: &Value| list["memories"].as_array().unwrap().iter().find(|it| it["content"] == "changed").cloned();
    let (one, other) = (changed(&exported).unwrap(), changed(&copy).unwrap());
    assert_eq!((&one["versions"], &one["taint"]), (&other["versions"], &other["taint"]));
    assert_ne!(one["id"], other["id"]);
    // A newer one replaces what is there.
    let newer = json!([{ "id": one["id"], "content": "newest", "updated_at": "2099-01-01T00:00:00Z" }]);
    assert_eq!(import(&daemon, &from, &newer).expect(200)["updated"], 1);
    let newest = daemon.get(&format!("/api/memory/agents/{from}/export")).expect(200);
    let newest = newest["memories"].as_array().unwrap().iter().find(|it| it["content"] == "newest").cloned().unwrap();
    assert_eq!(newest["taint"], json!(["web"]), "an import does not make trusted what was not");
}

#[test]
fn a_copy_is_the_same_entry_when_its_first_agent_is_gone_and_is_put_once() {
    let daemon = Daemon::start();
    let (from, to) = (daemon.agent("from"), daemon.agent("to"));
    import(&daemon, &from, &json!([{ "content": "x", "created_at": "2026-01-01T00:00:00Z" }])).expect(200);
    let exported = daemon.get(&format!("/api/memory/agents/{from}/export")).expect(200);
    assert_eq!(import(&daemon, &to, &exported).expect(200)["created"], 1);
    let copy = daemon.get(&format!("/api/memory/agents/{to}/export")).expect(200);
    // The file names the copy and what it was made of: both are one entry of this agent, once it is deleted too.
    let copied = text(&copy["memories"][0]["id"]);
    daemon.delete(&format!("/api/memory/items/{copied}")).expect(200);
    let both = json!([exported["memories"][0], copy["memories"][0]]);
    let done = import(&daemon, &to, &both).expect(200);
    assert_eq!((&done["created"], &done["skipped"], &count(&daemon, &to)), (&json!(1), &json!(1), &json!(1)));
    let id = text(&exported["memories"][0]["id"]);
    daemon.delete(&format!("/api/agents/{from}")).expect(200);
    until("the first agent's rows are erased", || {
        // An id that leads to an entry of a deleted agent is no error of the others.
        let sent = json!({ "ids": [id] });
        assert_eq!(daemon.post("/api/memory/bulk-delete", &sent).expect(200)["failed"], 1);
        Some(()).filter(|()| daemon.get("/api/memory").expect(200)["memories"].as_array().unwrap().len() == 1)
    });
    let again = import(&daemon, &to, &exported).expect(200);
    assert_eq!((&again["created"], &again["skipped"], &count(&daemon, &to)), (&json!(0), &json!(1), &json!(1)));
}

#[test]
fn an_import_over_the_limit_keeps_the_most_confident_and_ends_the_same_twice() {
    let daemon = Daemon::with("[proactive_memory]\nmax_memories_per_agent = 10\n");
    let agent = daemon.agent("a");
    let many: Vec<_> = (0..30)
        .map(|n| {
            json!({ "content": format!("fact {n}"), "confidence": f64::from(n) / 30.0, "created_at": "2026-01-01T00:00:00Z" })
        })
        .collect();
    let first = import(&daemon, &agent, &json!(many)).expect(200);
    assert_eq!((&first["created"], &first["skipped"]), (&json!(10), &json!(20)));
    let kept = daemon.get(&format!("/api/memory/agents/{agent}/export")).expect(200);
    let mut least: Vec<f64> =
        kept["memories"].as_array().unwrap().iter().map(|it| it["confidence"].as_f64().unwrap()).collect();
    least.sort_by(f64::total_cmp);
    assert!(least[0] > 0.66, "{least:?}");
    let twice = import(&daemon, &agent, &json!(many)).expect(200);
    assert_eq!(twice["imported"], 0);
    assert_eq!(daemon.get(&format!("/api/memory/agents/{agent}/export")).expect(200), kept);
}

#[test]
fn an_import_is_checked_as_a_whole_and_shows_its_progress() {
    let daemon = Daemon::with("[proactive_memory]\nmax_memories_per_agent = 5000\n");
    let agent = daemon.agent("a");
    let bad = |memories: Value, field: &str| import(&daemon, &agent, &memories).refused_field(400, field);
    bad(json!([{ "content": "x" }, { "content": " " }]), "memories[1].content");
    bad(json!({ "memories": [{ "content": "x", "created_at": "yesterday" }] }), "memories[0].created_at");
    bad(json!({ "memories": [{ "content": "x", "level": "high" }] }), "memories[0].level");
    let versions = json!([{ "content": "x".repeat(16 * 1024 + 1), "replaced_at": "2026-01-01T00:00:00Z" }]);
    bad(json!([{ "content": "x", "versions": versions }]), "memories[0].versions");
    bad(json!({ "entries": [] }), "memories");
    assert_eq!(count(&daemon, &agent), 0);
    let many: Vec<_> = (0..3_000).map(|n| json!({ "content": format!("fact {n}") })).collect();
    let begun = import(&daemon, &agent, &json!({ "memories": many, "background": true })).expect(202);
    let id = text(&begun["import_id"]);
    let path = format!("/api/memory/imports/{id}");
    let ended = until("the import ends", || {
        let import = daemon.get(&path).expect(200);
        Some(import).filter(|import| import["status"] != "running")
    });
    assert_eq!(
        (&ended["status"], &ended["done"], &ended["total"]),
        (&json!("completed"), &json!(3_000), &json!(3_000))
    );
    assert_eq!(daemon.get("/api/memory/imports").expect(200)["imports"][0]["import_id"], json!(id));
    daemon.get(&format!("/api/memory/imports/{NOBODY}")).refused(404);
    assert_eq!(count(&daemon, &agent), 3_000);
}

#[test]
fn the_command_line_lists_exports_and_imports() {
    let daemon = Daemon::start();
    let (from, _) = (daemon.agent("from"), daemon.agent("to"));
    let tea = json!({ "agent_id": from, "content": "likes tea", "user_id": "ana" });
    daemon.post("/api/memory", &tea).expect(201);
    let run = |arguments: &[&str]| {
        let output = daemon.cli(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["memory", "list", "--agent", "from", "--user", "ana"]).contains("likes tea"));
    assert!(!run(&["memory", "list", "--agent", "to"]).contains("likes tea"));
    let file = daemon.home().join("entries.json");
    let path = file.to_str().unwrap();
    run(&["memory", "export", "from", "--output", path]);
    assert_eq!(run(&["memory", "import", "to", path]), "1 created, 0 updated, 0 skipped\n");
    assert_eq!(run(&["memory", "import", "to", path]), "0 created, 0 updated, 1 skipped\n");
    assert!(!daemon.cli(&["memory", "export", "nobody"]).status.success());
    let kept = std::fs::read(&file).unwrap();
    assert!(!daemon.cli(&["memory", "export", NOBODY, "--output", path]).status.success());
    assert_eq!(std::fs::read(&file).unwrap(), kept, "an export that fails leaves the file as it was");
    let names = std::fs::read_dir(daemon.home()).unwrap().map(|file| file.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}
