//! The requests of pages: the daemon sends them, by the rules of all fetches, and gives the browser the answers. A browser has no
//! network of its own, so nothing gets around it: not redirects, workers, WebSockets, nor names that change their addresses.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::kernel::holder::Holder;
use agentsvc_systems::browser::limits::{BROWSER_POSTS_BYTES_MAX, BROWSER_POSTS_FAMILY_BYTES_MAX};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::chromium::COMMAND_TIME_MAX;
use super::page::{Grant, Page};
use crate::kernel::egress::{Relay, Relayed};

/// Bytes that a part of a body takes beside its text.
const PART_BYTES: usize = 128;
/// Bytes behind the body of an answer, and in a message around it.
const ROOM_BYTES: usize = 512;

impl Page {
    /// A request waits. Never blocks.
    pub(super) fn paused(self: &Arc<Self>, session: String, params: Value) {
        let place = Arc::clone(&self.requests).try_acquire_owned();
        let posted = self.posts.take(self.grant.lock().holder, &params["request"]);
        // What it sends is not kept where there is no memory for it.
        let params = if posted.is_some() { params } else { json!({ "requestId": params["requestId"] }) };
        let page = Arc::clone(self);
        drop(tokio::spawn(async move {
            let answered = async {
                match (place, posted) {
                    (Ok(_place), Some(_posted)) => page.relay(&session, params).await,
                    (_, None) => {
                        page.note("Not loaded: pages send too much at once");
                        page.fail(&session, &params["requestId"], "Aborted").await;
                    }
                    (Err(_), _) => page.fail(&session, &params["requestId"], "Aborted").await,
                }
            };
            tokio::select! {
                () = answered => {}
                () = page.ended() => {}
            }
        }));
    }

    async fn relay(&self, session: &str, mut params: Value) {
        match self.fetched(params["request"].take()).await {
            Ok(mut relayed) => {
                let id = params["requestId"].clone();
                // Held until the browser has the answer.
                let _memory = relayed.memory.take();
                // Megabytes to encode: not on the runtime's threads.
                let text = tokio::task::spawn_blocking(move || fulfilled(&id, relayed)).await;
                let Ok(text) = text else { return };
                let done = self.connection.call_text(session, "Fetch.fulfillRequest", text, COMMAND_TIME_MAX).await;
                if let Err(error) = done {
                    tracing::debug!(?error, "a request of a page is gone");
                }
            }
            Err(why) => {
                self.note(&format!("Not loaded: {why}"));
                self.fail(session, &params["requestId"], "AccessDenied").await;
            }
        }
    }

    async fn fail(&self, session: &str, request: &Value, reason: &str) {
        let answer = json!({ "requestId": request, "errorReason": reason });
        let done = self.connection.call(session, "Fetch.failRequest", &answer, COMMAND_TIME_MAX).await;
        if let Err(error) = done {
            tracing::debug!(?error, "a request of a page is gone");
        }
    }

    /// The answer to a request; an error names its URL.
    async fn fetched(&self, mut request: Value) -> Result<Relayed, String> {
        let url = request["url"].take();
        let url = url.as_str().unwrap_or_default();
        self.fetched_from(url, request).await.map_err(|why| format!("{url}: {why}"))
    }

    async fn fetched_from(&self, url: &str, request: Value) -> Result<Relayed, String> {
        let method = request["method"].as_str().unwrap_or("GET");
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| "the method is not valid".to_owned())?;
        let Grant { holder, network } = self.grant.lock().clone();
        let relay = Relay {
            method,
            url,
            holder,
            network: &network,
            headers: headers(&request["headers"]),
            body: body(&request)?,
            timeout: self.timeout,
        };
        drop(request);
        self.web.relay(relay).await.map_err(|error| error.to_string())
    }
}

/// The headers of a request. What is none is left out.
fn headers(of: &Value) -> HeaderMap {
    let pairs = of.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
    });
    pairs.collect()
}

/// The body of a request: its parts where they are told, else its text.
fn body(request: &Value) -> Result<Vec<u8>, String> {
    let Some(parts) = request["postDataEntries"].as_array() else {
        return match (request["postData"].as_str(), request["hasPostData"].as_bool()) {
            (Some(text), _) => Ok(text.as_bytes().to_vec()),
            (None, Some(true)) => Err("its body is too large, or a file".to_owned()),
            (None, _) => Ok(Vec::new()),
        };
    };
    let mut body = Vec::new();
    for part in parts {
        // A file has none.
        let bytes = part["bytes"].as_str().ok_or("its body is a file")?;
        body.extend(STANDARD.decode(bytes).map_err(|_| "its body cannot be read")?);
    }
    Ok(body)
}

/// Memory for what pages send, and what each who shares it has of it.
#[derive(Clone, Default)]
pub(super) struct Posts(Arc<Mutex<HashMap<Holder, usize>>>);

/// Memory for one request, until it is dropped.
struct Post {
    posts: Posts,
    holder: Holder,
    bytes: usize,
}

