//! Two nodes and what may happen between them (spec 3, Network peers; OFP/1).

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::peer_wire::{address, network, status};
use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::until;

/// What the proxy does with the second frame of a client: that of a message, behind the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mischief {
    #[default]
    None,
    /// Changes a byte.
    Alter,
    /// Sends it twice.
    Replay,
    /// Holds it until something else is set.
    Delay,
    /// Swallows it, and what follows.
    Drop,
    /// Changes a byte of the handshake.
    AlterHello,
    /// Ends both connections in its place.
    Close,
}

/// A proxy before a node.
struct Proxy {
    address: SocketAddr,
    mischief: Arc<Mutex<Mischief>>,
}

fn frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame)?;
    let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
    frame.resize(4 + length, 0);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

fn forward(mut from: TcpStream, mut to: TcpStream, mischief: &Mutex<Mischief>) {
    let mut count = 0;
    while let Ok(mut frame) = frame(&mut from) {
        let what = if count <= 1 { *mischief.lock().unwrap() } else { Mischief::None };
        let sent = match (what, count) {
            (Mischief::Alter, 1) | (Mischief::AlterHello, 0) => {
                let at = frame.windows(4).position(|piece| piece == b"node" || piece == b"mess").unwrap();
                frame[at] ^= 1;
                to.write_all(&frame)
            }
            (Mischief::Replay, 1) => to.write_all(&frame).and_then(|()| to.write_all(&frame)),
            (Mischief::Delay, 1) => {
                until("the frame may go on", || (*mischief.lock().unwrap() != Mischief::Delay).then_some(()));
                to.write_all(&frame)
            }
            (Mischief::Drop, 1) => loop {
                if self::frame(&mut from).is_err() {
                    break Err(io::ErrorKind::Other.into());
                }
            },
            (Mischief::Close, 1) => Err(io::ErrorKind::Other.into()),
            _ => to.write_all(&frame),
        };
        if sent.is_err() {
            break;
        }
        count += 1;
    }
    let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Proxy {
    fn before(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, mischief) = (listener.local_addr().unwrap(), Arc::<Mutex<Mischief>>::default());
        let shared = Arc::clone(&mischief);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(node) else { continue };
                let (back, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let shared = Arc::clone(&shared);
                thread::spawn(move || forward(client, server, &shared));
                thread::spawn(move || forward(back, to_client, &Mutex::default()));
            }
        });
        Self { address, mischief }
    }

    fn set(&self, mischief: Mischief) {
        *self.mischief.lock().unwrap() = mischief;
    }
}

/// A node with an agent `helper`, and one with an agent `asker` that dials it through a proxy.
struct Pair {
    served: Daemon,
    served_model: Model,
    asking: Daemon,
    asking_model: Model,
    proxy: Proxy,
    asker: String,
}

const GRANTS: &str = "[capabilities]\ntools = [\"agent_send\"]\n";

impl Pair {
    fn start() -> Self {
        let (served_model, asking_model) = (Model::start(), Model::start());
        let served = Daemon::with(&format!("{}{}", network("node_name = \"served\""), served_model.config()));
        served.agent_with("helper", "");
        let proxy = Proxy::before(address(&served));
        let more =
            format!("node_name = \"asking\"\nresponse_timeout_secs = 2\nbootstrap_peers = [\"{}\"]", proxy.address);
        let asking = Daemon::with(&format!("{}{}", network(&more), asking_model.config()));
        let asker = asking.agent_with("asker", GRANTS);
        let pair = Self { served, served_model, asking, asking_model, proxy, asker };
        pair.wait_connected();
        pair
    }

    fn wait_connected(&self) {
        until("the nodes are connected and know each other's agents", || {
            let peer = self.asking.get("/api/peers").expect(200)["peers"][0].clone();
            let knows = peer["agents"].as_array()?.iter().any(|agent| agent["name"] == "helper");
            (peer["state"] == "connected" && knows).then_some(())
        });
    }

