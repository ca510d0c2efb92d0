//! Frames of `application/vnd.amazon.eventstream`: binary messages with headers, lengths and two sums.
//!
//! | bytes | |
//! |---|---|
//! | 4 | of the whole message |
//! | 4 | of its headers |
//! | 4 | CRC-32 of the eight before |
//! | .. | headers: length and name, type, value |
//! | .. | the payload, JSON here |
//! | 4 | CRC-32 of everything before |
//!
//! Numbers are big-endian. A message is an event, an exception, or (rare) an error that tells code and words in
//! headers.

use std::borrow::Cow;

use serde_json::json;

use super::frames::Frame;

/// What stands before the name of a frame that is an exception.
pub(crate) const EXCEPTION: &str = "exception/";
/// Bytes before the headers.
const PRELUDE: usize = 12;
/// Bytes of a sum.
const SUM: usize = 4;

/// Cuts a stream into messages.
#[derive(Debug)]
pub(crate) struct Messages {
    /// The bytes of a message whose end has not come.
    open: Vec<u8>,
    bytes_max: usize,
}

impl Messages {
    /// At the start of a stream whose messages have at most `bytes_max` bytes.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { open: Vec::new(), bytes_max }
    }

    /// Takes the next piece and gives out every message that it completes.
    ///
    /// # Errors
    /// A sum or a length is wrong, or a message is too long; the stream cannot be read on.
    pub(crate) fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(Frame<'_>)) -> Result<(), String> {
        self.open.extend_from_slice(piece);
        let mut from = 0;
        while let Some(length) = self.length(from)? {
            let Some(message) = self.open.get(from..from + length) else { break };
            give(message, take)?;
            from += length;
        }
        self.open.drain(..from);
        Ok(())
    }

    /// The length of the message that begins at `from`, once its prelude is there.
    fn length(&self, from: usize) -> Result<Option<usize>, String> {
        let Some(prelude) = self.open[from..].first_chunk::<PRELUDE>() else { return Ok(None) };
        if number(&prelude[8..]) != sum(&prelude[..8]) {
            return Err("the stream is corrupt: wrong checksum of a prelude".to_owned());
        }
        let (length, headers) = (number(prelude) as usize, number(&prelude[4..]) as usize);
        if length > self.bytes_max {
            return Err(format!("the stream contains a message of more than {} bytes", self.bytes_max));
        }
        if length < PRELUDE + headers.saturating_add(SUM) {
            return Err("the stream is corrupt: a message is shorter than its parts".to_owned());
        }
        Ok(Some(length))
    }
}

/// Gives out a message whose prelude is right.
fn give(message: &[u8], take: &mut dyn FnMut(Frame<'_>)) -> Result<(), String> {
    let (content, own_sum) = message.split_at(message.len() - SUM);
    if number(own_sum) != sum(content) {
        return Err("the stream is corrupt: wrong checksum of a message".to_owned());
    }
    let (headers, payload) = content[PRELUDE..].split_at(number(&content[4..]) as usize);
    let headers = Headers::read(headers).ok_or("the stream is corrupt: malformed headers")?;
    let payload = String::from_utf8_lossy(payload);
    let (name, text) = match headers.message.as_ref() {
        "exception" => (format!("{EXCEPTION}{}", headers.exception).into(), payload),
        "error" => {
            let words = json!({"message": headers.error_words}).to_string();
            (format!("{EXCEPTION}{}", headers.error_code).into(), words.into())
        }
        _ => (headers.event, payload),
    };
    take(Frame { name: &name, data: &text });
    Ok(())
}

/// The headers that count.
#[derive(Debug, Default)]
struct Headers<'a> {
    message: Cow<'a, str>,
    event: Cow<'a, str>,
    exception: Cow<'a, str>,
    error_code: Cow<'a, str>,
    error_words: Cow<'a, str>,
}

impl<'a> Headers<'a> {
    /// `None` when they are malformed.
    fn read(mut rest: &'a [u8]) -> Option<Self> {
        let mut headers = Self::default();
        while let Some((length, after)) = rest.split_first() {
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            let (kind, after) = after.split_first()?;
            let (value, after) = value(*kind, after)?;
            rest = after;
            let slot = match name {
                b":message-type" => &mut headers.message,
                b":event-type" => &mut headers.event,
                b":exception-type" => &mut headers.exception,
                b":error-code" => &mut headers.error_code,
                b":error-message" => &mut headers.error_words,
                _ => continue,
            };
            *slot = String::from_utf8_lossy(value);
        }
        Some(headers)
    }
}

/// The bytes of a header's value of a type, and what follows them.
fn value(kind: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let fixed = match kind {
        // True and false.
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        // A long and a timestamp.
        5 | 8 => 8,
        // Bytes and text.
        6 | 7 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            return rest.split_at_checked(usize::from(u16::from_be_bytes(*length)));
        }
        // A UUID.
        9 => 16,
        _ => return None,
    };
    rest.split_at_checked(fixed)
}

/// The number in the first four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// CRC-32 as gzip has it.
fn sum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
#[path = "aws_frames_tests.rs"]
pub(crate) mod tests;