impl Drop for Post {
    fn drop(&mut self) {
        let mut held = self.posts.0.lock();
        let left = held.get(&self.holder).map_or(0, |own| own.saturating_sub(self.bytes));
        if left == 0 {
            held.remove(&self.holder);
        } else {
            held.insert(self.holder, left);
        }
    }
}

impl Posts {
    /// Memory for a request as it is told, which is its body as text and in Base64, and for its bytes. `None`: there is none now.
    fn take(&self, holder: Holder, request: &Value) -> Option<Post> {
        let text = request["postData"].as_str().map_or(0, str::len);
        let parts = request["postDataEntries"].as_array().into_iter().flatten();
        let parts: usize = parts.map(|part| part["bytes"].as_str().map_or(0, str::len) + PART_BYTES).sum();
        let bytes = text + 2 * parts;
        let mut held = self.0.lock();
        let (all, own) = (held.values().sum::<usize>(), held.get(&holder).copied().unwrap_or(0));
        if all + bytes > BROWSER_POSTS_BYTES_MAX || own + bytes > BROWSER_POSTS_FAMILY_BYTES_MAX {
            return None;
        }
        held.insert(holder, own + bytes);
        drop(held);
        Some(Post { posts: self.clone(), holder, bytes })
    }
}

/// The answer, for the browser.
fn fulfilled(id: &Value, relayed: Relayed) -> String {
    let Relayed { status, headers, body, memory: _ } = relayed;
    let headers = headers
        .iter()
        .map(|(name, value)| json!({ "name": name.as_str(), "value": String::from_utf8_lossy(value.as_bytes()) }));
    let head = json!({
        "requestId": id,
        "responseCode": status.as_u16(),
        "responsePhrase": status.canonical_reason().unwrap_or("Unknown"),
        "responseHeaders": headers.collect::<Vec<_>>(),
    });
    // The body goes into the text at once: it may be large.
    let mut text = head.to_string();
    text.pop();
    text.reserve(body.len() / 3 * 4 + ROOM_BYTES);
    text.push_str(",\"body\":\"");
    STANDARD.encode_string(body, &mut text);
    text.push_str("\"}");
    text
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use reqwest::StatusCode;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn bodies_come_from_parts_or_text_and_files_are_refused() {
        let parts = json!({ "hasPostData": true, "postData": "x", "postDataEntries": [{ "bytes": "YQ==" }, { "bytes": "/w==" }] });
        assert_eq!(body(&parts), Ok(vec![b'a', 0xff]));
        assert_eq!(body(&json!({ "hasPostData": true, "postData": "q=1" })), Ok(b"q=1".to_vec()));
        assert_eq!(body(&json!({})), Ok(Vec::new()));
        assert!(body(&json!({ "hasPostData": true })).is_err());
        assert!(body(&json!({ "hasPostData": true, "postDataEntries": [{}] })).is_err());
    }

    #[test]
    fn answers_keep_each_cookie_and_any_status() {
        let cookie = |text| (HeaderName::from_static("set-cookie"), HeaderValue::from_static(text));
        let status = StatusCode::from_u16(299).unwrap();
        let headers = vec![cookie("a=1"), cookie("b=2")];
        let relayed = Relayed { status, headers, body: b"hi".to_vec(), memory: None };
        let answer: Value = serde_json::from_str(&fulfilled(&json!("r"), relayed)).unwrap();
        assert_eq!((&answer["responsePhrase"], &answer["body"]), (&json!("Unknown"), &json!("aGk=")));
        assert_eq!(answer["responseHeaders"][1], json!({ "name": "set-cookie", "value": "b=2" }));
    }

    #[test]
    fn pages_send_no_more_at_once_than_there_is_memory_for() {
        let posts = Posts::default();
        let post = |bytes: usize| json!({ "postData": "x".repeat(bytes) });
        let [one, other, third] = [1, 2, 3].map(|family| Holder::Family(AgentId(Uuid::from_u128(family))));
        let first = posts.take(one, &post(BROWSER_POSTS_FAMILY_BYTES_MAX - 10));
        assert!(first.is_some() && posts.take(one, &post(11)).is_none() && posts.take(one, &json!({})).is_some());
        let second = posts.take(other, &post(BROWSER_POSTS_FAMILY_BYTES_MAX));
        assert!(second.is_some() && posts.take(third, &post(11)).is_none() && posts.take(third, &post(10)).is_some());
        drop(first);
        assert!(posts.take(one, &post(11)).is_some());
        drop(second);
        assert!(posts.0.lock().is_empty());
        let parts = json!({ "postDataEntries": [{ "bytes": "x".repeat(BROWSER_POSTS_FAMILY_BYTES_MAX / 2) }] });
        assert!(posts.take(one, &parts).is_none());
    }

    #[test]
    fn headers_that_are_none_are_left_out() {
        let read = headers(&json!({ "X-A": "1", "bad name": "2", "X-B": "a\nb", "X-C": 3 }));
        assert_eq!((read.len(), read["x-a"].to_str().unwrap()), (1, "1"));
    }
}
