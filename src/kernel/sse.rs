//! Reads server-sent events (the WHATWG event stream format) from bytes that arrive in any pieces.
//!
//! Both readers of streams use it: the model driver and the CLI. Lines end with CR, LF or CRLF, a leading byte
//! order mark and comments are skipped, `data` lines of one event are joined by LF, invalid UTF-8 becomes the
//! replacement character. The `retry` field is ignored: neither reader reconnects. However the bytes are cut,
//! the same events come out; a property test holds it to that.

/// Bytes of an event's name, and of an id. Longer ones are ignored, as unknown fields are: every later event has the id again,
/// and a reader that keeps events keeps it with each of them.
const NAME_BYTES_MAX: usize = 512;

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One line or one event is longer than the parser's bound. The parser is of no more use.
    #[error("the stream contains a line or event of more than {bytes_max} bytes")]
    TooLong {
        /// The bound.
        bytes_max: usize,
    },
}

/// One event, borrowed from the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty when the stream names none (which means `message`).
    pub name: &'a str,
    /// The `data` lines, joined by LF.
    pub data: &'a str,
    /// The last `id` seen on this stream, this event's or an earlier one's; empty when there was none.
    pub id: &'a str,
}

/// The state between two pieces of a stream.
#[derive(Debug)]
pub struct Parser {
    /// The bytes of a line whose end has not arrived.
    line: Vec<u8>,
    /// The data lines of the open event, each followed by LF.
    data: String,
    /// The open event's name.
    name: String,
    /// The last id seen.
    id: String,
    /// The last byte was CR: an LF that follows belongs to it.
    skip_line_feed: bool,
    /// No line has ended yet, so a byte order mark may still come.
    at_start: bool,
    /// Bound of a line and of an event's data, in bytes.
    bytes_max: usize,
}

