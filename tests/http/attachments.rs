//! Attachments of a message, end to end: what the model is sent for each class of file (spec 1, Attachment handling).

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::form::{PNG, pdf};
use crate::support::model::Model;
use crate::support::stream::{Events, text_of};

const CHARS_MAX: usize = 200_000;

fn harness() -> (Model, Daemon, String) {
    let model = Model::start();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 1000000\n{}", model.config()));
    let agent = daemon.agent_with("a", "");
    (model, daemon, agent)
}

/// The content of the last user message that the model was sent.
fn heard(model: &Model) -> Value {
    let request = model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].clone()
}

fn picture() -> Value {
    let code = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64 = String::new();
    for three in PNG.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let is_there = place <= three.len();
            base64.push(if is_there { char::from(code[(bits >> (18 - 6 * place) & 63) as usize]) } else { '=' });
        }
    }
    json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{base64}") } })
}

fn part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn texts_are_one_run_and_pictures_stand_beside_it() {
    let (model, daemon, agent) = harness();
    let readme = daemon.upload(&agent, "README.md", b"# Title");
    let code = daemon.upload(&agent, "a.rs", "fn main() { \"é\" }".as_bytes());
    let image = daemon.upload(&agent, "dot.png", PNG);
    let run = "look\n\n[Attached file: README.md]\n# Title\n\n[Attached file: a.rs]\nfn main() { \"é\" }";
    daemon.say_with(&agent, "look", &[&readme, &code]);
    assert_eq!(heard(&model), json!(run));
    daemon.say_with(&agent, "look", &[&readme, &code, &image]);
    assert_eq!(heard(&model), json!([part(run), picture()]));
    daemon.say_with(&agent, "look", &[&readme, &image, &code]);
    let (before, after) = run.split_at(run.find("\n\n[Attached file: a.rs]").unwrap());
    assert_eq!(heard(&model), json!([part(before), picture(), part(after.trim_start())]));
    daemon.say_with(&agent, "", &[&image]);
    assert_eq!(heard(&model), json!([picture()]));
    // The images of the messages before are sent again, as long as they are there.
    let sent = model.requests().pop().unwrap().to_string().matches("image_url\":{").count();
    assert_eq!(sent, 3);
    let session = text(&daemon.detail(&agent)["session_id"]);
    let transcript = daemon.transcript(&session);
    assert_eq!(transcript[2], ("User".to_owned(), format!("{run}\n\n[image: dot.png]")));
    assert_eq!(transcript[6].1, "[image: dot.png]");
}

#[test]
fn a_stream_takes_attachments_too() {
    let (model, daemon, agent) = harness();
    let file = daemon.upload(&agent, "a.txt", b"inside");
    let body = json!({ "message": "hi", "attachments": [{ "file_id": file }] });
    let events = Events::message(&daemon, &agent, &body).all();
    assert!(text_of(&events).contains("inside"), "{events:?}");
    assert_eq!(heard(&model), json!("hi\n\n[Attached file: a.txt]\ninside"));
}

#[test]
fn long_texts_are_cut_by_characters() {
    let (model, daemon, agent) = harness();
    for letter in ["x", "é"] {
        let exact = daemon.upload(&agent, "exact.txt", letter.repeat(CHARS_MAX).as_bytes());
        daemon.say_with(&agent, "", &[&exact]);
        assert_eq!(heard(&model), json!(format!("[Attached file: exact.txt]\n{}", letter.repeat(CHARS_MAX))));
        let longer = daemon.upload(&agent, "longer.txt", letter.repeat(CHARS_MAX + 1).as_bytes());
        daemon.say_with(&agent, "", &[&longer]);
        let said = text(&heard(&model));
        let kept = said.strip_prefix("[Attached file: longer.txt]\n").unwrap();
        assert_eq!(
            kept.matches(letter).count(),
            CHARS_MAX + "[... truncated: only the first 200,000 characters are shown ...]".matches(letter).count()
        );
        assert!(kept.ends_with("\n[... truncated: only the first 200,000 characters are shown ...]"));
        daemon.post(&format!("/api/agents/{agent}/session/reset"), &json!({})).expect(200);
    }
}

#[test]
fn a_pdf_becomes_its_text() {
    let (model, daemon, agent) = harness();
    for broken in [false, true] {
        let file = daemon.upload(&agent, "paper.pdf", &pdf(&["Hello from page one", "And page two"], broken));
        daemon.say_with(&agent, "read", &[&file]);
        let said = text(&heard(&model));
        assert!(said.starts_with("read\n\n[Attached PDF: paper.pdf]\n"), "{said}");
        assert!(said.contains("Hello from page one") && said.contains("And page two"), "{said}");
        assert!(!said.contains("could not be read"), "{said}");
    }
    let scanned = daemon.upload(&agent, "scan.pdf", &pdf(&["", ""], false));
    daemon.say_with(&agent, "", &[&scanned]);
    let note = "[Attached PDF: scan.pdf]\n(No text could be extracted: the PDF is scanned or holds only images.)";
    assert_eq!(heard(&model), json!(note));
    let long = daemon.upload(&agent, "long.pdf", &pdf(&vec!["word ".repeat(2_000).as_str(); 25], false));
    daemon.say_with(&agent, "", &[&long]);
    assert!(text(&heard(&model)).ends_with("only the first 200,000 characters are shown ...]"));
}

