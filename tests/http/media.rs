//! Media of scripted providers over HTTP: their routes and tools, the quirks of providers, and kills (spec 2, Media generation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::daemon::{Daemon, text};
use crate::support::http::Reply as Answer;
use crate::support::model::Model;
use crate::support::model_server::{Gate, ModelServer, Received, Reply};
use crate::support::until;

/// OpenAI and MiniMax at this server, from which results may be downloaded.
pub(crate) fn config(server: &ModelServer) -> String {
    let base = server.base_url();
    format!(
        "[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n\
         [providers.openai]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n\
         [providers.minimax]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n",
        server.address()
    )
}

fn start() -> (ModelServer, Daemon) {
    let server = ModelServer::start();
    let daemon = Daemon::with(&config(&server));
    (server, daemon)
}

pub(crate) fn answered(body: &Value) -> Reply {
    Reply::raw(200, &[("content-type", "application/json")], &body.to_string())
}

/// A PNG of 640 x 480 pixels, as far as it says of itself.
pub(crate) fn png() -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &640_u32.to_be_bytes()[..], &480_u32.to_be_bytes(), b"\x08\x02\0\0\0"].concat()
}

/// A recording of a second; all of its bytes are ASCII.
pub(crate) fn wav() -> String {
    let mut file =
        b"RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0".to_vec();
    file.extend(vec![b'0'; 8_000]);
    String::from_utf8(file).expect("ASCII")
}

/// A video of 1.27 seconds and 64 x 48 pixels; all of its bytes are ASCII.
fn mp4() -> String {
    let of =
        |kind: &str, content: &[u8]| [&(content.len() as u32 + 8).to_be_bytes()[..], kind.as_bytes(), content].concat();
    let header = [&[0; 12][..], &100_u32.to_be_bytes(), &127_u32.to_be_bytes()].concat();
    let track = [&[0; 40][..], &(64_u32 << 16).to_be_bytes(), &(48_u32 << 16).to_be_bytes()].concat();
    let movie = [of("mvhd", &header), of("trak", &of("tkhd", &track))].concat();
    let file = [of("ftyp", b"isom\0\0\0\0"), of("moov", &movie)].concat();
    String::from_utf8(file).expect("ASCII")
}

pub(crate) fn image() -> Reply {
    answered(&json!({ "data": [{ "b64_json": STANDARD.encode(png()), "revised_prompt": "a tabby cat" }] }))
}

fn paths(server: &ModelServer) -> Vec<String> {
    server.requests().into_iter().map(|request| request.path).collect()
}

fn upload(daemon: &Daemon, url: &Value) -> Answer {
    let reply = daemon.get(&text(url));
    assert_eq!(reply.status, 200);
    reply
}

pub(crate) fn tasks(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/media/tasks").expect(200)["tasks"].as_array().expect("a list").clone()
}

/// What was spent in all, in micro-dollars.
fn spent(daemon: &Daemon) -> f64 {
    let usage = daemon.get("/api/usage/by-model").expect(200);
    let models = usage["models"].as_array().expect("a list").clone();
    let costs =
        models.iter().filter(|model| model["model"] != "builtin").filter_map(|model| model["cost_usd"].as_f64());
    costs.sum()
}

#[test]
fn images_are_kept_as_uploads_with_what_the_file_says() {
    let (server, daemon) = start();
    server.push(image());
    let made = daemon.post("/api/media/image", &json!({ "prompt": "a cat", "width": 640, "height": 480 })).expect(200);
    assert_eq!((&made["provider"], &made["model"]), (&json!("openai"), &json!("gpt-image-1")));
    assert_eq!((&made["revised_prompt"], &made["cost_usd"]), (&json!("a tabby cat"), &json!(0.25)));
    let first = &made["images"][0];
    assert_eq!((&first["width"], &first["height"]), (&json!(640), &json!(480)));
    let file = upload(&daemon, &first["url"]);
    assert_eq!((file.header("content-type"), &file.body), (Some("image/png"), &png()));
    let request = server.requests().remove(0);
    assert_eq!(request.path, "/v1/images/generations");
    assert_eq!(request.body, json!({ "model": "gpt-image-1", "prompt": "a cat", "n": 1, "size": "640x480" }));
    assert_eq!(request.header("authorization"), "Bearer key-of-the-test-model");
    let task = tasks(&daemon).remove(0);
    assert_eq!(
        (&task["kind"], &task["status"], &task["files"][0]["url"]),
        (&json!("image"), &json!("completed"), &first["url"])
    );
    let older = json!({ "prompt": "a cat", "model": "dall-e-3" });
    server.push(image());
    daemon.post("/api/media/image", &older).expect(200);
    assert_eq!(server.requests()[1].body["response_format"], "b64_json");
}

