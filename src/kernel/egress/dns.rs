//! Names to addresses: asked once per hop, checked, and then the only addresses that hop may connect to.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

/// Names that are looked up at once. The system's resolver holds a thread until a name server has answered or it gives up,
/// which no one can cut short; the threads are those that wait for the disk, too.
static PLACES: Semaphore = Semaphore::const_new(NAMES_MAX);
/// How many they are.
pub(super) const NAMES_MAX: usize = 32;
/// Names that are looked up for agents at once. The rest is for what the daemon itself reaches, such as providers.
pub(super) const NAMES_AGENTS_MAX: usize = NAMES_MAX * 3 / 4;
/// Names that are looked up at once for the agents of one user with a limited role, or else for one family of agents.
pub(super) const NAMES_FAMILY_MAX: usize = NAMES_MAX / 4;

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
            let ask = move || Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect());
            looked_up(&PLACES, ask).await.map_err(|error| error.to_string())
        })
    }
}

/// Asks in one of the places, which is free again when the thread is back: also where nobody waits for the answer any more.
async fn looked_up<T: Send + 'static>(
    places: &'static Semaphore,
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = places.acquire().await.map_err(io::Error::other)?;
    let asked = tokio::task::spawn_blocking(move || {
        let _place = place;
        ask()
    });
    asked.await.map_err(io::Error::other)?
}

/// Answers every question of an HTTP client with the addresses that were checked, so that it cannot connect elsewhere.
pub(super) struct Pinned(pub(super) Arc<[SocketAddr]>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(Vec::from(&*self.0).into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_lookup_keeps_its_place_until_its_thread_is_back() {
        static ONE: Semaphore = Semaphore::const_new(1);
        let (answer, awaited) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let mut first = Box::pin(looked_up(&ONE, move || {
            begin.send(()).map_err(io::Error::other)?;
            awaited.recv().map_err(io::Error::other)
        }));
        assert!(first.as_mut().now_or_never().is_none());
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        // Nobody waits for it any more; the name server still does not answer.
        drop(first);
        let mut second = Box::pin(looked_up(&ONE, || Ok(2)));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(ONE.available_permits(), 0);
        answer.send(()).unwrap();
        assert_eq!(second.await.unwrap(), 2);
    }
}
