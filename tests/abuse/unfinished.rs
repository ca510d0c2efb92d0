//! WebSocket messages without an end: they count, and they have a time.

use std::collections::BTreeMap;

use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::harness::{Memory, Neighbour, harness, metric, wait};
use crate::support::socket::Socket;

/// Connections with a message that does not end; more than there is room for.
const UNFINISHED: usize = 160;

pub(crate) fn messages_without_an_end_count_and_are_given_up() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let agent = daemon.agent("a");
    let piece = |bytes| Message::Frame(Frame::message(vec![b'x'; bytes], OpCode::Data(Data::Text), false));
    let mut all: Vec<_> = (0..UNFINISHED).map(|_| Socket::open(&daemon, &agent)).collect();
    for socket in &mut all {
        // One for which there is no room may be closed before all is sent.
        let _ = socket.0.send(piece(2_000_000));
    }
    wait("what they hold counts", || (metric(&daemon, "agentsvc_bodies_bytes")? > 2e8).then_some(()));
    assert!(metric(&daemon, "agentsvc_bodies_bytes") < Some(3e8));
    neighbour.is_served();
    // Twice as much, because a message that grows is moved to a larger place.
    assert!(memory.growth(&daemon) < 768 << 20, "{} bytes more in memory", memory.growth(&daemon));
    let mut pings = Socket::open(&daemon, &agent);
    pings.0.send(piece(1)).unwrap();
    pings.0.get_mut().set_nonblocking(true).unwrap();
    let code = wait("pings keep no message alive", || {
        let _ = pings.0.send(Message::Ping("x".into()));
        match pings.0.read() {
            Ok(Message::Close(frame)) => frame.map(|frame| u16::from(frame.code)),
            _ => None,
        }
    });
    assert_eq!(code, 1008);
    let mut codes = BTreeMap::<u16, usize>::new();
    all.iter_mut().for_each(|socket| *codes.entry(socket.closed()).or_default() += 1);
    assert!(codes.len() == 2 && codes[&1008] > UNFINISHED / 2 && codes.contains_key(&1013), "{codes:?}");
    wait("nothing is held", || (metric(&daemon, "agentsvc_bodies_bytes")? < 1e5).then_some(()));
    neighbour.leave();
}
