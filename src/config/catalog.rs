//! `[catalog]`: where newer catalogs of models come from, and how they are proven.

use serde::Serialize;

use super::key::{Key, Table};
use super::providers::base_url;
use super::reader::Reader;
use crate::model::catalog::public_key;
use crate::model::provider::{host_of, is_loopback};

/// `[catalog]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Catalog {
    /// Where the newest one is; `None`: there is no remote, and `POST /api/catalog/update` refuses. Trusted: it may be private.
    pub url: Option<Box<str>>,
    /// The Ed25519 key that signs it, in hex or base64; the signature is at `<url>.sig`.
    pub public_key: Option<Box<str>>,
    /// The SHA-256 that it must have, in hex.
    pub sha256: Option<Box<str>>,
}

impl Table for Catalog {
    const KEYS: &'static [Key] = &[
        Key::url(
            "url",
            "\"https://models.example.org/catalog.toml\"",
            "Where the newest catalog is; fetched by POST /api/catalog/update alone. Default: nowhere.",
        )
        .example()
        .at_restart(),
        Key::text(
            "public_key",
            "\"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\"",
            "The Ed25519 key that signs it, in hex or base64; the signature is fetched from <url>.sig.",
        )
        .example()
        .at_restart(),
        Key::text(
            "sha256",
            "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
            "The SHA-256 that it must have. Without a key and without this the checksum is fetched from <url>.sha256.",
        )
        .example()
        .at_restart(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let key = |text: &str| match public_key(text) {
            Some(_) => Ok(Box::from(text.trim())),
            None => Err("must be the 32 bytes of an Ed25519 public key in hex or base64".to_owned()),
        };
        let read = Self {
            url: reader.parsed("url", base_url),
            public_key: reader.parsed("public_key", key),
            sha256: reader.parsed("sha256", sha256),
        };
        let host = read.url.as_deref().filter(|url| url.starts_with("http:")).and_then(host_of);
        let is_proven = read.public_key.is_some() || read.sha256.is_some();
        if host.is_some_and(|host| !is_loopback(&host)) && !is_proven {
            let message = "needs `public_key` or `sha256` beside it: without https nobody knows whose checksum it is";
            reader.problem("url", message.to_owned());
        }
        read
    }
}

fn sha256(text: &str) -> Result<Box<str>, String> {
    let text = text.trim();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase().into())
    } else {
        Err("must be a SHA-256 in hex: 64 digits".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    fn read(text: &str) -> Result<super::Catalog, String> {
        let loaded = parse(&format!("[catalog]\n{text}\n"), Path::new("c")).map_err(|error| error.to_string())?;
        Ok(loaded.config.catalog)
    }

    #[test]
    fn a_remote_without_https_needs_a_proof() {
        assert_eq!(read("").unwrap(), super::Catalog::default());
        assert!(read("url = \"https://models.example.org/c.toml\"").is_ok());
        assert!(read("url = \"http://127.0.0.1:8/c.toml\"").is_ok());
        let error = read("url = \"http://models.example.org/c.toml\"").unwrap_err();
        assert!(error.contains("c:2:7: catalog.url: needs `public_key` or `sha256`"), "{error}");
        let pinned = format!("url = \"http://models.example.org/c.toml\"\nsha256 = \"{}\"", "AB".repeat(32));
        assert_eq!(read(&pinned).unwrap().sha256.as_deref(), Some("ab".repeat(32).as_str()));
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, field) in [
            ("url = \"ftp://x\"", "catalog.url"),
            ("url = \"https://u:p@x/\"", "catalog.url"),
            ("public_key = \"short\"", "catalog.public_key"),
            ("sha256 = \"zz\"", "catalog.sha256"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(field), "{error}");
        }
    }
}
