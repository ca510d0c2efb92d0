//! The Chrome DevTools Protocol over a pipe: JSON messages, each behind it a NUL.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_systems::browser::limits::{BROWSER_COMMANDS_MAX, BROWSER_MESSAGE_BYTES_MAX};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, split};
use tokio::sync::{mpsc, oneshot};

/// Messages that wait to be written. More wait for these.
const WRITES_MAX: usize = 64;
/// Longer messages are read on a thread that may take its time.
const LARGE_BYTES: usize = 64 << 10;

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The browser has ended.
    Closed,
    /// It did not answer in time.
    Timeout(u64),
    /// It refused.
    Refused(String),
}

/// Something that the browser tells.
#[derive(Debug)]
pub(super) struct Event {
    /// Of which session; empty for the browser itself.
    pub(super) session: String,
    /// What happened.
    pub(super) method: String,
    /// More of it.
    pub(super) params: Value,
}

/// A connection. Copies share it.
#[derive(Clone)]
pub(super) struct Connection(Arc<Shared>);

struct Shared {
    out: mpsc::Sender<Vec<u8>>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

/// The commands that wait for their answers; `None` once the browser has ended.
type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Result<Value, String>>>>>;

/// A message of the browser.
#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    #[serde(default)]
    result: Value,
    error: Option<Failed>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, rename = "sessionId")]
    session: String,
}

#[derive(Deserialize)]
struct Failed {
    message: String,
}

impl Connection {
    /// Speaks over `stream`. `on_event` is told of each event, in order; it must not block.
    pub(super) fn start(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        on_event: impl Fn(Event) + Send + 'static,
    ) -> Self {
        let (from, mut to) = split(stream);
        let (out, mut writes) = mpsc::channel::<Vec<u8>>(WRITES_MAX);
        let waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        drop(tokio::spawn(async move {
            while let Some(message) = writes.recv().await {
                if to.write_all(&message).await.is_err() {
                    break;
                }
            }
        }));
        let answered = Arc::clone(&waiting);
        drop(tokio::spawn(async move {
            read(from, &answered, on_event).await;
            // Those that wait are told by the drop.
            drop(answered.lock().take());
        }));
        Self(Arc::new(Shared { out, waiting, next: AtomicU64::new(1) }))
    }

    /// Has the browser ended, or is it beyond understanding?
    pub(super) fn is_closed(&self) -> bool {
        self.0.waiting.lock().is_none()
    }

    /// Sends a command and waits for its result.
    pub(super) async fn call(
        &self,
        session: &str,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<Value, CallError> {
        self.call_text(session, method, params.to_string(), within).await
    }

    /// As [`call`](Self::call), with parameters that are JSON already. The text becomes the message, without a copy.
    pub(super) async fn call_text(
        &self,
        session: &str,
        method: &str,
        mut message: String,
        within: Duration,
    ) -> Result<Value, CallError> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let session = if session.is_empty() { String::new() } else { format!(",\"sessionId\":\"{session}\"") };
        message.insert_str(0, "{\"params\":");
        message.push_str(&format!(",\"id\":{id},\"method\":\"{method}\"{session}}}\0"));
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            let waiting = waiting.as_mut().ok_or(CallError::Closed)?;
            if waiting.len() >= BROWSER_COMMANDS_MAX {
                return Err(CallError::Refused("too many commands wait for the browser".to_owned()));
            }
            waiting.insert(id, answer);
        }
        let _given_up = Forget { id, waiting: &self.0.waiting };
        let exchanged = async {
            self.0.out.send(message.into_bytes()).await.map_err(|_| CallError::Closed)?;
            answered.await.map_err(|_| CallError::Closed)?.map_err(CallError::Refused)
        };
        tokio::time::timeout(within, exchanged).await.unwrap_or(Err(CallError::Timeout(within.as_secs())))
    }
}

/// Forgets a command whose answer is not wanted any more.
struct Forget<'a> {
    id: u64,
    waiting: &'a Waiting,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.lock().as_mut() {
            waiting.remove(&self.id);
        }
    }
}