    /// The asker sends a message; gives what the tool told it.
    fn send(&self, to: &str, message: &str) -> String {
        let call = json!({ "agent": to, "message": message }).to_string();
        self.asking_model.script([Reply::calls(&[("1", "agent_send", &call)]), Reply::text("done")]);
        self.asking.say(&self.asker, "go");
        let request = self.asking_model.requests().pop().unwrap();
        text(&request["messages"].as_array().unwrap().last().unwrap()["content"])
    }

    /// What agents of the served node were asked by the other one.
    fn heard(&self) -> usize {
        self.served_model.requests().len()
    }
}

#[test]
fn agents_of_two_nodes_talk() {
    let pair = Pair::start();
    let (served, asking) = (status(&pair.served), status(&pair.asking));
    assert_eq!(
        (&served["online"], &served["enabled"], &served["protocol_version"]),
        (&json!(true), &json!(true), &json!("ofp/1"))
    );
    assert_eq!((&served["connected_peers"], &asking["connected_peers"]), (&json!(1), &json!(1)));
    // Each has pinned the other's key.
    assert_eq!(asking["pinned_peers"][0]["fingerprint"], served["identity_fingerprint"]);
    assert_eq!(served["pinned_peers"][0]["fingerprint"], asking["identity_fingerprint"]);
    // Also that of the node which dials as soon as it starts is on record.
    for daemon in [&pair.served, &pair.asking] {
        let log = daemon.get("/api/audit/recent?limit=100").expect(200).to_string();
        assert!(log.contains("peer_pinned"), "{log}");
        assert!(!daemon.stderr().contains("is not on the audit log"));
    }
    let peer = pair.asking.get("/api/peers").expect(200)["peers"][0].clone();
    assert_eq!((&peer["node_name"], &peer["secure"]), (&json!("served"), &json!(true)));
    assert_eq!(peer["address"], pair.proxy.address.to_string());
    pair.asking.get("/api/peers/nobody").refused(404);
    for to in ["helper", "helper@served", &format!("helper@{}", text(&peer["node_id"]))] {
        assert!(pair.send(to, "hello over there").contains("echo: hello over there"), "{to}");
    }
    // It came into a session of the node's own, as untrusted content, and the answer is untrusted here.
    let helper = pair.served.get("/api/agents?name=helper").expect(200);
    let helper = text(&helper.as_array().or(helper["agents"].as_array()).unwrap()[0]["id"]);
    let detail = pair.served.detail(&helper);
    assert_eq!(detail["message_count"], 0, "not into the session of the user: {detail}");
    let log = pair.served.get("/api/audit/recent?limit=100").expect(200).to_string();
    assert!(log.contains("peer_message") && log.contains("asker"), "{log}");
    assert_eq!(status(&pair.served)["throughput"]["messages_received"], 3);
    assert_eq!(status(&pair.asking)["throughput"]["messages_sent"], 3);
    for (to, why) in [("nobody", "helper@served"), ("x@nowhere", "no connected node nowhere")] {
        let told = pair.send(to, "hi");
        assert!(told.contains("was not sent") && told.contains(why), "{told}");
    }
    let output = pair.asking.cli(&["peers", "list"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("served") && shown.contains("helper"), "{shown}");
    let output = String::from_utf8_lossy(&pair.asking.cli(&["peers", "status"]).stdout).into_owned();
    assert!(output.contains(&text(&asking["identity_fingerprint"])), "{output}");
}

#[test]
fn an_identity_outlives_the_daemon_and_is_kept_from_others() {
    let mut daemon = Daemon::with(&network(""));
    let before = status(&daemon);
    daemon.restart();
    let after = status(&daemon);
    for key in ["node_id", "identity_fingerprint"] {
        assert!(before[key].is_string() && before[key] == after[key], "{key}");
    }
    let file = daemon.home().join("data/peer_keypair.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let private = text(&stored["private_key"]);
    for path in ["/api/network/status", "/api/peers", "/api/network/trusted", "/api/config", "/api/config/export"] {
        let shown = daemon.get(path).text();
        assert!(!shown.contains(&private) && !shown.contains(super::peer_wire::SECRET), "{path}");
    }
    let log = daemon.stderr();
    assert!(!log.contains(super::peer_wire::SECRET) && !log.contains(&private));
    // A damaged identity stops the network and nothing else.
    fs::write(&file, "{").unwrap();
    daemon.restart();
    let off = status(&daemon);
    assert_eq!((&off["online"], &off["enabled"]), (&json!(false), &json!(true)));
    assert!(text(&off["problem"]).contains("peer_keypair.json"), "{off}");
}

#[test]
fn without_a_secret_there_is_no_network() {
    let model = Model::start();
    let config = "network_enabled = true\n[network]\nlisten_addresses = [\"127.0.0.1:0\"]\n";
    let daemon = Daemon::with(&format!("{config}{}", model.config()));
    let off = status(&daemon);
    assert_eq!((&off["online"], &off["enabled"], &off["listen_addr"]), (&json!(false), &json!(true), &json!(null)));
    let warnings = daemon.get("/api/health/detail").expect(200)["config_warnings"].to_string();
    assert!(warnings.contains("network.shared_secret` is not set"), "{warnings}");
    assert!(!daemon.home().join("data/peer_keypair.json").exists());
    let agent = daemon.agent_with("a", GRANTS);
    let call = json!({ "agent": "x@node", "message": "m" }).to_string();
    model.script([Reply::calls(&[("1", "agent_send", &call)]), Reply::text("done")]);
    daemon.say(&agent, "go");
    let told = model.requests().pop().unwrap()["messages"].to_string();
    assert!(told.contains("no network of other nodes"), "{told}");
    assert_eq!(status(&Daemon::start())["enabled"], false);
}

#[test]
fn a_short_secret_keeps_the_network_on_this_machine() {
    let config = |address: &str, secret: &str| {
        network("").replace("127.0.0.1:0", address).replace(super::peer_wire::SECRET, secret)
    };
    let off = Daemon::with(&config("0.0.0.0:0", "hunter2"));
    let told = status(&off);
    assert_eq!((&told["online"], &told["listen_addr"]), (&json!(false), &json!(null)));
    assert!(text(&told["problem"]).contains("`network.shared_secret` must have at least 32 characters"), "{told}");
    let warnings = off.get("/api/health/detail").expect(200)["config_warnings"].to_string();
    assert!(warnings.contains("the network is off: `network.shared_secret` must have"), "{warnings}");
    assert!(!format!("{told}{warnings}{}", off.stderr()).contains("hunter2"));
    assert_eq!(status(&Daemon::with(&config("127.0.0.1:0", "hunter2")))["online"], true);
    assert_eq!(status(&Daemon::with(&config("0.0.0.0:0", super::peer_wire::SECRET)))["online"], true);
}

#[test]
fn nodes_with_different_secrets_do_not_meet() {
    let served = Daemon::with(&network(""));
    let more = format!("bootstrap_peers = [\"{}\"]", address(&served));
    let config = network(&more).replace(super::peer_wire::SECRET, "some other secret of this network");
    let asking = Daemon::with(&config);
    until("the handshake was refused", || {
        (status(&served)["throughput"]["handshakes_refused"].as_u64()? > 0).then_some(())
    });
    for daemon in [&served, &asking] {
        assert_eq!(daemon.get("/api/peers").expect(200)["total"], 0);
        assert_eq!(daemon.get("/api/network/trusted").expect(200)["total"], 0);
    }
}

#[test]
fn what_happens_on_the_way_is_told_and_nothing_is_sent_twice() {
    let pair = Pair::start();
    pair.proxy.set(Mischief::AlterHello);
    let told = pair.send("helper", "one");
    assert!(told.contains("was not sent") && pair.heard() == 0, "{told}");
    pair.proxy.set(Mischief::Alter);
    let told = pair.send("helper", "two");
    assert!(told.contains("may or may not have received"), "{told}");
    assert_eq!(pair.heard(), 0, "an altered message is not taken");
    pair.proxy.set(Mischief::Drop);
    let told = pair.send("helper", "three");
    assert!(told.contains("did not answer in time"), "{told}");
    pair.proxy.set(Mischief::Close);
    let told = pair.send("helper", "four");
    assert!(told.contains("may or may not have received") && pair.heard() == 0, "{told}");
    pair.proxy.set(Mischief::Replay);
    let told = pair.send("helper", "five");
    assert!(told.contains("echo: five"), "{told}");
    assert_eq!(pair.heard(), 1, "a repeated message is carried out once");
    pair.proxy.set(Mischief::None);
    assert!(pair.send("helper", "six").contains("echo: six"));
    assert_eq!(pair.heard(), 2);
    let throughput = status(&pair.asking)["throughput"].clone();
    assert_eq!((&throughput["messages_unknown"], &throughput["messages_sent"]), (&json!(3), &json!(5)));
}

#[test]
fn a_message_that_comes_late_is_carried_out_once() {
    let pair = Pair::start();
    pair.proxy.set(Mischief::Delay);
    let told = pair.send("helper", "late");
    assert!(told.contains("did not answer in time") && told.contains("may or may not have received"), "{told}");
    assert_eq!(pair.heard(), 0);
    pair.proxy.set(Mischief::None);
    until("the message has come", || (pair.heard() == 1).then_some(()));
    assert!(pair.send("helper", "next").contains("echo: next"));
    assert_eq!(pair.heard(), 2, "it was not sent again");
}

#[test]
fn a_message_that_was_under_way_at_a_kill_is_not_sent_again() {
    let mut pair = Pair::start();
    pair.served_model.hold();
    let call = json!({ "agent": "helper@served", "message": "once" }).to_string();
    pair.asking_model.script([Reply::calls(&[("1", "agent_send", &call)]), Reply::text("done")]);
    let (client, asker) = (pair.asking.client(), pair.asker.clone());
    let path = format!("/api/agents/{asker}/message");
    let waits = thread::spawn(move || client.try_send("POST", &path, &[], Some(b"{\"message\":\"go\"}")));
    until("the other node has it", || (pair.served_model.waiting() == 1).then_some(()));
    pair.asking.restart();
    drop(waits.join());
    let told = until("the turn goes on", || {
        let request = pair.asking_model.requests().pop()?;
        let last = request["messages"].as_array()?.last()?.clone();
        (last["role"] == "tool").then(|| text(&last["content"]))
    });
    assert!(told.contains("the daemon was restarted while the message was sent"), "{told}");
    pair.served_model.release();
    pair.wait_connected();
    assert_eq!(pair.heard(), 1);
}

#[test]
fn a_peer_that_comes_back_is_found_again() {
    let mut pair = Pair::start();
    let node = status(&pair.served)["node_id"].clone();
    pair.served.kill();
    until("the peer is gone", || {
        (pair.asking.get("/api/peers").expect(200)["peers"][0]["state"] == "disconnected").then_some(())
    });
    let told = pair.send("helper", "hi");
    assert!(told.contains("was not sent"), "{told}");
    // It listens at another port; the proxy is at the same address.
    pair.served.restart();
    assert_eq!(status(&pair.served)["node_id"], node);
}

#[test]
fn a_backup_brings_the_identity_and_the_pinned_nodes_back() {
    let mut pair = Pair::start();
    let before = status(&pair.asking);
    let backup = text(&pair.asking.post("/api/backup", &json!({})).expect(200)["filename"]);
    let data = pair.asking.home().join("data");
    let files = ["peer_keypair.json", "trusted_peers.json"].map(|name| data.join(name));
    let stored = files.each_ref().map(|file| fs::read_to_string(file).unwrap());
    pair.asking.kill();
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    pair.asking.restart();
    assert_ne!(status(&pair.asking)["node_id"], before["node_id"], "without its key it is another node");
    pair.asking.post("/api/restore", &json!({ "filename": backup, "components": ["config"] })).expect(200);
    for (file, stored) in files.iter().zip(&stored) {
        assert_eq!(&fs::read_to_string(file).unwrap(), stored, "{}", file.display());
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
    }
    pair.asking.restart();
    let after = status(&pair.asking);
    for key in ["node_id", "identity_fingerprint", "pinned_peers"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    // The other node knows it by the key that it pinned.
    pair.wait_connected();
    assert!(pair.send("helper", "again").contains("echo: again"));
}
