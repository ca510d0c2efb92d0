//! Versions of the protocol, as server and as client.

use hyper::HeaderMap;
use serde_json::{Map, Value, json};

use crate::http::error::Error;
use crate::mcp::error_codes;
use crate::mcp::message::{Failure, Params};

/// Names the version of a request over HTTP.
const HEADER: &str = "mcp-protocol-version";
/// Names the method of a request over HTTP, as its message does.
const METHOD_HEADER: &str = "mcp-method";
/// Names the tool of a request over HTTP, as its message does.
const NAME_HEADER: &str = "mcp-name";
/// Names the version in the `_meta` of a request.
const META_KEY: &str = "io.modelcontextprotocol/protocolVersion";

agentsvc_components::enum_words! {
    /// A version of the protocol that is spoken, from the oldest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Version [ALL, as_str, parse] {
        /// The first one.
        V2024_11_05 = "2024-11-05",
        /// Brings this transport. Also that of requests without a header.
        V2025_03_26 = "2025-03-26",
        /// Takes no batches any more.
        V2025_06_18 = "2025-06-18",
        /// The last one with `initialize`.
        V2025_11_25 = "2025-11-25",
        /// Without sessions: each request says its version, and `server/discover` is in the place of `initialize`.
        V2026_07_28 = "2026-07-28",
    }
}

impl Version {
    /// The newest one that `initialize` can agree on.
    pub const INITIALIZED: Self = Self::V2025_11_25;

    /// All spellings, from the oldest.
    pub(crate) fn supported() -> Vec<&'static str> {
        Self::ALL.map(Self::as_str).to_vec()
    }

    /// The version that the header names.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Error> {
        let Some(value) = headers.get(HEADER) else { return Ok(Self::V2025_03_26) };
        value.to_str().ok().and_then(|text| Self::parse(text.trim())).ok_or_else(|| {
            Error::of(error_codes::MCP_VERSION, "unknown MCP-Protocol-Version").with("supported", Self::supported())
        })
    }

    /// What `initialize` answers to a client that asks for version `asked`: the same, or the newest.
    pub(crate) fn negotiated(asked: &str) -> Self {
        Self::parse(asked).filter(|version| *version <= Self::INITIALIZED).unwrap_or(Self::INITIALIZED)
    }

    /// Does a body hold several messages?
    pub(crate) const fn has_batches(self) -> bool {
        matches!(self, Self::V2024_11_05 | Self::V2025_03_26)
    }

    /// Does each request say its version itself? Then there is no `initialize`, and there are no sessions.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// Holds what a stateless request says of itself against its headers. Two readers of it must not see two requests.
    ///
    /// # Errors
    /// Codes -32602 and -32020.
    pub(crate) fn check_request(self, headers: &HeaderMap, method: &str, params: &Params) -> Result<(), Failure> {
        if !self.is_stateless() {
            return Ok(());
        }
        let named = params.get("_meta").and_then(|meta| meta.get(META_KEY)).and_then(Value::as_str);
        let Some(named) = named else {
            return Err(Failure::params(format!("`_meta` must hold `{META_KEY}`")));
        };
        if named != self.as_str() {
            return Err(Failure::new(Failure::HEADERS, "`_meta` and MCP-Protocol-Version name different versions"));
        }
        if headers.get(METHOD_HEADER).is_some_and(|header| header != method) {
            return Err(Failure::new(Failure::HEADERS, "Mcp-Method differs from the method of the message"));
        }
        let name = params.get("name").and_then(Value::as_str);
        if headers.get(NAME_HEADER).is_some_and(|header| Some(header.as_bytes()) != name.map(str::as_bytes)) {
            return Err(Failure::new(Failure::HEADERS, "Mcp-Name differs from the name in the message"));
        }
        Ok(())
    }

    /// Adds to a result what this version demands. A list may change at any time, and depends on the key.
    pub(crate) fn complete(self, result: &mut Map<String, Value>, is_cacheable: bool) {
        if self.is_stateless() {
            result.insert("resultType".to_owned(), json!("complete"));
            if is_cacheable {
                result.insert("ttlMs".to_owned(), json!(0));
                result.insert("cacheScope".to_owned(), json!("private"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_agrees_on_what_the_client_speaks_or_on_the_newest() {
        for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(Version::negotiated(known).as_str(), known);
        }
        for other in ["2026-07-28", "2023-01-01", "3000-01-01", ""] {
            assert_eq!(Version::negotiated(other).as_str(), "2025-11-25", "{other}");
        }
        assert!(Version::ALL.is_sorted());
    }
}
