//! How long the daemon takes from exec to its first answer.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::daemon::command;

/// A daemon that is killed whatever comes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One start on an empty home with these lines of configuration; the time from exec to the first 200 of `/api/health`.
#[allow(dead_code, reason = "not every program starts on an empty home")]
pub(crate) fn start(config: &str) -> Duration {
    start_on(&tempfile::tempdir().expect("a temporary directory"), config)
}

/// As [`start`], on a home that is there.
pub(crate) fn start_on(home: &tempfile::TempDir, config: &str) -> Duration {
    // The port is free now and very likely still is in a moment.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let addr = listener.local_addr().expect("a bound socket has an address");
    drop(listener);
    let config = format!("api_listen = \"{addr}\"\n{config}");
    fs::write(home.path().join("config.toml"), config).expect("a file is written");
    let mut command = command(home.path());
    command.arg("start").stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let _running = Running(command.spawn().expect("the binary starts"));
    while !healthy(addr) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the daemon does not answer");
        thread::sleep(Duration::from_micros(100));
    }
    begun.elapsed()
}

fn healthy(addr: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(addr) else { return false };
    // One that takes the connection and says nothing must not hold up the look at the clock.
    let timeout = Some(Duration::from_secs(1));
    let mut answer = [0; 12];
    stream.set_read_timeout(timeout).is_ok()
        && stream.set_write_timeout(timeout).is_ok()
        && stream.write_all(b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.ends_with(b"200")
}
