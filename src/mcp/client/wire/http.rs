//! Streamable HTTP: each message is a POST, whose answer is JSON or a stream of events.
//!
//! A request is sent once. When its answer is lost, a stream that has ids is asked for from where it broke off; the
//! request itself is not repeated. A session that the server has forgotten is begun anew.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

use super::client::{Client, Trouble, content_type, refusal};
use super::message::{Memory, Parsed, parsed};
use crate::mcp::client::connection::{Connection, Failure, Outgoing};
use crate::mcp::client::session::Version;

/// Names the session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Names the version that was agreed on.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Says after which event a stream goes on.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Names the method, for versions without sessions.
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Names the tool, the prompt or the resource, for versions without sessions.
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Bytes of a session's id.
const SESSION_BYTES_MAX: usize = 1 << 10;
/// Messages under way. More wait.
const POSTS_MAX: usize = 128;
/// Time that a server may take to accept a message that has no answer.
const NOTICE_TIME_MAX: Duration = Duration::from_secs(10);
/// Time that a new session may take.
const ANEW_TIME_MAX: Duration = Duration::from_secs(30);
/// Time that the end of a session may take.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// Time until a stream that broke off is asked for again.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// The longest such time for the stream of what the server says by itself.
const RESUME_AFTER_MAX: Duration = Duration::from_secs(60);
/// How often a stream is asked for without an event in between.
const RESUMES_MAX: u32 = 10;

/// A server over streamable HTTP.
pub(super) struct Http {
    connection: Connection,
    client: Arc<Client>,
    session: Mutex<Option<HeaderValue>>,
    /// The text of `initialize`, for a session that is begun anew.
    first: OnceLock<Value>,
    /// Held while a session is begun anew.
    beginning: tokio::sync::Mutex<()>,
}

/// What became of a message.
enum Posted {
    /// It was accepted, answered or given up.
    Done,
    /// The server knows that the session has begun.
    Begun,
    /// The server cannot be reached.
    Over(String),
}

impl Http {
    pub(super) fn new(connection: Connection, client: Client) -> Self {
        let (client, session) = (Arc::new(client), Mutex::default());
        connection.note_headers();
        Self { connection, client, session, first: OnceLock::new(), beginning: tokio::sync::Mutex::default() }
    }

    /// Carries messages until the server cannot be reached, and says why.
    pub(super) async fn carry(self, mut messages: mpsc::Receiver<Outgoing>) -> String {
        let _closing = self.connection.closing();
        let mut posts = FuturesUnordered::new();
        let listening = self.listen();
        tokio::pin!(listening);
        let (mut is_beginning, mut is_listening) = (false, false);
        loop {
            tokio::select! {
                // Servers refuse requests before they know that the session has begun.
                outgoing = messages.recv(), if posts.len() < POSTS_MAX && !is_beginning => {
                    let Some(outgoing) = outgoing else { return "it is not needed any more".to_owned() };
                    is_beginning = outgoing.message["method"] == "notifications/initialized";
                    posts.push(self.post(outgoing));
                }
                Some(posted) = posts.next() => match posted {
                    Posted::Done => {}
                    Posted::Begun => (is_beginning, is_listening) = (false, true),
                    Posted::Over(why) => return why,
                },
                why = &mut listening, if is_listening => return why,
            }
        }
    }

