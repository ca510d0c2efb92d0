//! Raw HTTP/1.1 loops that cost the client little.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One kept-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Sends `request` as it is and reads one response with a `content-length`; gives its status and body.
    pub(crate) async fn call(&mut self, request: &[u8]) -> io::Result<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (status, body) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(found) = whole(&self.buffer) {
                break found;
            }
        };
        Ok((status, &self.buffer[body]))
    }

    /// Sends `request`.
    pub(crate) async fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.stream.write_all(request).await
    }

    /// Reads until `mark` has come.
    pub(crate) async fn read_to(&mut self, mark: &[u8]) -> io::Result<()> {
        while !self.buffer.windows(mark.len()).any(|window| window == mark) {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

/// The status and the place of the body once the response is complete.
fn whole(bytes: &[u8]) -> Option<(u16, Range<usize>)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.get(9..12)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    (bytes.len() >= end + length).then_some((status, end..end + length))
}

/// A `GET`.
pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// A `POST` of JSON.
pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// What a run of calls took.
pub(crate) struct Run {
    /// From the first call to the last answer.
    pub(crate) elapsed: Duration,
    /// Of each call, sorted.
    pub(crate) latencies: Vec<Duration>,
}

impl Run {
    /// Calls per second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Calls from `connections` connections for `time`; `request` makes the n-th request of a connection. Panics on any
/// status but `status`.
pub(crate) async fn drive(
    addr: SocketAddr,
    connections: usize,
    time: Duration,
    status: u16,
    request: impl Fn(usize, usize) -> Vec<u8> + Clone + 'static,
) -> Run {
    let begun = Instant::now();
    let local = tokio::task::LocalSet::new();
    let tasks = (0..connections).map(|connection| {
        let request = request.clone();
        local.spawn_local(async move {
            let mut wire = Connection::open(addr).await.expect("the server takes connections");
            let mut latencies = Vec::new();
            while begun.elapsed() < time {
                let bytes = request(connection, latencies.len());
                let sent = Instant::now();
                let (found, body) = wire.call(&bytes).await.expect("the server answers");
                assert_eq!(found, status, "{}", String::from_utf8_lossy(body));
                latencies.push(sent.elapsed());
            }
            latencies
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut latencies = Vec::new();
    local
        .run_until(async {
            for task in tasks {
                latencies.extend(task.await.expect("no connection panics"));
            }
        })
        .await;
    let elapsed = begun.elapsed();
    latencies.sort_unstable();
    Run { elapsed, latencies }
}
