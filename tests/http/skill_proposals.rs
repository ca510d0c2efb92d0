//! What agents write of skills: it waits for a person, unless that is allowed and harmless.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::skill_evolution::{ORDER, audited, create, file, folder, history};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;

const TOOLS: &str = "[capabilities]\ntools = [\"*\"]\nnetwork = [\"127.0.0.1\"]\n";

/// Has the agent call a tool in a turn of its own; gives the result that the model read.
fn call(model: &Model, daemon: &Daemon, agent: &str, tool: &str, input: &Value) -> String {
    model.script([Reply::calls(&[("1", tool, &input.to_string())]), Reply::text("done")]);
    daemon.say(agent, "go");
    let request = model.requests().pop().expect("the model was asked");
    let messages = request["messages"].as_array().expect("messages").clone();
    messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .map(|message| text(&message["content"]))
        .expect("a result")
}

fn pending(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/skills/pending").expect(200)["candidates"].as_array().expect("candidates").clone()
}

fn with_evolution(model: &Model, mode: &str) -> Daemon {
    Daemon::with(&format!(
        "{}[skills]\nevolution = \"{mode}\"\n[web.fetch]\nssrf_allowed_hosts = [\"127.0.0.1\"]\n",
        model.config()
    ))
}

#[test]
fn what_an_agent_writes_waits_for_a_person() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", TOOLS);
    let body = json!({ "name": "greet", "description": "Greets", "prompt_context": "Say hello.", "tags": [] });
    let told = call(&model, &daemon, &agent, "skill_evolve_create", &body);
    assert!(told.starts_with("Proposed as ") && !folder(&daemon, "greet").exists(), "{told}");
    // The same again is the same proposal.
    call(&model, &daemon, &agent, "skill_evolve_create", &body);
    daemon.kill();
    daemon.restart();
    let waiting = pending(&daemon);
    let [candidate] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!(
        (&candidate["skill_name"], &candidate["action"], &candidate["agent_id"]),
        (&json!("greet"), &json!("create"), &json!(agent))
    );
    assert!(
        candidate["session_id"].is_string() && candidate["base_hash"].is_null() && candidate.get("change").is_none()
    );
    let id = text(&candidate["id"]);
    let shown = daemon.get(&format!("/api/skills/pending/{id}")).expect(200);
    assert_eq!(shown["candidate"]["change"]["prompt_context"], "Say hello.");
    assert_eq!(daemon.get(&format!("/api/skills/pending?agent={}", uuid::Uuid::nil())).expect(200)["total"], 0);
    let approved = daemon.post(&format!("/api/skills/pending/{id}/approve"), &json!({})).expect(200);
    assert_eq!((&approved["status"], &approved["name"]), (&json!("created"), &json!("greet")));
    assert_eq!(history(&daemon, "greet")["versions"][0]["author"], json!(format!("agent:{agent}")));
    daemon.post(&format!("/api/skills/pending/{id}/approve"), &json!({})).refused(404);

    // Two proposals for the same files: the second is stale when the first is made.
    for (old, new) in [("hello", "hi"), ("Say", "Write")] {
        let patch = json!({ "name": "greet", "old_string": old, "new_string": new, "changelog": "shorter" });
        let told = call(&model, &daemon, &agent, "skill_evolve_patch", &patch);
        assert!(told.starts_with("Proposed as "), "{told}");
    }
    let ids: Vec<String> = pending(&daemon).iter().map(|candidate| text(&candidate["id"])).collect();
    daemon.post(&format!("/api/skills/pending/{}/approve", ids[0]), &json!({})).expect(200);
    daemon.post(&format!("/api/skills/pending/{}/approve", ids[1]), &json!({})).refused(409);
    assert!(file(&daemon, "greet/SKILL.md").expect("it is there").ends_with("---\nSay hi."));
    let rejected =
        daemon.post(&format!("/api/skills/pending/{}/reject", ids[1]), &json!({ "reason": "stale" })).expect(200);
    assert_eq!((&rejected["status"], pending(&daemon).len()), (&json!("rejected"), 0));
    let audit =
        ["skill_change_proposed", "skill_change_approved", "skill_change_rejected"].map(|kind| audited(&daemon, kind));
    assert_eq!(audit, [4, 3, 1]);
}

