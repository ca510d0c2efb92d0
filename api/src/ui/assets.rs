//! The web page at `/` (spec 1, Authentication: `GET /` is public): its files, embedded at build time from `api/ui`.
//!
//! No build step and nothing from elsewhere: plain ES modules that a `default-src 'self'` policy lets through.
//! They hold no secret, hence need no key; the page asks for one when the API answers 401.
//!
//! The address of a file names the [`version`] of all of them, so that browsers keep them for ever; the page itself is
//! asked for each time.

use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use agentsvc_systems::kernel::record::{digest, hex};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use include_dir::{Dir, include_dir};

#[cfg(test)]
mod tests;

/// What stands in the page for the [`version`].
const VERSION_MARK: &str = "{version}";

/// One file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its path below `api/ui`, such as `lib/api.js`.
    pub(crate) path: &'static str,
    body: &'static [u8],
    packed: OnceLock<Bytes>,
}

impl Asset {
    fn new(path: &'static str, body: &'static [u8]) -> Self {
        Self { path, body, packed: OnceLock::new() }
    }

    /// Its `content-type`, by the ending of its name.
    pub(crate) fn content_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("html") => "text/html; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// Its bytes.
    pub(crate) fn plain(&self) -> Bytes {
        Bytes::from_static(self.body)
    }

    /// Its bytes, compressed with gzip; done once, by the first who asks.
    pub(crate) fn packed(&self) -> Bytes {
        self.packed.get_or_init(|| packed(self.body)).clone()
    }
}

/// `body` as gzip.
fn packed(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::best());
    // Writing into memory does not fail; were it to, the plain bytes would be wrong under the same header.
    encoder.write_all(body).and_then(|()| encoder.finish()).map(Bytes::from).expect("memory takes every byte")
}

/// The page itself, with the addresses of its files.
pub(crate) struct Page {
    /// Its bytes.
    pub(crate) plain: Bytes,
    /// The same as gzip.
    pub(crate) packed: Bytes,
    /// Its `ETag`.
    pub(crate) tag: String,
}

/// `index.html`, made by the first who asks.
pub(crate) fn page() -> &'static Page {
    static PAGE: LazyLock<Page> = LazyLock::new(|| {
        let plain = Bytes::from(include_str!("../../ui/index.html").replace(VERSION_MARK, version()));
        let tag = format!("\"{}\"", fingerprint([&plain[..]]));
        Page { packed: packed(&plain), plain, tag }
    });
    &PAGE
}

/// Names the content of all files together.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| fingerprint(ASSETS.iter().flat_map(|asset| [asset.path.as_bytes(), asset.body])));
    &VERSION
}

/// The file at `path` below `api/ui`.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

/// The first 16 hex digits of the SHA-256 of `parts`, each with its length.
fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    hex(&digest(parts)[..8])
}

/// The folder `api/ui`. `build.rs` asks for another build when a file is added to it or removed.
static UI: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/ui");

/// Every file of the page but `index.html`, in the order of their paths.
pub(crate) static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let (mut assets, mut folders) = (Vec::new(), vec![&UI]);
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        assets.extend(folder.files().filter_map(|file| Some(Asset::new(file.path().to_str()?, file.contents()))));
    }
    assets.retain(|asset| asset.path != "index.html");
    assets.sort_unstable_by_key(|asset| asset.path);
    assets
});
