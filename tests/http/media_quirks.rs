//! What providers of media do wrong, one table for all of them: errors behind status 200, answers that break off, are empty or of
//! another type, and providers that want to be left alone.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::media::{answered, config, png, tasks, wav};
use crate::support::daemon::Daemon;
use crate::support::http::{Client, Reply as Answer};
use crate::support::model_server::{ModelServer, Reply};

/// What is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Image,
    Speech,
    Transcript,
}

/// A provider, what it is asked for, how it answers well, and what that costs at most.
struct Row {
    provider: &'static str,
    call: Call,
    /// Where it is asked, below its base URL.
    path: &'static str,
    well: fn() -> Reply,
    most: f64,
}

fn raw(status: u16, body: &Value) -> Reply {
    Reply::raw(status, &[("content-type", "application/json")], &body.to_string())
}

fn gemini(mime: &str, data: &[u8]) -> Reply {
    let data = json!({ "inlineData": { "mimeType": mime, "data": STANDARD.encode(data) } });
    answered(&json!({ "candidates": [{ "content": { "parts": [data] } }] }))
}

fn transcript() -> Reply {
    answered(&json!({ "text": "hello" }))
}

static ROWS: [Row; 8] = [
    Row {
        provider: "gemini",
        call: Call::Image,
        path: "models/gemini-2.5-flash-image:generateContent",
        well: || gemini("image/png", &png()),
        most: 0.039,
    },
    Row {
        provider: "gemini",
        call: Call::Speech,
        path: "models/gemini-2.5-flash-preview-tts:generateContent",
        well: || gemini("audio/L16;rate=24000", &[0; 48_000]),
        most: 0.000_08,
    },
    Row {
        provider: "elevenlabs",
        call: Call::Speech,
        path: "text-to-speech/JBFqnCBsd6RMkjVDRZzb",
        well: || Reply::raw(200, &[("content-type", "audio/mpeg")], &wav()),
        most: 0.000_6,
    },
    Row { provider: "elevenlabs", call: Call::Transcript, path: "speech-to-text", well: transcript, most: 0.000_117 },
    Row {
        provider: "stability",
        call: Call::Image,
        path: "stable-image/generate/core",
        well: || answered(&json!({ "image": STANDARD.encode(png()), "finish_reason": "SUCCESS", "seed": 7 })),
        most: 0.03,
    },
    Row { provider: "groq", call: Call::Transcript, path: "audio/transcriptions", well: transcript, most: 0.000_012 },
    Row {
        provider: "together",
        call: Call::Transcript,
        path: "audio/transcriptions",
        well: transcript,
        most: 0.000_025,
    },
    Row {
        provider: "fireworks",
        call: Call::Transcript,
        path: "audio/transcriptions",
        well: transcript,
        most: 0.000_015,
    },
];

impl Row {
    fn ask(&self, client: &Client) -> Answer {
        let provider = self.provider;
        match self.call {
            Call::Image => client.post("/api/media/image", &json!({ "prompt": "a cat", "provider": provider })),
            Call::Speech => client.post("/api/media/speech", &json!({ "text": "hi", "provider": provider })),
            Call::Transcript => {
                let path = format!("/api/media/transcribe?provider={provider}");
                client.send("POST", &path, &[("content-type", "audio/wav")], Some(wav().as_bytes()))
            }
        }
    }

    fn path(&self) -> String {
        format!("/{}/v1/{}", self.provider, self.path)
    }

    /// An error in the provider's own form.
    fn error(&self, message: &str) -> Value {
        match self.provider {
            "elevenlabs" => json!({ "detail": { "status": "some_error", "message": message } }),
            "stability" => json!({ "id": "e1", "name": "some_error", "errors": [message] }),
            _ => json!({ "error": { "code": "some_error", "message": message } }),
        }
    }

    fn is_bytes(&self) -> bool {
        self.provider == "elevenlabs" && self.call == Call::Speech
    }
}