#[test]
fn speech_music_and_transcripts_say_what_the_file_says() {
    let (server, daemon) = start();
    server.push(Reply::raw(200, &[("content-type", "audio/mpeg")], &wav()));
    let said = daemon.post("/api/media/speech", &json!({ "text": "hello", "format": "wav", "speed": 1.5 })).expect(200);
    assert_eq!(
        (&said["format"], &said["duration_ms"], &said["sample_rate"]),
        (&json!("wav"), &json!(1_000), &json!(8_000))
    );
    assert_eq!(upload(&daemon, &said["url"]).body, wav().into_bytes());
    let asked = server.requests().remove(0);
    let expected =
        json!({ "model": "tts-1", "input": "hello", "voice": "alloy", "response_format": "wav", "speed": 1.5 });
    assert_eq!((asked.path.as_str(), asked.body), ("/v1/audio/speech", expected));
    let hex: String = wav().bytes().map(|byte| format!("{byte:02x}")).collect();
    server.push(answered(&json!({ "data": { "audio": hex }, "base_resp": { "status_code": 0 } })));
    let music = daemon.post("/api/media/music", &json!({ "lyrics": "la la" })).expect(200);
    assert_eq!((&music["provider"], &music["duration_ms"]), (&json!("minimax"), &json!(1_000)));
    server.push(answered(&json!({ "text": "hello there" })));
    let reply = daemon.send(
        "POST",
        "/api/media/transcribe?language=en",
        &[("content-type", "audio/wav")],
        Some(wav().as_bytes()),
    );
    let read = reply.expect(200);
    assert_eq!(
        (&read["text"], &read["language"], &read["duration_ms"]),
        (&json!("hello there"), &json!("en"), &json!(1_000))
    );
    let form = String::from_utf8_lossy(&server.requests()[2].raw).into_owned();
    assert!(form.contains("name=\"model\"\r\n\r\nwhisper-1") && form.contains("filename=\"audio.wav\""), "{form:.400}");
    let sizes = daemon.get("/api/metrics").text();
    assert!(sizes.contains(&format!("agentsvc_uploads_bytes {}", 2 * wav().len())), "the recording is gone");
}

#[test]
fn a_form_is_transcribed_and_what_is_no_recording_refused() {
    let (server, daemon) = start();
    server.push(answered(&json!({ "text": "hi" })));
    let form = |name: &str, content: &str| {
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"language\"\r\n\r\nde\r\n--b\r\ncontent-disposition: form-data; \
             name=\"{name}\"; filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\n{content}\r\n--b--\r\n"
        )
    };
    let send = |content_type: &str, body: &[u8]| {
        daemon.send("POST", "/api/media/transcribe", &[("content-type", content_type)], Some(body))
    };
    let read = send("multipart/form-data; boundary=b", form("file", &wav()).as_bytes()).expect(200);
    assert_eq!((&read["text"], &read["language"]), (&json!("hi"), &json!("de")));
    send("multipart/form-data; boundary=b", form("other", "x").as_bytes()).refused_field(400, "file");
    send("audio/wav", b"").refused_field(400, "file");
    send("audio/wav", b"no recording").refused_field(415, "file");
    send("audio/png", &png()).refused_field(415, "file");
    assert_eq!(send("text/plain", b"x").status, 415);
    assert_eq!(send("audio/wav", &vec![b'0'; (10 << 20) + 1]).status, 413);
    assert_eq!(server.requests().len(), 1);
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_uploads_bytes 0"), "nothing of them stays");
}

