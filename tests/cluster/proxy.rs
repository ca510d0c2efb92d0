//! Links that can be cut, held in one direction or both, and slowed down: a TCP proxy for each.
//!
//! A link that is held passes nothing on and loses nothing: what was sent arrives when it is held no longer, as it does over a
//! network that comes back. New connections through it are accepted and stay silent, as half-open ones do.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What a link does with what is sent over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It passes on.
    Open,
    /// It breaks every connection, also new ones.
    Cut,
    /// It keeps what goes to the target, to the client, or both.
    Held { to_target: bool, to_client: bool },
    /// It passes everything on so much later.
    Slow(Duration),
}

#[derive(Debug)]
struct State {
    mode: Mode,
    connections: Vec<[TcpStream; 2]>,
    is_over: bool,
}

impl State {
    fn open() -> Arc<(Mutex<Self>, Condvar)> {
        let state = Self { mode: Mode::Open, connections: Vec::new(), is_over: false };
        Arc::new((Mutex::new(state), Condvar::new()))
    }
}

/// A link to one target. Dropped: every connection through it ends.
#[derive(Debug)]
pub(crate) struct Link {
    address: SocketAddr,
    /// Nothing is between its clients and the target.
    is_straight: bool,
    shared: Arc<(Mutex<State>, Condvar)>,
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToTarget,
    ToClient,
}

impl Link {
    /// A link to `target`, which need not be there yet.
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = State::open();
        let accepting = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if lock(&accepting).is_over {
                    return;
                }
                let Ok(client) = client else { continue };
                connect(&accepting, client, target);
            }
        });
        Self { address, is_straight: false, shared }
    }

    /// No link at all, where what one costs would be measured, too: clients connect to `target` itself, and nothing can be set.
    #[allow(dead_code, reason = "benches/cluster.rs has it")]
    pub(crate) fn straight(target: SocketAddr) -> Self {
        Self { address: target, is_straight: true, shared: State::open() }
    }

    /// Where clients connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it does so.
    pub(crate) fn set(&self, mode: Mode) {
        assert!(!self.is_straight, "there is nothing that could be set");
        let mut state = lock(&self.shared);
        state.mode = mode;
        if mode == Mode::Cut {
            end(&mut state);
        }
        drop(state);
        self.shared.1.notify_all();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.is_straight {
            return;
        }
        let mut state = lock(&self.shared);
        state.is_over = true;
        end(&mut state);
        drop(state);
        self.shared.1.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(shared: &Arc<(Mutex<State>, Condvar)>) -> MutexGuard<'_, State> {
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every connection.
fn end(state: &mut State) {
    for socket in state.connections.drain(..).flatten() {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn connect(shared: &Arc<(Mutex<State>, Condvar)>, client: TcpStream, target: SocketAddr) {
    if lock(shared).mode == Mode::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(target) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let clones = || Some([client.try_clone().ok()?, server.try_clone().ok()?]);
    let (Some(kept), Some([client_too, server_too])) = (clones(), clones()) else { return };
    lock(shared).connections.push(kept);
    let (up, down) = (shared.clone(), shared.clone());
    thread::spawn(move || pump(&up, client, server, Way::ToTarget));
    thread::spawn(move || pump(&down, server_too, client_too, Way::ToClient));
}

/// Passes bytes on until one side ends.
fn pump(shared: &Arc<(Mutex<State>, Condvar)>, mut from: TcpStream, mut to: TcpStream, way: Way) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || !passes(shared, way) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Waits until what was read may be passed on; false when the link is cut.
fn passes(shared: &Arc<(Mutex<State>, Condvar)>, way: Way) -> bool {
    let began = Instant::now();
    let mut state = lock(shared);
    loop {
        let left = match state.mode {
            _ if state.is_over => return false,
            Mode::Cut => return false,
            Mode::Open => return true,
            Mode::Held { to_target, to_client } => match way {
                Way::ToTarget if to_target => None,
                Way::ToClient if to_client => None,
                _ => return true,
            },
            Mode::Slow(delay) if began.elapsed() >= delay => return true,
            Mode::Slow(delay) => Some(delay.saturating_sub(began.elapsed())),
        };
        state = match left {
            None => shared.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(left) => shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}

mod tests {
    use std::io;

    use super::*;

    /// A server that says back what it hears.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut back = client.try_clone().expect("a socket can be cloned");
                    let _ = io::copy(&mut &client, &mut back);
                });
            }
        });
        address
    }

    fn client(link: &Link, wait: Duration) -> TcpStream {
        let client = TcpStream::connect(link.address()).expect("a link listens");
        client.set_read_timeout(Some(wait)).expect("a timeout can be set");
        client
    }

    fn says(mut client: &TcpStream, word: &[u8; 4]) -> io::Result<[u8; 4]> {
        client.write_all(word)?;
        let mut back = [0; 4];
        client.read_exact(&mut back).map(|()| back)
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn an_open_link_passes_everything_on_and_a_slow_one_later() {
        let link = Link::to(echo());
        let client = client(&link, LONG);
        assert_eq!(says(&client, b"word").expect("an answer"), *b"word");
        link.set(Mode::Slow(SHORT));
        let began = Instant::now();
        assert_eq!(says(&client, b"slow").expect("an answer"), *b"slow");
        assert!(began.elapsed() >= SHORT * 2, "each way");
    }

    #[test]
    fn a_cut_link_breaks_connections_and_takes_new_ones_when_it_is_mended() {
        let link = Link::to(echo());
        let old = client(&link, LONG);
        assert_eq!(says(&old, b"word").expect("an answer"), *b"word");
        link.set(Mode::Cut);
        says(&old, b"gone").unwrap_err();
        says(&client(&link, LONG), b"gone").unwrap_err();
        link.set(Mode::Open);
        assert_eq!(says(&client(&link, LONG), b"back").expect("an answer"), *b"back");
    }

    #[test]
    fn a_held_link_is_silent_and_delivers_when_it_is_let_go() {
        for (to_target, to_client) in [(true, true), (true, false), (false, true)] {
            let link = Link::to(echo());
            let mut held = client(&link, SHORT);
            assert_eq!(says(&held, b"word").expect("an answer"), *b"word");
            link.set(Mode::Held { to_target, to_client });
            let silent = says(&held, b"late").unwrap_err();
            assert!(matches!(silent.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{silent}");
            let new = client(&link, SHORT);
            says(&new, b"half").unwrap_err();
            held.set_read_timeout(Some(LONG)).expect("a timeout can be set");
            link.set(Mode::Open);
            let mut late = [0; 4];
            held.read_exact(&mut late).expect("what was sent arrives");
            assert_eq!(late, *b"late");
        }
    }
}
