//! A server that answers as its script says, to see what clients do with refusals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came: `<method> <path>`, and the `Idempotency-Key`.
pub(crate) type Asked = (String, Option<String>);

/// Answers by `<method> <path>`: each request takes the next one, and the last is repeated. The empty answer is none at all:
/// the connection stays open.
pub(crate) type Script = &'static [(&'static str, &'static [&'static str])];

/// The server; its threads end with the test program.
pub(crate) struct Refusing {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Refusing {
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free loopback port");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || answer(&stream, script, &all));
            }
        });
        Self { url, asked }
    }

    /// The `Idempotency-Key`s of the requests to a route so far.
    pub(crate) fn asked(&self, route: &str) -> Vec<Option<String>> {
        let all = self.asked.lock().expect("no thread panicked");
        all.iter().filter(|(asked, _)| asked == route).map(|(_, key)| key.clone()).collect()
    }
}

fn answer(mut stream: &TcpStream, script: Script, all: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut key, mut length) = (String::new(), None, 0);
    reader.read_line(&mut line).ok()?;
    let route = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("idempotency-key") => key = Some(value.to_owned()),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let number = {
        let mut all = all.lock().ok()?;
        all.push((route.clone(), key));
        all.iter().filter(|(asked, _)| *asked == route).count() - 1
    };
    let (_, answers) = script.iter().find(|(scripted, _)| *scripted == route)?;
    let answer = answers.get(number).or(answers.last())?;
    stream.write_all(answer.as_bytes()).ok()?;
    if answer.is_empty() {
        // Until the client leaves.
        reader.read_exact(&mut [0]).ok()?;
    }
    Some(())
}