    /// Sends one message and takes its answer.
    async fn post(&self, outgoing: Outgoing) -> Posted {
        let id = outgoing.id();
        let Outgoing { message, gone, headers } = outgoing;
        let is_begun = message["method"] == "notifications/initialized";
        let is_stateless = self.connection.version().is_some_and(Version::is_stateless);
        if is_stateless && message["method"] == "notifications/cancelled" {
            // The request's connection is closed, which means the same.
            return Posted::Done;
        }
        let exchange = self.exchange(&message, &headers, id);
        let ended = match gone {
            Some(gone) => tokio::select! {
                biased;
                _ = gone => Ok(()),
                ended = exchange => ended,
            },
            None => tokio::time::timeout(NOTICE_TIME_MAX, exchange).await.unwrap_or(Ok(())),
        };
        let (why, is_over) = match ended {
            Ok(()) if is_begun => return Posted::Begun,
            Ok(()) => return Posted::Done,
            Err(Trouble::Request(why)) => (why, false),
            Err(Trouble::Wire(why)) => (why, true),
        };
        match id {
            Some(id) => self.connection.settle(id, Err(Failure::Unanswered(why.clone()))),
            None => tracing::debug!(server = self.connection.name(), why, "an MCP server did not take a message"),
        }
        match is_over {
            true => Posted::Over(why),
            false if is_begun => Posted::Begun,
            false => Posted::Done,
        }
    }

    async fn exchange(&self, message: &Value, mirrored: &[(String, String)], id: Option<u64>) -> Result<(), Trouble> {
        let method = message["method"].as_str().unwrap_or_default();
        let used = self.session.lock().clone();
        let response = self.send(message, mirrored, used.as_ref()).await?;
        if method == "initialize" && response.status().is_success() {
            self.first.get_or_init(|| message.clone());
            *self.session.lock() = session_of(&response);
        }
        if response.status() != StatusCode::NOT_FOUND || used.is_none() {
            return self.answered(response, id).await;
        }
        self.begin_anew(used.as_ref()).await?;
        if method == "tools/call" {
            let why = "its session had ended, so that it did not accept the call; a new session has begun";
            return Err(Trouble::Request(why.to_owned()));
        }
        let session = self.session.lock().clone();
        let response = self.send(message, mirrored, session.as_ref()).await?;
        self.answered(response, id).await
    }

    async fn send(
        &self,
        message: &Value,
        mirrored: &[(String, String)],
        session: Option<&HeaderValue>,
    ) -> Result<Response, Trouble> {
        let method = message["method"].as_str();
        let mut headers = self.headers("application/json, text/event-stream", session);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if method == Some("initialize") {
            headers.remove(VERSION);
        }
        if self.connection.version().is_some_and(Version::is_stateless) {
            let params = &message["params"];
            let name = params["name"].as_str().or_else(|| params["uri"].as_str());
            headers.extend(method.and_then(|method| Some((METHOD, header(method)?))));
            headers.extend(name.and_then(|name| Some((NAME, header(name)?))));
            let named = |(name, value): &(String, String)| Some((name.parse::<HeaderName>().ok()?, header(value)?));
            headers.extend(mirrored.iter().filter_map(named));
        }
        let (url, body) = (self.client.url(), message.to_string());
        self.client.send(&Method::POST, url, &headers, Some(&body)).await
    }

    fn headers(&self, accept: &'static str, session: Option<&HeaderValue>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let version = self.connection.version().map(|version| HeaderValue::from_static(version.as_str()));
        headers.extend(version.map(|version| (VERSION, version)));
        headers.extend(session.map(|session| (SESSION, session.clone())));
        headers
    }

    /// Takes the answer to a message.
    async fn answered(&self, response: Response, id: Option<u64>) -> Result<(), Trouble> {
        let status = response.status();
        let content_type = content_type(&response);
        match id {
            // What has no answer needs none.
            None if status.is_success() => return Ok(()),
            None => return Err(Trouble::Request(refusal(status))),
            Some(id) if status.is_success() && content_type == "text/event-stream" => {
                return self.streamed(response, id).await;
            }
            Some(_) if content_type != "application/json" => {
                let why = "its answer is neither JSON nor a stream of events".to_owned();
                return Err(Trouble::Request(if status.is_success() { why } else { refusal(status) }));
            }
            Some(_) => {}
        }
        let (body, held) = self.client.read(response).await?;
        let parsed = parsed(body).await;
        drop(held);
        match parsed {
            Parsed::Messages(answer, memory) => self.connection.take_all(answer, &memory, id),
            Parsed::Noise if status.is_success() => {
                return Err(Trouble::Request("its answer is not valid JSON".to_owned()));
            }
            Parsed::Noise => return Err(Trouble::Request(refusal(status))),
            Parsed::Refused(why) => return Err(Trouble::Request(why)),
        }
        match id {
            Some(id) if self.connection.waits_for(id) && status.is_success() => {
                Err(Trouble::Request("its answer is that of another request".to_owned()))
            }
            Some(id) if self.connection.waits_for(id) => Err(Trouble::Request(refusal(status))),
            _ => Ok(()),
        }
    }

