//! Slowloris: many connections that say one byte now and then.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::harness::{Memory, Neighbour, PATIENCE, connections, harness, wait};
use crate::support::http::Client;

/// Connections of each kind.
const SLOW: usize = 150;

/// One that says a byte now and then.
struct Dribble {
    stream: TcpStream,
    /// What it says over and over.
    word: &'static [u8],
    said: usize,
    answer: Vec<u8>,
    is_closed: bool,
}

impl Dribble {
    fn begin(client: &Client, head: &str, word: &'static [u8]) -> Self {
        let stream = client.connect().unwrap();
        (&stream).write_all(head.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, word, said: 0, answer: Vec::new(), is_closed: false }
    }

    /// One byte more, and a look at whether the daemon has had enough.
    fn go_on(&mut self) {
        let byte = self.word[self.said % self.word.len()];
        match self.stream.write(&[byte]) {
            Ok(_) => self.said += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_closed = true,
        }
        let mut piece = [0; 1_024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => self.is_closed = true,
                Ok(count) => {
                    self.answer.extend_from_slice(&piece[..count]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.is_closed = true,
            }
            return;
        }
    }
}

pub(crate) fn slow_heads_and_slow_bodies_are_given_up_and_others_are_served() {
    let daemon = harness("[webhook_triggers]\nenabled = true\nrate_limit_per_minute = 1000000\n");
    let neighbour = Neighbour::of(&daemon);
    let memory = Memory::of(&daemon);
    let hook =
        "POST /api/hooks/agent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 60000\r\n\r\n";
    let head = "GET /api/health HTTP/1.1\r\nhost: localhost\r\n";
    let body = "POST /api/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n";
    let chunks =
        "POST /api/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let kinds: [(&str, &'static [u8], Option<u16>); 5] = [
        (head, b"x-slow: y\r\n", None),
        ("", b"GET /api/health?x=", None),
        (body, b" ", Some(408)),
        (hook, b" ", Some(408)),
        (chunks, b"1\r\nx\r\n", Some(408)),
    ];
    let mut all: Vec<(Dribble, Option<u16>)> = Vec::new();
    for (begin, word, answer) in kinds {
        all.extend((0..SLOW).map(|_| (Dribble::begin(&daemon, begin, word), answer)));
    }
    assert!(connections(&daemon) >= Some(SLOW), "they are all there");
    neighbour.is_served();
    let deadline = Instant::now() + PATIENCE;
    while all.iter().any(|(slow, _)| !slow.is_closed) {
        assert!(Instant::now() < deadline, "{} stay", all.iter().filter(|(slow, _)| !slow.is_closed).count());
        all.iter_mut().filter(|(slow, _)| !slow.is_closed).for_each(|(slow, _)| slow.go_on());
        // The slowness is the subject.
        std::thread::sleep(Duration::from_millis(150));
    }
    for (slow, answer) in &all {
        let said = String::from_utf8_lossy(&slow.answer);
        match answer {
            // A reset may eat the answer, as the client still writes.
            Some(status) if !said.is_empty() => {
                assert!(said.starts_with(&format!("HTTP/1.1 {status} ")) && said.contains("{\"error\":"), "{said}");
            }
            Some(_) => {}
            None => assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}"),
        }
    }
    let answered = all.iter().filter(|(slow, answer)| answer.is_some() && !slow.answer.is_empty()).count();
    assert!(answered > SLOW / 2, "{answered} of {} slow bodies were told why", 3 * SLOW);
    wait("their connections are gone", || (connections(&daemon)? < SLOW).then_some(()));
    memory.is_flat(&daemon, "slow clients");
    neighbour.leave();
}
