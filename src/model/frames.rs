//! Frames: the pieces that a streamed answer is cut into, whatever pieces the network brings.

use super::aws_frames;
use crate::kernel::sse;

/// How a stream is cut into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document a line.
    Lines,
    /// The binary messages of AWS.
    AwsMessages,
}

impl Framing {
    /// What a content type says: so many frames, or (`Some(None)`) one whole document; `None` when it says nothing.
    pub(crate) fn of_content_type(kind: &str) -> Option<Option<Self>> {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "text/event-stream" => Some(Some(Self::Events)),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Some(Self::Lines)),
            "application/vnd.amazon.eventstream" => Some(Some(Self::AwsMessages)),
            _ if kind.contains("json") => Some(None),
            _ => None,
        }
    }
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// What kind of frame it is, where the framing names kinds; else empty.
    pub(crate) name: &'a str,
    /// What stands in it.
    pub(crate) data: &'a str,
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(crate) enum Framer {
    /// Server-sent events.
    Events(sse::Parser),
    /// Lines.
    Lines(Lines),
    /// Binary messages.
    AwsMessages(aws_frames::Messages),
}

impl Framer {
    /// At the start of a stream whose frames have at most `bytes_max` bytes.
    pub(crate) fn new(framing: Framing, bytes_max: usize) -> Self {
        match framing {
            Framing::Events => Self::Events(sse::Parser::new(bytes_max)),
            Framing::Lines => Self::Lines(Lines { open: Vec::new(), bytes_max }),
            Framing::AwsMessages => Self::AwsMessages(aws_frames::Messages::new(bytes_max)),
        }
    }

    /// Takes the next piece and gives out every frame that it completes, in order.
    ///
    /// # Errors
    /// What is wrong with the stream, to stand behind a colon; the frames before it have been given out.
    pub(crate) fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(Frame<'_>)) -> Result<(), String> {
        match self {
            Self::Events(parser) => parser
                .feed(piece, |event| take(Frame { name: event.name, data: event.data }))
                .map_err(|error| error.to_string()),
            Self::Lines(lines) => lines.feed(piece, take),
            Self::AwsMessages(messages) => messages.feed(piece, take),
        }
    }

    /// The stream has ended; gives out what is complete by that.
    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> Result<(), String> {
        match self {
            // An event without its blank line is none, nor is half a message.
            Self::Events(_) | Self::AwsMessages(_) => Ok(()),
            Self::Lines(lines) => lines.feed(b"\n", take),
        }
    }
}

/// Lines of a stream; empty ones are no frames.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The bytes of a line whose end has not come.
    open: Vec<u8>,
    bytes_max: usize,
}

impl Lines {
    fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(Frame<'_>)) -> Result<(), String> {
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            self.within(line.len())?;
            if self.open.is_empty() {
                give(line, take);
            } else {
                self.open.extend_from_slice(line);
                give(&std::mem::take(&mut self.open), take);
            }
            rest = after;
        }
        self.within(rest.len())?;
        self.open.extend_from_slice(rest);
        Ok(())
    }

    fn within(&self, more: usize) -> Result<(), String> {
        if self.open.len() + more > self.bytes_max {
            return Err(format!("the stream contains a line of more than {} bytes", self.bytes_max));
        }
        Ok(())
    }
}

fn give(line: &[u8], take: &mut dyn FnMut(Frame<'_>)) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        take(Frame { name: "", data: &String::from_utf8_lossy(line) });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Frame, Framer, Framing};

    fn frames(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<String>, String> {
        let mut framer = Framer::new(framing, 64);
        let mut out = Vec::new();
        let mut take = |frame: Frame<'_>| out.push(format!("{}|{}", frame.name, frame.data));
        for piece in pieces {
            framer.feed(piece, &mut take)?;
        }
        framer.finish(&mut take)?;
        Ok(out)
    }

    #[test]
    fn content_types() {
        let of = |kind| Framing::of_content_type(kind);
        assert_eq!(of("text/event-stream; charset=utf-8"), Some(Some(Framing::Events)));
        assert_eq!(of("application/x-ndjson"), Some(Some(Framing::Lines)));
        assert_eq!(of("application/vnd.amazon.eventstream"), Some(Some(Framing::AwsMessages)));
        assert_eq!((of("application/json"), of("application/problem+json")), (Some(None), Some(None)));
        assert_eq!(of("text/plain"), None);
    }

    #[test]
    fn lines_are_frames_and_the_last_needs_no_end() {
        let all = frames(Framing::Lines, &[b"{\"a\":1}\r\n\n{\"b\"", b":2}\n{\"c\":3}"]).unwrap();
        assert_eq!(all, ["|{\"a\":1}", "|{\"b\":2}", "|{\"c\":3}"]);
        assert_eq!(frames(Framing::Events, &[b"event: x\ndata: 1\n\ndata: 2\n"]).unwrap(), ["x|1"]);
    }

    #[test]
    fn a_long_line_is_an_error() {
        assert!(frames(Framing::Lines, &[&[b'x'; 40], &[b'y'; 40]]).unwrap_err().contains("more than 64 bytes"));
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_same_lines_come_out(
            text in "([a-zé]{0,9}\n?){0,9}",
            cuts in proptest::collection::vec(0_usize..80, 0..6),
        ) {
            let whole = frames(Framing::Lines, &[text.as_bytes()]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(frames(Framing::Lines, &pieces), whole);
        }
    }
}
