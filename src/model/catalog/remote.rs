//! A newer catalog from the remote of `[catalog]`: fetched, proven, and checked before anything is changed.
//!
//! The document is TOML, or JSON when it begins with `{`: `version` (the day as `YYYY-MM-DD`, with `.<number>` where a day has
//! several) and `models`, each with the keys of `POST /api/models/custom`, `aliases` and `also`. Its proof is one of:
//!
//! | `[catalog]` has | the proof |
//! |---|---|
//! | `public_key` | an Ed25519 signature of the document's bytes at `<url>.sig`: raw, in hex or in base64 |
//! | `sha256` | the document's SHA-256 is this one |
//! | neither | the document's SHA-256 is the first word at `<url>.sha256`; over https or on this machine only |

use std::time::Duration;

use agentsvc_components::kernel::limit;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::model::Origin;
use super::row::Row;
use super::table::{Base, contradiction};
use crate::model::catalog::config::Catalog as CatalogSettings;
use crate::model::http::{Clients, Timeouts};

/// How long a fetch may take.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(10), read: Duration::from_secs(30), total: Duration::from_secs(60) };
/// Bytes of a signature's or checksum's file.
const PROOF_BYTES_MAX: usize = 4 << 10;
/// Bytes of an Ed25519 signature.
const SIGNATURE_BYTES: usize = 64;
/// Bytes of an Ed25519 public key and of a SHA-256.
const KEY_BYTES: usize = 32;

/// A document that was fetched and proven.
#[derive(Debug)]
pub(super) struct Document {
    /// Its text.
    pub(super) text: String,
    /// Its SHA-256 in hex.
    pub(super) sha256: String,
}

/// Fetches the document of `settings` and proves whose it is.
pub(super) async fn fetch(settings: &CatalogSettings) -> Result<Document, String> {
    let url = settings.url.as_deref().ok_or("no remote catalog is configured")?;
    let clients = Clients::new(TIMEOUTS);
    let bytes = get(&clients, url, limit::CATALOG_BYTES_MAX).await?;
    let sha256 = sha256(&bytes);
    if let Some(key) = settings.public_key.as_deref() {
        let signature = get(&clients, &format!("{url}.sig"), PROOF_BYTES_MAX).await?;
        prove(key, &bytes, &signature)?;
    } else {
        let expected = match settings.sha256.as_deref() {
            Some(pinned) => pinned.to_owned(),
            None => first_word(&get(&clients, &format!("{url}.sha256"), PROOF_BYTES_MAX).await?)?,
        };
        if !expected.eq_ignore_ascii_case(&sha256) {
            return Err(format!("the SHA-256 is {sha256}; expected {expected}"));
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    Ok(Document { text, sha256 })
}

async fn get(clients: &Clients, url: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
    let parsed = Url::parse(url).map_err(|_| format!("{url} is not a URL"))?;
    let client = clients.get(&parsed).map_err(|error| error.message)?;
    let failed = |error: reqwest::Error| format!("{url} cannot be fetched: {}", error.without_url());
    let mut response = client.get(parsed).send().await.map_err(failed)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("{url} returned status {}", response.status().as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > bytes_max {
            return Err(format!("{url} is larger than {bytes_max} bytes"));
        }
    }
    Ok(bytes)
}

/// The first word of a checksum file, as `sha256sum` writes it.
fn first_word(bytes: &[u8]) -> Result<String, String> {
    let word = std::str::from_utf8(bytes).ok().and_then(|text| text.split_whitespace().next());
    let word = word.filter(|word| word.len() == 2 * KEY_BYTES && word.bytes().all(|byte| byte.is_ascii_hexdigit()));
    word.map(str::to_owned).ok_or_else(|| "the checksum file does not begin with a SHA-256 in hex".to_owned())
}

fn prove(key: &str, document: &[u8], signature: &[u8]) -> Result<(), String> {
    let key = key_bytes(key).ok_or("`public_key` is not an Ed25519 key")?;
    let text = || std::str::from_utf8(signature).ok().and_then(|text| decode(text.trim()));
    let raw = (signature.len() == SIGNATURE_BYTES).then(|| signature.to_vec());
    let signature = raw.or_else(text).filter(|bytes| bytes.len() == SIGNATURE_BYTES);
    let signature = signature.ok_or("the signature file does not contain an Ed25519 signature")?;
    let verified = UnparsedPublicKey::new(&ED25519, key).verify(document, &signature);
    verified.map_err(|_| "the signature does not match the configured `public_key`".to_owned())
}

/// The key in a text, in hex or base64.
pub(crate) fn key_bytes(text: &str) -> Option<Vec<u8>> {
    decode(text.trim()).filter(|bytes| bytes.len() == KEY_BYTES)
}

/// Bytes in hex or base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let is_hex = !text.is_empty() && text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && matches!(text.len() / 2, KEY_BYTES | SIGNATURE_BYTES) {
        return (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect();
    }
    STANDARD.decode(text).ok()
}

/// SHA-256 in hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    agentsvc_systems::kernel::record::hex(&Sha256::digest(bytes))
}

/// The document as it is written. What a later release adds is passed over.
#[derive(Deserialize)]
struct CatalogDocument {
    version: String,
    models: Vec<Row>,
}

