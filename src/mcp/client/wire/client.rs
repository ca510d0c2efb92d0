//! Requests to one server over HTTP, and its answers: bodies and streams of events, both bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentsvc_systems::mcp::limits::{MCP_MESSAGE_BYTES_MAX, MCP_SERVER_BYTES_MAX, MCP_UNREAD_BYTES_MAX};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response, StatusCode, Url};
use zeroize::Zeroizing;

use super::Authorize;
use crate::kernel::config::Secret;
use crate::kernel::egress::{Site, Web};
use crate::kernel::sse::Parser;

/// Bytes of answers of all servers that are held.
static UNREAD: AtomicUsize = AtomicUsize::new(0);

/// Bytes of `WWW-Authenticate`.
const CHALLENGE_BYTES_MAX: usize = 4 << 10;

/// Why there is no answer; sentences without an end, of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// To this request.
    Request(String),
    /// To any: the server cannot be reached.
    Wire(String),
}

/// Asks one server.
pub(super) struct Client {
    site: Site,
    headers: HeaderMap,
    authorization: Option<Arc<dyn Authorize>>,
    /// Bytes of answers that are held.
    held: AtomicUsize,
}

impl Client {
    /// A client of the server at `url`.
    ///
    /// # Errors
    /// A sentence: the URL or a header may not be used.
    pub(super) async fn new(
        web: &Web,
        (url, trusted): (&str, bool),
        headers: &[(Box<str>, Secret)],
        authorization: Option<Arc<dyn Authorize>>,
    ) -> Result<Self, String> {
        let headers = headers.iter().map(|(name, value)| {
            let wrong = || format!("The header {name:?} cannot be sent.");
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            Ok((header, value))
        });
        let headers = headers.collect::<Result<HeaderMap, String>>()?;
        let site = web.site(url, trusted).await.map_err(|error| error.to_string())?;
        Ok(Self { site, headers, authorization, held: AtomicUsize::new(0) })
    }

    /// Where the server is.
    pub(super) fn url(&self) -> &Url {
        self.site.url()
    }

    /// Sends a request. It is sent a second time only when the server did not accept its token, and there is another one.
    pub(super) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&str>,
    ) -> Result<Response, Trouble> {
        let mut is_first = true;
        loop {
            let token = match &self.authorization {
                Some(authorization) => authorization.token().await,
                None => None,
            };
            let request = self.site.request(method.clone(), url.clone());
            let request = request.map_err(|error| Trouble::Request(plain(&error.to_string())))?;
            let mut request = request.headers(self.headers.clone()).headers(headers.clone());
            if let Some(value) = token.as_ref().and_then(bearer) {
                request = request.header(AUTHORIZATION, value);
            }
            if let Some(body) = body {
                request = request.body(body.to_owned());
            }
            let response = self.site.send(request).await.map_err(|unsent| {
                let why = plain(&unsent.error.to_string());
                if unsent.is_unreachable { Trouble::Wire(why) } else { Trouble::Request(why) }
            })?;
            let challenges =
                response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
            let challenge = Some(challenges.collect::<Vec<_>>().join(", "));
            let challenge = challenge.filter(|text| !text.is_empty() && text.len() <= CHALLENGE_BYTES_MAX);
            let is_refused = match response.status() {
                StatusCode::UNAUTHORIZED => true,
                StatusCode::FORBIDDEN => challenge.as_ref().is_some_and(|text| text.contains("insufficient_scope")),
                _ => false,
            };
            if !is_refused {
                if let (Some(authorization), Some(token)) = (&self.authorization, &token) {
                    authorization.accepted(token);
                }
                return Ok(response);
            }
            let status = response.status().as_u16();
            drop(response);
            let has_another = match &self.authorization {
                Some(authorization) if is_first => authorization.refused(token, challenge).await,
                _ => false,
            };
            if !has_another {
                return Err(Trouble::Request(format!("it asks for a sign-in (status {status})")));
            }
            is_first = false;
        }
    }

    /// Reads a body. Its bytes count until what is given beside them is dropped.
    pub(super) async fn read(&self, mut response: Response) -> Result<(Vec<u8>, Held<'_>), Trouble> {
        let (mut bytes, mut held) = (Vec::new(), Held { of_server: &self.held, of_all: &UNREAD, bytes: 0 });
        while let Some(piece) = response.chunk().await.map_err(|error| broken(&error))? {
            if bytes.len() + piece.len() > MCP_MESSAGE_BYTES_MAX {
                return Err(too_long());
            }
            held.grow(piece.len())?;
            bytes.extend_from_slice(&piece);
        }
        Ok((bytes, held))
    }

    /// Reads a stream of events.
    pub(super) fn events(&self, response: Response) -> Events<'_> {
        let held = Held { of_server: &self.held, of_all: &UNREAD, bytes: 0 };
        Events { response, parser: Parser::new(MCP_MESSAGE_BYTES_MAX), ready: VecDeque::new(), has_given: false, held }
    }
}

