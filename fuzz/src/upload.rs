//! Uploads: forms that arrive in pieces of any size, never a panic, never a 5xx.

use agentsvc_api::chat::fuzzing;
use agentsvc_components::AgentId;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, http};

use super::feed::{Feed, cut, parts};
use super::harness::Harness;
use super::http::furnish;

thread_local! {
    /// Uploads change nothing but the files, of which few are kept. It stays until the process ends.
    static HOUSE: (&'static Harness, AgentId) = {
        let harness = Box::leak(Box::new(Harness::new()));
        furnish(harness);
        (harness, harness.agents()[0])
    };
}

/// `input` is the size of the pieces, the content type and, behind a line `---`, the form. A line end of the form may be
/// written as LF: behind a second byte that is even, each becomes CR and LF.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    let (size, plain) = (usize::from(feed.byte()), feed.byte() % 2 == 1);
    let parts = parts(feed.0, "---");
    let Ok(kind) = HeaderValue::from_bytes(parts[0]) else { return };
    let form = parts.get(1).copied().unwrap_or_default();
    let form = if plain { form.to_vec() } else { with_returns(form) };
    HOUSE.with(|(harness, agent)| {
        let pieces = cut(&form, size).into_iter().map(|piece| Ok::<_, std::io::Error>(Frame::data(Bytes::from(piece))));
        let request =
            Request::post(format!("/api/agents/{}/upload", agent)).header(CONTENT_TYPE, kind).header(HOST, "localhost");
        let request: http::Result<_> = request.body(StreamBody::new(stream::iter(pieces.collect::<Vec<_>>())));
        let answer = harness.wait(fuzzing::answer(&harness.api, request.expect("a request"))).expect("an answer");
        assert!(answer.status().as_u16() < 500, "{}", answer.status());
    });
}

fn with_returns(text: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len() + 16);
    for byte in text {
        if *byte == b'\n' {
            all.push(b'\r');
        }
        all.push(*byte);
    }
    all
}
