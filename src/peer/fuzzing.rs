//! What a fuzz target does with bytes of other nodes: frames, messages and handshakes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};

use agentsvc_systems::peer::limits::{PEER_AGENTS_MAX, PEER_NAME_BYTES_MAX};

use super::crypto::{SessionKey, claim, proof};
use super::handshake::{Known, Us};
use super::identity::{Identity, Stored};
use super::message::{Hello, Kind, Message, Request, Response};
use super::wire::{Frames, opened};
use crate::kernel::config::Secret;

/// The secret of the node that the handshakes are for.
const SECRET: &str = "the secret of a fuzz target";
/// Its id.
const NODE: &str = "fuzzed";

/// Reads frames, their messages, and the handshakes among them; gives how many messages there were.
pub(crate) fn frames(bytes: &[u8]) -> usize {
    let (mut frames, mut messages) = (Frames::new(), 0);
    let key = SessionKey::of_secret(SECRET, "client", "server");
    for piece in bytes.chunks(7) {
        frames.feed(piece);
        while let Ok(Some(frame)) = frames.next() {
            assert!(opened(&frame, &key).is_err(), "a frame without an HMAC was taken");
            let Ok(message) = Message::read(&frame) else { continue };
            // What was read can be written, and read again.
            let again = Message::read(&message.to_json());
            assert!(again.is_ok_and(|again| again.id == message.id), "a message that was read is lost");
            match message.kind {
                Kind::Request(Request::Handshake(hello)) => greeted(hello),
                Kind::Response(Response::HandshakeAck(ack)) => acknowledged(ack),
                _ => {}
            }
            messages += 1;
        }
    }
    messages
}

/// The node that the handshakes are for.
fn us() -> Option<Us> {
    let seed = [7; 32];
    let keys = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
    let (public_key, private_key) = (STANDARD.encode(keys.public_key()), STANDARD.encode(seed));
    let identity = Identity::of(&Stored { public_key, private_key, node_id: NODE.to_owned() }).ok()?;
    Some(Us { identity, secret: Secret::new(SECRET), node_name: NODE.to_owned() })
}

/// A first message: refused as it came, since its sender does not know the secret, and with the right proof refused or let in.
fn greeted(hello: Hello) {
    let Some(us) = us() else { return };
    assert!(us.admit(hello.clone()).is_err(), "a node that does not know the secret was let in");
    for recipient in [NODE, ""] {
        let auth_hmac = proof(SECRET, &claim(&hello.nonce, &hello.node_id, recipient));
        if let Ok(known) = us.admit(Hello { auth_hmac, ..hello.clone() }) {
            is_bounded(&known);
            if let Ok((ack, _)) = us.welcome(&known, known.agents.clone()) {
                assert_eq!(ack.node_id, NODE);
            }
        }
    }
}

/// The answer to a handshake of the node's own.
fn acknowledged(ack: Hello) {
    let Some(us) = us() else { return };
    let auth_hmac = proof(SECRET, &claim(&ack.nonce, &ack.node_id, NODE));
    for (auth_hmac, is_right) in [(ack.auth_hmac.clone(), false), (auth_hmac, true)] {
        let Ok(begun) = us.begin(None, Vec::new()) else { return };
        if let Ok((known, _)) = begun.finish(&us, Hello { auth_hmac, ..ack.clone() }) {
            assert!(is_right, "a node that does not know the secret was taken for a peer");
            is_bounded(&known);
        }
    }
}

fn is_bounded(known: &Known) {
    let is_short = |text: &str| text.len() <= PEER_NAME_BYTES_MAX && !text.chars().any(char::is_control);
    assert!(is_short(&known.node_id) && is_short(&known.node_name) && known.node_id != NODE);
    assert!(known.agents.len() <= PEER_AGENTS_MAX);
    assert!(
        known.agents.iter().all(|agent| is_short(&agent.id) && is_short(&agent.name) && is_short(&agent.description))
    );
}
