//! The handshake: both sides prove that they know the secret, sign with their keys, and agree on the key of the session. It
//! decides alone; it reads no connection and remembers nothing.

use agentsvc_systems::peer::limits::PEER_NAME_BYTES_MAX;

use super::crypto::{self, Ephemeral, NoKey, SessionKey, claim, proves, signed_by, signed_text};
use super::identity::Identity;
use super::message::{Hello, RemoteAgent, VERSION, bounded, line};
use crate::kernel::config::Secret;

/// The code of a version that is not spoken.
pub(crate) const BAD_VERSION: i64 = 1;
/// The code of a message that makes no sense.
pub(crate) const BAD_REQUEST: i64 = 400;
/// The code of a request before the handshake.
pub(crate) const NO_HANDSHAKE: i64 = 401;
/// The code of a peer that has not proved who it is, or repeats itself.
pub(crate) const FORBIDDEN: i64 = 403;
/// The code of a message that is too long.
pub(crate) const TOO_LARGE: i64 = 413;
/// The code of too many messages, tokens or connections.
pub(crate) const TOO_MANY: i64 = 429;
/// The code of a failure on this side.
pub(crate) const INTERNAL: i64 = 500;

/// Why a peer is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Refused {
    /// The code of the protocol.
    pub(crate) code: i64,
    /// One sentence for the peer and the log.
    pub(crate) reason: String,
    /// Its proof of the secret is wrong: it may have guessed.
    pub(crate) is_guess: bool,
}

impl Refused {
    pub(crate) fn new(code: i64, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), is_guess: false }
    }

    /// A peer has another secret.
    fn wrong_secret() -> Self {
        Self { is_guess: true, ..Self::new(FORBIDDEN, "auth_hmac is wrong: the nodes have different secrets") }
    }
}

impl From<NoKey> for Refused {
    fn from(error: NoKey) -> Self {
        Self::new(INTERNAL, error.to_string())
    }
}

/// This node, as it shows itself.
pub(crate) struct Us {
    pub(crate) identity: Identity,
    pub(crate) secret: Secret,
    pub(crate) node_name: String,
}

/// A peer that has proved itself, save that its key may be another one than before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) node_id: String,
    pub(crate) node_name: String,
    pub(crate) agents: Vec<RemoteAgent>,
    pub(crate) public_key: Option<String>,
    pub(crate) nonce: String,
    /// Its half of the session's key; signed.
    ephemeral: Option<String>,
}

#[cfg(test)]
impl Known {
    /// A peer without a key.
    pub(crate) fn of_test(node_id: &str) -> Self {
        Self {
            node_id: node_id.to_owned(),
            node_name: node_id.to_owned(),
            agents: Vec::new(),
            public_key: None,
            nonce: "n".to_owned(),
            ephemeral: None,
        }
    }
}