#[test]
fn what_providers_do_wrong_is_an_error_and_never_asked_for_twice() {
    let (server, daemon) = start();
    let json = [("content-type", "application/json")];
    let error = |code: &str, message: &str| json!({ "error": { "code": code, "message": message } });
    let raw = |status: u16, body: &Value| Reply::raw(status, &json, &body.to_string());
    let truncated = Reply::raw(200, &json, "{\"data\": [{\"b64_json\": \"iVBORw0K");
    let cases: [(Reply, u16, &str, f64); 12] = [
        (raw(200, &error("server_error", "no")), 502, "media_provider_failed", 0.0),
        (raw(400, &error("moderation_blocked", "our safety system")), 400, "media_filtered", 0.0),
        (raw(400, &error("bad", "unknown size")), 400, "media_refused", 0.0),
        (raw(401, &error("bad", "wrong key")), 502, "media_key_refused", 0.0),
        (raw(429, &error("insufficient_quota", "pay")), 429, "media_rate_limited", 0.0),
        (raw(500, &error("bad", "oops")), 502, "media_provider_failed", 0.25),
        (truncated, 502, "media_provider_failed", 0.25),
        (Reply::text("x").break_after(1), 502, "media_provider_failed", 0.25),
        (Reply::raw(200, &[("content-type", "text/html")], "<html></html>"), 502, "media_provider_failed", 0.25),
        (raw(200, &json!({ "data": [] })), 502, "media_provider_failed", 0.25),
        (raw(200, &json!({ "data": [{ "b64_json": "????" }] })), 502, "media_provider_failed", 0.25),
        (raw(200, &json!({ "data": [{ "b64_json": STANDARD.encode(wav()) }] })), 502, "media_provider_failed", 0.25),
    ];
    let mut total = 0.0;
    for (number, (reply, status, code, cost)) in cases.into_iter().enumerate() {
        server.push(reply.clone());
        let refused = daemon.post("/api/media/image", &json!({ "prompt": "a cat" }));
        let body = refused.text();
        assert_eq!(refused.status, status, "{reply:?}: {body}");
        assert!(body.contains(&format!("\"{code}\"")) && !body.contains("key-of-the-test-model"), "{reply:?}: {body}");
        assert_eq!(server.requests().len(), number + 1, "{reply:?} was repeated");
        total += cost;
        let sum = spent(&daemon);
        assert!((sum - total).abs() < 1e-9, "{reply:?}: {sum} instead of {total}");
    }
    for reply in [raw(200, &error("x", "no")), Reply::raw(200, &[("content-type", "audio/mpeg")], "<html></html>")] {
        server.push(reply);
        daemon.post("/api/media/speech", &json!({ "text": "x" })).refused(502);
    }
    server.push(answered(&json!({ "base_resp": { "status_code": 1026, "status_msg": "sensitive" } })));
    let filtered = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" }));
    filtered.refused(400);
    assert!(filtered.text().contains("media_filtered"));
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_uploads_bytes 0"), "nothing of them stays");
}

/// Answers as MiniMax does: the task goes on for a while, and the first links have expired, or lead to a page.
fn video_wire(address: String) -> impl Fn(&Received) -> Reply + Send + Sync + 'static {
    let (polls, links) = (std::sync::atomic::AtomicUsize::new(0), std::sync::atomic::AtomicUsize::new(0));
    let count = |of: &std::sync::atomic::AtomicUsize| of.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let fine = json!({ "status_code": 0 });
    let page = || Reply::raw(200, &[("content-type", "text/html")], "<html>back soon</html>");
    move |request| match request.path.as_str() {
        "/v1/video_generation" => answered(&json!({ "task_id": "t1", "base_resp": fine })),
        "/v1/query/video_generation" => match count(&polls) {
            0 => answered(&json!({ "status": "Preparing", "base_resp": fine })),
            1 => page(),
            _ => answered(&json!({ "status": "Success", "file_id": 7, "base_resp": fine })),
        },
        "/v1/files/retrieve" => {
            let place = ["expired", "page"].get(count(&links)).unwrap_or(&"video");
            let link = format!("http://{address}/{place}?signature=s3cret");
            answered(&json!({ "file": { "download_url": link }, "base_resp": fine }))
        }
        "/page" => page(),
        "/video" => Reply::raw(200, &[("content-type", "application/octet-stream")], &mp4()),
        _ => Reply::raw(403, &[], "Request has expired"),
    }
}

fn video(daemon: &Daemon) -> (String, Value) {
    let begun = daemon.post("/api/media/video", &json!({ "prompt": "a cat", "duration_secs": 6 })).expect(202);
    assert_eq!(begun["provider"], "minimax");
    let path = format!("/api/media/video/{}?provider=minimax", text(&begun["task_id"]));
    (path, begun)
}

fn ended(daemon: &Daemon, path: &str) -> Value {
    let is_over = |status: &Value| status["status"] == "completed" || status["status"] == "failed";
    until("the video", || Some(daemon.get(path).expect(200)).filter(is_over))
}

