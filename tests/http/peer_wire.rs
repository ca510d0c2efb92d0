//! What a stranger, a false peer and a greedy peer get from a node, byte by byte (OFP/1).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::{PATIENCE, until};

/// The secret of all networks of these tests.
pub(crate) const SECRET: &str = "a secret of thirty-two characters";

/// A node that listens on a free port of this machine; `more` belongs to `[network]`.
pub(crate) fn network(more: &str) -> String {
    format!(
        "rate_limit_per_second = 1000000\nnetwork_enabled = true\n[network]\nlisten_addresses = [\"127.0.0.1:0\"]\n\
         shared_secret = \"{SECRET}\"\n{more}\n"
    )
}

/// The status of the network of a node.
pub(crate) fn status(daemon: &Daemon) -> Value {
    daemon.get("/api/network/status").expect(200)
}

/// Where a node listens for peers.
pub(crate) fn address(daemon: &Daemon) -> SocketAddr {
    text(&status(daemon)["listen_addr"]).parse().unwrap()
}

fn mac(key: &str, text: &[u8]) -> String {
    sign(&Key::new(HMAC_SHA256, key.as_bytes()), text).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A peer of the test's own, which may do what no peer does.
struct Raw {
    stream: TcpStream,
    key: String,
    ids: u32,
}

/// What a peer says first.
fn hello(node: &str, nonce: &str, secret: &str) -> Value {
    json!({
        "id": "h", "type": "request", "method": "handshake", "node_id": node, "node_name": node, "protocol_version": 1,
        "agents": [], "nonce": nonce, "auth_hmac": mac(secret, format!("{nonce}|{node}|").as_bytes()),
    })
}

/// The same, signed.
fn signed(node: &str, nonce: &str, seed: u8) -> Value {
    let keys = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    let mut hello = hello(node, nonce, SECRET);
    hello["public_key"] = json!(STANDARD.encode(keys.public_key()));
    hello["identity_signature"] = json!(STANDARD.encode(keys.sign(format!("{nonce}|{node}|").as_bytes())));
    hello
}

fn nonce() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("nonce-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed))
}

impl Raw {
    fn open(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(address(daemon)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, key: String::new(), ids: 0 }
    }

    fn write(&mut self, content: &[u8]) {
        let frame = [&u32::try_from(content.len()).unwrap().to_be_bytes(), content].concat();
        self.stream.write_all(&frame).unwrap();
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut content = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut content)?;
        Ok(content)
    }

    /// Did the other side close the connection, without another word?
    fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte), Ok(0))
            || self.stream.read(&mut byte).is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    }

    /// Sends a first message; gives the answer.
    fn greet(daemon: &Daemon, hello: &Value) -> (Self, Value) {
        let mut raw = Self::open(daemon);
        raw.write(hello.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&raw.read().unwrap()).unwrap();
        if answer["method"] == "handshake_ack" {
            raw.key = mac(SECRET, format!("{}{}", text(&hello["nonce"]), text(&answer["nonce"])).as_bytes());
        }
        (raw, answer)
    }

    /// A peer that was let in.
    fn peer(daemon: &Daemon, node: &str) -> Self {
        let (raw, answer) = Self::greet(daemon, &hello(node, &nonce(), SECRET));
        assert_eq!(answer["method"], "handshake_ack", "{answer}");
        raw
    }

    fn send(&mut self, message: &Value) {
        let content = message.to_string();
        let mac = mac(&self.key, content.as_bytes());
        self.write(format!("{content}{mac}").as_bytes());
    }

    /// Asks; gives the answer.
    fn ask(&mut self, mut request: Value) -> Value {
        self.ids += 1;
        let id = format!("r{}", self.ids);
        request["id"] = json!(id);
        request["type"] = json!("request");
        self.send(&request);
        let answer = self.answer();
        assert_eq!(answer["id"], id.as_str(), "{answer}");
        answer
    }

    fn answer(&mut self) -> Value {
        let content = self.read().unwrap();
        let (content, found) = content.split_at(content.len() - 64);
        assert_eq!(mac(&self.key, content).as_bytes(), found);
        serde_json::from_slice(content).unwrap()
    }

    fn say(&mut self, agent: &str, message: &str) -> Value {
        self.ask(json!({ "method": "agent_message", "agent": agent, "message": message, "sender": "someone" }))
    }
}

