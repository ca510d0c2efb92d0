//! What is read and written, byte for byte where the protocol says so.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::bytes::{FILE_BYTES_MAX, FileBytes};
use super::command::{Buttons, Command, Phase, Send, User, is_barrier_answer};
use super::content::{Button, Content, MediaItem, Recording, with_labels};
use super::event::{Event, QrState};

fn read(text: &str) -> Event {
    Event::parse(text.as_bytes()).unwrap().unwrap()
}

fn message(params: Value) -> super::event::Message {
    match read(&json!({ "method": "message", "params": params }).to_string()) {
        Event::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bare_ready_is_legal_and_null_equals_absent() {
    for text in [r#"{"method":"ready"}"#, r#"{"method":"ready","params":null}"#, r#"{"method":"ready","params":{}}"#] {
        assert_eq!(read(text), Event::Ready(super::event::Ready::default()), "{text}");
    }
    let full = r#"{"method":"ready","params":{"capabilities":["typing"],"account_id":null,"suppress_error_responses":true,
        "notification_recipients":[{"platform_id":"7","display_name":"Ann","librefang_user":null}],
        "header_rules":[["files.slack.com",[["Authorization","Bearer x"]]]],"protocol_version":1}}"#;
    let Event::Ready(ready) = read(full) else { panic!("not ready") };
    assert!(ready.suppress_error_responses && ready.capabilities == ["typing"]);
    assert_eq!(ready.notification_recipients[0].platform_id, "7");
    assert_eq!(ready.header_rules[0].1[0], ("Authorization".to_owned(), "Bearer x".to_owned()));
    let nulls = r#"{"method":"ready","params":{"capabilities":null,"header_rules":null,"protocol_version":null}}"#;
    assert_eq!(read(nulls), Event::Ready(super::event::Ready::default()));
}

#[test]
fn the_conversation_is_the_channel_where_there_is_one() {
    let plain = message(json!({ "user_id": "u", "user_name": "Ann", "text": "hi" }));
    assert_eq!((plain.conversation(), plain.content()), ("u", Content::Text("hi".to_owned())));
    let group = message(json!({ "user_id": "u", "user_name": "Ann", "channel_id": "c", "text": "old",
        "content": { "Text": "new" }, "metadata": { "sender_user_id": "42", "was_mentioned": true } }));
    assert_eq!((group.conversation(), group.content()), ("c", Content::Text("new".to_owned())));
    assert!(group.flag("was_mentioned") && group.meta("sender_user_id") == Some("42"));
    assert!(!group.flag("absent") && group.meta("absent").is_none());
}

#[test]
fn content_of_a_later_protocol_leaves_the_text() {
    let later = message(json!({ "user_id": "u", "user_name": "A", "text": "t", "content": { "Hologram": {} } }));
    assert_eq!(later.content(), Content::Text("t".to_owned()));
}

#[test]
fn every_content_is_read_and_written_the_same() {
    let all = json!([
        { "Text": "s" },
        { "Image": { "url": "u", "caption": "c", "mime_type": "image/png" } },
        { "File": { "url": "u", "filename": "f" } },
        { "FileData": { "data": [0, 255, 7], "filename": "f", "mime_type": "m" } },
        { "Voice": { "url": "u", "caption": "c", "duration_seconds": 3 } },
        { "Animation": { "url": "u", "duration_seconds": 0 } },
        { "Video": { "url": "u", "duration_seconds": 3, "filename": "f" } },
        { "Audio": { "url": "u", "duration_seconds": 3, "title": "t", "performer": "p" } },
        { "Location": { "lat": 1.5, "lon": -2.0 } },
        { "Command": { "name": "n", "args": ["a"] } },
        { "Interactive": { "text": "t", "buttons": [[{ "label": "l", "action": "a", "style": "primary", "url": "u" }]] } },
        { "ButtonCallback": { "action": "a", "message_text": "m" } },
        { "DeleteMessage": { "message_id": "1" } },
        { "EditInteractive": { "message_id": "1", "text": "t", "buttons": [] } },
        { "Sticker": { "file_id": "f" } },
        { "MediaGroup": { "items": [{ "Photo": { "url": "u" } }, { "Video": { "url": "u", "duration_seconds": 1 } }] } },
        { "Poll": { "question": "q", "options": ["a", "b"], "is_quiz": true, "correct_option_id": 1, "explanation": "e" } },
        { "PollAnswer": { "poll_id": "p", "option_ids": [0, 1] } },
    ]);
    for value in all.as_array().unwrap() {
        let content: Content = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&content).unwrap(), value);
    }
    // The SDK writes nulls for what is not there.
    let sdk = json!({ "Image": { "url": "u", "caption": null, "mime_type": null } });
    let image: Content = serde_json::from_value(sdk).unwrap();
    assert_eq!(image.media()[0].as_text(), "[User sent a photo: u]");
}

