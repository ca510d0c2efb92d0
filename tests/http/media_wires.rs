//! Further providers of media over HTTP, and whose media tasks are.

use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::media::{answered, config, image, png, tasks, wav};
use crate::people::person;
use crate::support::daemon::{Daemon, text};
use crate::support::http::Client;
use crate::support::model_server::{Gate, ModelServer, Reply};
use crate::support::until;

const KEY: &str = "the-key-of-the-configuration";

#[test]
fn gemini_makes_images_and_speech_and_says_why_not() {
    let server = ModelServer::start();
    let base = server.base_url();
    let daemon =
        Daemon::with(&format!("[providers.gemini]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n"));
    let part = |mime: &str, data: &[u8]| {
        let data = json!({ "mimeType": mime, "data": STANDARD.encode(data) });
        answered(&json!({ "candidates": [{ "content": { "parts": [{ "text": "here" }, { "inlineData": data }] } }] }))
    };
    server.push(part("image/png", &png()));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "a cat" })).expect(200);
    assert_eq!((&made["provider"], &made["images"][0]["width"]), (&json!("gemini"), &json!(640)));
    let request = server.requests().remove(0);
    assert_eq!(request.path, "/v1/models/gemini-2.5-flash-image:generateContent");
    assert_eq!((request.header("x-goog-api-key"), request.header("authorization")), ("key-of-the-test-model", ""));
    server.push(part("audio/L16;codec=pcm;rate=24000", &[0; 48_000]));
    let said = daemon.post("/api/media/speech", &json!({ "text": "hi" })).expect(200);
    assert_eq!((&said["format"], &said["duration_ms"]), (&json!("wav"), &json!(1_000)));
    server.push(answered(&json!({ "candidates": [{ "finishReason": "IMAGE_SAFETY" }] })));
    let filtered = daemon.post("/api/media/image", &json!({ "prompt": "x" }));
    filtered.refused(400);
    assert!(filtered.text().contains("media_filtered"));
    daemon.post("/api/media/image", &json!({ "prompt": "x", "count": 2 })).refused(400);
    assert_eq!(server.requests().len(), 3, "what it does not offer is not asked");
}

