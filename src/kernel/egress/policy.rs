//! What one fetch may connect to: asked for its first URL and again for every redirect.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::Error;
use super::address::not_public;
use super::allow::{AllowedHosts, in_network};
use super::target::Target;

/// Addresses of one name that are tried; the rest of a long answer is not connected to, but must be public too.
const ADDRESSES_MAX: usize = 16;

/// Places that no agent may reach unless the operator says so: this machine, its networks, the metadata of clouds.
const PRIVATE_PLACES: [&str; 6] = [
    "http://127.0.0.1/",
    "http://localhost/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/",
    "http://[::1]/",
];

/// Tries to reach places that are not public with what the operator allows: how many were tried, and those that are
/// open.
pub(crate) fn private_places_open(allowed: &AllowedHosts) -> (usize, Vec<&'static str>) {
    let policy = Policy { allowed, network: &["*".into()], trusted: None };
    let is_open = |place: &&str| Target::parse(place).is_ok_and(|target| policy.permit(&target).is_ok());
    (PRIVATE_PLACES.len(), PRIVATE_PLACES.into_iter().filter(is_open).collect())
}

/// Refuses a URL whose host the `[capabilities] network` of a manifest does not name.
///
/// # Errors
/// [`Error::Url`] and [`Error::NotGranted`].
pub(crate) fn granted(network: &[Box<str>], url: &str) -> Result<(), Error> {
    let Target { host, port, .. } = Target::parse(url)?;
    if in_network(network, &host, port) { Ok(()) } else { Err(Error::NotGranted(host)) }
}

/// The rules of one fetch.
#[derive(Clone, Copy)]
pub(super) struct Policy<'a> {
    /// Private hosts that the operator opened to tools.
    pub(super) allowed: &'a AllowedHosts,
    /// What the agent's manifest grants.
    pub(super) network: &'a [Box<str>],
    /// A URL of the configuration: its host and port are trusted, so that it may be private.
    pub(super) trusted: Option<&'a Target>,
}

impl Policy<'_> {
    /// Decides by the URL alone.
    ///
    /// # Errors
    /// [`Error::NotGranted`], [`Error::Port`], [`Error::LocalName`], and [`Error::Private`] for an address.
    pub(super) fn permit(&self, target: &Target) -> Result<(), Error> {
        let Target { host, port, address, .. } = target;
        if !in_network(self.network, host, *port) {
            return Err(Error::NotGranted(host.clone()));
        }
        if self.is_trusted(target) {
            return Ok(());
        }
        if target.port_is_bad() && !self.allowed.names_port(host, *address, *port) {
            return Err(Error::Port(*port));
        }
        match address {
            Some(address) => self.permit_address(target, *address),
            None if target.name_is_local() && !self.allowed.names(host, *port) => Err(Error::LocalName(host.clone())),
            None => Ok(()),
        }
    }

    /// What to connect to when the host's name has these addresses, or is the one of them. One bad address refuses
    /// all: a name that answers with both is not to be trusted with either.
    ///
    /// # Errors
    /// [`Error::Private`]; [`Error::Lookup`] when there is none.
    pub(super) fn pin(&self, target: &Target, addresses: &[IpAddr]) -> Result<Arc<[SocketAddr]>, Error> {
        for address in addresses {
            self.permit_address(target, *address)?;
        }
        if addresses.is_empty() {
            return Err(Error::Lookup { host: target.host.clone(), why: "the name has no address".to_owned() });
        }
        let pinned = addresses.iter().take(ADDRESSES_MAX).map(|address| SocketAddr::new(*address, target.port));
        Ok(pinned.collect())
    }

    /// Did the operator name the host, or all its addresses?
    pub(super) fn is_opened(&self, target: &Target, addresses: &[IpAddr]) -> bool {
        let is_held = |address: &IpAddr| {
            self.allowed.holds(*address, target.port) || self.allowed.holds(address.to_canonical(), target.port)
        };
        self.allowed.names(&target.host, target.port) || addresses.iter().all(is_held)
    }

    fn permit_address(&self, target: &Target, address: IpAddr) -> Result<(), Error> {
        let Target { host, port, .. } = target;
        let Some(class) = not_public(address) else { return Ok(()) };
        let opened = self.is_trusted(target)
            || self.allowed.names(host, *port)
            || self.allowed.holds(address, *port)
            || self.allowed.holds(address.to_canonical(), *port);
        if opened { Ok(()) } else { Err(Error::Private { host: host.clone(), class }) }
    }

    fn is_trusted(&self, target: &Target) -> bool {
        self.trusted.is_some_and(|trusted| trusted.host == target.host && trusted.port == target.port)
    }
}
