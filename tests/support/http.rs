//! A blocking HTTP/1.1 client of one request per connection, over std sockets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::PATIENCE;

/// Where the daemon listens, and the key that a client sends.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    pub(crate) key: Option<String>,
    /// How long it waits for each piece of an answer.
    pub(crate) patience: Duration,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case, in the order of the wire.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Client {
    /// A client without a key.
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Self { addr, key: None, patience: PATIENCE }
    }

    /// One that does not wait long, for a daemon that may be frozen.
    pub(crate) fn hasty(addr: SocketAddr) -> Self {
        Self { patience: Duration::from_secs(4), ..Self::new(addr) }
    }

    /// Sends one request and reads the whole response.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<Reply> {
        let (head, mut body) = self.open(method, path, headers, body)?;
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        Ok(Reply { body: bytes, ..head })
    }

    /// Sends one request; gives the head of the response (its `body` empty) and the body to read from.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<(Reply, Body)> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.addr);
        if let Some(key) = &self.key {
            request += &format!("authorization: Bearer {key}\r\n");
        }
        if let Some(body) = body {
            request += &format!("content-length: {}\r\n", body.len());
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                request += "content-type: application/json\r\n";
            }
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut bytes = (request + "\r\n").into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        let stream = self.connect()?;
        // A daemon that refuses a body early answers and stops reading: a broken pipe here is no failure.
        let sent = (&stream).write_all(&bytes);
        let (reply, body) = Body::of(stream, method == "HEAD").map_err(|error| sent.err().unwrap_or(error))?;
        Ok((reply, body))
    }

    /// A connection with timeouts, so that no test hangs.
    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.addr)?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Sends `bytes` as they are and reads one response.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<Reply> {
        let stream = self.connect()?;
        let sent = (&stream).write_all(bytes);
        let (head, mut body) = Body::of(stream, false).map_err(|error| sent.err().unwrap_or(error))?;
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)?;
        Ok(Reply { body: bytes, ..head })
    }

    /// As [`try_send`](Self::try_send); panics when there is no response.
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Reply {
        match self.try_send(method, path, headers, body) {
            Ok(reply) => reply,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], None)
    }

    /// A `POST` without a body.
    #[track_caller]
    pub(crate) fn poke(&self, path: &str) -> Reply {
        self.send("POST", path, &[], None)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], Some(body.to_string().as_bytes()))
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[], Some(body.to_string().as_bytes()))
    }

    #[track_caller]
    pub(crate) fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send("PATCH", path, &[], Some(body.to_string().as_bytes()))
    }
}

impl Reply {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; `Null` when empty. Panics unless the status is `status`.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "body: {}", self.text());
        if self.body.is_empty() {
            return Value::Null;
        }
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("not JSON ({error}): {}", self.text()),
        }
    }

    /// The error sentence. Panics unless this is a well-formed error response with `status`.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> String {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/json"), "errors are JSON");
        match body.get("error").and_then(Value::as_str) {
            Some(sentence) if !sentence.is_empty() => sentence.to_owned(),
            _ => panic!("an error body without a sentence in `error`: {body}"),
        }
    }

    /// As [`refused`](Self::refused), and the body's `field` or sentence names `field`.
    #[track_caller]
    pub(crate) fn refused_field(&self, status: u16, field: &str) {
        let sentence = self.refused(status);
        let named = self.expect(status)["field"] == field || sentence.contains(field);
        assert!(named, "the error does not name '{field}': {}", self.text());
    }
}

/// A response body as it arrives, without its framing.
pub(crate) struct Body {
    wire: BufReader<TcpStream>,
    framing: Framing,
}

enum Framing {
    /// Until the connection closes.
    Close,
    /// This many bytes more.
    Length(u64),
    /// Chunked, this many bytes more in the current chunk.
    Chunked(u64),
    /// Nothing more.
    End,
}

impl Body {
    fn of(stream: TcpStream, headless: bool) -> io::Result<(Reply, Self)> {
        let mut wire = BufReader::new(stream);
        let head = read_head(&mut wire)?;
        let framing = if headless || matches!(head.status, 204 | 304) {
            Framing::End
        } else if head.header("transfer-encoding").is_some() {
            Framing::Chunked(0)
        } else if let Some(length) = head.header("content-length") {
            Framing::Length(length.parse().map_err(bad)?)
        } else {
            Framing::Close
        };
        Ok((head, Self { wire, framing }))
    }

    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            if self.wire.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        u64::from_str_radix(line.trim(), 16).map_err(bad)
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Framing::Chunked(0) = self.framing {
            self.framing = match self.next_chunk()? {
                0 => Framing::End,
                length => Framing::Chunked(length),
            };
        }
        let most = match &self.framing {
            Framing::End | Framing::Length(0) => return Ok(0),
            Framing::Close => buffer.len(),
            Framing::Length(left) | Framing::Chunked(left) => (*left).min(buffer.len() as u64) as usize,
        };
        let count = self.wire.read(&mut buffer[..most])?;
        match &mut self.framing {
            Framing::Length(left) | Framing::Chunked(left) if count > 0 => *left -= count as u64,
            Framing::Length(_) | Framing::Chunked(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Framing::Close | Framing::End => {}
        }
        Ok(count)
    }
}

fn read_head(wire: &mut impl BufRead) -> io::Result<Reply> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if wire.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let status: u16 = status.ok_or_else(|| bad("no status line"))?;
    if status == 100 {
        return read_head(wire);
    }
    Ok(Reply { status, headers, body: Vec::new() })
}

fn bad(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
