//! The form of a sealed secret: what it is, a nonce, and AES-256-GCM of the secret. The first line and the name are bound to
//! it: a file that is put in another's place does not open.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::Error;

/// What every sealed file begins with.
const FORM: &[u8] = b"agentsvc vault 1\n";
/// Bytes that the proof of a secret takes.
const PROOF_BYTES: usize = 16;
/// Bytes of a file that are not the secret.
pub(super) const AROUND_BYTES: usize = FORM.len() + NONCE_LEN + PROOF_BYTES;

/// Why a file does not open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is no sealed file.
    Form,
    /// Key, name and content do not belong together.
    Proof,
}

/// The file of `secret`.
pub(super) fn seal(key: &[u8; 32], name: &str, secret: &[u8]) -> Result<Vec<u8>, Error> {
    let mut nonce = [0; NONCE_LEN];
    // Random nonces of 96 bits: a secret would have to be written billions of times before two may meet.
    getrandom::fill(&mut nonce).map_err(|_| Error::NoRandomness)?;
    let mut content = Zeroizing::new(Vec::with_capacity(secret.len() + PROOF_BYTES));
    content.extend_from_slice(secret);
    let unfit = |_| Error::Unfit(name.to_owned());
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).map_err(unfit)?);
    let bound = Aad::from(bound(name));
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut *content).map_err(unfit)?;
    Ok([FORM, &nonce, &content].concat())
}

/// The secret in `file`.
pub(super) fn open(key: &[u8; 32], name: &str, mut file: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if file.len() < AROUND_BYTES || !file.starts_with(FORM) {
        return Err(Failure::Form);
    }
    let (around, content) = file.split_at_mut(FORM.len() + NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(&around[FORM.len()..]).map_err(|_| Failure::Form)?;
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).map_err(|_| Failure::Proof)?);
    let secret = key.open_in_place(nonce, Aad::from(bound(name)), content).map_err(|_| Failure::Proof)?;
    Ok(Zeroizing::new(secret.to_vec()))
}

/// What is proven together with the secret.
fn bound(name: &str) -> Vec<u8> {
    [FORM, name.as_bytes()].concat()
}