#[test]
fn commands_have_the_bytes_of_the_protocol() {
    let line = |command: Command| String::from_utf8(command.line()).unwrap();
    assert_eq!(line(Command::ReadyAck), "{\"method\":\"ready_ack\"}\n");
    assert_eq!(line(Command::Shutdown), "{\"method\":\"shutdown\"}\n");
    let user = User { platform_id: "c9".into(), display_name: "Ann".into(), librefang_user: None };
    let content = Content::Text("hi".to_owned());
    let send = Send {
        channel_id: "c9".into(),
        text: content.flattened(),
        content: Some(content),
        thread_id: Some("7".into()),
        user,
        id: None,
    };
    assert_eq!(
        line(Command::Send(Box::new(send))),
        "{\"method\":\"send\",\"params\":{\"channel_id\":\"c9\",\"text\":\"hi\",\"content\":{\"Text\":\"hi\"},\
         \"thread_id\":\"7\",\"user\":{\"platform_id\":\"c9\",\"display_name\":\"Ann\",\"librefang_user\":null}}}\n"
    );
    let tool = "t".repeat(100);
    let reaction = serde_json::to_value(Command::reaction("c", "m", Phase::ToolUse, Some(&tool))).unwrap();
    assert_eq!(reaction["params"]["phase"], "tool_use");
    assert_eq!(reaction["params"]["tool_name"].as_str().unwrap().len(), 64);
    let done = serde_json::to_value(Command::reaction("c", "m", Phase::Done, Some("x"))).unwrap();
    assert!(done["params"].get("tool_name").is_none());
    let start = Command::StreamStart { channel_id: "c".into(), stream_id: "s".into(), thread_id: None };
    assert_eq!(line(start), "{\"method\":\"stream_start\",\"params\":{\"channel_id\":\"c\",\"stream_id\":\"s\"}}\n");
    let buttons = vec![vec![Button { label: "Yes".into(), action: "/approve x".into(), ..Button::default() }]];
    assert_eq!(with_labels("Sure?", &buttons), "Sure?\n  [Yes]");
    let message = Buttons { text: "Sure?".into(), buttons };
    let interactive = serde_json::to_value(Command::Interactive { channel_id: "c".into(), message }).unwrap();
    assert_eq!(interactive["params"]["message"]["buttons"][0][0], json!({ "label": "Yes", "action": "/approve x" }));
}

#[test]
fn what_is_no_text_is_told_in_words() {
    let read = |value: Value| serde_json::from_value::<Content>(value).unwrap();
    let pressed = read(json!({ "ButtonCallback": { "action": "a", "message_text": "m" } }));
    assert_eq!(pressed.as_text(), "[Button clicked: a] (on message: m)");
    assert_eq!(read(json!({ "ButtonCallback": { "action": "/approve 12345678" } })).as_text(), "/approve 12345678");
    assert_eq!(read(json!({ "Command": { "name": "model", "args": ["gpt"] } })).as_text(), "/model gpt");
    let photo = Content::Image { url: "http://h/p".into(), caption: Some("c".into()), mime_type: None };
    assert_eq!(photo.media()[0].as_text(), "[User sent a photo: http://h/p]\nCaption: c");
    let file = Content::File { url: "http://h/f".into(), filename: "a.pdf".into() };
    assert_eq!(file.media()[0].as_text(), "[User sent a file (a.pdf): http://h/f]");
    let group = Content::MediaGroup { items: vec![MediaItem::Photo { url: "u".into(), caption: None }] };
    assert_eq!((group.media().len(), group.as_text()), (1, String::new()));
    assert_eq!(Content::Voice(Recording::default()).media()[0].what, "voice message");
}

