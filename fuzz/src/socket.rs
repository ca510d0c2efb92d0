//! What clients say on an agent's WebSocket: messages, commands, bare frames. The conversation never panics, takes what
//! comes, and ends with the connection.

use agentsvc_api::chat::fuzzing;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::feed::parts;
use super::harness::Harness;
use super::http::furnish;

/// Messages of one input.
const MESSAGES_MAX: usize = 12;
/// Bytes between the two ends.
const PIPE_BYTES: usize = 1 << 20;

/// `input` are messages between lines `---`. One that begins with `=` is written to the connection as it is, one with
/// `~` becomes a binary message, any other a text message.
pub fn run(input: &[u8]) {
    let harness = Harness::new();
    let names = furnish(&harness);
    let list = agentsvc_systems::agent::ListAgents { limit: 1, ..Default::default() };
    let page = harness.wait(harness.api.bridge.ask(list)).expect("an answer").expect("a page");
    let agent = page.items.into_iter().next().expect("there is one");
    let (ours, mut theirs) = tokio::io::duplex(PIPE_BYTES);
    let talk = async {
        for text in parts(input, "---").into_iter().take(MESSAGES_MAX) {
            let filled = String::from_utf8_lossy(text).replace("{session}", &names["session"]);
            let bytes = match text.split_first() {
                Some((b'=', raw)) => raw.to_vec(),
                Some((b'~', rest)) => frame(2, rest),
                _ => frame(1, filled.as_bytes()),
            };
            if theirs.write_all(&bytes).await.is_err() {
                break;
            }
            // What is answered is taken, as far as it has come.
            let mut piece = [0; 4_096];
            let wait = std::time::Duration::from_millis(20);
            while tokio::time::timeout(wait, theirs.read(&mut piece)).await.is_ok_and(|read| read.is_ok_and(|n| n > 0))
            {
            }
        }
        // The client goes without a word.
        drop(theirs);
    };
    let both = async { tokio::join!(fuzzing::converse(&harness.api, agent, ours), talk) };
    assert!(harness.wait(both).is_some(), "the conversation does not end with its connection");
    let wrong = harness.check();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A whole frame of a client, whose mask is zero.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(length.min(0xffff) as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&payload[..payload.len().min(0xffff)]);
    frame
}
