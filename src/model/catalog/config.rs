//! `[catalog]`: where newer catalogs of models come from, and how they are proven.

use crate::kernel::config::text::base_url;
use crate::kernel::config::{Reader, table};
use crate::kernel::host::{host_of, is_loopback};
use crate::model::catalog::public_key;

table! {
    /// `[catalog]`. Its host is trusted: it may be private.
    #[check(Self::note_unproven)]
    pub struct Catalog {
        /// URL of the newest catalog; only fetched by POST /api/catalog/update. Default: none.
        url: Option<Box<str>> => url(base_url).example("https://models.example.org/catalog.toml").at_restart(),
        /// Ed25519 public key of the catalog, in hex or base64. The signature is fetched from <url>.sig.
        public_key: Option<Box<str>> => text(key)
            .example("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
            .at_restart(),
        /// Expected SHA-256 of the catalog. Without this and `public_key`, the checksum is fetched from <url>.sha256.
        sha256: Option<Box<str>> => text(sha256)
            .example("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
            .at_restart(),
    }
}

impl Catalog {
    fn note_unproven(&self, reader: &mut Reader<'_, '_>) {
        let host = self.url.as_deref().filter(|url| url.starts_with("http:")).and_then(host_of);
        let is_proven = self.public_key.is_some() || self.sha256.is_some();
        if host.is_some_and(|host| !is_loopback(&host)) && !is_proven {
            let message = "needs `public_key` or `sha256`: without https the checksum cannot be trusted";
            reader.problem("url", message.to_owned());
        }
    }
}

fn key(text: &str) -> Result<Box<str>, String> {
    match public_key(text) {
        Some(_) => Ok(text.trim().into()),
        None => Err("must be the 32 bytes of an Ed25519 public key in hex or base64".to_owned()),
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
    use super::Catalog;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Catalog>, Error> {
        read_table("catalog", text)
    }

    fn read(text: &str) -> Result<super::Catalog, String> {
        let loaded = parse(&format!("[catalog]\n{text}\n")).map_err(|error| error.to_string())?;
        Ok(loaded.config)
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
