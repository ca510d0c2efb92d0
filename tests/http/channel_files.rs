//! Files that messages of chats bring, uploads that agents send to chats, and where the answers of tools go.

use serde_json::{Value, json};

use crate::channel_extras::sending;
use crate::channel_process::{OPEN, Stage, send_ended};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::{ModelServer, Reply};

const TOOLS: &str = "[capabilities]\ntools = [\"channel_send\"]\n";

/// What the model read last.
fn read(model: &Model) -> String {
    let requests = model.requests();
    let last = requests.last().and_then(|it| it["messages"].as_array()?.last().cloned()).unwrap_or_default();
    last["content"].to_string()
}

#[test]
fn a_recording_or_an_archive_is_kept_and_named_to_the_agent() {
    let (model, stage, files) = (Model::start(), Stage::new(), ModelServer::start());
    files.respond(|_| Reply::raw(200, &[("content-type", "audio/ogg")], "OggS-voice"));
    let more = format!("[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n", files.address());
    let daemon = Daemon::with(&format!("{}{more}{}", model.config(), stage.entry("bot", OPEN)));
    daemon.agent_with("scout", "");
    let mut adapter = stage.ready(&[]);
    let url = format!("http://{}/note.ogg", files.address());
    let recording = |caption: Option<&str>| json!({ "url": url, "caption": caption, "duration_seconds": 3 });
    let (voice, zip): (&[u8], &[u8]) = (b"OggS-voice", b"PK\x03\x04-zip");
    let archive = json!({ "data": zip, "filename": "a.zip", "mime_type": "application/zip" });
    for (content, said, content_type, bytes) in [
        (json!({ "Voice": recording(None) }), "a voice message", "audio/ogg", voice),
        (json!({ "Audio": recording(Some("My song")) }), "an audio file", "audio/ogg", voice),
        (json!({ "FileData": archive }), "a file", "application/zip", zip),
    ] {
        let params = json!({ "user_id": "ann", "user_name": "Ann", "content": content });
        adapter.say(&json!({ "method": "message", "params": params }));
        adapter.next_of("send");
        let read = read(&model);
        let (_, line) = read.split_once(&format!("[User sent {said}: upload ")).unwrap_or_else(|| panic!("{read}"));
        let (id, line) = line.split_once(", ").expect("more of it");
        assert!(line.contains(&format!(", {content_type}, {} bytes]", bytes.len())), "{read}");
        assert_eq!(read.contains("My song"), said == "an audio file", "{read}");
        let kept = daemon.get(&format!("/api/uploads/{id}"));
        assert_eq!((kept.status, &*kept.body), (200, bytes), "{id}");
    }
}

#[test]
fn an_agent_reads_why_a_file_was_not_kept() {
    let (model, stage) = (Model::start(), Stage::new());
    let more = "[uploads]\nmax_bytes = 4\n";
    let daemon = Daemon::with(&format!("{}{more}{}", model.config(), stage.entry("bot", OPEN)));
    daemon.agent_with("scout", "");
    let mut adapter = stage.ready(&[]);
    let data: &[u8] = b"too long";
    let content = json!({ "FileData": { "data": data, "filename": "a.txt", "mime_type": "text/plain" } });
    let params = json!({ "user_id": "ann", "user_name": "Ann", "content": content });
    adapter.say(&json!({ "method": "message", "params": params }));
    adapter.next_of("send");
    let read = read(&model);
    assert!(read.contains("a.txt") && read.contains("was not kept: the file is larger than 4 bytes"), "{read}");
}

