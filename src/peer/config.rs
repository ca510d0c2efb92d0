//! `[network]`: other nodes.

use std::net::{IpAddr, SocketAddr};

use agentsvc_systems::peer::limits::PEER_SECRET_BYTES_MIN;
use serde::{Serialize, Serializer};

use crate::kernel::config::{MASK, Secret, table};

table! {
    /// `[network]`. Nothing of it has an effect without `network_enabled` and a secret.
    pub struct NetworkConfig {
        /// Addresses to listen on for peers: "host:port" or a multiaddr.
        listen_addresses: Vec<Listen> = vec![Listen::any()] => list(listen).at_restart(),
        /// Addresses of peers to connect to: "host:port" or a multiaddr.
        bootstrap_peers: Vec<Dial> => list(dial).example("[\"10.0.0.2:7400\"]").at_restart(),
        /// Secret that all nodes of the network share, of at least 32 characters beyond loopback. Without it there is no network.
        shared_secret: Secret => secret(shared_secret).at_restart(),
        /// Name of this node for its peers. Default: the name of the machine.
        node_name: Box<str> => text(node_name).example("node-a").at_restart(),
        /// Names or globs of the agents that peers can see and message.
        agents: Vec<Box<str>> = vec!["*".into()] => list(agent).protected().at_restart(),
        /// Requests that a peer may send in a minute, 1 to 100000.
        max_messages_per_peer_per_minute: u32 = 60 => integer(1..=100_000).protected().at_restart(),
        /// Tokens that the messages of a peer may cost in an hour. 0: no limit.
        max_llm_tokens_per_peer_per_hour: u64 = 200_000 => integer(0..=1_000_000_000_000).protected().at_restart(),
        /// Seconds that agents wait for the answer of an agent of a peer, 1 to 600.
        response_timeout_secs: u64 = 120 => integer(1..=600).at_restart(),
        /// Has no effect in this release.
        mdns_enabled: bool => flag().without_effect(),
    }
}

impl NetworkConfig {
    /// Why the network should not be used like this; nothing when it may be.
    pub(crate) fn warning(&self, is_enabled: bool) -> Option<(&'static str, String)> {
        let secret = self.shared_secret.expose().len();
        if is_enabled && secret == 0 {
            let text = "the network is off: `network.shared_secret` is not set; all nodes need the same secret";
            return Some(("network_enabled", text.to_owned()));
        }
        if !is_enabled || secret >= PEER_SECRET_BYTES_MIN {
            return None;
        }
        let text = match self.weakness() {
            Some(problem) => format!("the network is off: {problem}"),
            None => {
                format!("`network.shared_secret` has fewer than {PEER_SECRET_BYTES_MIN} characters and can be guessed")
            }
        };
        Some(("network.shared_secret", text))
    }

    /// Why the network must not be used like this: others can reach it and guess the secret, or read a handshake and try
    /// secrets by themselves.
    pub(crate) fn weakness(&self) -> Option<String> {
        let listens = self.listen_addresses.iter().any(|listen| !listen.address.ip().to_canonical().is_loopback());
        let dials = self.bootstrap_peers.iter().any(|dial| !dial.is_loopback());
        let is_weak = self.shared_secret.expose().len() < PEER_SECRET_BYTES_MIN && (listens || dials);
        is_weak.then(|| {
            format!(
                "`network.shared_secret` must have at least {PEER_SECRET_BYTES_MIN} characters unless \
                 `network.listen_addresses` and `network.bootstrap_peers` are all loopback addresses; create one with \
                 `openssl rand -hex 32`"
            )
        })
    }
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// As it is written.
    text: Box<str>,
    /// What it means.
    pub address: SocketAddr,
}

impl Listen {
    /// Every address of the machine, on a port that is free.
    fn any() -> Self {
        Self { text: "/ip4/0.0.0.0/tcp/0".into(), address: SocketAddr::from(([0, 0, 0, 0], 0)) }
    }
}

impl Serialize for Listen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// An address to dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dial {
    /// As it is written.
    text: Box<str>,
    /// The name or address of the machine, and the port.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
}

impl Dial {
    fn is_loopback(&self) -> bool {
        &*self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }
}

impl Serialize for Dial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Host and port of `host:port`, `[address]:port` or a multiaddr.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = if text.starts_with('/') {
        let mut parts = text.split('/').skip(1);
        let kind = parts.next()?;
        let host = parts.next()?;
        let fits = match kind {
            "ip4" => matches!(host.parse(), Ok(IpAddr::V4(_))),
            "ip6" => matches!(host.parse(), Ok(IpAddr::V6(_))),
            "dns" | "dns4" | "dns6" => host.parse::<IpAddr>().is_err(),
            _ => false,
        };
        let (tcp, port) = (parts.next()?, parts.next()?);
        if !fits || tcp != "tcp" || parts.next().is_some() {
            return None;
        }
        (host, port)
    } else {
        let (host, port) = text.rsplit_once(':')?;
        match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => (host, port),
            None if host.contains(':') => return None,
            None => (host, port),
        }
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    let fits = (1..=253).contains(&host.len()) && host.bytes().all(is_host);
    let port = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    fits.then_some((host, port))
}