#[test]
fn inline_files_are_bounded() {
    let numbers = |count: usize| format!("[{}]", vec!["7"; count].join(","));
    let most: FileBytes = serde_json::from_str(&numbers(FILE_BYTES_MAX)).unwrap();
    assert_eq!(most.0.len(), FILE_BYTES_MAX);
    assert!(serde_json::from_str::<FileBytes>(&numbers(FILE_BYTES_MAX + 1)).is_err());
    for wrong in ["[256]", "[-1]", "[1.5]", "\"AQ==\"", "[\"1\"]"] {
        assert!(serde_json::from_str::<FileBytes>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn states_of_a_code_never_hang() {
    let status = |word: &str| match read(&json!({ "method": "qr_status", "params": { "status": word } }).to_string()) {
        Event::QrStatus(update) => update.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status("scanning"), QrState::Scanning);
    assert_eq!(status("scaning"), QrState::Failed);
}

#[test]
fn what_is_no_event_is_said_without_its_text() {
    assert_eq!(Event::parse(b"  \r\n").unwrap(), None);
    for wrong in
        ["secret words", "7", "[]", "{}", r#"{"method":7}"#, r#"{"method":"message","params":{"text":"secret"}}"#]
    {
        let error = Event::parse(wrong.as_bytes()).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
    assert_eq!(read(r#"{"method":"later","params":[1]}"#), Event::Unknown("later".to_owned()));
}

#[test]
fn answers_to_the_barrier_are_known() {
    for answer in ["invalid JSON: Expecting value", "Invalid JSON: x", "protocol parse error: expected value"] {
        assert!(is_barrier_answer(answer), "{answer}");
    }
    assert!(!is_barrier_answer("telegram send failed: 403") && !is_barrier_answer("инвалид") && !is_barrier_answer(""));
}

proptest! {
    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _event = Event::parse(&line);
    }

    #[test]
    fn no_changed_event_panics(
        event in 0_usize..4, at in 0_usize..200, byte in any::<u8>(), cut in 0_usize..200,
    ) {
        let mut line = [
            r#"{"method":"ready","params":{"capabilities":["typing"],"header_rules":[["h",[["a","b"]]]]}}"#,
            r#"{"method":"message","params":{"user_id":"u","user_name":"n","content":{"FileData":{"data":[1,2]}}}}"#,
            r#"{"method":"message","params":{"user_id":"u","user_name":"n","metadata":{"a":{"b":[1]}},"is_group":true}}"#,
            r#"{"method":"qr_ready","params":{"qr_code":"x","expires_at":"2026-01-01T00:00:00Z"}}"#,
        ][event].as_bytes().to_vec();
        let length = line.len();
        line[at % length] = byte;
        line.truncate(length - cut % length);
        let _event = Event::parse(&line);
    }

    #[test]
    fn texts_survive_the_way(text in ".*", token in proptest::option::of(".*")) {
        let content = Content::Text(text.clone());
        let user = User { platform_id: "c".into(), display_name: String::new(), librefang_user: token.clone() };
        let send = Send { channel_id: "c".into(), text: content.flattened(), content: Some(content), thread_id: None, user,
            id: None };
        let line = Command::Send(Box::new(send)).line();
        prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let value: Value = serde_json::from_slice(&line).unwrap();
        prop_assert_eq!(value["params"]["text"].as_str(), Some(text.as_str()));
        prop_assert_eq!(value["params"]["user"]["librefang_user"].as_str(), token.as_deref());
    }
}

#[test]
fn large_trees_of_values_are_left_out() {
    let line = |objects: usize| {
        let tree = vec!["{\"\":0}"; objects].join(",");
        format!(
            "{{\"method\":\"message\",\"params\":{{\"user_id\":\"u\",\"user_name\":\"n\",\"text\":\"hi\",\
             \"group_members\":[{tree}],\"metadata\":{{\"a\":[{tree}],\"flag\":true,\"names\":[\"x\"],\"o\":{{}}}}}}}}"
        )
    };
    let Some(Event::Message(message)) = Event::parse(line(9).as_bytes()).unwrap() else { panic!("a message") };
    assert_eq!(Value::from(message.metadata), json!({ "flag": true, "names": ["x"] }));
    let Some(Event::Message(message)) = Event::parse(line(20_000).as_bytes()).unwrap() else { panic!("a message") };
    assert_eq!(message.metadata.len(), 0);
    assert_eq!(message.text.as_deref(), Some("hi"));
}

#[test]
fn only_a_file_may_make_a_line_large() {
    let large = |line: &str| Event::parse_large(line.as_bytes());
    let params =
        |rest: &str| format!("{{\"method\":\"message\",\"params\":{{\"user_id\":\"u\",\"user_name\":\"U\",{rest}}}}}");
    let bytes = vec!["7"; 300_000].join(",");
    let file = format!("\"content\":{{\"FileData\":{{\"data\":[{bytes}],\"filename\":\"f\",\"mime_type\":\"m\"}}}}");
    let Some(Event::Message(message)) = large(&params(&file)).unwrap() else { panic!("a message") };
    assert!(matches!(&message.content, Some(Content::FileData { data, .. }) if data.0.len() == 300_000));
    let (empty, tree) = (vec!["\"\""; 100_000].join(","), vec!["[]"; 150_000].join(","));
    let long = "x".repeat(300_000);
    for wrong in [
        params(&format!("\"text\":\"{long}\"")),
        params(&format!("{file},\"text\":\"{long}\"")),
        params(&format!("{file},\"metadata\":{{\"a\":[{tree}]}}")),
        params(&format!("\"content\":{{\"Poll\":{{\"question\":\"q\",\"options\":[{empty}]}}}}")),
        params(&format!("\"content\":{{\"Interactive\":{{\"text\":\"q\",\"buttons\":[{tree}]}}}}")),
        format!("{{\"method\":\"ready\",\"params\":{{\"capabilities\":[{empty}]}}}}"),
    ] {
        assert!(large(&wrong).is_err(), "{}", &wrong[..90]);
    }
}
