//! HTTP/2 by hand: frames as no library would send them.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::harness::PATIENCE;
use crate::support::http::Client;

/// Types of frames (RFC 9113, section 6).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

/// Flags.
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;

/// One frame as it came.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) body: Vec<u8>,
}

/// A connection that speaks HTTP/2.
pub(crate) struct Http2(pub(crate) TcpStream);

impl Http2 {
    /// Connects and says hello. Windows are as wide as they may be, so that only the test decides what waits.
    pub(crate) fn open(client: &Client) -> io::Result<Self> {
        Self::with_window(client, 0x7fff_ffff)
    }

    /// The same with a window of so many bytes for each stream.
    pub(crate) fn with_window(client: &Client, bytes: u32) -> io::Result<Self> {
        let stream = client.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut http = Self(stream);
        http.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
        // SETTINGS_INITIAL_WINDOW_SIZE
        http.send(SETTINGS, 0, 0, &[&[0, 4][..], &bytes.to_be_bytes()].concat())?;
        Ok(http)
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, body: &[u8]) -> io::Result<()> {
        self.0.write_all(&frame(kind, flags, stream, body))
    }

    pub(crate) fn read(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Frame { kind: head[3], flags: head[4], stream, body })
    }

    /// Reads on until a frame is of this kind; `None` when the connection ends before.
    pub(crate) fn until(&mut self, kind: u8) -> Option<Frame> {
        loop {
            match self.read() {
                Ok(frame) if frame.kind == kind => return Some(frame),
                Ok(frame) if frame.kind == SETTINGS && frame.flags & ACK == 0 => {
                    self.send(SETTINGS, ACK, 0, &[]).ok()?;
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The head of a GET (HPACK, nothing of it remembered).
pub(crate) fn get(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (index, value) in [(0x04, path), (0x01, "localhost")] {
        block.extend_from_slice(&[index, u8::try_from(value.len()).unwrap()]);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// The head of a POST of JSON.
pub(crate) fn post(path: &str) -> Vec<u8> {
    let mut block = get(path);
    block[0] = 0x83;
    let kind = "application/json";
    // `content-type` stands at 31 of the static table.
    block.extend_from_slice(&[0x0f, 0x10, u8::try_from(kind.len()).unwrap()]);
    block.extend_from_slice(kind.as_bytes());
    block
}

/// Does this head begin with the status 200?
pub(crate) fn is_ok(head: &Frame) -> bool {
    head.body.first() == Some(&0x88)
}
