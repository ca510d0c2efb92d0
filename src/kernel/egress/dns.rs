//! Names to addresses: asked once per hop, checked, and then the only addresses that hop may connect to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Looks a name up. A seam for tests; the daemon uses [`SystemLookup`].
pub(crate) trait Lookup: Send + Sync {
    /// The addresses of `name`, in the order to try them. An error is what the system said.
    fn lookup(&self, name: String) -> BoxFuture<'static, Result<Vec<IpAddr>, String>>;
}

/// The resolver of the machine, with its hosts file and search domains: what it answers is checked like any answer.
pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: String) -> BoxFuture<'static, Result<Vec<IpAddr>, String>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|error| error.to_string())?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Answers every question of an HTTP client with the addresses that were checked, so that it cannot connect elsewhere.
pub(super) struct Pinned(pub(super) Arc<[SocketAddr]>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(Vec::from(&*self.0).into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}