/// All providers at one server, each below its own path.
fn start() -> (ModelServer, Daemon) {
    let server = ModelServer::start();
    let providers: HashSet<&str> = ROWS.iter().map(|row| row.provider).collect();
    let sections: String = providers
        .iter()
        .map(|name| {
            let address = server.address();
            format!("[providers.{name}]\nbase_url = \"http://{address}/{name}/v1\"\napi_key_env = \"TEST_MODEL_KEY\"\n")
        })
        .collect();
    let daemon = Daemon::with(&format!("rate_limit_per_second = 100000\n{sections}"));
    (server, daemon)
}

fn keeps_nothing(daemon: &Daemon) {
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_uploads_bytes 0\n"), "something was kept");
}

/// What the newest task cost, and why it failed.
fn newest(daemon: &Daemon) -> (f64, String) {
    let task = daemon.get("/api/media/tasks?order=newest&limit=1").expect(200)["tasks"][0].clone();
    (task["cost_usd"].as_f64().expect("a cost"), task["reason"].to_string())
}

#[test]
fn what_providers_answer_wrongly_is_an_error_that_costs_what_it_may_have_cost() {
    let (server, daemon) = start();
    const FAILED: &str = "media_provider_failed";
    for row in &ROWS {
        let error = row.error("no such luck key-of-the-test-model");
        let html = || Reply::raw(200, &[("content-type", "text/html")], "<html>back soon</html>");
        let empty = |kind: &str| Reply::raw(200, &[("content-type", kind)], "");
        // What was asked for is named by what it is, not by what it says it is.
        let other = match row.call {
            Call::Transcript => answered(&json!({ "words": ["hello"] })),
            Call::Image if row.provider == "gemini" => gemini("image/png", wav().as_bytes()),
            Call::Image => answered(&json!({ "image": STANDARD.encode(wav()), "finish_reason": "SUCCESS" })),
            Call::Speech if row.is_bytes() => Reply::raw(200, &[("content-type", "audio/mpeg")], "GIF89a\x10\0\x20\0"),
            Call::Speech => gemini("audio/mpeg", &png()),
        };
        let truncated = if row.is_bytes() {
            Reply::raw(200, &[("content-type", "audio/mpeg")], "RIF")
        } else {
            cut_in_half(&(row.well)())
        };
        let cases: [(&str, Reply, u16, &str, bool); 14] = [
            ("an error with status 200", raw(200, &error), 502, FAILED, false),
            ("a text that ends early", truncated, 502, FAILED, true),
            ("a connection that breaks", Reply::text("x").break_after(1), 502, FAILED, true),
            ("a page", html(), 502, FAILED, true),
            ("nothing", empty("application/json"), 502, FAILED, true),
            ("nothing of no type", Reply::raw(200, &[], ""), 502, FAILED, true),
            ("an empty object", answered(&json!({})), 502, FAILED, true),
            ("another file", other, 502, FAILED, true),
            ("400", raw(400, &error), 400, "media_refused", false),
            ("401", raw(401, &error), 502, "media_key_refused", false),
            ("402", raw(402, &error), 429, "media_rate_limited", false),
            ("413", raw(413, &error), 400, "media_refused", false),
            ("500", raw(500, &error), 502, FAILED, true),
            ("a redirect", Reply::raw(302, &[("location", "http://10.0.0.1/")], ""), 502, FAILED, false),
        ];
        for (name, reply, status, code, is_charged) in cases {
            let what = format!("{} {}: {name}", row.provider, row.path);
            let before = server.requests().len();
            server.push(reply);
            let refused = row.ask(&daemon);
            let text = refused.text();
            assert_eq!(refused.status, status, "{what}: {text}");
            assert!(text.contains(&format!("\"{code}\"")), "{what}: {text}");
            assert!(!text.contains("key-of-the-test-model"), "{what}: {text}");
            let says_why = ["an error with status 200", "400", "401", "402", "413", "500"].contains(&name);
            assert!(!says_why || text.contains("no such luck"), "{what}: {text}");
            let asked = server.requests();
            assert_eq!(asked.len(), before + 1, "{what}: it is asked for again");
            assert_eq!(asked[before].path, row.path(), "{what}");
            let (cost, reason) = newest(&daemon);
            let expected = if is_charged { row.most } else { 0.0 };
            assert!((cost - expected).abs() < 1e-9, "{what}: {cost} instead of {expected} ({reason})");
        }
    }
    keeps_nothing(&daemon);
    assert_eq!(daemon.get("/api/budget").expect(200)["reserved_usd"], 0.0, "nothing stays reserved");
}