/// The names of the agents that a node tells a peer of, and what the peer is answered that writes to the agent `name`.
pub(crate) fn told(daemon: &Daemon, name: &str) -> (Vec<String>, Value) {
    let (mut raw, ack) = Raw::greet(daemon, &hello("n", &nonce(), SECRET));
    let names = ack["agents"].as_array().unwrap().iter().map(|agent| text(&agent["name"])).collect();
    (names, raw.say(name, "hi"))
}

/// The code of a refused handshake.
fn refused(daemon: &Daemon, hello: &Value) -> Value {
    let (mut raw, answer) = Raw::greet(daemon, hello);
    assert_eq!(answer["method"], "error", "{answer}");
    assert!(raw.is_closed());
    answer["code"].clone()
}

#[test]
fn only_those_that_know_the_secret_are_let_in() {
    let daemon = Daemon::with(&network(""));
    daemon.agent("a");
    assert_eq!(refused(&daemon, &hello("n", &nonce(), "another secret")), 403);
    let mut later = hello("n", &nonce(), SECRET);
    later["protocol_version"] = json!(2);
    assert_eq!(refused(&daemon, &later), 1);
    assert_eq!(refused(&daemon, &json!({ "id": "1", "type": "request", "method": "ping" })), 401);
    assert_eq!(refused(&daemon, &json!([])), 400);
    assert!(daemon.get("/api/peers").expect(200)["peers"].as_array().unwrap().is_empty());
    let (mut raw, ack) = Raw::greet(&daemon, &hello("n", &nonce(), SECRET));
    let names: Vec<_> = ack["agents"].as_array().unwrap().iter().map(|agent| text(&agent["name"])).collect();
    assert_eq!(names, ["assistant", "a"]);
    assert_eq!((&ack["protocol_version"], &ack["node_id"]), (&json!(1), &status(&daemon)["node_id"]));
    let claim = format!("{}|{}|n", text(&ack["nonce"]), text(&ack["node_id"]));
    assert_eq!(ack["auth_hmac"], mac(SECRET, claim.as_bytes()));
    let pong = raw.ask(json!({ "method": "ping" }));
    assert!(pong["method"] == "pong" && pong["uptime_secs"].is_u64(), "{pong}");
    let found = raw.ask(json!({ "method": "discover", "query": "ASSIST" }));
    assert_eq!(found["agents"].as_array().unwrap().len(), 1);
    assert_eq!(raw.ask(json!({ "method": "dance" }))["code"], 400);
    let peer = |node: &str| daemon.get(&format!("/api/peers/{node}")).expect(200);
    let (state, peer) = (|| peer("n")["state"].clone(), peer("n"));
    assert_eq!(
        (&peer["state"], &peer["authenticated"], &peer["secure"]),
        (&json!("connected"), &json!(true), &json!(false))
    );
    drop(raw);
    until("the peer has left", || (state() == "disconnected").then_some(()));
    let refusals = status(&daemon)["throughput"]["handshakes_refused"].as_u64();
    assert!(refusals.is_some_and(|count| count >= 4), "{refusals:?}");
}

#[test]
fn guesses_of_the_secret_are_slowed_down_and_noted() {
    let daemon = Daemon::with(&network(""));
    let guess = || refused(&daemon, &hello("guesser", &nonce(), "another secret"));
    assert_eq!((0..10).map(|_| guess()).collect::<Vec<_>>(), vec![json!(403); 10]);
    let (mut raw, answer) = Raw::greet(&daemon, &hello("n", &nonce(), SECRET));
    assert_eq!(answer["code"], 429, "{answer}");
    assert!(text(&answer["message"]).contains("too many wrong secrets from this address; wait 1 seconds"), "{answer}");
    assert!(raw.is_closed());
    let log = daemon.get("/api/audit/recent?limit=100").expect(200);
    let of = |entry: &&Value| entry["event_type"] == "peer_refused" && entry.to_string().contains("guesser");
    let entries = log["entries"].as_array().unwrap().iter().filter(of).count();
    assert_eq!(entries, 10, "{log}");
    assert!(!log.to_string().contains("another secret"));
    until("the right secret is looked at again", || {
        let (_raw, answer) = Raw::greet(&daemon, &hello("n", &nonce(), SECRET));
        (answer["method"] == "handshake_ack").then_some(())
    });
}

