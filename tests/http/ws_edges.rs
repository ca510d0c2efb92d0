//! The WebSocket of an agent at its bounds: sizes, rates, slow and many clients, closing, the list of agents.

use std::collections::BTreeSet;
use std::io::Write;
use std::thread;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::daemon::{Daemon, text};
use crate::support::model::Model;
use crate::support::socket::Socket;
use crate::support::until;

#[test]
fn what_cannot_be_read_is_closed_with_a_code() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let open = || Socket::open(&daemon, &agent);

    let mut binary = open();
    binary.0.send(Message::binary(vec![1, 2, 3])).unwrap();
    assert_eq!(binary.closed(), 1003);

    let mut torn = open();
    let frame = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    torn.0.send(Message::Frame(frame)).unwrap();
    assert_eq!(torn.closed(), 1007);

    let mut large = open();
    // The daemon may stop reading before all is sent.
    let _ = large.0.send(Message::text("x".repeat(3 << 20)));
    assert_eq!(large.closed(), 1009);

    let mut unmasked = open();
    unmasked.0.get_mut().write_all(&[0x81, 0x01, b'x']).unwrap();
    assert_eq!(unmasked.closed(), 1002);
}

#[test]
fn a_long_message_is_taken_and_one_byte_more_is_an_error() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let mut socket = Socket::open(&daemon, &daemon.agent_with("a", ""));
    let most = 1 << 20;
    assert!(socket.error(&"x".repeat(most + 1)).contains("content"));
    // Escaped it is more than its bytes.
    socket.send(json!({ "type": "message", "content": "\"".repeat(most / 2) }).to_string());
    socket.until("response");
}

#[test]
fn a_close_frame_is_answered() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    socket.0.close(Some(CloseFrame { code: CloseCode::Normal, reason: "bye".into() })).unwrap();
    assert_eq!(socket.closed(), 1000);
    assert!(matches!(socket.0.read(), Err(Error::ConnectionClosed)));
    until("the socket is gone", || daemon.get("/api/metrics").text().contains("agentsvc_sockets 0").then_some(()));
}