/// A JSON answer as far as its middle, with its length right.
fn cut_in_half(reply: &Reply) -> Reply {
    let whole = reply.body().expect("a scripted body");
    Reply::raw(200, &[("content-type", "application/json")], &whole[..whole.len() / 2])
}

#[test]
fn an_answer_of_another_content_type_is_what_its_bytes_are() {
    let (server, daemon) = start();
    for row in &ROWS {
        let body = (row.well)().body().expect("a scripted body").to_owned();
        server.push(Reply::raw(200, &[("content-type", "application/octet-stream")], &body));
        row.ask(&daemon).expect(200);
        let (cost, _) = newest(&daemon);
        assert!((cost - row.most).abs() < 1e-9, "{}: {cost}", row.provider);
    }
}

/// All at once: each takes as long as it was asked to wait.
#[test]
fn a_provider_that_takes_no_requests_now_is_asked_again_when_it_wants() {
    const WAIT: Duration = Duration::from_secs(3);
    let (server, daemon) = start();
    let seen = Mutex::new(HashSet::new());
    server.respond(move |request| {
        let row = ROWS.iter().find(|row| row.path() == request.path).expect("a path of the table");
        let is_first = seen.lock().expect("no test fails in it").insert(request.path.clone());
        let busy = raw(429, &row.error("slow down")).header("retry-after", &WAIT.as_secs().to_string());
        if is_first { busy } else { (row.well)() }
    });
    thread::scope(|scope| {
        for row in &ROWS {
            let client = daemon.client();
            scope.spawn(move || {
                let began = Instant::now();
                let made = row.ask(&client);
                assert_eq!(made.status, 200, "{}: {}", row.provider, made.text());
                assert!(began.elapsed() >= WAIT, "{} was asked after {:?}", row.provider, began.elapsed());
            });
        }
    });
    let mut asked: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    asked.sort();
    let mut expected: Vec<String> = ROWS.iter().flat_map(|row| [row.path(), row.path()]).collect();
    expected.sort();
    assert_eq!(asked, expected, "each twice");
    let costs: f64 = tasks(&daemon).iter().filter_map(|task| task["cost_usd"].as_f64()).sum();
    let most: f64 = ROWS.iter().map(|row| row.most).sum();
    assert!((costs - most).abs() < 1e-9, "what was refused costs nothing: {costs} instead of {most}");
}