#[test]
fn a_video_is_downloaded_once_and_then_answered_from_the_store() {
    let (server, daemon) = start();
    server.respond(video_wire(server.address().to_string()));
    let (path, begun) = video(&daemon);
    let status = ended(&daemon, &path);
    let result = &status["result"];
    assert_eq!(
        (&status["status"], &result["width"], &result["height"]),
        (&json!("completed"), &json!(64), &json!(48)),
        "{status}"
    );
    assert_eq!(result["duration_secs"], 1.27);
    assert_eq!(upload(&daemon, &result["file_url"]).body, mp4().into_bytes());
    let asked = paths(&server);
    assert_eq!(asked.iter().filter(|path| **path == "/v1/video_generation").count(), 1);
    assert_eq!(asked.iter().filter(|path| **path == "/v1/files/retrieve").count(), 3, "a link that fails is replaced");
    assert_eq!(daemon.get(&path).expect(200), status);
    assert_eq!(paths(&server), asked, "the provider is not asked again");
    let bare = path.split('?').next().unwrap();
    daemon.get(bare).refused_field(400, "provider");
    daemon.get(&format!("{bare}?provider=openai")).refused(404);
    daemon.get(&format!("/api/media/video/{}?provider=minimax", Uuid::from_u128(5))).refused(404);
    let task = tasks(&daemon).remove(0);
    assert_eq!((&task["id"], &task["cost_usd"]), (&begun["task_id"], &json!(0.492)));
}

#[test]
fn a_kill_in_each_phase_pays_nothing_again() {
    let (server, mut daemon) = start();
    // While the provider is asked.
    let gate = Gate::default();
    server.push(answered(&json!({ "task_id": "t0" })).gated(&gate));
    let (path, _) = video(&daemon);
    server.wait_for_requests(1);
    daemon.kill();
    gate.open();
    daemon.restart();
    let lost = ended(&daemon, &path);
    assert_eq!(lost["status"], "failed");
    assert_eq!(tasks(&daemon)[0]["reason"], "unknown");
    // While the task is asked for, and while the result is downloaded.
    let wire = video_wire(server.address().to_string());
    let (polls, download) = (Gate::default(), Gate::default());
    let (first_poll, first_download) = (polls.clone(), download.clone());
    server.respond(move |request| match request.path.as_str() {
        "/v1/query/video_generation" => wire(request).gated(&first_poll),
        "/video" => wire(request).gated(&first_download),
        _ => wire(request),
    });
    let (path, _) = video(&daemon);
    // What a read shows may not be on disk yet; a question is asked only when it is.
    let asked = |path: &str| server.requests().iter().any(|request| request.path == path).then_some(());
    until("the question", || asked("/v1/query/video_generation"));
    daemon.kill();
    polls.open();
    daemon.restart();
    until("the download", || asked("/expired"));
    daemon.kill();
    download.open();
    daemon.restart();
    let done = ended(&daemon, &path);
    assert_eq!(done["status"], "completed", "{done}");
    let made = paths(&server).iter().filter(|path| **path == "/v1/video_generation").count();
    assert_eq!(made, 2, "one for each task");
    let files = tasks(&daemon).iter().filter(|task| task["status"] == "completed").count();
    assert_eq!(files, 1);
}

#[test]
fn links_of_providers_lead_to_no_private_place() {
    let (server, daemon) = start();
    for link in ["http://10.0.0.1/x.png", "http://localhost:1/x.png", "file:///etc/passwd", "not a link"] {
        server.push(answered(&json!({ "data": { "image_urls": [link] }, "base_resp": { "status_code": 0 } })));
        let refused = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" }));
        assert_eq!(refused.status, 502, "{link}: {}", refused.text());
    }
    let link = format!("http://{}/image", server.address());
    server.push(answered(&json!({ "data": { "image_urls": [link] }, "base_resp": { "status_code": 0 } })));
    server.push(Reply::raw(200, &[("content-type", "text/html")], "GIF89a\x10\0\x20\0"));
    let made = daemon.post("/api/media/image", &json!({ "prompt": "x", "provider": "minimax" })).expect(200);
    assert_eq!((&made["images"][0]["width"], &made["images"][0]["height"]), (&json!(16), &json!(32)));
    let file = upload(&daemon, &made["images"][0]["url"]);
    assert_eq!(file.header("content-type"), Some("image/gif"), "the file says what it is");
}