fn bearer(token: &Secret) -> Option<HeaderValue> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose()));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A sentence as the end of another one.
fn plain(sentence: &str) -> String {
    sentence.trim_end_matches('.').to_owned()
}

fn broken(error: &reqwest::Error) -> Trouble {
    // The error may hold the URL, and with it a key.
    Trouble::Request(if error.is_timeout() { "its answer is too slow" } else { "its answer broke off" }.to_owned())
}

fn too_long() -> Trouble {
    Trouble::Request(format!("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes"))
}

/// What a status that is an error means.
pub(super) fn refusal(status: StatusCode) -> String {
    if status.is_redirection() {
        format!("it answered with a redirect, which is not followed (status {})", status.as_u16())
    } else {
        format!("it answered with status {}", status.as_u16())
    }
}

/// The type of an answer, without its parameters, in lower case.
pub(super) fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Bytes of an answer, counted among those of its server and of all servers.
pub(super) struct Held<'a> {
    of_server: &'a AtomicUsize,
    of_all: &'a AtomicUsize,
    bytes: usize,
}

impl Held<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), Trouble> {
        let of_server = self.of_server.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let of_all = self.of_all.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bytes += bytes;
        if of_server > MCP_SERVER_BYTES_MAX {
            return Err(Trouble::Request(format!(
                "its unfinished answers have more than {MCP_SERVER_BYTES_MAX} bytes"
            )));
        }
        if of_all > MCP_UNREAD_BYTES_MAX {
            let why = format!("the unfinished answers of all MCP servers have more than {MCP_UNREAD_BYTES_MAX} bytes");
            return Err(Trouble::Request(why));
        }
        Ok(())
    }

    fn clear(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.of_server.fetch_sub(bytes, Ordering::Relaxed);
        self.of_all.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name; empty for `message`.
    pub(super) name: String,
    /// Its data.
    pub(super) data: String,
    /// The last id of the stream; empty when there was none.
    pub(super) id: String,
}

/// A stream of events.
pub(super) struct Events<'a> {
    response: Response,
    parser: Parser,
    ready: VecDeque<Event>,
    /// Has an event been given whose bytes still count?
    has_given: bool,
    held: Held<'a>,
}

impl Events<'_> {
    /// The next event; `None` at the end. Its bytes count until the one behind it is asked for: it may wait to be read.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Trouble> {
        if let Some(event) = self.ready.pop_front() {
            return Ok(Some(event));
        }
        if std::mem::take(&mut self.has_given) {
            self.held.clear();
        }
        loop {
            let Some(piece) = self.response.chunk().await.map_err(|error| broken(&error))? else { return Ok(None) };
            self.held.grow(piece.len())?;
            let ready = &mut self.ready;
            let fed = self.parser.feed(&piece, |event| {
                let (name, data, id) = (event.name.to_owned(), event.data.to_owned(), event.id.to_owned());
                ready.push_back(Event { name, data, id });
            });
            fed.map_err(|_| too_long())?;
            if let Some(event) = self.ready.pop_front() {
                self.has_given = true;
                return Ok(Some(event));
            }
        }
    }
}
