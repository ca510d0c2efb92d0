//! Connections that stay open, and many requests over few of them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Instant;

use serde_json::Value;

use super::harness::PATIENCE;
use crate::support::http::{Client, Reply};

/// Connections of a flood.
const CONNECTIONS: usize = 24;
/// Requests of one connection that are on their way at once.
const WINDOW: usize = 32;

/// A connection for many requests.
pub(crate) struct Wire(pub(crate) BufReader<TcpStream>);

impl Wire {
    pub(crate) fn open(client: &Client) -> io::Result<Self> {
        let stream = client.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// The next answer, whose length must be told.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        let mut lines = Vec::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reply.body.resize(length, 0);
        self.0.read_exact(&mut reply.body)?;
        Ok(reply)
    }
}

/// A request that leaves the connection open.
pub(crate) fn request(method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    match body.map(Value::to_string) {
        None => (head + "\r\n").into_bytes(),
        Some(body) => {
            let length = body.len();
            format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
        }
    }
}

/// Answers of a flood by their status: how many, and one of them.
pub(crate) type Answers = BTreeMap<u16, (usize, Reply)>;

/// Sends the requests that `make` gives for these numbers, many at once, and reads all answers.
#[track_caller]
pub(crate) fn flood(client: &Client, numbers: Range<usize>, make: impl Fn(usize) -> Vec<u8> + Sync) -> Answers {
    let share = |from: usize| -> io::Result<Answers> {
        let mut answers = Answers::new();
        let mine: Vec<usize> = numbers.clone().skip(from).step_by(CONNECTIONS).collect();
        let mut wire = Wire::open(client)?;
        for window in mine.chunks(WINDOW) {
            let bytes: Vec<u8> = window.iter().flat_map(|number| make(*number)).collect();
            wire.send(&bytes)?;
            for _ in window {
                let reply = wire.reply()?;
                answers.entry(reply.status).or_insert_with(|| (0, reply)).0 += 1;
            }
        }
        Ok(answers)
    };
    let mut all = Answers::new();
    std::thread::scope(|scope| {
        let shares: Vec<_> = (0..CONNECTIONS).map(|from| scope.spawn(move || share(from))).collect();
        for answers in shares {
            let answers = answers.join().expect("no thread panics").expect("every request is answered");
            for (status, (count, reply)) in answers {
                all.entry(status).or_insert_with(|| (0, reply)).0 += count;
            }
        }
    });
    all
}

/// How often this status came.
pub(crate) fn count(answers: &Answers, status: u16) -> usize {
    answers.get(&status).map_or(0, |(count, _)| *count)
}

/// Reads until the other side closes, in whichever way, and gives what came. Panics where it goes on sending.
#[track_caller]
pub(crate) fn drain(stream: &mut TcpStream) -> Vec<u8> {
    let deadline = Instant::now() + PATIENCE;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    // A reset is an end as well; what came before it is kept.
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        bytes.extend_from_slice(&piece[..count]);
        assert!(Instant::now() < deadline, "the other side does not close");
    }
    bytes
}
