//! What proves who a peer is and what it wrote: HMAC-SHA256 of the shared secret, Ed25519 identities, and the key of a session.

use agentsvc_systems::kernel::record::{hex, unhex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{SHA256, digest};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, UnparsedPublicKey as SigningKey};
use zeroize::Zeroizing;

/// Bytes of the text of an HMAC.
pub(crate) const MAC_BYTES: usize = 64;
/// What the key of a session is derived for.
const SESSION_INFO: &[u8] = b"librefang-ofp/v1/session-key";
/// Bytes of a nonce.
const NONCE_BYTES: usize = 32;

/// The system gave no randomness, or a key is none.
#[derive(Debug, thiserror::Error)]
#[error("a key or random number could not be made")]
pub(crate) struct NoKey;

/// The text of an HMAC.
fn mac(key: &[u8], text: &[u8]) -> String {
    hex(sign(&Key::new(HMAC_SHA256, key), text).as_ref())
}

/// Is this the text of the HMAC? Takes the same time for every wrong one.
fn verifies(key: &[u8], text: &[u8], mac: &[u8]) -> bool {
    unhex(mac).is_some_and(|mac| verify(&Key::new(HMAC_SHA256, key), text, &mac).is_ok())
}

/// A number that is used once.
pub(crate) fn nonce() -> Result<String, NoKey> {
    let mut bytes = [0; NONCE_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoKey)?;
    Ok(hex(&bytes))
}

/// What a node proves with: its nonce, itself, and for whom. A node that is dialled by its address alone is the empty text.
pub(crate) fn claim(nonce: &str, sender: &str, recipient: &str) -> String {
    format!("{nonce}|{sender}|{recipient}")
}

/// The proof that the node which makes the claim knows the secret.
pub(crate) fn proof(secret: &str, claim: &str) -> String {
    mac(secret.as_bytes(), claim.as_bytes())
}

/// Is it the proof of the claim?
pub(crate) fn proves(secret: &str, claim: &str, proof: &str) -> bool {
    verifies(secret.as_bytes(), claim.as_bytes(), proof.as_bytes())
}

/// What an identity signs: the claim, and the ephemeral key where there is one.
pub(crate) fn signed_text(claim: &str, ephemeral: Option<&str>) -> String {
    ephemeral.map_or_else(|| claim.to_owned(), |key| format!("{claim}|{key}"))
}

/// Did the owner of the public key sign the text? Both are base64.
pub(crate) fn signed_by(public_key: &str, text: &str, signature: &str) -> bool {
    let (Ok(key), Ok(signature)) = (STANDARD.decode(public_key), STANDARD.decode(signature)) else { return false };
    SigningKey::new(&ED25519, key).verify(text.as_bytes(), &signature).is_ok()
}

/// What people compare: the SHA-256 of the base64 text of a public key.
pub(crate) fn fingerprint(public_key: &str) -> String {
    hex(digest(&SHA256, public_key.as_bytes()).as_ref())
}

/// Our half of a session's key.
pub(crate) struct Ephemeral {
    secret: EphemeralPrivateKey,
    /// The half that the peer gets, as base64.
    pub(crate) public: String,
}

impl Ephemeral {
    /// A new one.
    pub(crate) fn new() -> Result<Self, NoKey> {
        let secret = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| NoKey)?;
        let public = STANDARD.encode(secret.compute_public_key().map_err(|_| NoKey)?);
        Ok(Self { secret, public })
    }

    /// The key of the session with a peer that gave `theirs`.
    pub(crate) fn agree(self, theirs: &str, client: &str, server: &str) -> Result<SessionKey, NoKey> {
        let theirs = STANDARD.decode(theirs).map_err(|_| NoKey)?;
        let theirs = UnparsedPublicKey::new(&X25519, theirs);
        agree_ephemeral(self.secret, &theirs, |shared| SessionKey::of_shared(shared, client, server))
            .map_err(|_| NoKey)?
    }
}

/// The key of a session: its hexadecimal text is what HMACs are made with.
pub(crate) struct SessionKey(Zeroizing<String>);

