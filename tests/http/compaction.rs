//! Compaction against a scripted model: by itself, on demand, under failure, kills and resets (spec 1, POST
//! session/compact; Limits, auto-compaction).

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Response;
use crate::support::model_server::{Gate, ModelServer, Received, Reply};
use crate::support::until;

const TITLE: &str = "[Summary of the earlier conversation]";

/// A model that echoes, and writes summaries that name how often it was asked for one.
struct Model {
    server: ModelServer,
    gate: Arc<Mutex<Option<Gate>>>,
    /// The status of answers to requests for a summary; 0 for a summary.
    refusal: Arc<AtomicU16>,
}

impl Model {
    fn start() -> Self {
        let (server, gate) = (ModelServer::start(), Arc::<Mutex<Option<Gate>>>::default());
        let refusal = Arc::<AtomicU16>::default();
        let (held, refused) = (gate.clone(), refusal.clone());
        server.respond(move |request| {
            if !request.wants_summary() {
                return Reply::text(format!("echo: {}", request.last_user()));
            }
            let reply = match refused.load(Ordering::SeqCst) {
                0 => Reply::text("They counted ships."),
                1 => Reply::text(" "),
                2 => Reply::text("ships ".repeat(8_000)),
                status => Reply::error(status, "scripted"),
            };
            held.lock().as_ref().map_or(reply.clone(), |gate| reply.gated(gate))
        });
        Self { server, gate, refusal }
    }

    fn daemon(&self) -> Daemon {
        let base_url = self.server.base_url();
        Daemon::with(&format!(
            "[default_model]\nprovider = \"openai\"\nmodel = \"echo-1\"\nbase_url = \"{base_url}\"\n\
             api_key_env = \"TEST_MODEL_KEY\"\n"
        ))
    }

    fn hold(&self) -> Gate {
        let gate = Gate::default();
        *self.gate.lock() = Some(gate.clone());
        gate
    }

    fn summaries_asked(&self) -> Vec<Received> {
        self.server.requests().into_iter().filter(Received::wants_summary).collect()
    }

    fn wait_for_summaries(&self, count: usize) {
        until("a summary is asked for", || (self.summaries_asked().len() >= count).then_some(()));
    }

    /// The messages of the last prompt of a turn, without the system text.
    fn last_prompt(&self) -> Vec<Value> {
        let requests = self.server.requests();
        let turn = requests.iter().rev().find(|request| !request.wants_summary()).unwrap();
        let messages = turn.body["messages"].as_array().unwrap();
        messages.iter().filter(|message| message["role"] != "system").cloned().collect()
    }
}

fn agent(daemon: &Daemon) -> String {
    daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n")
}

fn turns(daemon: &Daemon, agent: &str, from: usize, to: usize) {
    for number in from..to {
        daemon.say(agent, &format!("ship {number}"));
    }
}

fn session(daemon: &Daemon, agent: &str) -> Value {
    daemon.get(&format!("/api/agents/{agent}/session")).expect(200)
}

fn compact(daemon: &Daemon, agent: &str) -> Response {
    daemon.poke(&format!("/api/agents/{agent}/session/compact"))
}

/// The session, once 31 of 41 turns are a summary. A summary that is shown is stored.
fn compacted(daemon: &Daemon, agent: &str) -> Value {
    until("the session is compacted", || {
        let now = session(daemon, agent);
        (count(&now) == 21 && text(&now["messages"][0]["content"]).starts_with(TITLE)).then_some(now)
    })
}

fn count(session: &Value) -> u64 {
    session["message_count"].as_u64().unwrap()
}

