//! Where the API listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use super::Error;
use crate::config::Config;

/// Listens where the configuration says.
pub(super) fn listen(config: &Config) -> Result<TcpListener, Error> {
    let listen = config.api_listen;
    bind(listen).map_err(|source| Error::Listen { listen, source })
}

/// Listens on the other loopback address, too: `localhost` means either, and what listens there instead, such as a command of an
/// agent, would be sent the key. Without IPv6 there is none.
pub(super) fn listen_beside(address: SocketAddr) -> Option<TcpListener> {
    let other: IpAddr = match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        _ => return None,
    };
    let beside = SocketAddr::new(other, address.port());
    match bind(beside) {
        Ok(listener) => Some(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            tracing::warn!(
                "another program listens on {beside}: use {address}, not localhost, or it may get the API key"
            );
            None
        }
        Err(error) => {
            tracing::debug!(%error, "cannot listen on {beside}");
            None
        }
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
