//! Requests that do not wait for the answers to those before them.

use std::io::{ErrorKind, Write};

use serde_json::json;

use super::harness::{Memory, Neighbour, connections, harness, wait};
use super::wire::{Wire, request};

/// Requests sent ahead.
const AHEAD: usize = 5_000;
/// Clients that read no answer.
const DEAF: usize = 40;

#[test]
fn pipelined_requests_are_all_answered_in_order() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let agent = daemon.agent("a");
    let memory = Memory::of(&daemon);
    let mut wire = Wire::open(&daemon).unwrap();
    let mut writer = wire.0.get_ref().try_clone().unwrap();
    let path = |n: usize| format!("/api/memory/agents/{agent}/kv/key-{}", n % 7);
    let sent = |n: usize| match n % 3 {
        0 => request("PUT", &path(n), Some(&json!({ "value": n }))),
        1 => request("GET", "/api/versions", None),
        _ => request("GET", "/api/nothing", None),
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            (0..AHEAD).for_each(|n| writer.write_all(&sent(n)).expect("the daemon reads on when answers are read"));
        });
        for n in 0..AHEAD {
            let expected = [200, 200, 404][n % 3];
            assert_eq!(wire.reply().unwrap().status, expected, "answer {n}");
        }
    });
    memory.is_flat(&daemon, "pipelined requests");
    neighbour.leave();
}

pub(crate) fn clients_that_ask_without_end_and_read_nothing_are_cut_off() {
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let ask = request("GET", "/api/openapi.json", None).repeat(50);
    let mut deaf: Vec<_> = (0..DEAF).map(|_| (daemon.connect().unwrap(), false)).collect();
    deaf.iter().for_each(|(stream, _)| stream.set_nonblocking(true).unwrap());
    // They go on asking until the daemon, which has read no more for a while, closes.
    wait("they are cut off", || {
        for (stream, is_closed) in deaf.iter_mut().filter(|(_, is_closed)| !is_closed) {
            *is_closed = stream.write(&ask).is_err_and(|error| error.kind() != ErrorKind::WouldBlock);
        }
        deaf.iter().all(|(_, is_closed)| *is_closed).then_some(())
    });
    memory.is_flat(&daemon, "clients that read nothing");
    wait("their connections are gone", || (connections(&daemon)? < DEAF / 2).then_some(()));
    neighbour.leave();
}
