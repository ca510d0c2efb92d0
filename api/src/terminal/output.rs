//! What the daemon sends to clients of terminals: text, or JSON frames.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Bytes of a character that may wait for the rest of it.
const CHARACTER_BYTES_MAX: usize = 4;
/// What ends by a signal has this and the number of the signal as its code.
const SIGNALS: i32 = 128;

/// How a client wants what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// What the screen shows.
    Text,
    /// Frames.
    Json,
}

/// Output on its way, in pieces of whole characters.
#[derive(Debug)]
pub(super) struct Output {
    format: Format,
    /// The beginning of a character.
    held: Vec<u8>,
}

impl Output {
    pub(super) const fn new(format: Format) -> Self {
        Self { format, held: Vec::new() }
    }

    /// The frame that says which shell it is; none as text.
    pub(super) fn started(&self, shell: &str, pid: Option<u32>, is_root: bool) -> Option<Utf8Bytes> {
        self.frame(json!({ "type": "started", "shell": shell, "pid": pid, "isRoot": is_root }))
    }

    /// What the screen shows next. A character that is not whole waits for the rest.
    pub(super) fn piece(&mut self, bytes: &[u8]) -> Option<Utf8Bytes> {
        self.held.extend_from_slice(bytes);
        let whole = whole(&self.held);
        let rest = self.held.split_off(whole);
        let piece = std::mem::replace(&mut self.held, rest);
        self.said(piece)
    }

    /// What waits although the rest never came.
    pub(super) fn rest(&mut self) -> Option<Utf8Bytes> {
        let held = std::mem::take(&mut self.held);
        self.said(held)
    }

    fn said(&self, piece: Vec<u8>) -> Option<Utf8Bytes> {
        if piece.is_empty() {
            return None;
        }
        match (self.format, String::from_utf8(piece)) {
            (Format::Text, Ok(text)) => Some(text.into()),
            (Format::Text, Err(error)) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned().into()),
            (Format::Json, Ok(text)) => self.frame(json!({ "type": "output", "data": text })),
            (Format::Json, Err(error)) => {
                self.frame(json!({ "type": "output", "data": STANDARD.encode(error.as_bytes()), "binary": true }))
            }
        }
    }

    /// The frame at the end of the shell; none as text.
    pub(super) fn exit(&self, code: Option<i32>) -> Option<Utf8Bytes> {
        let signal = code.filter(|code| *code > SIGNALS).map(|code| code - SIGNALS);
        let mut frame = json!({ "type": "exit", "code": code });
        if let Some(signal) = signal {
            frame["signal"] = json!(signal);
        }
        self.frame(frame)
    }

    /// Something is wrong: a frame, or a line on the screen.
    pub(super) fn error(&self, content: &str) -> Utf8Bytes {
        self.frame(json!({ "type": "error", "content": content }))
            .unwrap_or_else(|| format!("\r\n[agentsvc: {content}]\r\n").into())
    }

    fn frame(&self, frame: Value) -> Option<Utf8Bytes> {
        (self.format == Format::Json).then(|| frame.to_string().into())
    }
}

/// How many of the bytes are whole characters, or no characters at all.
fn whole(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(CHARACTER_BYTES_MAX - 1);
    // The last byte that begins a character of several bytes.
    let Some(begin) = (from..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0) else { return bytes.len() };
    match std::str::from_utf8(&bytes[begin..]) {
        Err(error) if error.error_len().is_none() => begin,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<Value> {
        let mut output = Output::new(Format::Json);
        let mut all: Vec<_> = pieces.iter().filter_map(|piece| output.piece(piece)).collect();
        all.extend(output.rest());
        all.iter().map(|frame| serde_json::from_str(frame.as_str()).unwrap()).collect()
    }

    #[test]
    fn a_character_in_two_pieces_is_sent_whole() {
        let text = "aé€𝄞b".as_bytes();
        for at in 0..=text.len() {
            let all: String =
                frames(&[&text[..at], &text[at..]]).iter().map(|frame| frame["data"].as_str().unwrap()).collect();
            assert_eq!(all, "aé€𝄞b", "cut at {at}");
        }
        let bytes: Vec<_> = text.chunks(1).collect();
        assert_eq!(frames(&bytes).len(), 5, "a frame for each character");
    }

    #[test]
    fn what_is_no_text_is_sent_as_it_is() {
        let binary = |bytes: &[u8]| json!({ "type": "output", "data": STANDARD.encode(bytes), "binary": true });
        assert_eq!(frames(&[b"a\xff\xfe"]), [binary(b"a\xff\xfe")]);
        assert_eq!(frames(&[b"\xc3", b"("]), [binary(b"\xc3(")]);
        assert_eq!(frames(&[b"a\xc3"]), [json!({ "type": "output", "data": "a" }), binary(b"\xc3")]);
        let mut text = Output::new(Format::Text);
        assert_eq!(text.piece(b"a\xffb").unwrap().as_str(), "a\u{fffd}b");
        assert!(text.started("sh", None, false).is_none() && text.exit(Some(0)).is_none() && text.piece(b"").is_none());
        assert_eq!(text.error("x").as_str(), "\r\n[agentsvc: x]\r\n");
    }

    #[test]
    fn the_end_has_a_code_or_a_signal() {
        let exit =
            |code| serde_json::from_str::<Value>(Output::new(Format::Json).exit(code).unwrap().as_str()).unwrap();
        assert_eq!(exit(Some(3)), json!({ "type": "exit", "code": 3 }));
        assert_eq!(exit(Some(137)), json!({ "type": "exit", "code": 137, "signal": 9 }));
        assert_eq!(exit(None), json!({ "type": "exit", "code": null }));
    }
}
