//! Clients that subscribe and never read: they lose, and nobody else does.

use serde_json::json;

use super::frames::{ACK, DATA, END_HEADERS, END_STREAM, HEADERS, Http2, RST_STREAM, SETTINGS, frame, get, is_ok};
use super::harness::{Memory, Neighbour, connections, harness, metric, wait};
use super::wire::{count, drain, flood, request};
use crate::support::model::Model;
use crate::support::model_server::Reply;
use crate::support::socket::Socket;

/// Clients of each kind.
const DEAF: usize = 8;

pub(crate) fn streams_that_nobody_reads_lose_events_and_are_cut_off() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let ask = b"GET /api/world/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut deaf: Vec<_> = (0..DEAF).map(|_| daemon.connect().unwrap()).collect();
    for stream in &deaf {
        std::io::Write::write_all(&mut &*stream, ask).unwrap();
    }
    wait("all are there", || (connections(&daemon)? >= DEAF).then_some(()));
    // Far more than the system keeps for a connection.
    let body = json!({ "event_type": "noise", "payload": "n".repeat(15_000) });
    let answers = flood(&daemon, 0..4_000, |_| request("POST", "/api/events", Some(&body)));
    assert_eq!(count(&answers, 200), 4_000, "{answers:?}");
    memory.is_flat(&daemon, "event streams that nobody reads");
    neighbour.is_served();
    // All of them: one that is still open would be served again as soon as it is read. The other client may be there.
    wait("they are cut off", || (connections(&daemon)? <= 1).then_some(()));
    neighbour.leave();
    // The one that is left may be one of them.
    wait("the last is cut off", || (connections(&daemon)? == 0).then_some(()));
    for stream in &mut deaf {
        let read = drain(stream);
        assert!(read.starts_with(b"HTTP/1.1 200 "), "the stream had begun");
    }
}

pub(crate) fn web_sockets_that_nobody_reads_lose_pieces_and_are_cut_off() {
    let model = Model::start();
    let daemon = harness(&model.config());
    let neighbour = Neighbour::of(&daemon);
    // Each answer is half a megabyte in pieces, and once more in the response.
    let answer = vec!["w".repeat(4_000); 125].join(" ");
    model.server.respond(move |_| Reply::text(answer.clone()));
    let memory = Memory::of(&daemon);
    let mut deaf = Vec::new();
    for n in 0..DEAF {
        let agent = daemon.agent_with(&format!("deaf-{n}"), "");
        let mut socket = Socket::open(&daemon, &agent);
        for m in 0..12 {
            let session = uuid::Uuid::from_u128(0xdea0_0000 + (n * 100 + m) as u128);
            socket.send(json!({ "type": "message", "content": "tell", "session_id": session }).to_string());
        }
        deaf.push(socket);
    }
    neighbour.is_served();
    wait("the turns end, whoever listens", || {
        let open = metric(&daemon, "agentsvc_turns_open")?;
        (open <= 2.0 && model.server.requests().len() >= DEAF * 12).then_some(())
    });
    memory.is_flat(&daemon, "WebSockets that nobody reads");
    // All of them: one that is still open would be served again as soon as it is read. The other client may be there.
    wait("they are cut off", || (connections(&daemon)? <= 1).then_some(()));
    for Socket(mut socket) in deaf {
        drain(socket.get_mut());
    }
    neighbour.leave();
}

pub(crate) fn an_answer_that_nobody_reads_is_cut_off() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent("a");
    let file = daemon.upload(&agent, "large", &vec![b'x'; 24 << 20]);
    let memory = Memory::of(&daemon);
    let ask = format!("GET /api/uploads/{file} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let deaf: Vec<_> = (0..40).map(|_| daemon.connect().unwrap()).collect();
    for stream in &deaf {
        std::io::Write::write_all(&mut &*stream, ask.as_bytes()).unwrap();
    }
    wait("all are being answered", || (connections(&daemon)? >= deaf.len()).then_some(()));
    neighbour.is_served();
    memory.is_flat(&daemon, "40 answers of 24 MiB that nobody reads");
    wait("they are cut off", || (connections(&daemon)? < deaf.len() / 2).then_some(()));
    neighbour.leave();
}

#[test]
fn streams_that_nobody_reads_keep_no_reader_of_their_address_out() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    // More than an address may leave unread, of what the daemon sends to everyone.
    let (connections, streams, most) = (20, 256, 4_096.0);
    let deaf: Vec<_> = (0..connections).map(|_| Http2::with_window(&daemon, 0).unwrap()).collect();
    let block = get("/api/openapi.json");
    for http in &deaf {
        for n in 0..streams {
            std::io::Write::write_all(&mut &http.0, &frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &block))
                .unwrap();
        }
    }
    wait("they leave as much unread as they may", || {
        (metric(&daemon, "agentsvc_http_requests_in_flight")? >= most).then_some(())
    });
    let mut reads = Http2::open(&daemon).unwrap();
    for n in 0..3 {
        reads.send(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &get("/api/health")).unwrap();
        loop {
            let frame = reads.read().expect("the connection stays");
            match frame.kind {
                HEADERS => assert!(is_ok(&frame), "{frame:?}"),
                DATA if frame.flags & END_STREAM != 0 => break,
                SETTINGS if frame.flags & ACK == 0 => reads.send(SETTINGS, ACK, 0, &[]).unwrap(),
                RST_STREAM => panic!("one that reads is refused: {frame:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(metric(&daemon, "agentsvc_answers_bytes"), Some(0.0), "what is sent to everyone takes no memory");
    neighbour.is_served();
    memory.is_flat(&daemon, "streams that nobody reads");
    drop(deaf);
    neighbour.leave();
}
