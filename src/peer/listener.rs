//! Peers that connect.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::peer::limits::{PEER_HANDSHAKE_MS, PEER_HANDSHAKES_MAX};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::config::Listen;
use super::connection::{Failed, accept};
use super::network::{Network, count};
use super::table::origin;
use super::wire::WireError;

/// Time after a failure to accept, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Connections that have not ended their handshake, the oldest first.
#[derive(Default)]
struct Strangers {
    waiting: VecDeque<(u64, IpAddr, AbortHandle)>,
    last: u64,
}

impl Strangers {
    /// Another one. When there are too many, the oldest of the origin that has most of them goes: neither idle connections
    /// nor a flood from one place keep the peers of other places out.
    fn insert(&mut self, number: u64, from: IpAddr, task: AbortHandle) {
        if self.waiting.len() >= PEER_HANDSHAKES_MAX {
            self.close_one();
        }
        self.waiting.push_back((number, origin(from), task));
    }

    fn close_one(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.waiting.iter().for_each(|(_, from, _)| *counts.entry(*from).or_default() += 1);
        let most = counts.values().copied().max().unwrap_or(0);
        let oldest = self.waiting.iter().position(|(_, from, _)| counts.get(from) == Some(&most));
        if let Some((_, _, task)) = oldest.and_then(|at| self.waiting.remove(at)) {
            task.abort();
        }
    }

    /// Its handshake has ended.
    fn remove(&mut self, number: u64) {
        self.waiting.retain(|(waiting, _, _)| *waiting != number);
    }
}

/// Listens, in the runtime that this is called in; peers are let in once the world has loaded. An address that cannot be used
/// is in the log.
pub(super) fn start(network: &Arc<Network>, addresses: &[Listen]) {
    let (mut bound, strangers) = (Vec::new(), Arc::new(Mutex::new(Strangers::default())));
    for Listen { address, .. } in addresses {
        match bind(*address) {
            Ok((listener, at)) => {
                bound.push(at);
                tokio::spawn(listen(Arc::clone(network), listener, Arc::clone(&strangers)));
            }
            Err(error) => tracing::error!(%error, %address, "cannot listen for peers"),
        }
    }
    network.listens_at(bound);
}

fn bind(address: SocketAddr) -> std::io::Result<(tokio::net::TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    Ok((tokio::net::TcpListener::from_std(listener)?, at))
}

async fn listen(network: Arc<Network>, listener: tokio::net::TcpListener, strangers: Arc<Mutex<Strangers>>) {
    if !network.is_loaded().await {
        return;
    }
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = network.shutdown.wait() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of a peer");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let mut waiting = strangers.lock();
        waiting.last += 1;
        let number = waiting.last;
        let task = tokio::spawn(meet(Arc::clone(&network), stream, address, number, Arc::clone(&strangers)));
        waiting.insert(number, address.ip(), task.abort_handle());
    }
}

/// One connection, from its handshake to its end.
async fn meet(
    network: Arc<Network>,
    stream: TcpStream,
    address: SocketAddr,
    number: u64,
    strangers: Arc<Mutex<Strangers>>,
) {
    let handshake = timeout(Duration::from_millis(PEER_HANDSHAKE_MS), accept(&network, stream, address)).await;
    strangers.lock().remove(number);
    let address = address.to_string();
    let (connection, joined) = match handshake.unwrap_or(Err(Failed::Wire(WireError::Slow))) {
        Ok(met) => met,
        Err(error) => {
            count(&network.counts.refused_handshakes);
            return tracing::debug!(%error, address, "a connection is no peer's");
        }
    };
    let node = joined.node_id.clone();
    tracing::info!(node, address, "a peer has connected");
    match connection.serve(&network, &joined, false).await {
        Ok(()) | Err(WireError::Closed) => tracing::info!(node, "a peer has left"),
        Err(error) => tracing::warn!(node, %error, "the connection of a peer has ended"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use agentsvc_api::http::bridge::bridge;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_makes_room() {
        let mut strangers = Strangers::default();
        let tasks: Vec<_> = (0..=PEER_HANDSHAKES_MAX as u64)
            .map(|number| {
                let task = tokio::spawn(std::future::pending::<()>());
                strangers.insert(number, IpAddr::from([10, 0, 0, 1]), task.abort_handle());
                task
            })
            .collect();
        assert_eq!(strangers.waiting.len(), PEER_HANDSHAKES_MAX);
        let mut tasks = tasks.into_iter();
        assert!(tasks.next().unwrap().await.unwrap_err().is_cancelled());
        strangers.remove(5);
        assert!(strangers.waiting.len() == PEER_HANDSHAKES_MAX - 1 && tasks.all(|task| !task.is_finished()));
    }

    #[tokio::test]
    async fn peers_are_let_in_once_the_world_has_loaded() {
        let (dir, (bridge, intake)) = (tempfile::tempdir().unwrap(), bridge());
        let network = Arc::new(Network::of_test(bridge, dir.path()));
        start(&network, &network.config.listen_addresses);
        let mut stream = TcpStream::connect(("127.0.0.1", network.listening()[0].port())).await.unwrap();
        // The length of a frame that is too long: it ends the connection when it is read.
        stream.write_all(&[0xff; 4]).await.unwrap();
        let mut byte = [0];
        assert!(timeout(Duration::from_millis(100), stream.read(&mut byte)).await.is_err());
        intake.open();
        assert_eq!(stream.read(&mut byte).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_flood_from_one_place_keeps_no_other_place_out() {
        let mut strangers = Strangers::default();
        let mut number = 0;
        let mut insert = |from: IpAddr| {
            number += 1;
            let task = tokio::spawn(std::future::pending::<()>());
            strangers.insert(number, from, task.abort_handle());
            task
        };
        let peer = insert("2001:db8::1".parse().unwrap());
        // Addresses of one network are one place.
        let flood: Vec<_> =
            (0..PEER_HANDSHAKES_MAX as u128).map(|n| insert(Ipv6Addr::from_bits((0xfd << 120) + n).into())).collect();
        tokio::task::yield_now().await;
        assert!(!peer.is_finished() && flood[0].is_finished() && !flood[1].is_finished());
        assert_eq!(origin("::ffff:10.0.0.1".parse().unwrap()), IpAddr::from([10, 0, 0, 1]));
    }
}
