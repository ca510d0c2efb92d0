//! Peers of the configuration are dialled, and dialled again when they have gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_systems::peer::limits::{PEER_DIAL_BACKOFF_MS, PEER_DIAL_BACKOFF_MS_MAX};

use super::config::Dial;
use super::connection::{Failed, connect};
use super::network::Network;
use super::wire::WireError;

/// A connection that held so long begins the backoff anew.
const HELD: Duration = Duration::from_secs(60);

/// Dials in the background once the world has loaded, in the runtime that this is called in.
pub(super) fn start(network: &Arc<Network>, peers: &[Dial]) {
    for peer in peers {
        tokio::spawn(keep(Arc::clone(network), peer.clone()));
    }
}

/// Milliseconds before the try after so many failed ones.
fn backoff(failures: u32) -> Duration {
    let ms = PEER_DIAL_BACKOFF_MS.saturating_mul(1 << failures.min(20));
    Duration::from_millis(ms.min(PEER_DIAL_BACKOFF_MS_MAX))
}

async fn keep(network: Arc<Network>, dial: Dial) {
    if !network.is_loaded().await {
        return;
    }
    let mut failures: u32 = 0;
    loop {
        let began = Instant::now();
        let (host, port) = (&*dial.host, dial.port);
        match meet(&network, &dial).await {
            Ok(()) | Err(Failed::Wire(WireError::Closed)) => tracing::info!(host, port, "a peer has left"),
            Err(error) if failures == 0 => tracing::warn!(host, port, %error, "a peer cannot be used; trying again"),
            Err(error) => tracing::debug!(host, port, %error, failures, "a peer cannot be used"),
        }
        failures = if began.elapsed() >= HELD { 0 } else { failures + 1 };
        tokio::select! {
            () = tokio::time::sleep(backoff(failures.saturating_sub(1))) => {}
            () = network.shutdown.wait() => return,
        }
        if network.shutdown.is_triggered() {
            return;
        }
    }
}

/// One connection, from its handshake to its end.
async fn meet(network: &Arc<Network>, dial: &Dial) -> Result<(), Failed> {
    let connection = connect(network, dial, None).await?;
    let address = format!("{}:{}", dial.host, dial.port);
    let joined = network.join(&connection.known, &address, Some(dial))?;
    tracing::info!(node = joined.node_id, address, "connected to a peer");
    Ok(connection.serve(network, &joined, true).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_less_and_less_often() {
        let times: Vec<u64> = (0..4).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(times, [1, 2, 4, 8]);
        assert_eq!(backoff(u32::MAX).as_millis(), u128::from(PEER_DIAL_BACKOFF_MS_MAX));
    }
}