    /// Takes a stream until it has the answer to a request. A stream that breaks off is asked for again.
    async fn streamed(&self, response: Response, id: u64) -> Result<(), Trouble> {
        let (mut last, mut resumes, mut response) = (String::new(), 0, Some(response));
        loop {
            let mut why = "its answer ended too early".to_owned();
            if let Some(response) = response.take() {
                let mut events = self.client.events(response);
                loop {
                    match events.next().await {
                        Ok(Some(event)) => {
                            (last, resumes) = (event.id, 0);
                            self.take(event.data, Some(id)).await?;
                        }
                        Ok(None) => break,
                        Err(Trouble::Request(reason) | Trouble::Wire(reason)) => {
                            why = reason;
                            break;
                        }
                    }
                    if !self.connection.waits_for(id) {
                        return Ok(());
                    }
                }
            }
            let is_stateless = self.connection.version().is_some_and(Version::is_stateless);
            if last.is_empty() || resumes == RESUMES_MAX || is_stateless {
                return Err(Trouble::Request(why));
            }
            resumes += 1;
            tokio::time::sleep(RESUME_AFTER).await;
            let resumed = self.get(&last).await?;
            if resumed.status().is_client_error() {
                return Err(Trouble::Request(why));
            }
            response = Some(resumed).filter(is_stream);
        }
    }

    /// Takes the messages of an event, in the answer to the request `within` if it is one.
    async fn take(&self, data: String, within: Option<u64>) -> Result<(), Trouble> {
        match parsed(data.into_bytes()).await {
            Parsed::Messages(messages, memory) => self.connection.take_all(messages, &memory, within),
            Parsed::Noise => {
                tracing::debug!(server = self.connection.name(), "an MCP server sent an event that is no message");
            }
            Parsed::Refused(why) => return Err(Trouble::Request(why)),
        }
        Ok(())
    }

    /// Asks for a stream: that of what the server says by itself, or one that goes on after an event.
    async fn get(&self, last: &str) -> Result<Response, Trouble> {
        let session = self.session.lock().clone();
        let mut headers = self.headers("text/event-stream", session.as_ref());
        headers.extend(HeaderValue::from_str(last).ok().filter(|_| !last.is_empty()).map(|last| (LAST_EVENT, last)));
        self.client.send(&Method::GET, self.client.url(), &headers, None).await
    }

