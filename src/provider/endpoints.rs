//! The endpoints that clients of the API set, on disk: `providers.json` in the data directory. Written beside, synced and
//! renamed, so that a kill leaves the old ones or the new ones.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::kernel::disk;
use crate::provider::config::provider_url;

/// The file.
const FILE: &str = "providers.json";
/// Bytes of the file that are read. There are as many entries as providers.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What stands in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    /// URL by provider.
    #[serde(default)]
    base_urls: BTreeMap<Box<str>, Box<str>>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Endpoints {
    path: PathBuf,
}

impl Endpoints {
    /// The endpoints in `data_dir`.
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(FILE) }
    }

    /// The endpoints. What cannot be read or used is left out, and said in the log: it does not keep the daemon from starting.
    pub(super) fn load(&self) -> BTreeMap<Box<str>, Box<str>> {
        let mut base_urls = self.read().unwrap_or_else(|error| {
            tracing::error!(path = %self.path.display(), %error, "the endpoints of providers cannot be read");
            BTreeMap::new()
        });
        base_urls.retain(|provider, url| {
            let is_sound = provider_url(url).is_ok();
            if !is_sound {
                tracing::error!(%provider, "the stored endpoint of a provider is not a URL; the configured endpoint \
                    is used");
            }
            is_sound
        });
        base_urls
    }

    fn read(&self) -> io::Result<BTreeMap<Box<str>, Box<str>>> {
        let Some(file) = disk::there(disk::open(&self.path))? else { return Ok(BTreeMap::new()) };
        let text = io::read_to_string(io::Read::take(file, FILE_BYTES_MAX))?;
        let stored: Stored = serde_json::from_str(&text)?;
        Ok(stored.base_urls)
    }

    /// Sets one endpoint, or takes it away. Durable when it returns; gives all of them.
    ///
    /// # Errors
    /// The system's; nothing changed. Also when the file there is not ours: nothing is written over it.
    pub(super) fn set(&self, provider: &str, url: Option<Box<str>>) -> io::Result<BTreeMap<Box<str>, Box<str>>> {
        let mut stored = Stored { base_urls: self.read()? };
        let before = match url {
            Some(url) => stored.base_urls.insert(provider.into(), url),
            None => stored.base_urls.remove(provider),
        };
        if before.as_ref() != stored.base_urls.get(provider) {
            self.write(&stored)?;
        }
        Ok(stored.base_urls)
    }

    fn write(&self, stored: &Stored) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(stored)?;
        text.push(b'\n');
        disk::replace(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn endpoints_last_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let endpoints = Endpoints::new(dir.path());
        assert!(endpoints.load().is_empty());
        endpoints.set("openai", Some("https://proxy.example/v1".into())).unwrap();
        endpoints.set("x y", Some("http://h".into())).unwrap();
        let again = Endpoints::new(dir.path());
        assert_eq!(again.load()["openai"].as_ref(), "https://proxy.example/v1");
        assert_eq!(again.set("openai", None).unwrap().len(), 1);
        assert_eq!(again.set("openai", None).unwrap().len(), 1, "there is nothing to take away");
        assert_eq!(endpoints.load().len(), 1);
    }

    #[test]
    fn a_damaged_file_is_not_written_over_and_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let endpoints = Endpoints::new(dir.path());
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(endpoints.load().is_empty() && endpoints.set("a", Some("http://h".into())).is_err());
        assert_eq!(fs::read_to_string(dir.path().join(FILE)).unwrap(), "{");
        fs::write(dir.path().join(FILE), "{\"base_urls\": {\"a\": \"ftp://x\", \"b\": \"http://h\"}}").unwrap();
        assert_eq!(endpoints.load().keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["b"]);
    }
}
