//! A home that has one of everything, and what one sees of it; for the tests of backups and restores.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::clear_of_the_hour;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;

/// A cron expression that is far away.
const FAR: &str = "0 3 1 1 *";
/// Everything that can be asked for.
pub(crate) const COMPONENTS: [&str; 8] =
    ["config", "cron_jobs", "hand_state", "custom_models", "agents", "skills", "workflows", "data"];

pub(crate) fn daemon() -> Daemon {
    // What is seen of budgets has the tokens of this hour in it, and the moments at which they begin anew.
    clear_of_the_hour(Duration::from_secs(150));
    Daemon::with("rate_limit_per_second = 1000000\n")
}

pub(crate) fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

pub(crate) fn backup(client: &Client) -> String {
    text(&client.post("/api/backup", &json!({})).expect(200)["filename"])
}

pub(crate) fn restore(client: &Client, body: &Value) -> Value {
    client.post("/api/restore", body).expect(200)
}

/// Puts one of everything into the world, called `name`.
pub(crate) fn furnish(daemon: &Daemon, name: &str) -> String {
    let agent = daemon.agent(name);
    daemon.say(&agent, &format!("I am {name}"));
    daemon.put(&format!("/api/memory/agents/{agent}/kv/who"), &json!({ "value": name })).expect(200);
    let pattern =
        json!({ "agent_id": agent, "pattern": { "lifecycle": {} }, "prompt_template": name, "enabled": false });
    daemon.post("/api/triggers", &pattern).expect(201);
    daemon.post("/api/goals", &json!({ "title": name, "agent_id": agent })).expect(201);
    let job = json!({ "name": name, "schedule": FAR, "agent_id": agent, "prompt": "p", "enabled": true });
    daemon.post("/api/cron/jobs", &job).expect(201);
    let steps = json!([{ "name": "s", "agent_name": name, "prompt": "{{input}}" }]);
    let made = daemon.post("/api/workflows", &json!({ "name": name, "description": "", "steps": steps })).expect(201);
    let run = daemon.post(&format!("/api/workflows/{}/run", text(&made["workflow_id"])), &json!({ "input": "go" }));
    assert_eq!(run.expect(200)["status"], "completed");
    let model =
        json!({ "id": format!("model-{name}"), "provider": "openai", "display_name": name, "context_window": 9000 });
    daemon.post("/api/models/custom", &model).expect(201);
    daemon.post("/api/tasks", &json!({ "title": name })).expect(201);
    let alias = json!({ "alias": format!("alias-{name}"), "model_id": format!("model-{name}") });
    daemon.post("/api/models/aliases", &alias).expect(201);
    write(daemon.home(), &format!("skills/{name}/skill.toml"), name);
    write(daemon.home(), &format!("agent-types/type-{name}.toml"), "name = \"x\"\n");
    write(daemon.home(), "data/hand_state.json", &format!("\"{name}\""));
    daemon.send("PUT", &format!("/api/agents/{agent}/files/note.txt"), &[], Some(name.as_bytes())).expect(201);
    let config = fs::read_to_string(daemon.home().join("config.toml")).unwrap();
    let config: Vec<&str> = config.lines().filter(|line| !line.starts_with("# name")).collect();
    write(daemon.home(), "config.toml", &format!("{}\n# name {name}\n", config.join("\n")));
    agent
}

/// The files beneath a directory, with their contents.
pub(crate) fn files(root: PathBuf) -> Value {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&root, &root, &mut found);
    json!(found)
}

/// What one sees of each component.
pub(crate) fn picture(daemon: &Daemon) -> BTreeMap<&'static str, Value> {
    let get = |path: &str| daemon.get(path).expect(200);
    let agents = get("/api/agents");
    let of_agents: Vec<Value> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            let id = text(&agent["id"]);
            let session = text(&get(&format!("/api/agents/{id}"))["session_id"]);
            json!({
                "name": agent["name"],
                "said": daemon.transcript(&session),
                "memory": get(&format!("/api/memory/agents/{id}/kv")),
                "note": daemon.get(&format!("/api/agents/{id}/files/note.txt")).text(),
                "usage": get(&format!("/api/budget/agents/{id}")),
            })
        })
        .collect();
    let custom: Vec<Value> = get("/api/models")["models"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|model| text(&model["id"]).starts_with("model-"))
        .map(|model| model["id"].clone())
        .collect();
    let aliases = get("/api/models/aliases")["aliases"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|alias| alias.starts_with("alias-"))
        .cloned()
        .collect::<Vec<_>>();
    let jobs: Vec<Value> = get("/api/cron/jobs")["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| json!([job["id"], job["name"], job["agent_id"], job["run_count"]]))
        .collect();
    let tasks: Vec<Value> =
        get("/api/tasks")["tasks"].as_array().unwrap().iter().map(|task| task["title"].clone()).collect();
    let workflows = get("/api/workflows");
    let listed = workflows.as_array().or(workflows["workflows"].as_array()).unwrap().clone();
    let workflows: Vec<Value> = listed
        .iter()
        .map(|one| {
            let runs = get(&format!("/api/workflows/{}/runs", text(&one["id"])));
            json!([one["name"], runs.as_array().map(Vec::len)])
        })
        .collect();
    BTreeMap::from([
        ("agents", json!([of_agents, get("/api/triggers"), get("/api/goals")["goals"]])),
        ("cron_jobs", json!(jobs)),
        ("workflows", json!(workflows)),
        ("custom_models", json!(custom)),
        ("data", json!([tasks, aliases])),
        ("hand_state", json!(fs::read_to_string(daemon.home().join("data/hand_state.json")).ok())),
        ("skills", files(daemon.home().join("skills"))),
        ("config", json!(fs::read_to_string(daemon.home().join("config.toml")).unwrap())),
        ("other", files(daemon.home().join("agent-types"))),
    ])
}

/// The entries of an archive.
pub(crate) fn entries(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(fs::File::open(path).unwrap()).unwrap());
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        found.push((name, content));
    }
    found
}

pub(crate) fn manifest(path: &Path) -> Value {
    serde_json::from_slice(&entries(path)[0].1).unwrap()
}

#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
