//! Tests of the binary framing: the published vectors, every cut, every damage.

use proptest::prelude::*;

use super::{Messages, sum};
use crate::model::frames::Frame;

/// A message of these text headers.
fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend(value.as_bytes());
    }
    sealed(&head, payload)
}

fn sealed(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + head.len() + payload.len()).unwrap();
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(head.len()).unwrap().to_be_bytes());
    bytes.extend(sum(&bytes).to_be_bytes());
    bytes.extend(head);
    bytes.extend(payload);
    bytes.extend(sum(&bytes).to_be_bytes());
    bytes
}

fn event(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, payload.as_bytes())
}

fn read(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, String> {
    let (mut messages, mut out) = (Messages::new(4_096), Vec::new());
    for piece in pieces {
        messages.feed(piece, &mut |frame: Frame<'_>| out.push((frame.name.to_owned(), frame.data.to_owned())))?;
    }
    Ok(out)
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn the_published_vectors() {
    let empty = unhex("00000010 00000000 05c248eb 7d98c8ff");
    assert_eq!(read(&[&empty]).unwrap(), owned(&[("", "")]));
    let no_headers = unhex("0000001d 00000000 fd528c5a 7b27666f6f273a27626172277d c3653936");
    assert_eq!(read(&[&no_headers]).unwrap(), owned(&[("", "{'foo':'bar'}")]));
    let one_header = unhex(
        "0000003d 00000020 07fd8396 0c 636f6e74656e742d74797065 07 0010 6170706c69636174696f6e2f6a736f6e
         7b27666f6f273a27626172277d 8d9c08b1",
    );
    assert_eq!(read(&[&one_header]).unwrap(), owned(&[("", "{'foo':'bar'}")]));
}

#[test]
fn events_exceptions_and_errors() {
    let exception = [(":exception-type", "throttlingException"), (":message-type", "exception")];
    let error = [(":error-code", "Bad"), (":error-message", "the \"words\""), (":message-type", "error")];
    let stream = [
        event("messageStart", "{\"role\":\"assistant\"}"),
        message(&exception, b"{\"message\":\"slow\"}"),
        message(&error, b""),
    ];
    let expected = owned(&[
        ("messageStart", "{\"role\":\"assistant\"}"),
        ("exception/throttlingException", "{\"message\":\"slow\"}"),
        ("exception/Bad", "{\"message\":\"the \\\"words\\\"\"}"),
    ]);
    assert_eq!(read(&[&stream.concat()]).unwrap(), expected);
}

#[test]
fn headers_of_every_type_are_stepped_over() {
    let mut head = Vec::new();
    let values: [(u8, &[u8]); 10] = [
        (0, b""),
        (1, b""),
        (2, b"1"),
        (3, b"12"),
        (4, b"1234"),
        (5, b"12345678"),
        (6, b"\x00\x02xy"),
        (7, b"\x00\x01x"),
        (8, b"12345678"),
        (9, b"1234567890123456"),
    ];
    for (kind, value) in values {
        head.extend([1, b'h', kind]);
        head.extend(value);
    }
    head.extend(b"\x0b:event-type\x07\x00\x01e");
    assert_eq!(read(&[&sealed(&head, b"{}")]).unwrap(), owned(&[("e", "{}")]));
    head.extend([1, b'h', 10]);
    assert!(read(&[&sealed(&head, b"{}")]).unwrap_err().contains("headers"));
}

#[test]
fn what_is_too_long_or_contradicts_itself_is_an_error() {
    assert!(read(&[&event("e", &"x".repeat(5_000))]).unwrap_err().contains("more than 4096 bytes"));
    let mut bytes = [0, 0, 0, 20, 0, 0, 0, 5].to_vec();
    bytes.extend(sum(&bytes).to_be_bytes());
    assert!(read(&[&bytes]).unwrap_err().contains("shorter than its parts"));
    let mut bytes = [0, 0, 0, 20, 255, 255, 255, 255].to_vec();
    bytes.extend(sum(&bytes).to_be_bytes());
    assert!(read(&[&bytes]).unwrap_err().contains("shorter than its parts"));
}

proptest! {
    #[test]
    fn however_it_is_cut_the_same_messages_come_out(
        said in proptest::collection::vec(("[a-z]{0,8}", "[a-z\u{e9}\u{1f600}]{0,40}"), 0..5),
        cuts in proptest::collection::vec(0_usize..700, 0..9),
    ) {
        let stream: Vec<u8> = said.iter().flat_map(|(name, text)| event(name, text)).collect();
        let end = stream.len();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(end)).chain([0, end]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&pieces).unwrap(), said);
    }

    #[test]
    fn no_damaged_byte_goes_unnoticed(at in 0_usize..94, flip in 1_u8..=255) {
        let mut bytes = event("contentBlockDelta", "{\"x\":1}");
        let at = at % bytes.len();
        bytes[at] ^= flip;
        // Either the sums tell, or the message now waits for bytes that never come; never a wrong message.
        prop_assert!(read(&[&bytes]).is_err());
    }

    #[test]
    fn nothing_that_comes_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&[&bytes]);
        let _ = read(&[&sealed(&bytes, b"x")]);
    }
}
