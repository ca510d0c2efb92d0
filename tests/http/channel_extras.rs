//! What people choose with buttons, files of workspaces on their way to chats, limits of answers, and the reload.

use serde_json::{Value, json};

use crate::channel_process::{Adapter, OPEN, Stage, daemon_with, send_ended, status_of};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// A button of the message 77 is pressed.
fn presses(adapter: &mut Adapter, press: &str, action: &str) {
    let content = json!({ "ButtonCallback": { "action": action, "message_text": "Choose" } });
    let params = json!({ "user_id": "ann", "user_name": "Ann", "message_id": "77", "content": content,
        "metadata": { "callback_query_id": press } });
    adapter.say(&json!({ "method": "message", "params": params }));
}

pub(crate) fn actions(buttons: &Value) -> Vec<String> {
    let rows = buttons.as_array().cloned().unwrap_or_default();
    rows.iter()
        .flat_map(|row| row.as_array().cloned().unwrap_or_default())
        .map(|button| text(&button["action"]))
        .collect()
}

/// Makes Ann an administrator in the channel.
pub(crate) fn trust(daemon: &Daemon) {
    let user = json!({ "name": "ann", "role": "admin", "channel_bindings": { "bot": "ann" } });
    daemon.post("/api/users", &user).expect(201);
}

#[test]
fn models_are_chosen_with_buttons_in_one_message() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    trust(&daemon);
    let mut adapter = stage.ready(&["interactive"]);
    // A button of no command goes to the agent.
    presses(&mut adapter, "q0", "more");
    assert_eq!(adapter.next_of("send")["text"], "echo: [Button clicked: more] (on message: Choose)");
    adapter.message("m1", "/models", None);
    let shown = adapter.next_of("interactive")["message"].clone();
    let providers = actions(&shown["buttons"]);
    let own = providers.iter().find(|action| action.as_str() == "prov:ollama").expect("a provider without a key");
    presses(&mut adapter, "q1", own);
    let edited = adapter.next_of("send")["content"]["EditInteractive"].clone();
    assert_eq!(edited["message_id"], "77", "the answer replaces the message: {edited}");
    let models = actions(&edited["buttons"]);
    assert_eq!(models.last().map(String::as_str), Some("back:providers"), "{models:?}");
    let chosen = models.iter().find(|action| action.starts_with("model:ollama/")).expect("a model").clone();
    presses(&mut adapter, "q2", "back:providers");
    let back = adapter.next_of("send")["content"]["EditInteractive"].clone();
    assert_eq!(actions(&back["buttons"]), providers);
    presses(&mut adapter, "q3", &chosen);
    let done = adapter.next_of("send")["content"]["EditInteractive"].clone();
    assert_eq!((&done["message_id"], &done["buttons"]), (&json!("77"), &json!([])));
    let name = chosen.trim_start_matches("model:ollama/");
    assert!(text(&done["text"]).contains(name), "{done}");
    let agents = daemon.get("/api/agents").expect(200);
    assert!(agents.to_string().contains(name), "{agents}");
    // A button that is pressed twice is carried out once.
    presses(&mut adapter, "q3", &chosen);
    presses(&mut adapter, "q5", "/agents");
    let next = adapter.next_of("send")["content"]["EditInteractive"].clone();
    assert!(text(&next["text"]).contains("Agents of this channel"), "{next}");
}

#[test]
fn where_there_are_no_buttons_their_labels_are_written() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    adapter.message("m0", "/models", None);
    let denied = text(&adapter.next_of("send")["text"]);
    assert!(denied.contains("only an administrator"), "{denied}");
    trust(&daemon);
    adapter.message("m1", "/models", None);
    let shown = adapter.next_of("send");
    assert!(text(&shown["text"]).contains("[ollama]") && shown["content"]["Text"].is_string(), "{shown}");
    adapter.message("m2", "/models nothing", None);
    assert!(text(&adapter.next_of("send")["text"]).contains("no such provider"));
    adapter.message("m3", "/models ollama", None);
    let shown = text(&adapter.next_of("send")["text"]);
    assert!(shown.contains("Models of ollama") && shown.contains("[Back]"), "{shown}");
}

#[test]
fn a_chat_turns_thinking_on_and_off() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    let mut told = |id: &str, typed: &str| {
        adapter.message(id, typed, None);
        text(&adapter.next_of("send")["text"])
    };
    assert!(told("m1", "/think").contains("is on"));
    assert!(told("m2", "/think").contains("is off"));
    assert!(told("m3", "/think on").contains("is on"));
    assert!(told("m4", "/think much").contains("/think on or /think off"));
    let chats = daemon.get("/api/channels/bot/conversations").expect(200);
    assert_eq!(chats["conversations"][0]["thinking"], true, "{chats}");
    assert_eq!(told("m5", "hello"), "echo: hello");
    assert_eq!(model.requests().len(), 1);
}

