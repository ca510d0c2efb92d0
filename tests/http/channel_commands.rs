//! Commands with which administrators see and change what belongs to the daemon from a chat.

use serde_json::json;

use crate::a2a_outbound::{External, discover};
use crate::channel_extras::{actions, trust};
use crate::channel_process::{Adapter, OPEN, Stage};
use crate::hands::{HERALD, activate, install};
use crate::peer_wire::{address, network};
use crate::skills::{reload, skill};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::until;

/// An administrator in a chat.
struct Chat(Adapter, u32);

impl Chat {
    /// Gives a command; the answer to it.
    fn ask(&mut self, command: &str) -> String {
        self.1 += 1;
        self.0.message(&format!("m{}", self.1), command, None);
        text(&self.0.next_of("send")["text"])
    }

    /// Gives a command whose answer ends with an id.
    fn made(&mut self, command: &str, kind: &str) -> String {
        let told = self.ask(command);
        let id = told.strip_prefix(&format!("Added {kind} ")).and_then(|rest| rest.strip_suffix('.'));
        id.unwrap_or_else(|| panic!("{command}: {told}")).to_owned()
    }
}

/// Waits until the model was asked for something with this text.
fn asked(model: &Model, what: &str) {
    until("the model is asked", || model.requests().iter().any(|it| it.to_string().contains(what)).then_some(()));
}

#[test]
fn an_administrator_starts_adds_runs_and_deletes_from_a_chat() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    trust(&daemon);
    let agent = daemon.agent_with("scout", "");
    let steps = json!([{ "name": "s", "agent_name": "scout", "prompt": "Summarize: {{input}}" }]);
    daemon.post("/api/workflows", &json!({ "name": "digest", "description": "Of a text", "steps": steps })).expect(201);
    let mut chat = Chat(stage.ready(&[]), 0);
    assert_eq!(chat.ask("/workflows"), "Workflows:\n- digest: 1 steps. Of a text");
    let told = chat.ask("/workflow run Digest the long report");
    assert!(told.starts_with("digest has started: run "), "{told}");
    asked(&model, "Summarize: the long report");
    assert!(chat.ask("/workflow run other x").contains("/workflows lists them"));

    let trigger = chat.made("/trigger add scout late_order Look at it: {{event}}", "trigger");
    let rows = daemon.get("/api/triggers").expect(200);
    let row = &rows[0];
    assert_eq!((&row["agent_id"], &rows[1]), (&json!(agent), &json!(null)), "{rows}");
    assert!(row["pattern"].to_string().contains("late order"), "{row}");
    assert!(chat.ask("/triggers").contains(&format!("{trigger}: Look at it")));
    assert_eq!(chat.ask(&format!("/trigger del {trigger}")), format!("Deleted trigger {trigger}."));
    assert_eq!(daemon.get("/api/triggers").expect(200), json!([]));
    assert_eq!(chat.ask("/triggers"), "There are no triggers.");

    let schedule = chat.made("/schedule add scout 0 0 1 1 * Wish a happy new year", "schedule");
    let rows = daemon.get("/api/schedules").expect(200);
    let row = &rows["schedules"][0];
    assert_eq!((&rows["total"], &row["agent_id"]), (&json!(1), &json!(agent)), "{rows}");
    assert!(chat.ask("/schedules").contains(&format!("{schedule} `0 0 1 1 *`, next ")));
    assert_eq!(chat.ask(&format!("/schedule run {schedule}")), format!("Schedule {schedule} runs."));
    asked(&model, "Wish a happy new year");
    assert_eq!(chat.ask(&format!("/schedule del {schedule}")), format!("Deleted schedule {schedule}."));
    assert_eq!(daemon.get("/api/schedules").expect(200)["total"], 0);
    assert_eq!(chat.ask("/schedules"), "There are no schedules.");
}

#[test]
fn an_administrator_sees_what_the_daemon_has_from_a_chat() {
    let (model, stage, external) = (Model::start(), Stage::new(), External::v0());
    let node = Daemon::with(&network("node_name = \"other-node\""));
    let own = network(&format!("node_name = \"own-node\"\nbootstrap_peers = [\"{}\"]", address(&node)));
    let daemon = external.daemon(&format!("{own}{}{}", model.config(), stage.entry("bot", OPEN)));
    trust(&daemon);
    daemon.agent_with("scout", "");
    let mut chat = Chat(stage.ready(&[]), 0);
    for (command, none) in
        [("/skills", "There are no skills."), ("/hands", "No hand is active."), ("/a2a", "No external agent is known.")]
    {
        assert_eq!(chat.ask(command), none);
    }
    skill(daemon.home(), "notes", "version: 1.4.0\n", "Take notes.");
    reload(&daemon);
    install(&daemon, HERALD);
    activate(&daemon, "herald", &json!({}));
    discover(&daemon, &external);
    until("the nodes are connected", || {
        (daemon.get("/api/peers").expect(200)["peers"][0]["state"] == "connected").then_some(())
    });
    assert_eq!(chat.ask("/skills"), "Skills:\n- notes 1.4.0: About it.");
    let hands = chat.ask("/hands");
    assert!(hands.starts_with("Hands:\n- herald #1: "), "{hands}");
    assert_eq!(chat.ask("/a2a"), format!("External agents:\n- Weather: {}", external.url()));
    let peers = chat.ask("/peers");
    assert!(peers.starts_with("Nodes:\n- other-node (") && peers.ends_with(": connected"), "{peers}");
}

#[test]
fn the_models_of_a_provider_whose_key_is_that_of_the_default_model_can_be_chosen() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    trust(&daemon);
    daemon.agent_with("scout", "");
    assert_eq!(daemon.get("/api/status").expect(200)["default_provider"], "openai");
    let mut adapter = stage.ready(&["interactive"]);
    adapter.message("m1", "/models", None);
    let shown = actions(&adapter.next_of("interactive")["message"]["buttons"]);
    assert!(shown.contains(&"prov:openai".to_owned()), "{shown:?}");
    assert!(!shown.contains(&"prov:groq".to_owned()), "it has no key: {shown:?}");
}