/// Can this be the id of a node, or a nonce? Both stand in what is signed, between bars.
pub(crate) fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'|';
    (1..=PEER_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

impl Us {
    /// What this node says first of itself; `claim` is what it proves.
    fn hello(&self, nonce: String, claim: &str, ephemeral: Option<&str>, agents: Vec<RemoteAgent>) -> Hello {
        Hello {
            node_id: self.identity.node_id.clone(),
            node_name: self.node_name.clone(),
            protocol_version: VERSION,
            agents,
            nonce,
            auth_hmac: crypto::proof(self.secret.expose(), claim),
            public_key: Some(self.identity.public_key.clone()),
            identity_signature: Some(self.identity.sign(&signed_text(claim, ephemeral))),
            ephemeral_pubkey: ephemeral.map(ToOwned::to_owned),
        }
    }

    /// Looks at what a peer says of itself. `recipients` are whom it may mean.
    fn judge(&self, hello: Hello, recipients: &[&str]) -> Result<Known, Refused> {
        let bad = |text: &str| Refused::new(BAD_REQUEST, text);
        let forbidden = |text: &str| Refused::new(FORBIDDEN, text);
        if hello.protocol_version != VERSION {
            return Err(Refused::new(BAD_VERSION, format!("only protocol version {VERSION} is supported")));
        }
        if !is_id(&hello.node_id) || !is_id(&hello.nonce) {
            return Err(bad("node_id and nonce must be short texts without blanks and |"));
        }
        let claims = recipients.iter().map(|recipient| claim(&hello.nonce, &hello.node_id, recipient));
        let found = claims.into_iter().find(|claim| proves(self.secret.expose(), claim, &hello.auth_hmac));
        let claim = found.ok_or_else(Refused::wrong_secret)?;
        // With the secret the copy of this identity would be trusted by all.
        if hello.node_id == self.identity.node_id {
            return Err(bad("this is the node itself, or another one with the same identity"));
        }
        let ephemeral = hello.ephemeral_pubkey;
        match (&hello.public_key, &hello.identity_signature) {
            (Some(key), Some(signature)) => {
                if !signed_by(key, &signed_text(&claim, ephemeral.as_deref()), signature) {
                    return Err(forbidden("identity_signature is wrong"));
                }
            }
            (None, None) => {}
            _ => return Err(forbidden("public_key and identity_signature belong together")),
        }
        // Anyone on the way could put another one in place of an ephemeral key that is not signed.
        let ephemeral = ephemeral.filter(|_| hello.public_key.is_some());
        Ok(Known {
            node_name: line(&hello.node_name),
            agents: bounded(hello.agents),
            public_key: hello.public_key,
            node_id: hello.node_id,
            nonce: hello.nonce,
            ephemeral,
        })
    }

    /// Looks at the first message of a peer that has connected.
    ///
    /// # Errors
    /// Why it is refused.
    pub(crate) fn admit(&self, hello: Hello) -> Result<Known, Refused> {
        // One that was told an address alone does not know whom it will find there.
        self.judge(hello, &[&self.identity.node_id, ""])
    }

    /// The answer to a peer, and the key of the session with it.
    ///
    /// # Errors
    /// Its half of the key is none.
    pub(crate) fn welcome(&self, known: &Known, agents: Vec<RemoteAgent>) -> Result<(Hello, SessionKey), Refused> {
        let nonce = crypto::nonce()?;
        let claim = claim(&nonce, &self.identity.node_id, &known.node_id);
        match &known.ephemeral {
            Some(theirs) => {
                let ours = Ephemeral::new()?;
                let hello = self.hello(nonce.clone(), &claim, Some(&ours.public), agents);
                let bad = |_| Refused::new(BAD_REQUEST, "ephemeral_pubkey is not an X25519 key");
                let key = ours.agree(theirs, &known.nonce, &nonce).map_err(bad)?;
                Ok((hello, key))
            }
            None => {
                let key = SessionKey::of_secret(self.secret.expose(), &known.nonce, &nonce);
                Ok((self.hello(nonce, &claim, None, agents), key))
            }
        }
    }

    /// Begins a handshake with a peer, which is known by its id or by its address alone.
    ///
    /// # Errors
    /// There is no randomness.
    pub(crate) fn begin(&self, peer: Option<&str>, agents: Vec<RemoteAgent>) -> Result<Begun, Refused> {
        let (nonce, ephemeral) = (crypto::nonce()?, Ephemeral::new()?);
        let claim = claim(&nonce, &self.identity.node_id, peer.unwrap_or_default());
        let hello = self.hello(nonce.clone(), &claim, Some(&ephemeral.public), agents);
        Ok(Begun { hello, nonce, ephemeral, peer: peer.map(ToOwned::to_owned) })
    }
}

/// A handshake that this node has begun.
pub(crate) struct Begun {
    /// What the peer gets.
    pub(crate) hello: Hello,
    nonce: String,
    ephemeral: Ephemeral,
    peer: Option<String>,
}

impl Begun {
    /// Looks at the answer of the peer.
    ///
    /// # Errors
    /// Why it is not trusted.
    pub(crate) fn finish(self, us: &Us, ack: Hello) -> Result<(Known, SessionKey), Refused> {
        let has_ephemeral = ack.ephemeral_pubkey.is_some();
        let known = us.judge(ack, &[&us.identity.node_id])?;
        if self.peer.as_ref().is_some_and(|peer| *peer != known.node_id) {
            return Err(Refused::new(FORBIDDEN, "another node responds at the address of the peer"));
        }
        let key = match &known.ephemeral {
            Some(theirs) => self.ephemeral.agree(theirs, &self.nonce, &known.nonce)?,
            None if has_ephemeral => {
                return Err(Refused::new(FORBIDDEN, "the peer's ephemeral key is not signed"));
            }
            None => SessionKey::of_secret(us.secret.expose(), &self.nonce, &known.nonce),
        };
        Ok((known, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(secret: &str) -> Us {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity::open(dir.path()).unwrap();
        Us { identity, secret: Secret::new(secret), node_name: "n".to_owned() }
    }

    fn code<T>(result: Result<T, Refused>) -> i64 {
        result.err().map_or(0, |refused| refused.code)
    }

    #[test]
    fn two_nodes_with_the_same_secret_agree() {
        let (a, b) = (us("s"), us("s"));
        for peer in [None, Some(b.identity.node_id.as_str())] {
            let begun = a.begin(peer, Vec::new()).unwrap();
            let known = b.admit(begun.hello.clone()).unwrap();
            assert_eq!(known.node_id, a.identity.node_id);
            let (ack, theirs) = b.welcome(&known, Vec::new()).unwrap();
            let (found, ours) = begun.finish(&a, ack).unwrap();
            assert_eq!(
                (&found.node_id, &found.public_key),
                (&b.identity.node_id, &Some(b.identity.public_key.clone()))
            );
            assert_eq!(ours.mac(b"x"), theirs.mac(b"x"));
        }
    }

    #[test]
    fn a_node_without_keys_is_spoken_to_with_the_secret_alone() {
        let (a, b) = (us("s"), us("s"));
        let mut hello = a.begin(None, Vec::new()).unwrap().hello;
        (hello.public_key, hello.identity_signature) = (None, None);
        let known = b.admit(hello.clone()).unwrap();
        let (ack, key) = b.welcome(&known, Vec::new()).unwrap();
        assert_eq!(ack.ephemeral_pubkey, None, "an ephemeral key that is not signed counts for nothing");
        assert_eq!(key.mac(b"x"), SessionKey::of_secret("s", &hello.nonce, &ack.nonce).mac(b"x"));
    }

    #[test]
    fn whatever_is_altered_is_refused() {
        let (a, b) = (us("s"), us("s"));
        let hello = a.begin(None, Vec::new()).unwrap().hello;
        let other = Ephemeral::new().unwrap().public;
        type Change = fn(&mut Hello, &Us, &str);
        let changes: [(i64, Change); 9] = [
            (1, |hello, _, _| hello.protocol_version = 2),
            (400, |hello, _, _| hello.node_id = "a|b".to_owned()),
            (400, |hello, _, _| hello.nonce = String::new()),
            (403, |hello, _, _| hello.node_id.push('x')),
            (403, |hello, _, _| hello.nonce.push('x')),
            (403, |hello, _, _| hello.auth_hmac = hello.auth_hmac.replace(char::is_numeric, "0")),
            (403, |hello, _, other| hello.ephemeral_pubkey = Some(other.to_owned())),
            (403, |hello, b, _| hello.public_key = Some(b.identity.public_key.clone())),
            (403, |hello, _, _| hello.identity_signature = None),
        ];
        for (expected, change) in changes {
            let mut changed = hello.clone();
            change(&mut changed, &b, &other);
            let refused = b.admit(changed.clone()).unwrap_err();
            assert_eq!(refused.code, expected, "{changed:?}");
            // Only another proof, or another claim than what was proved, can be a guess.
            let is_other_claim = (&changed.node_id, &changed.nonce, &changed.auth_hmac)
                != (&hello.node_id, &hello.nonce, &hello.auth_hmac);
            assert_eq!(refused.is_guess, expected == FORBIDDEN && is_other_claim, "{changed:?}");
        }
        assert_eq!(code(us("other").admit(hello.clone())), FORBIDDEN);
        assert_eq!(code(a.admit(hello.clone())), BAD_REQUEST, "a node does not talk to itself");
        assert!(b.admit(hello).is_ok());
    }

    #[test]
    fn the_answer_is_looked_at_as_closely() {
        let (a, b, c) = (us("s"), us("s"), us("s"));
        let acked = |change: fn(&mut Hello), peer: Option<&str>| {
            let begun = a.begin(peer, Vec::new()).unwrap();
            let known = b.admit(Hello { ..begun.hello.clone() });
            let Ok(known) = known else { return Err(Refused::new(0, "not admitted")) };
            let (mut ack, _) = b.welcome(&known, Vec::new()).unwrap();
            change(&mut ack);
            begun.finish(&a, ack).map(|_| ())
        };
        assert!(acked(|_| {}, None).is_ok());
        assert_eq!(code(acked(|ack| ack.nonce.push('x'), None)), FORBIDDEN);
        assert_eq!(code(acked(|ack| ack.ephemeral_pubkey = None, None)), FORBIDDEN);
        let unsigned: fn(&mut Hello) = |ack| (ack.public_key, ack.identity_signature) = (None, None);
        assert_eq!(code(acked(unsigned, None)), FORBIDDEN);
        // Another node with the secret answers in its place.
        let begun = a.begin(Some(&c.identity.node_id), Vec::new()).unwrap();
        let known = us("s").judge(begun.hello.clone(), &[&c.identity.node_id]).unwrap();
        let (ack, _) = b.welcome(&known, Vec::new()).unwrap();
        assert_eq!(code(begun.finish(&a, ack)), FORBIDDEN);
        // What one node was answered counts for no other.
        let begun = a.begin(None, Vec::new()).unwrap();
        let known = b.admit(c.begin(None, Vec::new()).unwrap().hello).unwrap();
        let (ack, _) = b.welcome(&known, Vec::new()).unwrap();
        assert_eq!(code(begun.finish(&a, ack)), FORBIDDEN);
    }
}