/// The models of a document, and how many were left out because their provider is not known here.
pub(super) fn parse(text: &str, is_provider: &dyn Fn(&str) -> bool) -> Result<(Base, usize), String> {
    let document: CatalogDocument = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| format!("not a valid catalog: {error}"))?
    } else {
        toml::from_str(text).map_err(|error| format!("not a valid catalog: {}", error.message()))?
    };
    let version = document.version.trim();
    if !is_version(version) {
        return Err("`version` must be a date, such as \"2026-01-31\" or \"2026-01-31.2\"".to_owned());
    }
    if document.models.is_empty() || document.models.len() > limit::CATALOG_MODELS_MAX {
        return Err(format!("the catalog must have 1 to {} models", limit::CATALOG_MODELS_MAX));
    }
    let (mut models, mut skipped) = (Vec::with_capacity(document.models.len()), 0);
    for (at, row) in document.models.into_iter().enumerate() {
        let provider = row.provider.as_deref().map(str::trim).unwrap_or_default();
        if !provider.is_empty() && !is_provider(provider) {
            skipped += 1;
            continue;
        }
        let id = row.id.clone();
        let model = row.into_model(Origin::Remote, is_provider);
        models.push(std::sync::Arc::new(model.map_err(|wrong| format!("models[{at}] ({id}): {wrong}"))?));
    }
    if models.is_empty() {
        return Err(format!("none of its {skipped} models belongs to a known provider"));
    }
    if let Some(contradiction) = contradiction(&models) {
        return Err(contradiction);
    }
    Ok((Base { version: version.into(), models }, skipped))
}

/// `YYYY-MM-DD`, perhaps with one more digit behind a dot, so that the order of texts is the order of time.
fn is_version(text: &str) -> bool {
    let (day, more) = text.split_at_checked(10).unwrap_or((text, ""));
    let is_day = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok() && day.len() == 10;
    let number = more.strip_prefix('.').unwrap_or("0");
    is_day
        && number.len() == 1
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (more.is_empty() || more.len() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(_: &str) -> bool {
        true
    }

    #[test]
    fn versions_are_days() {
        assert!(["2026-01-31", "2026-01-31.2"].into_iter().all(is_version));
        assert!(
            ["2026-1-31", "2026-02-30", "v1", "", "2026-01-31.", "2026-01-31.12", "2026-01-31x"]
                .into_iter()
                .all(|text| !is_version(text))
        );
        assert!("2026-01-31" < "2026-01-31.2" && "2026-01-31.2" < "2026-02-01");
    }

    #[test]
    fn both_forms_are_read_and_unknown_providers_are_left_out() {
        let toml = "version = \"2026-02-01\"\n[[models]]\nid = \"m\"\nprovider = \"p\"\ncontext_window = 8000\nnew = 1\n\
                    [[models]]\nid = \"n\"\nprovider = \"q\"\ncontext_window = 1\n";
        let (base, skipped) = parse(toml, &|name| name == "p").unwrap();
        assert_eq!((base.models.len(), skipped, &*base.version), (1, 1, "2026-02-01"));
        let json = r#"{"version": "2026-02-01", "models": [{"id": "m", "provider": "p", "context_window": 8000}]}"#;
        assert_eq!(parse(json, &any).unwrap().0.models, base.models);
    }

    #[test]
    fn a_document_that_contradicts_itself_is_refused() {
        let row = |id: &str, more: &str| {
            format!("[[models]]\nid = \"{id}\"\nprovider = \"p\"\ncontext_window = 8000\n{more}")
        };
        let refused =
            |rows: &[String]| parse(&format!("version = \"2026-02-01\"\n{}", rows.concat()), &any).unwrap_err();
        assert!(refused(&[row("a", ""), row("a", "")]).contains("duplicate model"));
        assert!(refused(&[row("a", "aliases = [\"x\"]\n"), row("b", "aliases = [\"x\"]\n")]).contains("alias x"));
        assert!(refused(&[row("a", "aliases = [\"b\"]\n"), row("b", "")]).contains("id of a model"));
        assert!(refused(&[row("a", "input_cost_per_m = 5000\n")]).contains("models[0] (a): input_cost_per_m"));
        assert!(refused(&[row("a", "id = 3\n")]).contains("not a valid catalog"));
        assert!(parse("version = \"2026-02-01\"\nmodels = []\n", &any).unwrap_err().contains("1 to"));
        let unknown = parse(&format!("version = \"2026-02-01\"\n{}", row("a", "")), &|_| false).unwrap_err();
        assert!(unknown.contains("none of its 1 models"), "{unknown}");
        assert!(parse("version = \"1\"\nmodels = []\n", &any).unwrap_err().contains("version"));
    }

    #[test]
    fn a_signature_proves_its_document_alone() {
        use ring::signature::{Ed25519KeyPair, KeyPair};
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let key = agentsvc_systems::kernel::record::hex(pair.public_key().as_ref());
        let signature = pair.sign(b"text");
        let signature = signature.as_ref();
        let base64 = format!("{}\n", STANDARD.encode(signature));
        let hex = agentsvc_systems::kernel::record::hex(signature);
        for form in [signature, base64.as_bytes(), hex.as_bytes()] {
            assert_eq!(prove(&key, b"text", form), Ok(()));
            assert!(prove(&key, b"texts", form).unwrap_err().contains("signature does not match"));
        }
        assert_eq!(prove(&STANDARD.encode(pair.public_key().as_ref()), b"text", signature), Ok(()));
        assert!(prove(&key, b"text", b"nonsense").unwrap_err().contains("does not contain"));
        assert!(key_bytes("short").is_none() && key_bytes("").is_none());
    }
}