/// An agent that may send, and sends this.
pub(crate) fn sending(model: &Model, daemon: &Daemon, adapter: &mut Adapter, id: &str, input: &Value) -> String {
    let call = Reply::calls(&[(id, "channel_send", &input.to_string())]);
    model.script([call, Reply::text("done")]);
    adapter.message(id, "send it", None);
    until("the result of the call is there", || {
        let requests = model.requests();
        let last = requests.last()?["messages"].as_array()?.last()?.clone();
        (last["role"] == "tool" && last["tool_call_id"] == id).then(|| text(&last["content"]))
    })
    .replace(daemon.home().to_str().unwrap_or_default(), "<home>")
}

#[test]
fn a_file_of_the_workspace_goes_out_with_its_bytes_and_nothing_beside_the_workspace_does() {
    let (model, stage) = (Model::start(), Stage::new());
    let config = format!("{}{}[channels]\nfile_upload_max_bytes = 1000\n", model.config(), stage.entry("bot", OPEN));
    let daemon = Daemon::with(&config);
    let agent = daemon.agent_with("scout", "[capabilities]\ntools = [\"channel_send\"]\n");
    let put = |name: &str, content: &[u8]| {
        daemon.send("PUT", &format!("/api/agents/{agent}/files/{name}"), &[], Some(content)).expect(201);
    };
    put("out/report.txt", b"hi\x00\xff");
    put("large.bin", &[7; 1001]);
    let mut adapter = stage.ready(&[]);
    let send = |path: &str| json!({ "channel": "bot", "message": "Here it is", "file_path": path });
    let told = sending(&model, &daemon, &mut adapter, "c1", &send("out/report.txt"));
    assert!(told.contains("queued"), "{told}");
    // The text goes before the file; the answer of the turn may go before or between.
    let (mut said, mut file) = (Vec::new(), Value::Null);
    while file.is_null() || said.len() < 2 {
        let params = adapter.next_of("send");
        match &params["content"]["FileData"] {
            Value::Null => said.push(text(&params["text"])),
            data => {
                assert!(said.contains(&"Here it is".to_owned()), "{said:?}");
                assert_eq!(params["text"], "[File: report.txt]", "the bytes are not said twice");
                file = data.clone();
            }
        }
    }
    assert_eq!(file["data"], json!([104, 105, 0, 255]));
    assert_eq!(file["filename"], "report.txt");
    send_ended(&daemon, "bot", 3);
    until("the copy that was kept for the send is gone", || {
        let kept = std::fs::read_dir(daemon.home().join("uploads")).into_iter().flatten().flatten();
        (kept.filter(|entry| entry.path().extension().is_none()).count() == 0).then_some(())
    });
    let workspace = daemon.home().join("workspaces").join("scout");
    std::os::unix::fs::symlink("/etc/passwd", workspace.join("link")).expect("a link");
    for (id, path, why) in [
        ("c2", "../../config.toml", "not allowed"),
        ("c3", "/etc/passwd", "path"),
        ("c4", "link", "link"),
        ("c5", "gone", "gone"),
        ("c6", "large.bin", "1000"),
    ] {
        let told =
            sending(&model, &daemon, &mut adapter, id, &json!({ "channel": "bot", "message": "", "file_path": path }));
        assert!(told.contains(why) && !told.contains("queued"), "{path}: {told}");
    }
}

#[test]
fn so_many_answers_are_written_at_once_and_late_ones_are_stopped() {
    let (model, stage) = (Model::start(), Stage::new());
    let limits =
        "[auto_reply]\nenabled = true\nmax_concurrent = 1\ntimeout_secs = 1\nsuppress_patterns = [\"On Leave\"]\n";
    let daemon = daemon_with(&model, &format!("{}{limits}", stage.entry("bot", OPEN)));
    let mut adapter = stage.ready(&[]);
    model.hold();
    adapter.message("m1", "hello", None);
    assert_eq!(adapter.next_of("send")["text"], "The agent did not answer in time.");
    model.release();
    adapter.message("m2", "I am on leave", None);
    adapter.message("m3", "again", None);
    assert_eq!(adapter.next_of("send")["text"], "echo: again", "what a pattern suppresses gets no answer");
    let conversations = daemon.get("/api/channels/bot/conversations").expect(200);
    assert_eq!(conversations["total"], 1, "{conversations}");
}

#[test]
fn the_command_line_reloads_channels_and_starts_one_that_was_given_up() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = daemon_with(&model, &stage.entry("bot", OPEN));
    let mut adapter = stage.ready(&[]);
    adapter.line("!exit 2");
    until("it is given up", || (status_of(&daemon, "bot")["state"] == "failed").then_some(()));
    let told = daemon.cli(&["channel", "reload"]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("reloaded 1 channel") && told.contains("started: bot"), "{told}");
    stage.ready(&[]);
    assert_eq!(status_of(&daemon, "bot")["state"], "started");
}
