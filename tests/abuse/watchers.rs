//! A thousand who watch one session.

use serde_json::json;

use super::harness::{Memory, Neighbour, harness, wait};
use crate::support::model::Model;
use crate::support::model_server::{Gate, Reply};
use crate::support::stream::{Events, text_of};

const WATCHERS: usize = 1_000;
const WORDS: usize = 300;

#[test]
fn a_thousand_watchers_of_one_session_hear_all_or_are_told_what_they_missed() {
    let model = Model::start();
    let daemon = harness(&model.config());
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent_with("a", "");
    let words: Vec<String> = (0..WORDS).map(|n| format!("word-{n}")).collect();
    let gate = Gate::default();
    model.script([Reply::text(words.join(" ")).gated(&gate)]);
    let memory = Memory::of(&daemon);
    let path = format!("/api/agents/{agent}/message");
    let (client, body) = (daemon.client(), json!({ "message": "tell" }));
    let asked = std::thread::spawn(move || client.post(&path, &body));
    wait("the model is asked", || (!model.server.requests().is_empty()).then_some(()));
    let watchers: Vec<Events> = (0..WATCHERS).map(|_| Events::attach(&daemon, &agent)).collect();
    neighbour.is_served();
    gate.open();
    // They are read one after the other: those at the end are slow, and nobody waits for them.
    let answer = asked.join().unwrap().expect(200);
    assert_eq!(answer["response"], words.join(" "));
    memory.is_flat(&daemon, "1,000 watchers of one session");
    let mut lagged = 0;
    for watcher in watchers {
        let events = watcher.all();
        assert_eq!(events.last().map(|event| event.name.as_str()), Some("done"), "{events:?}");
        if events.iter().any(|event| event.name == "lagged" && event.data["missed"].as_u64() > Some(0)) {
            lagged += 1;
        } else {
            assert_eq!(text_of(&events), words.join(" "));
        }
    }
    eprintln!("{lagged} of {WATCHERS} watchers missed something and were told");
    neighbour.leave();
}
