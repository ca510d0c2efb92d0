//! Peers that connect.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
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
use super::wire::WireError;

/// Time after a failure to accept, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Connections that have not ended their handshake, the oldest first.
#[derive(Default)]
struct Strangers {
    waiting: VecDeque<(u64, AbortHandle)>,
    last: u64,
}

impl Strangers {
    /// Another one; the oldest goes when there are too many, so that idle connections keep no peer out.
    fn insert(&mut self, number: u64, task: AbortHandle) {
        if self.waiting.len() >= PEER_HANDSHAKES_MAX
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            oldest.abort();
        }
        self.waiting.push_back((number, task));
    }

    /// Its handshake has ended.
    fn remove(&mut self, number: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != number);
    }
}

/// Listens, in the runtime that this is called in. An address that cannot be used is in the log.
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
        waiting.insert(number, task.abort_handle());
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
    let address = address.to_string();
    let handshake = timeout(Duration::from_millis(PEER_HANDSHAKE_MS), accept(&network, stream, &address)).await;
    strangers.lock().remove(number);
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
    use super::*;

    #[tokio::test]
    async fn the_oldest_stranger_makes_room() {
        let mut strangers = Strangers::default();
        let tasks: Vec<_> = (0..=PEER_HANDSHAKES_MAX as u64)
            .map(|number| {
                let task = tokio::spawn(std::future::pending::<()>());
                strangers.insert(number, task.abort_handle());
                task
            })
            .collect();
        assert_eq!(strangers.waiting.len(), PEER_HANDSHAKES_MAX);
        let mut tasks = tasks.into_iter();
        assert!(tasks.next().unwrap().await.unwrap_err().is_cancelled());
        strangers.remove(5);
        assert!(strangers.waiting.len() == PEER_HANDSHAKES_MAX - 1 && tasks.all(|task| !task.is_finished()));
    }
}