#[test]
fn stability_makes_an_image_of_a_form_and_says_what_its_filter_did() {
    let (server, daemon) = start();
    let image = |body: &Value| daemon.post("/api/media/image", body);
    let well = ROWS.iter().find(|row| row.provider == "stability").expect("a row").well;
    server.push(well());
    let wanted = json!({ "prompt": "a cat", "provider": "stability", "width": 1920, "height": 1080 });
    let made = image(&wanted).expect(200);
    assert_eq!((&made["model"], &made["images"][0]["width"]), (&json!("stable-image-core"), &json!(640)));
    assert_eq!(daemon.get(made["images"][0]["url"].as_str().expect("a link")).body, png());
    let asked = server.requests().remove(0);
    assert_eq!(
        (asked.header("authorization"), asked.header("accept")),
        ("Bearer key-of-the-test-model", "application/json")
    );
    let form = String::from_utf8_lossy(&asked.raw).into_owned();
    for (name, value) in [("prompt", "a cat"), ("aspect_ratio", "16:9"), ("output_format", "png")] {
        assert!(form.contains(&format!("name=\"{name}\"\r\n\r\n{value}\r\n")), "{name}: {form}");
    }
    assert!(!form.contains("name=\"model\""), "{form}");
    // The image itself, as some gateways send it.
    let gif = "GIF89a\x10\0\x20\0";
    server.push(Reply::raw(200, &[("content-type", "image/gif"), ("finish-reason", "SUCCESS")], gif));
    let of_sd3 = json!({ "prompt": "a cat", "provider": "stability", "model": "sd3.5-medium" });
    let made = image(&of_sd3).expect(200);
    assert_eq!((&made["images"][0]["height"], &made["cost_usd"]), (&json!(32), &json!(0.035)));
    let asked = server.requests().remove(1);
    assert_eq!(asked.path, "/stability/v1/stable-image/generate/sd3");
    assert!(String::from_utf8_lossy(&asked.raw).contains("name=\"model\"\r\n\r\nsd3.5-medium\r\n"));

    let blurred = json!({ "image": STANDARD.encode(png()), "finish_reason": "CONTENT_FILTERED" });
    let moderated = json!({ "id": "e", "name": "content_moderation", "errors": ["flagged by content moderation"] });
    let plain = json!({ "prompt": "x", "provider": "stability" });
    for (reply, status, code, cost) in [
        (answered(&blurred), 400, "media_filtered", 0.03),
        (
            Reply::raw(200, &[("content-type", "image/gif"), ("finish-reason", "CONTENT_FILTERED")], gif),
            400,
            "media_filtered",
            0.03,
        ),
        (raw(403, &moderated), 400, "media_filtered", 0.0),
        (raw(403, &json!({ "name": "unauthorized", "errors": ["not yours"] })), 502, "media_key_refused", 0.0),
        (answered(&json!({ "image": STANDARD.encode(png()), "finish_reason": "WHO KNOWS" })), 502, "failed", 0.03),
        (answered(&json!({ "image": "????", "finish_reason": "SUCCESS" })), 502, "failed", 0.03),
    ] {
        server.push(reply.clone());
        let refused = image(&plain);
        assert_eq!(refused.status, status, "{reply:?}: {}", refused.text());
        assert!(refused.text().contains(code), "{reply:?}: {}", refused.text());
        assert!((newest(&daemon).0 - cost).abs() < 1e-9, "{reply:?}");
    }
    let before = server.requests().len();
    for wrong in [
        json!({ "prompt": "x", "provider": "stability", "count": 2 }),
        json!({ "prompt": "x", "provider": "stability", "width": 640, "height": 480 }),
        json!({ "prompt": "x", "provider": "stability", "model": "dall-e-3" }),
    ] {
        image(&wrong).refused(400);
    }
    daemon.post("/api/media/speech", &json!({ "text": "x", "provider": "stability" })).refused_field(400, "provider");
    assert_eq!(server.requests().len(), before, "what it does not offer is not asked");
}

/// The other provider that answers with links, in place of images.
#[test]
fn a_link_of_openai_that_has_expired_is_tried_again_and_a_private_one_is_not() {
    let server = ModelServer::start();
    let daemon = Daemon::with(&config(&server));
    let image =
        || daemon.post("/api/media/image", &json!({ "prompt": "x", "model": "dall-e-3", "provider": "openai" }));
    let link = |url: &str| answered(&json!({ "data": [{ "url": url }] }));
    let own = format!("http://{}/image?signature=s3cret", server.address());
    server.push(link(&own));
    server.push(Reply::raw(403, &[], "Request has expired"));
    server.push(Reply::raw(200, &[("content-type", "text/html")], "GIF89a\x10\0\x20\0"));
    let made = image().expect(200);
    assert_eq!(made["images"][0]["height"], 32);
    let paths: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/images/generations", "/image", "/image"], "the image is paid once");
    for private in ["http://169.254.169.254/latest/meta-data", "http://[::1]:1/x.png", "ftp://example.com/x"] {
        let before = server.requests().len();
        server.push(link(private));
        let refused = image();
        refused.refused(502);
        assert_eq!(server.requests().len(), before + 1, "{private}");
        assert!((newest(&daemon).0 - 0.12).abs() < 1e-9, "{private}: it was made");
    }
}