#[test]
fn elevenlabs_speaks_and_transcribes_where_it_is_configured() {
    let server = ModelServer::start();
    let base = server.base_url();
    let daemon =
        Daemon::with(&format!("[providers.elevenlabs]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n"));
    server.push(Reply::raw(200, &[("content-type", "audio/mpeg")], &wav()));
    let body = json!({ "text": "hi", "voice": "../x?y", "format": "opus", "speed": 1.2 });
    let said = daemon.post("/api/media/speech", &body).expect(200);
    assert_eq!((&said["provider"], &said["duration_ms"]), (&json!("elevenlabs"), &json!(1_000)));
    let asked = server.requests().remove(0);
    assert_eq!(asked.path, "/v1/text-to-speech/..%2Fx%3Fy");
    assert_eq!((asked.header("xi-api-key"), asked.header("authorization")), ("key-of-the-test-model", ""));
    let expected = json!({ "text": "hi", "model_id": "eleven_multilingual_v2", "voice_settings": { "speed": 1.2 } });
    assert_eq!(asked.body, expected);
    server.push(answered(&json!({ "text": "hello", "language_code": "eng" })));
    let headers = [("content-type", "audio/wav")];
    let read = daemon.send("POST", "/api/media/transcribe", &headers, Some(wav().as_bytes())).expect(200);
    assert_eq!(
        (&read["text"], &read["language"], &read["model"]),
        (&json!("hello"), &json!("eng"), &json!("scribe_v1"))
    );
    let form = String::from_utf8_lossy(&server.requests()[1].raw).into_owned();
    assert!(form.contains("name=\"model_id\"\r\n\r\nscribe_v1"), "{form:.400}");
    daemon.post("/api/media/speech", &json!({ "text": "hi", "speed": 2.0 })).refused(400);
    let used_up = json!({ "detail": { "status": "quota_exceeded", "message": "no credit" } });
    server.push(Reply::raw(401, &[("content-type", "application/json")], &used_up.to_string()));
    let refused = daemon.post("/api/media/speech", &json!({ "text": "hi" }));
    refused.refused(429);
    let why = refused.text();
    assert!(why.contains("media_rate_limited") && why.contains("no credit"), "{why}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn minimax_speaks_in_hexadecimal_and_its_errors_come_with_status_200() {
    let server = ModelServer::start();
    let daemon = Daemon::with(&config(&server));
    let hex: String = wav().bytes().map(|byte| format!("{byte:02x}")).collect();
    let told = json!({ "audio_length": 999_999, "audio_sample_rate": 1 });
    server.push(answered(
        &json!({ "data": { "audio": hex }, "extra_info": told, "base_resp": { "status_code": 0, "status_msg": "ok" } }),
    ));
    let body = json!({ "text": "hi", "provider": "minimax", "voice": "v1", "format": "wav", "speed": 1.5 });
    let said = daemon.post("/api/media/speech", &body).expect(200);
    assert_eq!((&said["duration_ms"], &said["sample_rate"]), (&json!(1_000), &json!(8_000)), "the file counts");
    let asked = server.requests().remove(0);
    assert_eq!((asked.path.as_str(), &asked.body["model"]), ("/v1/t2a_v2", &json!("speech-02-hd")));
    assert_eq!((&asked.body["text"], &asked.body["output_format"]), (&json!("hi"), &json!("hex")));
    assert_eq!(asked.body["voice_setting"], json!({ "voice_id": "v1", "speed": 1.5 }));
    for (code, status, word) in [
        (1004, 502, "media_key_refused"),
        (1008, 429, "media_rate_limited"),
        (1026, 400, "media_filtered"),
        (2013, 400, "media_refused"),
        (1000, 502, "media_provider_failed"),
    ] {
        server.push(answered(&json!({ "base_resp": { "status_code": code, "status_msg": "no" } })));
        let refused = daemon.post("/api/media/speech", &body);
        assert_eq!(refused.status, status, "{code}: {}", refused.text());
        assert!(refused.text().contains(word), "{code}: {}", refused.text());
        let task = tasks(&daemon).pop().expect("a task");
        assert_eq!(task["cost_usd"], 0.0, "{code}: nothing was made");
    }
    for broken in [json!({ "audio": "abc" }), json!({ "audio": "zz" }), json!({ "audio": "" }), json!({}), json!(null)]
    {
        server.push(answered(&json!({ "data": broken, "base_resp": { "status_code": 0 } })));
        let refused = daemon.post("/api/media/speech", &body);
        assert_eq!(refused.status, 502, "{broken}: {}", refused.text());
        let task = tasks(&daemon).pop().expect("a task");
        assert_eq!(task["cost_usd"], 0.0002, "{broken}: it may have been charged");
    }
    assert_eq!(server.requests().len(), 11, "nothing was asked for twice");
}

#[test]
fn groq_and_together_transcribe_and_nothing_else() {
    for (provider, model) in [("groq", "whisper-large-v3-turbo"), ("together", "openai/whisper-large-v3")] {
        let server = ModelServer::start();
        let base = server.base_url();
        let daemon =
            Daemon::with(&format!("[providers.{provider}]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n"));
        server.push(answered(&json!({ "text": "hello" })));
        let headers = [("content-type", "audio/wav")];
        let read = daemon.send("POST", "/api/media/transcribe", &headers, Some(wav().as_bytes())).expect(200);
        assert_eq!(
            (&read["text"], &read["provider"], &read["model"]),
            (&json!("hello"), &json!(provider), &json!(model))
        );
        let asked = server.requests().remove(0);
        let form = String::from_utf8_lossy(&asked.raw).into_owned();
        assert_eq!(asked.path, "/v1/audio/transcriptions");
        assert!(form.contains(&format!("name=\"model\"\r\n\r\n{model}")), "{form:.400}");
        daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": provider })).refused_field(400, "provider");
        daemon.post("/api/media/image", &json!({ "prompt": "x" })).refused(422);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn tasks_and_files_are_those_of_the_user_whose_agent_pays() {
    let server = ModelServer::start();
    let mut daemon = Daemon::with(&format!("api_key = \"{KEY}\"\n{}", config(&server)));
    daemon.use_key(KEY);
    let ((ann_id, ann), (_, ben), (_, vic)) =
        (person(&daemon, "ann", "user"), person(&daemon, "ben", "user"), person(&daemon, "vic", "viewer"));
    let agent = daemon.agent("painter");
    daemon.put(&format!("/api/agents/{agent}/owner"), &json!({ "user_id": ann_id })).expect(200);
    let wanted = json!({ "prompt": "x", "agent_id": agent });
    ann.post("/api/media/image", &json!({ "prompt": "x" })).refused_field(400, "agent_id");
    ben.post("/api/media/image", &wanted).refused(404);
    vic.post("/api/media/image", &wanted).refused(403);
    assert!(server.requests().is_empty());
    server.push(image());
    server.push(image());
    let made = ann.post("/api/media/image", &wanted).expect(200);
    daemon.post("/api/media/image", &json!({ "prompt": "x" })).expect(200);
    let of_ann = ann.get("/api/media/tasks").expect(200)["tasks"].as_array().expect("a list").clone();
    assert_eq!((of_ann.len(), tasks(&daemon).len()), (1, 2));
    assert_eq!((&of_ann[0]["agent_id"], &of_ann[0]["cost_usd"]), (&json!(agent), &json!(0.25)));
    assert!(ben.get("/api/media/tasks").expect(200)["tasks"].as_array().expect("a list").is_empty());
    let id = text(&of_ann[0]["id"]);
    assert_eq!(ann.get(&format!("/api/media/tasks/{id}")).expect(200), of_ann[0]);
    let hidden = ben.get(&format!("/api/media/tasks/{id}"));
    hidden.refused(404);
    assert!(!hidden.text().contains(&agent), "{}", hidden.text());
    let url = text(&made["images"][0]["url"]);
    assert_eq!(ann.get(&url).body, png());
    let hidden = ben.get(&url);
    hidden.refused(404);
    assert!(!hidden.text().contains(&agent), "{}", hidden.text());
    assert_eq!(daemon.get(&url).status, 200);
    let form = |agent: &str| {
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"agent_id\"\r\n\r\n{agent}\r\n--b\r\ncontent-disposition: \
             form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n{}\r\n--b--\r\n",
            wav()
        )
    };
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let send = |client: &Client, agent: &str| {
        client.send("POST", "/api/media/transcribe", &headers, Some(form(agent).as_bytes()))
    };
    server.push(answered(&json!({ "text": "hi" })));
    assert_eq!(send(&ann, &agent).expect(200)["text"], "hi");
    send(&ben, &agent).refused(404);
    send(&ann, "x").refused_field(400, "agent_id");
    let sizes = daemon.get("/api/metrics").text();
    assert!(sizes.contains(&format!("agentsvc_uploads_bytes {}", 2 * png().len())), "no recording stays");
}

#[test]
fn a_recording_goes_with_its_request_over_a_kill() {
    let server = ModelServer::start();
    let mut daemon = Daemon::with(&config(&server));
    let gate = Gate::default();
    server.push(answered(&json!({ "text": "hi" })).gated(&gate));
    let (client, recording) = (daemon.client(), wav());
    let bytes = |daemon: &Daemon, bytes: usize| {
        let text = daemon.get("/api/metrics").text();
        text.contains(&format!("agentsvc_uploads_bytes {bytes}\n"))
    };
    let headers = [("content-type", "audio/wav")];
    thread::scope(|scope| {
        scope.spawn(|| client.try_send("POST", "/api/media/transcribe", &headers, Some(recording.as_bytes())).is_err());
        server.wait_for_requests(1);
        assert!(bytes(&daemon, recording.len()));
        daemon.kill();
    });
    gate.open();
    daemon.restart();
    until("the recording goes", || bytes(&daemon, 0).then_some(()));
    assert_eq!(tasks(&daemon)[0]["reason"], "unknown");
    assert_eq!(server.requests().len(), 1);
}