fn listen(text: &str) -> Result<Listen, String> {
    let wrong = || "must be an IP address and a port, such as \"0.0.0.0:7400\" or \"/ip4/0.0.0.0/tcp/7400\"".to_owned();
    let (host, port) = host_and_port(text).ok_or_else(wrong)?;
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let ip: IpAddr = host.parse().map_err(|_| wrong())?;
    Ok(Listen { text: text.into(), address: SocketAddr::new(ip, port) })
}

fn dial(text: &str) -> Result<Dial, String> {
    let found = host_and_port(text).filter(|(_, port)| *port > 0);
    let (host, port) = found
        .ok_or_else(|| "must be a host and a port, such as \"10.0.0.2:7400\" or \"/dns4/host/tcp/7400\"".to_owned())?;
    Ok(Dial { text: text.into(), host: host.into(), port })
}

fn shared_secret(text: &str) -> Result<Secret, String> {
    if text == MASK {
        Err(format!("must not be \"{MASK}\", the mask of a hidden secret"))
    } else {
        Ok(Secret::new(text))
    }
}

fn node_name(text: &str) -> Result<Box<str>, String> {
    let fits = text.len() <= 64 && !text.chars().any(|char| char.is_control() || char == '@' || char == '|');
    if fits { Ok(text.into()) } else { Err("must be a name of at most 64 characters without @ and |".to_owned()) }
}

fn agent(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() { Err("must be the name of an agent or a glob".to_owned()) } else { Ok(text.into()) }
}

#[cfg(test)]
impl Dial {
    pub(crate) fn of_test(host: &str, port: u16) -> Self {
        Self { text: format!("{host}:{port}").into(), host: host.into(), port }
    }
}

#[cfg(test)]
mod tests {
    use super::{NetworkConfig, host_and_port};
    use crate::kernel::config::read_table;

    #[test]
    fn addresses_are_read_in_both_forms() {
        for (text, expected) in [
            ("10.0.0.2:7400", Some(("10.0.0.2", 7400))),
            ("peer.example:1", Some(("peer.example", 1))),
            ("[::1]:9", Some(("::1", 9))),
            ("/ip4/0.0.0.0/tcp/0", Some(("0.0.0.0", 0))),
            ("/ip6/::1/tcp/9", Some(("::1", 9))),
            ("/dns4/peer.example/tcp/9", Some(("peer.example", 9))),
            ("::1:9", None),
            ("peer.example", None),
            ("peer.example:65536", None),
            ("peer.example:+1", None),
            (":1", None),
            ("/ip4/::1/tcp/9", None),
            ("/ip4/1.2.3.4/udp/9", None),
            ("/ip4/1.2.3.4/tcp/9/ws", None),
            ("/ip4/1.2.3.4/tcp", None),
            ("/", None),
        ] {
            assert_eq!(host_and_port(text), expected, "{text}");
        }
    }

    #[test]
    fn the_secret_is_not_shown_and_its_absence_is_noted() {
        let text = "[n]\nshared_secret = \"hunter2\"\nlisten_addresses = [\"127.0.0.1:0\"]\n";
        let config = read_table::<NetworkConfig>("n", text).unwrap().config;
        let shown = serde_json::to_value(&config).unwrap();
        assert_eq!((&shown["shared_secret"], &shown["listen_addresses"][0]), (&"***".into(), &"127.0.0.1:0".into()));
        assert_eq!(config.warning(true).map(|(key, _)| key), Some("network.shared_secret"));
        assert_eq!(config.weakness(), None, "nothing but this machine");
        let open = |more: &str, bytes: usize| {
            let text = format!("[n]\nshared_secret = \"{}\"\n{more}\n", "x".repeat(bytes));
            read_table::<NetworkConfig>("n", &text).unwrap().config
        };
        let (local, all) = ("listen_addresses = [\"[::1]:0\", \"localhost:0\"]\n", "");
        let (near, far) =
            ("bootstrap_peers = [\"127.0.0.2:7\", \"localhost:7\"]", "bootstrap_peers = [\"10.0.0.2:7\"]");
        for (more, bytes, is_weak) in [
            (all.to_owned(), 31, true),
            (all.to_owned(), 32, false),
            (format!("{local}{near}"), 1, false),
            (format!("{local}{far}"), 31, true),
            (format!("{local}{far}"), 32, false),
        ] {
            let config = open(&more, bytes);
            assert_eq!(config.weakness().is_some(), is_weak, "{more} {bytes}");
            let is_off = config.warning(true).is_some_and(|(key, text)| {
                key == "network.shared_secret"
                    && text.starts_with("the network is off: `network.shared_secret` must have")
            });
            assert_eq!(is_off, is_weak, "{more} {bytes}");
        }
        let none = NetworkConfig::default();
        assert_eq!(none.warning(true).map(|(key, _)| key), Some("network_enabled"));
        assert_eq!(none.warning(false), None);
        assert_eq!(none.max_messages_per_peer_per_minute, 60);
        for wrong in ["listen_addresses = [\"host:1\"]", "bootstrap_peers = [\"a:0\"]", "node_name = \"a@b\""] {
            assert!(read_table::<NetworkConfig>("n", &format!("[n]\n{wrong}\n")).is_err(), "{wrong}");
        }
    }
}
