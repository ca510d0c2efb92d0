//! Answers of model providers, whole or streamed, over every driver: read or refused, and the same however they are cut
//! into pieces.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::turn::outcome::ModelAnswer;
use bytes::Bytes;
use futures_util::stream;
use hyper::http;
use tokio::runtime::{Builder, Runtime};

use super::feed::{Feed, cut, parts};

/// What the answer is said to be; nothing for the last.
const TYPES: &[&str] =
    &["text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream", "application/json", ""];

thread_local! {
    /// It stays until the process ends.
    static RUNTIME: &'static Runtime = {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        Box::leak(Box::new(runtime))
    };
}

/// `input` is a driver, what its answer is said to be, the size of the pieces, and the answer. Behind a fourth byte that
/// is odd, messages of AWS are written as text: each a line with its name, and its payload up to a line `---`.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    let kind = *feed.one(&DriverKind::ALL);
    let (said, size, framed) = (*feed.one(TYPES), usize::from(feed.byte()), feed.byte() % 2 == 1);
    let body = if framed { messages(feed.0) } else { feed.0.to_vec() };
    let whole = answer(kind, said, vec![body.clone()]);
    let in_pieces = answer(kind, said, cut(&body, size));
    assert_eq!(whole, in_pieces, "{kind:?} {said}");
}

fn answer(kind: DriverKind, said: &'static str, pieces: Vec<Vec<u8>>) -> Result<ModelAnswer, String> {
    let pieces = stream::iter(pieces.into_iter().map(|piece| Ok::<_, std::convert::Infallible>(Bytes::from(piece))));
    let mut response = http::Response::new(reqwest::Body::wrap_stream(pieces));
    if !said.is_empty() {
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(said));
    }
    let read = agentsvc::fuzzing::model_answer(kind, true, response.into());
    RUNTIME.with(|runtime| runtime.block_on(read)).map_err(|error| error.message)
}

/// Messages of AWS with right lengths and sums.
fn messages(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts(text, "---") {
        let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
        let (name, payload) = (&part[..end.min(255)], part.get(end + 1..).unwrap_or_default());
        let mut headers = Vec::new();
        let (kind, key) = match name.strip_prefix(b"!") {
            Some(_) => (&b"exception"[..], &b":exception-type"[..]),
            None => (&b"event"[..], &b":event-type"[..]),
        };
        for (key, value) in [(&b":message-type"[..], kind), (key, name.strip_prefix(b"!").unwrap_or(name))] {
            headers.push(key.len() as u8);
            headers.extend_from_slice(key);
            headers.extend_from_slice(&[7, 0, value.len() as u8]);
            headers.extend_from_slice(value);
        }
        let begin = all.len();
        all.extend_from_slice(&(headers.len() as u32 + payload.len() as u32 + 16).to_be_bytes());
        all.extend_from_slice(&(headers.len() as u32).to_be_bytes());
        let sum = crc32(&all[begin..]);
        all.extend_from_slice(&sum.to_be_bytes());
        all.extend_from_slice(&headers);
        all.extend_from_slice(payload);
        let sum = crc32(&all[begin..]);
        all.extend_from_slice(&sum.to_be_bytes());
    }
    all
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, step)
}