#[test]
fn bad_requests_name_the_field_and_ask_no_provider() {
    let (server, daemon) = start();
    for (route, body, field) in [
        ("image", json!({}), "prompt"),
        ("image", json!({ "prompt": "" }), "prompt"),
        ("image", json!({ "prompt": "x".repeat(4_001) }), "prompt"),
        ("image", json!({ "prompt": "x", "count": 5 }), "count"),
        ("image", json!({ "prompt": "x", "count": -1 }), "count"),
        ("image", json!({ "prompt": "x", "width": 8 }), "height"),
        ("image", json!({ "prompt": "x", "provider": "nobody" }), "provider"),
        ("image", json!({ "prompt": "x", "model": "a b" }), "model"),
        ("speech", json!({ "text": " " }), "text"),
        ("speech", json!({ "text": "x", "speed": 0.1 }), "speed"),
        ("speech", json!({ "text": "x", "format": "pcm" }), "format"),
        ("speech", json!({ "text": "x", "voice": "a\"b" }), "voice"),
        ("video", json!({ "prompt": "x", "duration_secs": 61 }), "duration_secs"),
        ("video", json!({ "prompt": "x", "provider": "openai" }), "provider"),
        ("music", json!({ "instrumental": true }), "prompt"),
    ] {
        daemon.post(&format!("/api/media/{route}"), &body).refused_field(400, field);
    }
    daemon.post("/api/media/image", &json!({ "prompt": "x", "agent_id": Uuid::from_u128(5) })).refused(404);
    assert!(server.requests().is_empty() && tasks(&daemon).is_empty());
}

#[test]
fn without_a_key_it_is_422_and_beyond_a_budget_429() {
    let server = ModelServer::start();
    let bare = Daemon::start();
    let refused = bare.post("/api/media/image", &json!({ "prompt": "x" }));
    refused.refused(422);
    assert!(refused.text().contains("missing_key"));
    let listed = bare.get("/api/media/providers").expect(200)["providers"].clone();
    let openai = json!({ "name": "openai", "configured": false, "capabilities": ["ImageGeneration", "TextToSpeech", "SpeechToText"] });
    let minimax = ["ImageGeneration", "TextToSpeech", "VideoGeneration", "MusicGeneration"];
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|provider| text(&provider["name"])).collect();
    assert_eq!(names, ["openai", "minimax", "gemini", "elevenlabs", "stability", "groq", "together", "fireworks"]);
    assert_eq!(bare.get("/api/media/providers").expect(200)["defaults"]["ImageGeneration"], Value::Null);
    assert_eq!(listed[0], openai);
    assert_eq!(listed[1], json!({ "name": "minimax", "configured": false, "capabilities": minimax }));
    drop(bare);
    let daemon = Daemon::with(&format!("{}[budget]\ndaily_limit_usd = 0.3\n", config(&server)));
    let listed = daemon.get("/api/media/providers").expect(200);
    assert_eq!(
        (&listed["providers"][0]["configured"], &listed["providers"][4]["configured"]),
        (&json!(true), &json!(false))
    );
    let defaults = json!({ "ImageGeneration": "openai", "TextToSpeech": "openai", "VideoGeneration": "minimax",
        "MusicGeneration": "minimax", "SpeechToText": "openai" });
    assert_eq!(listed["defaults"], defaults);
    server.push(image());
    daemon.post("/api/media/image", &json!({ "prompt": "x" })).expect(200);
    let over = daemon.post("/api/media/image", &json!({ "prompt": "x" }));
    over.refused(429);
    assert!(over.text().contains("budget_exceeded"));
    let unpriced = daemon.post("/api/media/image", &json!({ "prompt": "x", "model": "new-model" }));
    unpriced.refused(409);
    assert!(unpriced.text().contains("price_unknown") && unpriced.text().contains("[media] prices"));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_agent_makes_media_at_its_own_cost() {
    let model = Model::start();
    let base = model.server.base_url();
    let media = format!("[providers.openai]\nbase_url = \"{base}\"\napi_key_env = \"TEST_MODEL_KEY\"\n");
    let daemon = Daemon::with(&format!("{}{media}", model.config()));
    let agent = daemon.agent_with("painter", "[capabilities]\ntools = [\"image_generate\", \"video_status\"]\n");
    let input = json!({ "prompt": "a cat", "provider": "openai" }).to_string();
    model.script([Reply::calls(&[("c1", "image_generate", &input)]), image(), Reply::text("done")]);
    assert_eq!(daemon.say(&agent, "paint")["response"], "done");
    let task = tasks(&daemon).remove(0);
    assert_eq!((&task["agent_id"], &task["status"]), (&json!(agent), &json!("completed")), "{task}");
    let request = model.requests().pop().expect("the model was asked");
    let messages = request["messages"].as_array().expect("messages").clone();
    let result = messages.iter().rev().find(|message| message["role"] == "tool").expect("a result");
    let result = text(&result["content"]);
    assert!(result.contains(&text(&task["files"][0]["url"])) && result.contains("640 x 480"), "{result}");
    assert!(!result.contains("tabby"), "words of the provider: {result}");
    let budget = daemon.get(&format!("/api/budget/agents/{agent}")).expect(200);
    assert!(budget.to_string().contains("0.25"), "{budget}");
}