#[test]
fn a_hostile_pdf_hurts_nobody() {
    let (model, daemon, agent) = harness();
    let mut truncated = pdf(&["cut off"], false);
    truncated.truncate(200);
    let nested = [b"%PDF-1.4\n1 0 obj\n".to_vec(), b"[".repeat(2_000_000), b"\nendobj\n".to_vec()].concat();
    // Pages that are their own parents.
    let looped =
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [2 0 R] \
        /Count 1 /Parent 2 0 R >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n";
    for (name, content) in
        [("a.pdf", truncated), ("b.pdf", nested), ("c.pdf", looped.to_vec()), ("d.pdf", b"%PDF-".to_vec())]
    {
        let file = daemon.upload(&agent, name, &content);
        daemon.say_with(&agent, "and?", &[&file]);
        let said = text(&heard(&model));
        assert!(said.starts_with(&format!("and?\n\n[Attached PDF: {name}]\n(No text could be extracted")), "{said}");
    }
    daemon.get("/api/health").expect(200);
}

#[test]
fn what_is_of_no_class_is_skipped_and_the_rest_goes_on() {
    let (model, daemon, agent) = harness();
    let known = daemon.upload(&agent, "a.csv", b"1,2");
    let archive = daemon.upload_as(&agent, "a.zip", Some("application/zip"), b"PK\x03\x04....").expect(201);
    let unknown = daemon.upload(&agent, "blob", b"\x00\x01");
    let false_image = daemon.upload_as(&agent, "x.png", Some("image/png"), b"no picture").expect(201);
    let (archive, false_image) = (text(&archive["file_id"]), text(&false_image["file_id"]));
    daemon.say_with(&agent, "hi", &[&archive, &known, &unknown, &false_image]);
    assert_eq!(heard(&model), json!("hi\n\n[Attached file: a.csv]\n1,2"));
    assert!(daemon.stderr().contains("skipped"), "the log says nothing of it");
    let body = json!({ "message": "", "attachments": [{ "file_id": archive }] });
    daemon.post(&format!("/api/agents/{agent}/message"), &body).refused_field(400, "attachments");
}

#[test]
fn every_kind_of_text_is_taken() {
    let (model, daemon, agent) = harness();
    for (name, declared) in [
        ("Dockerfile", None),
        ("Makefile", None),
        ("a.ipynb", None),
        ("a.svelte", None),
        ("x", Some("application/json")),
        ("x", Some("application/toml")),
        ("x", Some("text/x-odd")),
        ("x", Some("application/vnd.a+xml")),
        ("a.toml", Some("application/octet-stream")),
    ] {
        let file = text(&daemon.upload_as(&agent, name, declared, b"content").expect(201)["file_id"]);
        daemon.say_with(&agent, "", &[&file]);
        assert_eq!(heard(&model), json!(format!("[Attached file: {name}]\ncontent")), "{name} {declared:?}");
    }
    let odd = daemon.upload(&agent, "odd.txt", b"a\xffb");
    daemon.say_with(&agent, "", &[&odd]);
    assert!(text(&heard(&model)).starts_with("[Attached file: odd.txt]\na\u{fffd}b\n[This file is not valid UTF-8"));
}

#[test]
fn bad_attachments_are_refused_by_field() {
    let (model, daemon, agent) = harness();
    let other = daemon.agent_with("b", "");
    let (own, theirs) = (daemon.upload(&agent, "a.txt", b"mine"), daemon.upload(&other, "b.txt", b"theirs"));
    let asked = model.requests().len();
    for path in [format!("/api/agents/{agent}/message"), format!("/api/agents/{agent}/message/stream")] {
        for (status, attachments, field) in [
            (404, json!([{ "file_id": own }, { "file_id": Uuid::nil() }]), "attachments[1].file_id"),
            (404, json!([{ "file_id": theirs }]), "attachments[0].file_id"),
            (400, json!([{ "file_id": "nonsense" }]), "attachments[0].file_id"),
            (400, json!([{ "file_id": 7 }]), "attachments[0].file_id"),
            (400, json!([{}]), "attachments[0].file_id"),
            (400, json!([own]), "attachments[0]"),
            (400, json!({ "file_id": own }), "attachments"),
            (400, json!(vec![json!({ "file_id": own }); 33]), "attachments"),
        ] {
            let reply = daemon.post(&path, &json!({ "message": "x", "attachments": attachments }));
            reply.refused(status);
            assert_eq!(reply.expect(status)["field"], field, "{}", reply.text());
            assert!(!reply.text().contains("theirs"));
        }
        daemon.post(&path, &json!({ "message": "", "attachments": [] })).refused_field(400, "message");
    }
    assert_eq!(model.requests().len(), asked, "a refused message reached the model");
    assert_eq!(daemon.detail(&agent)["message_count"], 0);
    daemon.say_with(&agent, "", &vec![own.as_str(); 32]);
}

#[test]
fn an_image_that_is_gone_becomes_a_word() {
    let (model, daemon, agent) = harness();
    let image = daemon.upload(&agent, "dot.png", PNG);
    daemon.say_with(&agent, "see", &[&image]);
    for name in [image.clone(), format!("{image}.json")] {
        std::fs::remove_file(daemon.home().join("uploads").join(name)).unwrap();
    }
    daemon.say(&agent, "and now?");
    let request = model.requests().pop().unwrap();
    let first =
        &request["messages"].as_array().unwrap().iter().find(|message| message["role"] == "user").unwrap()["content"];
    assert_eq!(first, "see\n\n[image omitted: the file no longer exists]");
}

#[test]
fn attachments_survive_a_kill() {
    let (model, mut daemon, agent) = harness();
    let (image, file) = (daemon.upload(&agent, "dot.png", PNG), daemon.upload(&agent, "a.txt", b"inside"));
    daemon.say_with(&agent, "see", &[&image, &file]);
    let before = heard(&model);
    daemon.restart();
    daemon.say(&agent, "again");
    let request = model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages.iter().find(|message| message["role"] == "user").unwrap()["content"], before);
}
