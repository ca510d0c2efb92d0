//! A newer catalog from a remote: proven, checked, taken as a whole or not at all (spec 2, Model catalog; issue, Catalog).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;

/// A small HTTP server of files.
struct Remote {
    address: SocketAddr,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Remote {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let files = Arc::<Mutex<BTreeMap<String, Vec<u8>>>>::default();
        let served = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
                for _header in lines.take_while(|line| !line.is_empty()) {}
                let content = served.lock().unwrap().get(&path).cloned();
                let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
                let content = content.unwrap_or_default();
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", content.len());
                let _gone = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&content));
            }
        });
        Self { address, files }
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.to_owned(), content.into());
    }

    fn config(&self, more: &str) -> String {
        format!("[catalog]\nurl = \"http://{}/catalog.toml\"\n{more}", self.address)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn document(version: &str, more: &str) -> String {
    format!(
        "version = \"{version}\"\n[[models]]\nid = \"next-1\"\nprovider = \"openai\"\ndisplay_name = \"Next\"\n\
         tier = \"frontier\"\ncontext_window = 500000\ninput_cost_per_m = 1.0\noutput_cost_per_m = 2.0\n\
         aliases = [\"next\"]\n[[models]]\nid = \"m\"\nprovider = \"of-a-later-release\"\ncontext_window = 8000\n{more}"
    )
}

/// Puts a document there with its checksum.
fn publish(remote: &Remote, document: &str) {
    remote.put("/catalog.toml", document);
    remote.put("/catalog.toml.sha256", format!("{}  catalog.toml\n", hex(&Sha256::digest(document))));
}

fn update(daemon: &Daemon) -> Value {
    daemon.poke("/api/catalog/update").expect(200)
}

fn status(daemon: &Daemon) -> Value {
    daemon.get("/api/catalog/status").expect(200)
}

#[test]
fn without_a_remote_an_update_is_refused_and_the_key_is_named() {
    let daemon = Daemon::start();
    let sentence = daemon.poke("/api/catalog/update").refused(409);
    assert!(sentence.contains("[catalog] url"), "{sentence}");
    let status = status(&daemon);
    assert_eq!(
        (&status["source"], &status["url"], &status["last_updated"]),
        (&json!("builtin"), &Value::Null, &Value::Null)
    );
    assert_eq!((&status["providers"], &status["last_check"]), (&json!(49), &Value::Null));
    assert!(status["models"].as_u64().unwrap() >= 130);
}

#[test]
fn a_newer_catalog_is_taken_at_once_and_survives_a_kill() {
    let (model, remote) = (Model::start(), Remote::start());
    let mut daemon = Daemon::with(&format!("{}{}", model.config(), remote.config("")));
    let embedded = text(&status(&daemon)["version"]);
    let agent = daemon.agent_with("a", "[model]\nmodel = \"next\"\n");
    publish(&remote, &document("2099-01-01", ""));
    let looked = daemon.post("/api/catalog/update", &json!({ "dry_run": true })).expect(200);
    assert_eq!((&looked["status"], &looked["version"]), (&json!("available"), &json!(embedded)));
    assert_eq!(status(&daemon)["available_version"], "2099-01-01");
    daemon.get("/api/models/next-1").refused(404);
    let done = update(&daemon);
    assert_eq!(
        (&done["status"], &done["version"], &done["previous_version"]),
        (&json!("updated"), &json!("2099-01-01"), &json!(embedded))
    );
    assert_eq!((&done["models"], &done["skipped"]), (&json!(1), &json!(1)));
    for restarted in [false, true] {
        let entry = daemon.get("/api/models/next-1").expect(200);
        assert_eq!((&entry["source"], &entry["aliases"]), (&json!("remote"), &json!(["next"])));
        daemon.get("/api/models/gpt-4o").refused(404);
        // The alias and the price hold for the next call.
        let answer = daemon.say(&agent, "x");
        assert_eq!(text(&model.requests().pop().unwrap()["model"]), "next-1");
        assert!((answer["cost_usd"].as_f64().unwrap() - 0.000_025).abs() < 1e-9, "{answer}");
        let status = status(&daemon);
        assert_eq!((&status["version"], &status["source"]), (&json!("2099-01-01"), &json!("remote")));
        assert!(status["last_updated"].is_string() && status["available_version"].is_null(), "{status}");
        if !restarted {
            daemon.kill();
            daemon.restart();
        }
    }
    assert_eq!(update(&daemon)["status"], "up_to_date");
    publish(&remote, &document("2098-01-01", ""));
    assert_eq!(update(&daemon)["status"], "up_to_date", "an older one is not taken");
    let entries = daemon.get("/api/audit/recent?limit=100").expect(200)["entries"].clone();
    let updates = entries.as_array().unwrap().iter().filter(|entry| entry["event_type"] == "catalog_updated").count();
    assert_eq!(updates, 1);
}

#[test]
fn whatever_is_wrong_with_it_the_old_catalog_stays() {
    let remote = Remote::start();
    let daemon = Daemon::with(&remote.config(""));
    let before = daemon.get("/api/models").expect(200);
    let fails = |why: &str| {
        let sentence = daemon.poke("/api/catalog/update").refused(502);
        assert!(sentence.contains(why), "{sentence}");
        let look = status(&daemon)["last_check"].clone();
        assert!(look["error"].as_str().is_some_and(|error| error.contains(why)) && look["version"].is_null(), "{look}");
    };
    fails("status 404");
    remote.put("/catalog.toml", document("2099-01-01", ""));
    fails("status 404");
    remote.put("/catalog.toml.sha256", "nonsense");
    fails("checksum file");
    remote.put("/catalog.toml.sha256", "ab".repeat(32));
    fails("the SHA-256 is");
    publish(&remote, "version = \"2099-01-01\"\n");
    fails("not a valid catalog");
    // One that would leave no model at all.
    let stranger =
        "version = \"2099-01-01\"\n[[models]]\nid = \"m\"\nprovider = \"of-a-later-release\"\ncontext_window = 8000\n";
    publish(&remote, stranger);
    fails("none of its 1 models");
    publish(&remote, &document("tomorrow", ""));
    fails("version");
    publish(
        &remote,
        &document("2099-01-01", "[[models]]\nid = \"next-1\"\nprovider = \"openai\"\ncontext_window = 8000\n"),
    );
    fails("duplicate model");
    publish(&remote, &document("2099-01-01", "[[models]]\nid = \"dear\"\nprovider = \"openai\"\ncontext_window = 1\n"));
    fails("context_window");
    let row = |n: u32| format!("[[models]]\nid = \"of-{n}\"\nprovider = \"openai\"\ncontext_window = 8000\n");
    let many: String = (0..10_000).map(row).collect();
    publish(&remote, &document("2099-01-01", &many));
    fails("1 to 10000 models");
    publish(&remote, &"#".repeat((4 << 20) + 1));
    fails("larger than");
    remote.put("/catalog.toml", b"\xff\xfe".as_slice());
    remote.put("/catalog.toml.sha256", hex(&Sha256::digest(b"\xff\xfe")));
    fails("UTF-8");
    assert_eq!(daemon.get("/api/models").expect(200), before);
    assert!(!daemon.home().join("data/model_catalog.json").exists());
}

#[test]
fn a_signature_or_a_pinned_checksum_proves_whose_it_is() {
    let remote = Remote::start();
    let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).unwrap();
    let public = hex(pair.public_key().as_ref());
    let content = document("2099-01-01", "");
    // A checksum beside it proves nothing here.
    publish(&remote, &content);
    let daemon = Daemon::with(&remote.config(&format!("public_key = \"{public}\"\n")));
    assert_eq!(status(&daemon)["proof"], "public_key");
    daemon.poke("/api/catalog/update").refused(502);
    let stranger = Ed25519KeyPair::from_seed_unchecked(&[6; 32]).unwrap();
    remote.put("/catalog.toml.sig", hex(stranger.sign(content.as_bytes()).as_ref()));
    let sentence = daemon.poke("/api/catalog/update").refused(502);
    assert!(sentence.contains("public_key"), "{sentence}");
    remote.put("/catalog.toml.sig", hex(pair.sign(content.as_bytes()).as_ref()));
    assert_eq!(update(&daemon)["status"], "updated");

    let pinned = |sha256: &str| Daemon::with(&remote.config(&format!("sha256 = \"{sha256}\"\n")));
    pinned(&"ab".repeat(32)).poke("/api/catalog/update").refused(502);
    assert_eq!(update(&pinned(&hex(&Sha256::digest(&content))))["status"], "updated");
}
