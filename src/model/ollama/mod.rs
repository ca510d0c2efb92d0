//! The protocol of Ollama's own chat, in lines or whole.

mod answer;
mod request;

use reqwest::{Url, header};

use super::Request;
use super::error::CallError;
use super::failure;
use super::frames::Framing;
use super::wire::{Post, Wire};

/// The key of a `base_url`'s query that says how long the model stays in memory after the call, such as `30m` or `-1`.
const KEEP_ALIVE: &str = "keep_alive";

/// The protocol.
#[derive(Debug)]
pub(crate) struct Ollama;

impl Wire for Ollama {
    type Answer = answer::Lines;

    const FRAMING: Framing = Framing::Lines;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let (url, keep_alive) = endpoint(&target.base_url).ok_or_else(|| failure::bad_url(target))?;
        // A server of one's own wants no key; one behind a proxy may.
        Post::new(url, request::body(request, keep_alive)).key(target, header::AUTHORIZATION, "Bearer ")
    }
}

/// Where to chat, and how long the model is to be kept. `base_url` is the server's root; one that ends with `/v1`, its
/// OpenAI-compatible side, or with `/api` is good too.
fn endpoint(base_url: &str) -> Option<(Url, Option<String>)> {
    let mut url = Url::parse(base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let keep_alive = url.query_pairs().find(|(key, _)| key == KEEP_ALIVE).map(|(_, value)| value.into_owned());
    let others: Vec<(String, String)> =
        url.query_pairs().filter(|(key, _)| key != KEEP_ALIVE).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    url.set_query(None);
    if !others.is_empty() {
        url.query_pairs_mut().extend_pairs(others);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let root = ["/api/chat", "/v1/chat/completions", "/api", "/v1"].iter().find_map(|end| path.strip_suffix(end));
    url.set_path(&format!("{}/api/chat", root.unwrap_or(&path)));
    Some((url, keep_alive))
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn endpoints() {
        let at = |base: &str| endpoint(base).map(|(url, keep)| (url.to_string(), keep));
        let here = Some(("http://127.0.0.1:11434/api/chat".to_owned(), None));
        for base in ["", "/", "/v1", "/v1/", "/api", "/api/chat", "/v1/chat/completions"] {
            assert_eq!(at(&format!("http://127.0.0.1:11434{base}")), here, "{base}");
        }
        let kept = Some(("https://h/x/api/chat?a=b".to_owned(), Some("30m".to_owned())));
        assert_eq!(at("https://h/x/?keep_alive=30m&a=b"), kept);
        assert_eq!((at("ftp://h"), at("")), (None, None));
    }
}