impl Parser {
    /// A parser at the start of a stream. A line, or an event's data, of more than `bytes_max` bytes is an error.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            data: String::new(),
            name: String::new(),
            id: String::new(),
            skip_line_feed: false,
            at_start: true,
            bytes_max,
        }
    }

    /// Takes the next piece and calls `on_event` for every event that it completes, in order.
    ///
    /// An event is complete at its blank line; what stands after the last one when the stream ends is no event.
    ///
    /// # Errors
    /// [`Error::TooLong`]; events completed before the long line have been given out.
    pub fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.skip_line_feed) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.within(self.line.len() + rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.skip_line_feed = rest[end] == b'\r';
            self.within(self.line.len() + end)?;
            if self.line.is_empty() {
                self.end_line(&rest[..end], &mut on_event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..end]);
                self.end_line(&line, &mut on_event)?;
                line.clear();
                self.line = line;
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    fn within(&self, bytes: usize) -> Result<(), Error> {
        if bytes > self.bytes_max { Err(Error::TooLong { bytes_max: self.bytes_max }) } else { Ok(()) }
    }

    /// Takes one whole line, without its end.
    fn end_line(&mut self, line: &[u8], on_event: &mut impl FnMut(Event<'_>)) -> Result<(), Error> {
        let line = match line.strip_prefix(b"\xEF\xBB\xBF") {
            Some(after_mark) if self.at_start => after_mark,
            _ => line,
        };
        self.at_start = false;
        if line.is_empty() {
            self.end_event(on_event);
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = match text.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (text.as_ref(), ""),
        };
        let is_short = value.len() <= NAME_BYTES_MAX;
        match field {
            "data" => {
                self.within(self.data.len() + value.len())?;
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" if is_short => value.clone_into(&mut self.name),
            "id" if is_short && !value.contains('\0') => value.clone_into(&mut self.id),
            // A comment (empty field name), `retry`, or a field of a later standard.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self, on_event: &mut impl FnMut(Event<'_>)) {
        // Without a data line there is no event, whatever else was said.
        if let Some(data) = self.data.strip_suffix('\n') {
            on_event(Event { name: &self.name, data, id: &self.id });
        }
        self.data.clear();
        self.name.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Error, NAME_BYTES_MAX, Parser};

    type Owned = (String, String, String);

    /// What comes out when `bytes` arrive in pieces that end at `cuts`.
    fn read(bytes: &[u8], cuts: &[usize], bytes_max: usize) -> (Vec<Owned>, Result<(), Error>) {
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let mut parser = Parser::new(bytes_max);
        let mut events = Vec::new();
        let mut start = 0;
        for end in ends {
            let result = parser.feed(&bytes[start..end], |event| {
                events.push((event.name.to_owned(), event.data.to_owned(), event.id.to_owned()));
            });
            if result.is_err() {
                return (events, result);
            }
            start = end;
        }
        (events, Ok(()))
    }

    fn whole(text: &str) -> Vec<Owned> {
        read(text.as_bytes(), &[], 1_000).0
    }

    fn event(name: &str, data: &str, id: &str) -> Owned {
        (name.to_owned(), data.to_owned(), id.to_owned())
    }

    #[test]
    fn fields_lines_and_ends() {
        assert_eq!(whole("data: a\n\n"), [event("", "a", "")]);
        assert_eq!(whole("event: e\r\ndata: a\r\n\r\n"), [event("e", "a", "")]);
        assert_eq!(whole("event: e\rdata: a\r\r"), [event("e", "a", "")]);
        assert_eq!(whole("data: a\ndata:  b\ndata\n\n"), [event("", "a\n b\n", "")]);
        assert_eq!(whole("id: 7\ndata: a\n\ndata: b\n\n"), [event("", "a", "7"), event("", "b", "7")]);
        assert_eq!(whole(": hi\nretry: 5\nwhat: x\ndata:a\n\n"), [event("", "a", "")]);
    }

    #[test]
    fn what_is_no_event() {
        assert!(whole("event: e\n\n").is_empty());
        assert!(whole("data: never ended\n").is_empty());
        assert_eq!(whole("event: lost\n\ndata: a\n\n"), [event("", "a", "")]);
        assert_eq!(whole("data:\n\n"), [event("", "", "")]);
        assert_eq!(whole("id: a\0b\ndata: x\n\n"), [event("", "x", "")]);
    }

    #[test]
    fn long_ids_and_names_are_ignored() {
        let (fits, long) = ("x".repeat(NAME_BYTES_MAX), "y".repeat(NAME_BYTES_MAX + 1));
        let text = format!("id: {fits}\nevent: {fits}\ndata: a\n\nid: {long}\nevent: {long}\ndata: b\n\n");
        let (events, _) = read(text.as_bytes(), &[700], 10_000);
        assert_eq!(events, [event(&fits, "a", &fits), event("", "b", &fits)]);
    }

    #[test]
    fn byte_order_mark_only_at_the_start() {
        assert_eq!(whole("\u{feff}data: a\n\n\u{feff}data: b\n\n"), [event("", "a", "")]);
        let (events, _) = read("\u{feff}data: a\n\n".as_bytes(), &[1, 2], 100);
        assert_eq!(events, [event("", "a", "")]);
    }

    #[test]
    fn invalid_text_is_replaced() {
        let (events, _) = read(b"data: \xff\xc3\n\n", &[7], 100);
        assert_eq!(events, [event("", "\u{fffd}\u{fffd}", "")]);
    }

    #[test]
    fn long_lines_and_events_are_refused() {
        let too_long = Err(Error::TooLong { bytes_max: 10 });
        assert_eq!(read(b"data: 12345678901", &[3], 10).1, too_long);
        assert_eq!(read(b"data: 1234\n", &[], 10).1, Ok(()));
        assert_eq!(read(b"data: 1234\ndata: 5678\ndata: 9\n\n", &[], 10).1, too_long);
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(b"data: ".to_vec()),
            Just(b"data".to_vec()),
            Just(b"event: ".to_vec()),
            Just(b"id:".to_vec()),
            Just(b": ".to_vec()),
            Just(b"\xEF\xBB\xBF".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..12),
            "[a-z\u{e9}\u{1f600} ]{0,12}".prop_map(String::into_bytes),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn cutting_never_changes_the_events(
            bytes in stream(),
            cuts in proptest::collection::vec(any::<usize>(), 0..30),
            bytes_max in 4_usize..60,
        ) {
            prop_assert_eq!(read(&bytes, &[], bytes_max), read(&bytes, &cuts, bytes_max));
            let every: Vec<usize> = (0..bytes.len()).collect();
            prop_assert_eq!(read(&bytes, &[], bytes_max), read(&bytes, &every, bytes_max));
        }

        #[test]
        fn what_is_written_is_read(name in "[a-z_]{0,8}", id in "[a-z0-9]{1,8}", data in "[a-z\n\u{e9} :]{0,40}") {
            let lines: String = data.split('\n').map(|line| format!("data: {line}\n")).collect();
            let text = format!("event: {name}\nid: {id}\n{lines}\n");
            let (events, result) = read(text.as_bytes(), &[3, 9], 1_000);
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(events, vec![(name, data, id)]);
        }
    }
}