#[test]
fn above_eighty_messages_a_session_is_compacted_by_itself() {
    let model = Model::start();
    let mut daemon = model.daemon();
    let agent = agent(&daemon);
    turns(&daemon, &agent, 0, 40);
    assert_eq!((count(&session(&daemon, &agent)), model.summaries_asked().len()), (80, 0));
    turns(&daemon, &agent, 40, 41);
    let now = compacted(&daemon, &agent);
    let messages = now["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 21);
    assert_eq!(messages[0], json!({ "role": "User", "content": format!("{TITLE}\nThey counted ships.") }));
    assert_eq!(messages[1]["content"], "ship 31");
    let tokens: usize = messages.iter().map(|m| 4 + text(&m["content"]).len().div_ceil(4)).sum();
    assert_eq!(now["context_window_tokens"], tokens);
    let asked = &model.summaries_asked()[0];
    assert!(asked.body.get("tools").is_none());
    let transcript = text(&asked.body["messages"][1]["content"]);
    assert!(transcript.contains("User: ship 0\nAssistant: echo: ship 0\n") && !transcript.contains("ship 31"));

    daemon.say(&agent, "what did I count?");
    let prompt = model.last_prompt();
    assert_eq!(prompt[0]["content"], format!("{TITLE}\nThey counted ships.\n\nship 31"));
    assert_eq!((prompt.len(), &prompt[20]["content"]), (21, &json!("what did I count?")));

    daemon.restart();
    assert_eq!(session(&daemon, &agent)["messages"][0]["content"], messages[0]["content"]);
    let found = daemon.get("/api/sessions/search?q=ship%203").expect(200);
    assert_eq!(found["total"], 1, "the originals are still found: {found}");
    let detail = daemon.get("/api/metrics");
    assert!(detail.text().contains("agentsvc_compactions_total{end=\"completed\"}"), "{}", detail.text());
}

#[test]
fn on_demand_the_counts_are_told_and_pages_go_on_behind_the_summary() {
    let model = Model::start();
    let daemon = model.daemon();
    let agent = agent(&daemon);
    let none = compact(&daemon, &agent).expect(200);
    assert_eq!((&none["status"], &none["messages_summarised"]), (&json!("compacted"), &json!(0)));
    assert!(text(&none["message"]).starts_with("Nothing to compact"), "{none}");
    turns(&daemon, &agent, 0, 9);
    let done = compact(&daemon, &agent).expect(200);
    assert_eq!(
        (&done["status"], &done["messages_before"], &done["messages_after"]),
        (&json!("compacted"), &json!(18), &json!(7))
    );
    assert!(text(&done["message"]).contains("18 messages to 7"), "{done}");
    let id = text(&done["session_id"]);
    let first = daemon.get(&format!("/api/sessions/{id}?limit=1")).expect(200);
    assert_eq!(first["messages"][0]["content"], format!("{TITLE}\nThey counted ships."));
    let cursor = text(&first["next_cursor"]);
    let second = daemon.get(&format!("/api/sessions/{id}?limit=2&cursor={cursor}")).expect(200);
    assert_eq!(second["messages"][0]["content"], "ship 6");

    turns(&daemon, &agent, 9, 12);
    let again = compact(&daemon, &agent).expect(200);
    assert_eq!((&again["messages_before"], &again["messages_after"]), (&json!(13), &json!(5)));
    let asked = text(&model.summaries_asked()[1].body["messages"][1]["content"]);
    assert!(asked.contains("They counted ships.") && asked.contains("ship 6") && !asked.contains("ship 5"), "{asked}");
    let used = daemon.detail(&agent);
    assert!(used["usage"]["input_tokens"].as_u64().is_none_or(|tokens| tokens == 14 * 11), "{used}");
}

#[test]
fn bad_requests_are_refused() {
    let daemon = Daemon::start();
    let (one, two) = (daemon.agent("one"), daemon.agent("two"));
    let foreign = text(&daemon.detail(&two)["session_id"]);
    let path = format!("/api/agents/{one}/session/compact");
    daemon.post(&path, &json!({ "session_id": foreign })).refused(403);
    daemon.post(&path, &json!({ "session_id": "nonsense" })).refused_field(400, "session_id");
    daemon.post(&path, &json!({ "session_id": uuid::Uuid::nil() })).refused(404);
    daemon.poke(&format!("/api/agents/{}/session/compact", uuid::Uuid::nil())).refused(404);
    daemon.poke("/api/agents/nonsense/session/compact").refused(400);
}

#[test]
fn the_offline_model_writes_summaries_too() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    for said in ["My boat is green.", "It is called Ada.", "echo third", "echo fourth"] {
        daemon.say(&agent, said);
    }
    compact(&daemon, &agent).expect(200);
    let first = text(&session(&daemon, &agent)["messages"][0]["content"]);
    assert!(first.contains("My boat is green.") && first.contains("It is called Ada."), "{first}");
}

#[test]
fn turns_run_on_while_the_summary_is_written() {
    let model = Model::start();
    let daemon = model.daemon();
    let agent = agent(&daemon);
    turns(&daemon, &agent, 0, 6);
    let gate = model.hold();
    let waiting = {
        let (client, path) = (daemon.client(), format!("/api/agents/{agent}/session/compact"));
        thread::spawn(move || client.poke(&path).expect(200))
    };
    model.wait_for_summaries(1);
    daemon.say(&agent, "meanwhile");
    assert_eq!(model.last_prompt().len(), 13, "the whole history is there");
    gate.open();
    let done = waiting.join().unwrap();
    assert_eq!((&done["messages_before"], &done["messages_after"]), (&json!(14), &json!(7)));
    let messages = session(&daemon, &agent)["messages"].as_array().unwrap().clone();
    assert_eq!((messages.len(), &messages[5]["content"]), (7, &json!("meanwhile")));
}