#[test]
fn an_upload_of_the_agent_goes_out_and_stays() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    let (agent, other) = (daemon.agent_with("scout", TOOLS), daemon.agent_with("other", ""));
    let own = text(&daemon.upload_as(&agent, "speech.mp3", Some("audio/mpeg"), b"ID3-speech").expect(201)["file_id"]);
    let theirs = text(&daemon.upload_as(&other, "b.txt", None, b"theirs").expect(201)["file_id"]);
    let mut adapter = stage.ready(&[]);
    let mut count = 0;
    for (id, key, file) in [("c1", "file_id", own.clone()), ("c2", "image_url", format!("/api/uploads/{own}"))] {
        let wanted = json!({ "channel": "bot", "message": "", key: file });
        let told = sending(&model, &daemon, &mut adapter, id, &wanted);
        assert!(told.contains("queued"), "{told}");
        let mut sent = [adapter.next_of("send"), adapter.next_of("send")];
        sent.sort_by_key(|it| it["content"]["FileData"].is_null());
        let expected = json!({ "data": b"ID3-speech", "filename": "speech.mp3", "mime_type": "audio/mpeg" });
        assert_eq!(sent[0]["content"]["FileData"], expected);
        count += 2;
        assert_eq!(send_ended(&daemon, "bot", count)["status"], "sent");
        assert_eq!(daemon.get(&format!("/api/uploads/{own}")).status, 200);
    }
    for (id, file) in [("c3", theirs), ("c4", "00000000-0000-4000-8000-000000000000".to_owned())] {
        let wanted = json!({ "channel": "bot", "message": "see", "file_id": file });
        let told = sending(&model, &daemon, &mut adapter, id, &wanted);
        assert!(told.contains("no such upload of yours"), "{told}");
        assert_eq!(adapter.next_of("send")["text"], "done", "not even the text goes out");
    }
}

#[test]
fn an_adapter_that_takes_data_urls_gets_an_upload_as_a_picture() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    let agent = daemon.agent_with("scout", TOOLS);
    let png = b"\x89PNG\r\n\x1a\n-picture";
    let picture = text(&daemon.upload_as(&agent, "image.png", Some("image/png"), png).expect(201)["file_id"]);
    let mut adapter = stage.ready(&["data_urls"]);
    sending(&model, &daemon, &mut adapter, "c1", &json!({ "channel": "bot", "message": "", "file_id": picture }));
    let mut sent = [adapter.next_of("send"), adapter.next_of("send")];
    sent.sort_by_key(|it| it["content"]["Image"].is_null());
    let url = text(&sent[0]["content"]["Image"]["url"]);
    assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{:?}", sent[0]);
    assert_eq!(sent[0]["text"], "[File: image.png]", "the bytes are not said twice");
}

#[test]
fn what_a_tool_sends_to_the_chat_goes_to_the_thread_and_with_the_token_of_the_message() {
    let (model, stage) = (Model::start(), Stage::new());
    let daemon = Daemon::with(&format!("{}{}", model.config(), stage.entry("bot", OPEN)));
    daemon.agent_with("scout", TOOLS);
    let mut adapter = stage.ready(&["thread"]);
    let mut sent = |id: &str, thread: Option<&str>| {
        let wanted = json!({ "channel": "bot", "message": "beside", "thread_id": thread });
        model.script([Reply::calls(&[("1", "channel_send", &wanted.to_string())]), Reply::text("done")]);
        let params = json!({ "user_id": "ann", "user_name": "Ann", "text": "go", "message_id": id,
            "thread_id": "t1", "librefang_user": format!("token-{id}") });
        adapter.say(&json!({ "method": "message", "params": params }));
        let both = [adapter.next_of("send"), adapter.next_of("send")];
        let place = |text: &str| {
            let one = both.iter().find(|it| it["text"] == text).unwrap_or_else(|| panic!("{both:?}"));
            (one["thread_id"].clone(), one["user"]["librefang_user"].clone())
        };
        (place("beside"), place("done"))
    };
    let at = |thread: &str, token: &str| -> (Value, Value) { (json!(thread), json!(token)) };
    assert_eq!(sent("m1", None), (at("t1", "token-m1"), at("t1", "token-m1")));
    assert_eq!(sent("m2", Some("t2")), (at("t2", "token-m2"), at("t1", "token-m2")));
}