#[test]
fn a_replayed_handshake_is_refused() {
    let daemon = Daemon::with(&network(""));
    let recorded = hello("n", &nonce(), SECRET);
    let (_raw, ack) = Raw::greet(&daemon, &recorded);
    assert_eq!(ack["method"], "handshake_ack");
    assert_eq!(refused(&daemon, &recorded), 403);
    let log = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    assert!(log.contains("peer_refused") && log.contains("replay"), "{log}");
}

#[test]
fn the_first_key_of_a_node_stays_until_it_is_forgotten() {
    let mut daemon = Daemon::with(&network(""));
    let greet = |daemon: &Daemon, seed| Raw::greet(daemon, &signed("n", &nonce(), seed)).1["method"].clone();
    assert_eq!(greet(&daemon, 1), "handshake_ack");
    let trusted = daemon.get("/api/network/trusted").expect(200);
    assert_eq!((&trusted["trusted"][0]["node_id"], &trusted["trusted"][0]["mode"]), (&json!("n"), &json!("secure")));
    assert_eq!(text(&trusted["trusted"][0]["fingerprint"]).len(), 64);
    daemon.restart();
    assert_eq!(refused(&daemon, &signed("n", &nonce(), 2)), 403);
    assert_eq!(refused(&daemon, &hello("n", &nonce(), SECRET)), 403, "nor without its key");
    let mut other = signed("n", &nonce(), 1);
    other["identity_signature"] = signed("n", &nonce(), 1)["identity_signature"].clone();
    assert_eq!(refused(&daemon, &other), 403, "a signature of another handshake");
    assert_eq!(greet(&daemon, 1), "handshake_ack");
    let unknown = "unknown";
    daemon.delete(&format!("/api/network/trusted/{unknown}")).refused(404);
    let output = daemon.cli(&["peers", "forget", "n"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(greet(&daemon, 2), "handshake_ack");
    let log = daemon.get("/api/audit/recent?limit=50").expect(200).to_string();
    for kind in ["peer_pinned", "peer_refused", "peer_forgotten"] {
        assert!(log.contains(kind), "{kind}: {log}");
    }
}

#[test]
fn long_frames_are_refused_before_they_come() {
    let daemon = Daemon::with(&network(""));
    let mut stranger = Raw::open(&daemon);
    stranger.stream.write_all(&(65_537_u32).to_be_bytes()).unwrap();
    assert!(stranger.is_closed());
    let mut peer = Raw::peer(&daemon, "n");
    let long = "x".repeat(65_537);
    assert_eq!(peer.say("assistant", &long)["code"], 413);
    assert_eq!(peer.say("assistant", " ")["code"], 400);
    assert_eq!(peer.say("nobody", "x")["code"], 400);
    peer.stream.write_all(&((16_u32 << 20) + 1).to_be_bytes()).unwrap();
    assert!(peer.is_closed());
}

#[test]
fn an_altered_or_repeated_frame_ends_the_connection() {
    let model = Model::start();
    let daemon = Daemon::with(&format!("{}{}", network(""), model.config()));
    daemon.agent_with("a", "");
    let mut altered = Raw::peer(&daemon, "n");
    altered.key.push('x');
    altered.send(&json!({ "id": "1", "type": "request", "method": "agent_message", "agent": "a", "message": "m" }));
    assert!(altered.is_closed());
    let mut repeats = Raw::peer(&daemon, "n");
    let request = json!({ "id": "1", "type": "request", "method": "agent_message", "agent": "a", "message": "m" });
    repeats.send(&request);
    assert_eq!(repeats.answer()["text"], "echo: m");
    repeats.send(&request);
    assert!(repeats.is_closed());
    assert_eq!(model.requests().len(), 1, "it was carried out once");
    assert_eq!(status(&daemon)["throughput"]["frames_refused"], 2);
}

#[test]
fn silent_strangers_keep_no_peer_out() {
    let daemon = Daemon::with(&network(""));
    let silent: Vec<_> = (0..70).map(|_| TcpStream::connect(address(&daemon)).unwrap()).collect();
    let start = Instant::now();
    let mut peer = Raw::peer(&daemon, "n");
    assert_eq!(peer.ask(json!({ "method": "ping" }))["method"], "pong");
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    let mut oldest = Raw { stream: silent.into_iter().next().unwrap(), key: String::new(), ids: 0 };
    oldest.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(oldest.is_closed(), "it made room, or its time is over");
}

#[test]
fn a_peer_that_floods_is_limited_and_others_are_not() {
    let daemon = Daemon::with(&network(""));
    let mut peer = Raw::peer(&daemon, "greedy");
    let answers: Vec<Value> = (0..65).map(|_| peer.ask(json!({ "method": "ping" }))).collect();
    assert!(answers[..60].iter().all(|answer| answer["method"] == "pong"));
    assert!(answers[60..].iter().all(|answer| answer["code"] == 429), "{:?}", answers[60]);
    let mut again = Raw::peer(&daemon, "greedy");
    assert_eq!(again.ask(json!({ "method": "ping" }))["code"], 429, "another connection is no other peer");
    assert_eq!(Raw::peer(&daemon, "other").ask(json!({ "method": "ping" }))["method"], "pong");
    let metrics = daemon.get("/api/metrics").text();
    assert!(metrics.contains("agentsvc_peer_requests_limited_total 6\n"), "{metrics}");
    let prove = |mut peer: Raw| {
        assert_eq!(peer.ask(json!({ "method": "ping" }))["code"], 429);
        peer
    };
    let held: Vec<_> = (0..6).map(|_| prove(Raw::peer(&daemon, "greedy"))).collect();
    let (_raw, answer) = Raw::greet(&daemon, &hello("greedy", &nonce(), SECRET));
    assert_eq!(answer["code"], 429, "a peer has so many connections");
    drop(held);
}

#[test]
fn the_tokens_of_a_peer_are_limited() {
    let model = Model::start();
    let limits = "max_llm_tokens_per_peer_per_hour = 1\nagents = [\"open-*\"]\n";
    let daemon = Daemon::with(&format!("{}{}", network(limits), model.config()));
    daemon.agent_with("open-a", "");
    daemon.agent_with("hidden", "");
    let mut peer = Raw::peer(&daemon, "n");
    assert_eq!(peer.say("hidden", "hi")["code"], 400, "an agent that is not shown");
    assert_eq!(peer.say("open-a", "hi")["text"], "echo: hi");
    let answer = peer.say("open-a", "hi");
    assert_eq!(answer["code"], 429, "{answer}");
    assert_eq!(Raw::peer(&daemon, "other").say("open-a", "hi")["text"], "echo: hi");
    assert_eq!(model.requests().len(), 2);
    assert!(status(&daemon)["throughput"]["tokens"].as_u64().unwrap() > 0);
}

#[test]
fn the_tokens_of_what_a_turn_sets_off_count() {
    let model = Model::start();
    // More than the two calls of the first agent use, and less than these and that of the second.
    let limits = "max_llm_tokens_per_peer_per_hour = 25\nagents = [\"open-*\"]\n";
    let daemon = Daemon::with(&format!("{}{}", network(limits), model.config()));
    daemon.agent_with("open-a", "[capabilities]\ntools = [\"agent_send\"]\nagent_message = [\"*\"]\n");
    daemon.agent_with("b", "");
    let mut peer = Raw::peer(&daemon, "n");
    let send = r#"{"agent": "b", "message": "go on"}"#;
    let replies = [Reply::calls(&[("1", "agent_send", send)]), Reply::text("went on"), Reply::text("sent")];
    model.script(replies.map(|reply| reply.usage(Some((5, 5)))));
    assert_eq!(peer.say("open-a", "hi")["text"], "sent");
    assert_eq!(peer.say("open-a", "hi")["code"], 429);
    assert_eq!(model.requests().len(), 3);
    assert_eq!(Raw::peer(&daemon, "other").say("open-a", "hi")["text"], "echo: hi");
}

#[test]
fn the_tokens_of_a_turn_that_failed_count() {
    let model = Model::start();
    let limits = "max_llm_tokens_per_peer_per_hour = 1";
    let daemon = Daemon::with(&format!("{}{}", network(limits), model.config()));
    daemon.agent_with("a", "[capabilities]\ntools = [\"system_time\"]\n");
    let mut peer = Raw::peer(&daemon, "n");
    model.script([Reply::error(400, "no")]);
    assert_eq!(peer.say("a", "hi")["code"], 500);
    model.script([Reply::calls(&[("1", "system_time", "{}")]), Reply::error(400, "no")]);
    assert_eq!(peer.say("a", "hi")["code"], 500, "the first turn has used no tokens");
    assert_eq!(peer.say("a", "hi")["code"], 429);
    assert_eq!(status(&daemon)["throughput"]["tokens"], 18);
}

#[test]
fn what_a_peer_tells_of_its_agents_is_no_request() {
    let daemon = Daemon::with(&network("max_messages_per_peer_per_minute = 1"));
    let mut peer = Raw::peer(&daemon, "n");
    for n in 0..20 {
        let agent = json!({ "id": n.to_string(), "name": format!("agent-{n}") });
        let event = json!({ "id": format!("n{n}"), "type": "notification", "event": "agent_spawned", "agent": agent });
        peer.send(&event);
    }
    assert_eq!(peer.ask(json!({ "method": "ping" }))["method"], "pong");
    let known = daemon.get("/api/peers/n").expect(200);
    assert_eq!(known["agents"].as_array().unwrap().len(), 20, "{known}");
}

#[test]
fn a_message_with_a_long_id_ends_the_connection() {
    let daemon = Daemon::with(&network(""));
    let mut peer = Raw::peer(&daemon, "n");
    peer.send(&json!({ "id": "x".repeat(1_000_000), "type": "request", "method": "ping" }));
    assert!(peer.is_closed());
}

#[test]
fn handshakes_that_were_recorded_before_a_restart_gain_nothing() {
    let mut daemon = Daemon::with(&network(""));
    let with_agent = |nonce: &str, agent: &str| {
        let mut hello = hello("n", nonce, SECRET);
        hello["agents"] = json!([{ "id": agent, "name": agent }]);
        hello
    };
    let recorded: Vec<Value> = (0..10).map(|_| with_agent(&nonce(), "before")).collect();
    for hello in &recorded {
        assert_eq!(Raw::greet(&daemon, hello).1["method"], "handshake_ack");
    }
    daemon.restart();
    let (mut real, _) = Raw::greet(&daemon, &with_agent(&nonce(), "now"));
    assert_eq!(real.ask(json!({ "method": "ping" }))["method"], "pong");
    let mut replayed: Vec<Raw> = recorded.iter().map(|hello| Raw::greet(&daemon, hello).0).collect();
    let agents = daemon.get("/api/peers/n").expect(200)["agents"].to_string();
    assert!(agents.contains("now") && !agents.contains("before"), "{agents}");
    // They hold no place against the peer itself, and without the secret nothing can be asked on them.
    let (mut again, _) = Raw::greet(&daemon, &with_agent(&nonce(), "now"));
    assert_eq!(again.ask(json!({ "method": "ping" }))["method"], "pong");
    assert_eq!(real.ask(json!({ "method": "ping" }))["method"], "pong");
    let mut last = replayed.pop().unwrap();
    last.key = "guessed".to_owned();
    last.send(&json!({ "id": "1", "type": "request", "method": "ping" }));
    assert!(last.is_closed());
}

#[test]
fn a_frame_of_very_many_values_ends_the_connection() {
    let daemon = Daemon::with(&network(""));
    let mut peer = Raw::peer(&daemon, "n");
    peer.send(&json!({ "id": "1", "type": "request", "method": "ping", "more": vec![0; 100_000] }));
    assert!(peer.is_closed());
}