    /// Takes what the server says by itself, for ever. Gives why it cannot be reached.
    async fn listen(&self) -> String {
        let (mut last, mut rest) = (String::new(), RESUME_AFTER);
        loop {
            let session = self.session.lock().clone();
            match self.get(&last).await {
                Ok(response) if is_stream(&response) => {
                    let mut events = self.client.events(response);
                    while let Ok(Some(event)) = events.next().await {
                        (last, rest) = (event.id, RESUME_AFTER);
                        // What is too large is left out.
                        let _too_large = self.take(event.data, None).await;
                    }
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND && session.is_some() => {
                    last.clear();
                    match self.begin_anew(session.as_ref()).await {
                        Err(Trouble::Wire(why)) => return why,
                        Err(Trouble::Request(_)) | Ok(()) => {}
                    }
                }
                // It says nothing by itself.
                Ok(response) if response.status().is_client_error() && !may_pass(response.status()) => {
                    return std::future::pending().await;
                }
                Err(Trouble::Wire(why)) => return why,
                Ok(_) | Err(Trouble::Request(_)) => {}
            }
            tokio::time::sleep(rest).await;
            rest = (rest * 2).min(RESUME_AFTER_MAX);
        }
    }

    /// Begins a session in the place of `ended`, unless that has happened.
    async fn begin_anew(&self, ended: Option<&HeaderValue>) -> Result<(), Trouble> {
        let _alone = self.beginning.lock().await;
        if self.session.lock().as_ref() != ended {
            return Ok(());
        }
        let begin = tokio::time::timeout(ANEW_TIME_MAX, self.begin()).await;
        let why = match begin {
            Ok(Ok(())) => {
                // The new session may have other tools.
                self.connection.change_tools();
                return Ok(());
            }
            Ok(Err(Trouble::Request(why) | Trouble::Wire(why))) => why,
            Err(_) => format!("it did not answer within {} seconds", ANEW_TIME_MAX.as_secs()),
        };
        Err(Trouble::Wire(format!("its session ended and no new one began: {why}")))
    }

    async fn begin(&self) -> Result<(), Trouble> {
        let odd = || Trouble::Request("its answer to `initialize` is not valid".to_owned());
        let mut message = self.first.get().cloned().ok_or_else(odd)?;
        message["id"] = json!("anew");
        let response = self.send(&message, &[], None).await?;
        if !response.status().is_success() {
            return Err(Trouble::Request(refusal(response.status())));
        }
        let session = session_of(&response);
        let mut answer = None;
        if is_stream(&response) {
            let mut events = self.client.events(response);
            while let (None, Some(event)) = (&answer, events.next().await?) {
                answer = read_message(event.data.into_bytes()).await.filter(|(message, _)| message["id"] == "anew");
            }
        } else {
            let (body, held) = self.client.read(response).await?;
            answer = read_message(body).await;
            drop(held);
        }
        let version = answer.as_ref().and_then(|(answer, _)| answer["result"]["protocolVersion"].as_str());
        if version.is_none() || version != self.connection.version().map(Version::as_str) {
            return Err(odd());
        }
        drop(answer);
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} });
        let response = self.send(&begun, &[], session.as_ref()).await?;
        if !response.status().is_success() {
            return Err(Trouble::Request(refusal(response.status())));
        }
        *self.session.lock() = session;
        Ok(())
    }
}

impl Drop for Http {
    /// Ends the session at the server.
    fn drop(&mut self) {
        let Some(session) = self.session.get_mut().take() else { return };
        let (headers, client) = (self.headers("application/json", Some(&session)), Arc::clone(&self.client));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(runtime.spawn(async move {
            let ended = client.send(&Method::DELETE, client.url(), &headers, None);
            // A server that cannot be reached ends its sessions by itself.
            let _late = tokio::time::timeout(END_TIME_MAX, ended).await;
        }));
    }
}

async fn read_message(text: Vec<u8>) -> Option<(Value, Memory)> {
    if let Parsed::Messages(message, memory) = parsed(text).await { Some((message, memory)) } else { None }
}

/// The session that an answer names.
fn session_of(response: &Response) -> Option<HeaderValue> {
    let session = response.headers().get(SESSION)?;
    let is_valid = (1..=SESSION_BYTES_MAX).contains(&session.len());
    let is_visible = session.as_bytes().iter().all(u8::is_ascii_graphic);
    (is_valid && is_visible).then(|| {
        let mut session = session.clone();
        session.set_sensitive(true);
        session
    })
}

/// Is it an error that the next request may not have?
const fn may_pass(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

fn is_stream(response: &Response) -> bool {
    response.status().is_success() && content_type(response) == "text/event-stream"
}

/// A text as the value of a header; in Base64 where it is not plain.
fn header(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && text.trim() == text;
    if is_plain && !text.starts_with("=?") {
        HeaderValue::from_str(text).ok()
    } else {
        HeaderValue::from_str(&format!("=?base64?{}?=", BASE64.encode(text))).ok()
    }
}
