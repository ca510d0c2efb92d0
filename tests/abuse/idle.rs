//! Connections that say nothing: what each costs, and what happens when there are too many.

use std::io::BufReader;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;

use super::harness::{Memory, Neighbour, PATIENCE, connections, harness, metric, wait};
use super::wire::{Wire, drain, request};
use crate::support::daemon::Daemon;
use crate::support::http::Client;

/// Idle connections, where the system permits so many open files to a process.
const IDLE: usize = 10_000;
/// Open files of the tests themselves and of the daemon that are no idle connections.
const OTHERS: u64 = 2_048;
/// Threads that open them.
const OPENERS: usize = 16;
/// Bytes that one may take at most. A debug build takes about a third.
const BYTES_MAX: u64 = 48 << 10;

/// As many as the test and the daemon may have open.
fn permitted() -> usize {
    let limits = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
    assert!(raised.is_ok() || limits.current.is_some());
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = IDLE.min(usize::try_from(most.saturating_sub(OTHERS)).unwrap_or(IDLE));
    if count < IDLE {
        eprintln!("the system permits {most} open files: {count} idle connections instead of {IDLE}");
    }
    count
}

/// Connections of which each has had an answer, so that it may stay.
fn idle(client: &Client, count: usize) -> Vec<Wire> {
    let open = |_| {
        let mut wire = Wire::open(client).expect("the daemon takes it");
        wire.send(&request("GET", "/api/health", None)).unwrap();
        assert_eq!(wire.reply().unwrap().status, 200);
        wire
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..OPENERS).map(|at| scope.spawn(move || (at..count).step_by(OPENERS).map(open).collect())).collect();
        threads.into_iter().flat_map(|thread| -> Vec<Wire> { thread.join().expect("no thread panics") }).collect()
    })
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_keep_nobody_out() {
    let count = permitted();
    let daemon = harness("");
    let neighbour = Neighbour::of(&daemon);
    // What the process needs for any number of connections is there before it is measured.
    drop(idle(&daemon, 200));
    wait("those have gone", || (connections(&daemon)? < 10).then_some(()));
    let memory = Memory::of(&daemon);
    let wires = idle(&daemon, count);
    // On a slow machine the first may have been idle for so long already that they were closed.
    let open = connections(&daemon).unwrap();
    let growth = memory.growth(&daemon);
    let each = growth / open.max(1) as u64;
    eprintln!("{open} of {count} idle connections: {each} bytes each");
    assert!(each < BYTES_MAX, "{each} bytes for an idle connection");
    neighbour.is_served();
    drop(wires);
    wait("they are gone", || (connections(&daemon)? < 10).then_some(()));
    neighbour.leave();
}

/// Is a connection closed with a word about why? When too many are turned away at once, some are without one.
fn is_told(stream: &mut TcpStream) -> bool {
    let said = String::from_utf8_lossy(&drain(stream)).into_owned();
    if !said.is_empty() {
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains("retry-after: 1"), "{said}");
        assert!(said.contains("\"code\":\"connections\""), "{said}");
    }
    !said.is_empty()
}

#[test]
fn connections_beyond_the_limit_are_told_so_and_the_daemon_goes_on() {
    // The test has more of them open than the daemon may, and than a process may where nobody asks for more.
    permitted();
    // The system permits 1,024 open files: half of them may be connections.
    let daemon = Daemon::launched(&["prlimit", "--nofile=1024:1024"], "rate_limit_per_second = 10000000\n", &[]);
    let agent = daemon.agent("a");
    let mut kept = idle(&daemon, 500);
    let mut beyond: Vec<TcpStream> = Vec::new();
    wait("one of a few is told", || {
        beyond.extend((0..40).map(|_| daemon.connect().unwrap()));
        beyond.iter_mut().rev().take(40).any(is_told).then_some(())
    });
    // Of very many at once only some are told.
    let flood: Vec<TcpStream> = (0..900).map(|_| daemon.connect().unwrap()).collect();
    flood.into_iter().skip(200).for_each(|mut stream| _ = is_told(&mut stream));
    // Those that were there are served all the while, and the store can open what it needs.
    for wire in kept.iter_mut().take(20) {
        wire.send(&request("GET", "/api/health", None)).unwrap();
        assert_eq!(wire.reply().unwrap().status, 200);
    }
    drop((kept, beyond));
    wait("there is room again", || {
        let reply = daemon.try_send("GET", "/api/health", &[], None).ok()?;
        (reply.status == 200).then_some(())
    });
    assert!(metric(&daemon, "agentsvc_http_connections_refused_total") > Some(0.0));
    daemon.say(&agent, "hello");
    assert!(!daemon.stderr().contains("cannot accept connections"), "{}", daemon.stderr());
}

/// The address that [`from_loopback`] connects from, one after the other.
fn loopback(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(n % 200).unwrap_or_default())
}

/// A connection from another address of this machine.
fn from_loopback(client: &Client, n: usize) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((loopback(n), 0))).unwrap();
        socket.connect(client.addr).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn clients_without_the_key_at_many_addresses_leave_connections_to_clients_with_it() {
    permitted();
    // Half of the open files may be connections, and half of those may be without the key: 256.
    let (launcher, key) = (["prlimit", "--nofile=1024:1024"], "k".repeat(32));
    let daemon = Daemon::launched(&launcher, &format!("rate_limit_per_second = 10000000\napi_key = \"{key}\"\n"), &[]);
    let keyed = daemon.keyed(&key);
    // A client with the key keeps its connection, though it was there first and is idle all the while.
    let mut before = Wire::open(&keyed).unwrap();
    let ask = format!("GET /api/status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    before.send(ask.as_bytes()).unwrap();
    assert_eq!(before.reply().unwrap().status, 200);
    let mut held: Vec<TcpStream> = Vec::new();
    for n in 0..2_000 {
        held.push(from_loopback(&daemon, n));
        if n % 100 == 0 {
            assert_eq!(keyed.get("/api/status").status, 200, "after {n} connections");
        }
    }
    before.send(ask.as_bytes()).unwrap();
    assert_eq!(before.reply().unwrap().status, 200);
    let open = wait("those that made room are gone", || connections(&keyed).filter(|open| *open <= 257));
    assert!(open > 200, "{open} of 256 are there");
    assert!(metric(&keyed, "agentsvc_http_connections_refused_total") >= Some(1_700.0));
    // The newest are there: a client that comes without the key finds a place, too.
    let mut last = Wire(BufReader::new(from_loopback(&daemon, 7)));
    last.send(&request("GET", "/api/health", None)).unwrap();
    assert_eq!(last.reply().unwrap().status, 200);
    assert!(!daemon.stderr().contains("cannot accept connections"), "{}", daemon.stderr());
}
