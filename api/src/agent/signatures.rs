//! Who judges the signatures of manifests. The daemon knows the keys.

use agentsvc_components::Refusal;

/// What a signature says of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// There was none, and none is needed.
    None,
    /// It is a trusted key's; the key in hex.
    By(String),
}

/// Judges the signatures of manifests.
pub trait ManifestSignatures: Send + Sync + 'static {
    /// Is `signature`, in hex or base64, one of `text` by a trusted key?
    ///
    /// # Errors
    /// 400 for what is no signature; 403 with the code `manifest_unsigned`, `manifest_signature_invalid` or
    /// `manifest_keys_missing`, naming `manifest_signature`.
    fn check(&self, text: &str, signature: Option<&str>) -> Result<Signature, Refusal>;

    /// How many keys are trusted.
    fn keys(&self) -> usize;

    /// Does nothing come in without a signature?
    fn is_required(&self) -> bool;
}