impl SessionKey {
    /// Derived from what both sides agreed on and the nonces of both.
    fn of_shared(shared: &[u8], client: &str, server: &str) -> Result<Self, NoKey> {
        let salt = Salt::new(HKDF_SHA256, format!("{client}|{server}").as_bytes());
        let mut key = Zeroizing::new([0; 32]);
        let filled = salt.extract(shared).expand(&[SESSION_INFO], HKDF_SHA256).and_then(|okm| okm.fill(&mut *key));
        filled.map_err(|_| NoKey)?;
        Ok(Self(Zeroizing::new(hex(&*key))))
    }

    /// That of a session without ephemeral keys.
    pub(crate) fn of_secret(secret: &str, client: &str, server: &str) -> Self {
        Self(Zeroizing::new(mac(secret.as_bytes(), format!("{client}{server}").as_bytes())))
    }

    /// The text of the HMAC of a frame.
    pub(crate) fn mac(&self, text: &[u8]) -> String {
        mac(self.0.as_bytes(), text)
    }

    /// Is this the text of its HMAC?
    pub(crate) fn verifies(&self, text: &[u8], mac: &[u8]) -> bool {
        verifies(self.0.as_bytes(), text, mac)
    }
}

/// A peer that knows the secret is let in, and one that does not is refused.
pub(crate) fn holds() -> bool {
    let claim = claim("n", "a", "b");
    let right = proof("secret", &claim);
    proves("secret", &claim, &right) && !proves("other", &claim, &right) && !proves("secret", &claim, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Computed with the modules hmac and hashlib of Python.
    const PROOF: &str = "faa7d8719903a9baeab9735431cb46c4d23a57009ae7ab83499f55bca987da88";
    const LEGACY: &str = "891cabcd36e0c4f59a9c737cd2f8301c684d859c8cc4a3e43bcdb0a2a53ed241";
    const DERIVED: &str = "17094071cac0c8a0c25b5fe3ba12ecd9d044fe1608dfe40b3548cafb5ef73790";
    const FRAME: &str = "01135739c7d60a33cb0b794ae7f957e8aaec4158a8b4c66bd8d8f3a23c843983";

    #[test]
    fn proofs_and_keys_are_those_of_the_protocol() {
        let claim = claim("n1", "node-a", "node-b");
        assert_eq!(claim, "n1|node-a|node-b");
        assert_eq!(proof("s3cret", &claim), PROOF);
        assert!(proves("s3cret", &claim, &PROOF.to_uppercase()) && !proves("s3cret", "n1|node-a|", PROOF));
        assert_eq!(&**SessionKey::of_secret("s3cret", "n1", "n2").0, LEGACY);
        let shared: Vec<u8> = (0..32).collect();
        let key = SessionKey::of_shared(&shared, "n1", "n2").unwrap();
        assert_eq!(&**key.0, DERIVED);
        assert_eq!(key.mac(b"{}"), FRAME);
        assert!(key.verifies(b"{}", FRAME.as_bytes()) && !key.verifies(b"{ }", FRAME.as_bytes()));
        assert_eq!(fingerprint("AAAA"), "63c1dd951ffedf6f7fd968ad4efa39b8ed584f162f46e715114ee184f8de9201");
    }

    #[test]
    fn both_sides_agree_on_a_key_that_no_other_nonce_has() {
        let (ours, theirs) = (Ephemeral::new().unwrap(), Ephemeral::new().unwrap());
        let (our_half, their_half) = (ours.public.clone(), theirs.public.clone());
        let one = ours.agree(&their_half, "c", "s").unwrap();
        let other = theirs.agree(&our_half, "c", "s").unwrap();
        assert_eq!(*one.0, *other.0);
        let third = Ephemeral::new().unwrap().agree(&our_half, "c", "s").unwrap();
        assert_ne!(*one.0, *third.0);
        for wrong in ["", "AAAA", "!", &STANDARD.encode([0; 32])] {
            assert!(Ephemeral::new().unwrap().agree(wrong, "c", "s").is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_mac_is_refused() {
        let right = mac(b"k", b"t");
        assert!(verifies(b"k", b"t", right.as_bytes()));
        for wrong in [&right[1..], &format!("{right}0"), &right.replace(&right[..1], "g"), ""] {
            assert!(!verifies(b"k", b"t", wrong.as_bytes()), "{wrong}");
        }
        assert!(holds());
    }
}