#[test]
fn an_agent_proposes_only_what_could_be_made() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    create(&daemon, "notes", "text");
    let agent = daemon.agent_with("a", TOOLS);
    let input = |name: &str, prompt: &str| json!({ "name": name, "prompt_context": prompt, "changelog": "x" });
    let refused = [
        call(&model, &daemon, &agent, "skill_evolve_update", &input("notes", ORDER)),
        call(&model, &daemon, &agent, "skill_evolve_update", &input("none", "x")),
        call(&model, &daemon, &agent, "skill_evolve_delete", &json!({ "name": "../notes" })),
        call(
            &model,
            &daemon,
            &agent,
            "skill_evolve_write_file",
            &json!({ "name": "notes", "path": "SKILL.md", "content": "x" }),
        ),
        call(&model, &daemon, &agent, "skill_evolve_remove_file", &json!({ "name": "notes", "path": "assets/none" })),
        call(&model, &daemon, &agent, "skill_evolve_rollback", &json!({ "name": "notes" })),
    ];
    assert!(refused.iter().all(|told| told.contains("Refused: ")), "{refused:#?}");
    assert!(refused[0].contains("SKILL.md") && !refused[0].contains("Ignore"), "{}", refused[0]);
    // An agent that does not have the skill learns nothing of it.
    let other = daemon.agent_with("b", &format!("skills = [\"other\"]\n{TOOLS}"));
    let told = call(&model, &daemon, &other, "skill_evolve_update", &input("notes", "x"));
    assert!(told.contains("there is no skill"), "{told}");
    assert!(pending(&daemon).is_empty());
}

#[test]
fn agents_change_skills_at_once_only_where_that_is_allowed_and_harmless() {
    let model = Model::start();
    let off = with_evolution(&model, "off");
    let agent = off.agent_with("a", TOOLS);
    let made = json!({ "name": "greet", "description": "Greets", "prompt_context": "Say hello." });
    let told = call(&model, &off, &agent, "skill_evolve_create", &made);
    assert!(told.contains("evolution is \"off\"") && pending(&off).is_empty(), "{told}");
    drop(off);

    let on = with_evolution(&model, "on");
    let agent = on.agent_with("a", TOOLS);
    let told = call(&model, &on, &agent, "skill_evolve_create", &made);
    assert!(told.starts_with("Done.") && folder(&on, "greet").exists(), "{told}");
    let script = json!({ "name": "greet", "path": "scripts/run.sh", "content": "echo hi" });
    for (tool, input) in [("skill_evolve_write_file", script), ("skill_evolve_delete", json!({ "name": "greet" }))] {
        let told = call(&model, &on, &agent, tool, &input);
        assert!(told.starts_with("Proposed as "), "{told}");
    }
    assert_eq!((pending(&on).len(), audited(&on, "skill_changed")), (2, 1));

    // A turn that has read a page writes no live skill.
    let page = page();
    let fetch = json!({ "url": format!("http://{page}/") }).to_string();
    let patch = json!({ "name": "greet", "old_string": "hello", "new_string": "hi", "changelog": "x" }).to_string();
    model.script([
        Reply::calls(&[("f", "web_fetch", &fetch)]),
        Reply::calls(&[("p", "skill_evolve_patch", &patch)]),
        Reply::text("done"),
    ]);
    on.say(&agent, "go");
    let waiting = pending(&on);
    assert_eq!((waiting.len(), &waiting[2]["taint"]), (3, &json!(["web"])), "{waiting:?}");
    assert!(file(&on, "greet/SKILL.md").expect("it is there").ends_with("---\nSay hello."));
}

/// A site with one page.
fn page() -> std::net::SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let _ = socket.read(&mut [0; 4_096]);
            let _ = socket.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\nconnection: close\r\n\r\nfine",
            );
        }
    });
    address
}
