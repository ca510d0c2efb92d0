//! Signed manifests: a detached Ed25519 signature over the bytes of `manifest_toml`, checked against the keys of
//! `[security] manifest_keys`. What signs is up to the operator, such as `openssl pkeyutl -sign -rawin`.

use agentsvc_api::agent::signatures::{ManifestSignatures, Signature};
use agentsvc_components::ErrorCode;
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::agent::error_codes;
use agentsvc_systems::kernel::record::hex;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Serialize, Serializer};

/// Bytes of an Ed25519 public key.
const KEY_BYTES: usize = 32;
/// Bytes of an Ed25519 signature.
const SIGNATURE_BYTES: usize = 64;

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestKey([u8; KEY_BYTES]);

impl Serialize for ManifestKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

/// Reads a key as the configuration writes it: hex or base64 of its 32 bytes.
pub(crate) fn manifest_key(text: &str) -> Result<ManifestKey, String> {
    let wrong = || "must be the 32 bytes of an Ed25519 public key, in hex or base64".to_owned();
    decode::<KEY_BYTES>(text).map(ManifestKey).ok_or_else(wrong)
}

/// So many bytes in hex or base64.
fn decode<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let text = text.trim();
    let bytes = if text.len() == BYTES * 2 {
        let pairs = (0..BYTES).map(|at| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok());
        pairs.collect::<Option<Vec<u8>>>()?
    } else {
        STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()?
    };
    bytes.try_into().ok()
}

/// The keys that count, and whether there must be a signature.
#[derive(Clone, Debug, Default)]
pub struct ManifestKeys {
    keys: Vec<ManifestKey>,
    is_required: bool,
}

impl ManifestKeys {
    /// These keys; `is_required`: nothing comes in without a signature of one of them.
    pub const fn new(keys: Vec<ManifestKey>, is_required: bool) -> Self {
        Self { keys, is_required }
    }
}

impl ManifestSignatures for ManifestKeys {
    fn check(&self, text: &str, signature: Option<&str>) -> Result<Signature, Refusal> {
        let refused = |text: &str, code: ErrorCode| {
            let refusal = Refusal::new(RefusalKind::Forbidden, text).with_code(code);
            Refusal { field: Some("manifest_signature".to_owned()), ..refusal }
        };
        let Some(signature) = signature else {
            return if self.is_required {
                let text = "manifest_signature: required; this daemon only accepts signed manifests";
                Err(refused(text, error_codes::MANIFEST_UNSIGNED))
            } else {
                Ok(Signature::None)
            };
        };
        let Some(bytes) = decode::<SIGNATURE_BYTES>(signature) else {
            let text = "manifest_signature: must be the 64 bytes of an Ed25519 signature, in hex or base64";
            return Err(Refusal::bad_field("manifest_signature", text));
        };
        if self.keys.is_empty() {
            let text = "manifest_signature: cannot be verified; `[security] manifest_keys` is empty";
            return Err(refused(text, error_codes::MANIFEST_KEYS_MISSING));
        }
        let is_by =
            |key: &&ManifestKey| UnparsedPublicKey::new(&ED25519, key.0).verify(text.as_bytes(), &bytes).is_ok();
        match self.keys.iter().find(is_by) {
            Some(key) => Ok(Signature::By(hex(&key.0))),
            None => {
                let text = "manifest_signature: not a signature of this manifest by a trusted key";
                Err(refused(text, error_codes::MANIFEST_SIGNATURE_INVALID))
            }
        }
    }

    fn keys(&self) -> usize {
        self.keys.len()
    }

    fn is_required(&self) -> bool {
        self.is_required
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    const TEXT: &str = "name = \"a\"\n";

    fn pair(seed: u8) -> (Ed25519KeyPair, ManifestKey) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let key = manifest_key(&hex(pair.public_key().as_ref())).unwrap();
        (pair, key)
    }

    #[test]
    fn only_a_signature_of_this_text_by_a_trusted_key_counts() {
        let ((signer, key), (stranger, _)) = (pair(1), pair(2));
        for is_required in [false, true] {
            let keys = ManifestKeys::new(vec![pair(3).1, key], is_required);
            let good = signer.sign(TEXT.as_bytes());
            for signature in [hex(good.as_ref()), STANDARD.encode(good.as_ref())] {
                assert_eq!(keys.check(TEXT, Some(&signature)), Ok(Signature::By(hex(&key.0))));
                let other = keys.check("name = \"b\"\n", Some(&signature)).unwrap_err();
                assert_eq!(other.code.as_deref(), Some("manifest_signature_invalid"));
            }
            let foreign = hex(stranger.sign(TEXT.as_bytes()).as_ref());
            assert_eq!(keys.check(TEXT, Some(&foreign)).unwrap_err().kind, RefusalKind::Forbidden);
            assert_eq!(keys.check(TEXT, Some("zz")).unwrap_err().kind, RefusalKind::BadRequest);
            assert_eq!(keys.check(TEXT, None).is_err(), is_required);
        }
        let none = ManifestKeys::default();
        assert_eq!(none.check(TEXT, None), Ok(Signature::None));
        let good = hex(signer.sign(TEXT.as_bytes()).as_ref());
        assert_eq!(none.check(TEXT, Some(&good)).unwrap_err().code.as_deref(), Some("manifest_keys_missing"));
    }

    /// RFC 8032, 7.1, test 2.
    #[test]
    fn a_published_vector_holds() {
        let key = manifest_key("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c").unwrap();
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert!(ManifestKeys::new(vec![key], true).check("r", Some(signature)).is_ok());
    }
}