#[test]
fn pings_of_the_protocol_are_answered() {
    let daemon = Daemon::start();
    let mut socket = Socket::open(&daemon, &daemon.agent("a"));
    socket.0.send(Message::Ping("x".into())).unwrap();
    loop {
        match socket.0.read().unwrap() {
            Message::Pong(said) => break assert_eq!(&said[..], b"x"),
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_client_far_over_its_rate_is_closed() {
    let daemon = Daemon::with("rate_limit_per_second = 1\n");
    let agents = until("the agents are listed", || Some(daemon.get("/api/agents")).filter(|reply| reply.status == 200));
    let agent = text(&agents.expect(200)[0]["id"]);
    let mut socket = until("the socket opens", || Socket::ask(&daemon, &format!("/api/agents/{agent}/ws"), &[]).ok());
    // A message costs more than the bucket ever holds, so that it is taken only where it was not used for two seconds.
    for _ in 0..300 {
        // The daemon may have closed before all is sent.
        let _ = socket.0.send(Message::text(r#"{"type":"message","content":"hello"}"#));
    }
    assert_eq!(socket.closed(), 1008);
}

#[test]
fn too_fast_a_client_is_told_to_wait_and_stays() {
    let daemon = Daemon::with("rate_limit_per_second = 5\n");
    // What started the test used some of the budget.
    let agent = until("an agent is made", || {
        let made =
            daemon.post("/api/agents", &json!({ "manifest_toml": "name = \"a\"\n[model]\nprovider = \"builtin\"\n" }));
        (made.status == 201).then(|| text(&made.expect(201)["agent_id"]))
    });
    let mut socket = until("the socket opens", || Socket::ask(&daemon, &format!("/api/agents/{agent}/ws"), &[]).ok());
    assert_eq!(socket.next()["type"], "connected");
    for _ in 0..6 {
        socket.say("hello");
    }
    let error = socket.until("error").pop().unwrap();
    assert!(text(&error["content"]).contains("try again in"), "{error}");
    until("the budget is back", || {
        socket.send(r#"{"type":"ping"}"#);
        loop {
            match socket.next()["type"].as_str() {
                Some("pong") => return Some(()),
                Some("error") => return None,
                _ => {}
            }
        }
    });
}

#[test]
fn a_client_that_does_not_read_slows_nobody_and_loses_no_response() {
    let model = Model::start();
    let daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let mut idle = Socket::open(&daemon, &agent);
    let mut busy = Socket::open(&daemon, &agent);
    let long = "word ".repeat(20_000);
    idle.say(&long);
    let told = daemon.say(&agent, "meanwhile");
    assert_eq!(told["response"], "echo: meanwhile");
    assert_eq!(busy.answer("me too"), "echo: me too");
    let messages = idle.until("response");
    assert_eq!(messages.last().unwrap()["content"], format!("echo: {long}"));
    let written: String = messages.iter().filter(|m| m["type"] == "text_delta").map(|m| text(&m["content"])).collect();
    let lagged = messages.iter().any(|message| message["type"] == "lagged");
    assert!(lagged || written.trim_end() == format!("echo: {long}").trim_end());
}

#[test]
fn two_hundred_sockets_talk_at_once() {
    let daemon = Daemon::with("rate_limit_per_second = 1000000\n");
    let agent = daemon.agent("a");
    let mut sockets: Vec<_> = (0..200).map(|_| Socket::open(&daemon, &agent)).collect();
    assert!(daemon.get("/api/metrics").text().contains("agentsvc_sockets 200"));
    // All are read all the while: one that answers no ping for half a minute is closed.
    thread::scope(|scope| {
        for (n, socket) in sockets.iter_mut().enumerate() {
            scope.spawn(move || {
                socket.say(&format!("number {n}."));
                let response = socket.until("response").pop().unwrap();
                assert!(text(&response["content"]).contains(&format!("number {n}.")), "{response}");
            });
        }
    });
    drop(sockets);
    until("all are gone", || daemon.get("/api/metrics").text().contains("agentsvc_sockets 0").then_some(()));
}

#[test]
fn a_stop_says_goodbye_and_does_not_wait_for_the_turn() {
    let model = Model::start();
    let mut daemon = Daemon::with(&model.config());
    let agent = daemon.agent_with("a", "");
    let (mut quiet, mut busy) = (Socket::open(&daemon, &agent), Socket::open(&daemon, &agent));
    model.hold_after_first_word();
    busy.say("b c d");
    busy.until("text_delta");
    daemon.poke("/api/shutdown");
    assert!(text(&busy.until("error").pop().unwrap()["content"]).contains("shutting down"));
    assert_eq!((quiet.closed(), busy.closed()), (1001, 1001));
    drop((quiet, busy));
    assert!(daemon.wait().success());
    // The turn goes on after the next start.
    model.release();
    daemon.restart();
    let session = text(&daemon.detail(&agent)["session_id"]);
    until("the answer is there", || (daemon.transcript(&session).len() == 2).then_some(()));
}

#[test]
fn the_list_of_agents_comes_every_five_seconds() {
    let daemon = Daemon::start();
    let agent = daemon.agent("a");
    let mut socket = Socket::open(&daemon, &agent);
    let mut other = Socket::open(&daemon, &agent);
    let list = |socket: &mut Socket| loop {
        let message = socket.any();
        if message["type"] == "agents_updated" {
            return message["agents"].as_array().unwrap().clone();
        }
    };
    let first = list(&mut socket);
    assert_eq!(list(&mut other), first);
    let names = |agents: &[Value]| agents.iter().map(|agent| text(&agent["name"])).collect::<BTreeSet<_>>();
    assert!(names(&first).contains("a"), "{first:?}");
    let fields = BTreeSet::from(["id", "name", "state", "model_provider", "model_name"]);
    for item in &first {
        assert_eq!(item.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>(), fields);
    }
    daemon.agent("b");
    daemon.post("/api/agents/bulk/stop", &json!({ "agent_ids": [agent] })).expect(200);
    // A list from before may come in between.
    until("the list shows what changed", || {
        let next = list(&mut socket);
        let own = next.iter().find(|item| item["id"] == agent.as_str()).unwrap();
        (names(&next).contains("b") && own["state"] == "Stopped").then_some(())
    });
}