/// Reads messages until there are no more, or one that is none.
async fn read(from: impl AsyncRead + Unpin, waiting: &Waiting, on_event: impl Fn(Event)) {
    let mut from = BufReader::new(from);
    loop {
        let mut bytes = Vec::new();
        let read = (&mut from).take(BROWSER_MESSAGE_BYTES_MAX as u64).read_until(0, &mut bytes).await;
        if read.is_err() {
            return;
        }
        if bytes.last() != Some(&0) && bytes.len() == BROWSER_MESSAGE_BYTES_MAX {
            drop(bytes);
            tracing::warn!("the browser sent a message that is too long; it is left out");
            if !skipped(&mut from).await {
                return;
            }
            continue;
        }
        if bytes.pop() != Some(0) {
            return;
        }
        let parsed = if bytes.len() > LARGE_BYTES {
            tokio::task::spawn_blocking(move || serde_json::from_slice::<Message>(&bytes).ok()).await.ok().flatten()
        } else {
            serde_json::from_slice::<Message>(&bytes).ok()
        };
        let Some(Message { id, result, error, method, params, session }) = parsed else {
            tracing::warn!("the browser sent a message that is not JSON of its protocol");
            return;
        };
        match (id, method) {
            (Some(id), _) => {
                let answer = waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id));
                if let Some(answer) = answer {
                    let _unwanted = answer.send(error.map_or(Ok(result), |error| Err(error.message)));
                }
            }
            (None, Some(method)) => on_event(Event { session, method, params }),
            (None, None) => {}
        }
    }
}

/// Reads on to the end of a message. False when there is none.
async fn skipped(from: &mut (impl AsyncBufRead + Unpin)) -> bool {
    loop {
        let (length, is_end) = match from.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => (end + 1, true),
                None => (bytes.len(), false),
            },
            _ => return false,
        };
        from.consume(length);
        if is_end {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::DuplexStream;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn connected() -> (Connection, DuplexStream, mpsc::UnboundedReceiver<Event>) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (tell, told) = mpsc::unbounded_channel();
        let connection = Connection::start(ours, move |event| {
            let _gone = tell.send(event);
        });
        (connection, theirs, told)
    }

    #[tokio::test]
    async fn answers_find_their_commands_and_events_are_told() {
        let (connection, theirs, mut told) = connected();
        let browser = async {
            let mut theirs = BufReader::new(theirs);
            let mut asked = Vec::new();
            theirs.read_until(0, &mut asked).await.unwrap();
            let event = "{\"method\":\"Page.x\",\"params\":{\"a\":1},\"sessionId\":\"s\"}\0";
            theirs.get_mut().write_all(event.as_bytes()).await.unwrap();
            theirs.get_mut().write_all(b"{\"id\":1,\"result\":{\"b\":2}}\0").await.unwrap();
            asked.pop();
            (serde_json::from_slice::<Value>(&asked).unwrap(), theirs)
        };
        let params = json!({ "c": 3 });
        let (answer, (asked, mut theirs)) = tokio::join!(connection.call("s", "Page.y", &params, SOON), browser);
        assert_eq!(answer, Ok(json!({ "b": 2 })));
        assert_eq!(asked, json!({ "id": 1, "method": "Page.y", "sessionId": "s", "params": { "c": 3 } }));
        let event = told.recv().await.unwrap();
        assert_eq!((&*event.session, &*event.method, event.params), ("s", "Page.x", json!({ "a": 1 })));
        let refused = async {
            theirs.get_mut().write_all(b"{\"id\":2,\"error\":{\"code\":-1,\"message\":\"no\"}}\0").await.unwrap();
        };
        let nothing = json!({});
        let (answer, ()) = tokio::join!(connection.call("", "Page.z", &nothing, SOON), refused);
        assert_eq!(answer, Err(CallError::Refused("no".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_and_an_end_are_told_apart() {
        let (connection, theirs, _told) = connected();
        let answer = connection.call("", "Page.y", &json!({}), SOON).await;
        assert_eq!(answer, Err(CallError::Timeout(5)));
        assert!(connection.0.waiting.lock().as_ref().unwrap().is_empty(), "it is forgotten");
        drop(theirs);
        assert_eq!(connection.call("", "Page.y", &json!({}), SOON).await, Err(CallError::Closed));
        assert!(connection.is_closed());
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_left_out() {
        let (_connection, mut theirs, mut told) = connected();
        let long = vec![b' '; BROWSER_MESSAGE_BYTES_MAX + 10];
        for bytes in [&long[..], b"\0{\"method\":\"Page.x\"}\0"] {
            theirs.write_all(bytes).await.unwrap();
        }
        assert_eq!(told.recv().await.unwrap().method, "Page.x");
    }

    #[tokio::test]
    async fn what_is_no_message_ends_the_connection() {
        let (connection, mut theirs, _told) = connected();
        theirs.write_all(b"hello\0").await.unwrap();
        assert_eq!(connection.call("", "Page.y", &json!({}), SOON).await, Err(CallError::Closed));
    }
}