#[test]
fn a_failure_changes_nothing_and_is_told() {
    let model = Model::start();
    let daemon = model.daemon();
    let agent = agent(&daemon);
    turns(&daemon, &agent, 0, 5);
    let before = session(&daemon, &agent);
    for refusal in [400, 1, 2] {
        model.refusal.store(refusal, Ordering::SeqCst);
        let refused = compact(&daemon, &agent).expect(500);
        assert_eq!(refused["code"], "compaction_failed", "{refused}");
        assert_eq!(session(&daemon, &agent), before);
    }
    model.refusal.store(0, Ordering::SeqCst);
    compact(&daemon, &agent).expect(200);
}

#[test]
fn a_kill_while_the_summary_is_out_resumes_it() {
    let model = Model::start();
    let mut daemon = model.daemon();
    let agent = agent(&daemon);
    turns(&daemon, &agent, 0, 40);
    let gate = model.hold();
    turns(&daemon, &agent, 40, 41);
    model.wait_for_summaries(1);
    daemon.restart();
    model.wait_for_summaries(2);
    gate.open();
    compacted(&daemon, &agent);
    daemon.restart();
    assert_eq!(count(&session(&daemon, &agent)), 21);
    assert_eq!(model.summaries_asked().len(), 2, "it ended once");
}

#[test]
fn a_reset_meanwhile_ends_it() {
    let model = Model::start();
    let daemon = model.daemon();
    let agent = agent(&daemon);
    turns(&daemon, &agent, 0, 5);
    let gate = model.hold();
    let waiting = {
        let (client, path) = (daemon.client(), format!("/api/agents/{agent}/session/compact"));
        thread::spawn(move || client.poke(&path).refused(409))
    };
    model.wait_for_summaries(1);
    daemon.delete(&format!("/api/agents/{agent}/history")).expect(200);
    waiting.join().unwrap();
    gate.open();
    assert_eq!(session(&daemon, &agent)["messages"], json!([]));
    turns(&daemon, &agent, 5, 6);
    assert_eq!(model.last_prompt().len(), 1, "nothing of the old history is left");
}

#[test]
fn calls_and_results_stay_together() {
    let model = Model::start();
    let daemon = model.daemon();
    let agent = agent(&daemon);
    for number in 0..6 {
        model.server.push(Reply::calls(&[("c1", "system_time", "{}"), ("c2", "system_time", "{}")]));
        daemon.say(&agent, &format!("time {number}"));
    }
    compact(&daemon, &agent).expect(200);
    daemon.say(&agent, "and now?");
    let prompt = model.last_prompt();
    let roles: Vec<&str> = prompt.iter().map(|message| message["role"].as_str().unwrap()).collect();
    let turn = ["user", "assistant", "tool", "tool", "assistant"];
    assert_eq!(roles, [&turn[..], &turn[..], &["user"]].concat());
    assert!(text(&prompt[0]["content"]).starts_with(TITLE));
    let transcript = text(&model.summaries_asked()[0].body["messages"][1]["content"]);
    assert!(transcript.contains("[The assistant calls system_time: {}]"), "{transcript}");
}

#[test]
fn a_small_context_presses_and_the_prompt_always_fits() {
    let model = Model::start();
    let base_url = model.server.base_url();
    let daemon = Daemon::with(&format!(
        "[default_model]\nprovider = \"tight\"\nmodel = \"echo-1\"\n\
         [providers.tight]\nbase_url = \"{base_url}\"\ncontext_tokens = 1000\n"
    ));
    let agent = agent(&daemon);
    for number in 0..8 {
        daemon.say(&agent, &format!("{number} {}", "ship ".repeat(60)));
    }
    until("pressure compacts", || (!model.summaries_asked().is_empty()).then_some(()));
    let now = until("the summary stands", || {
        let now = session(&daemon, &agent);
        text(&now["messages"][0]["content"]).starts_with(TITLE).then_some(now)
    });
    assert!(count(&now) < 16, "{now}");
    for request in model.server.requests() {
        let messages = request.body["messages"].as_array().unwrap();
        let bytes: usize = messages.iter().map(|m| 16 + m["content"].as_str().map_or(0, str::len)).sum();
        assert!(bytes <= 4 * 1_000, "{bytes}");
    }
}
