//! Lists of hosts: what the operator lets tools reach although it is private, and what a manifest lets its agent reach.

use std::net::IpAddr;

use super::address::within;

/// `[web.fetch] ssrf_allowed_hosts`: private hosts that fetches may reach all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<Entry>);

/// One entry: a host and, where it is given, the only port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// A name in lower case; may hold `*` and `?`.
    Name(Box<str>),
    /// An address, or the addresses that share its first bits.
    Block(IpAddr, u32),
}

impl AllowedHosts {
    /// Reads entries such as `wiki.corp`, `*.corp`, `wiki.corp:8080`, `10.0.0.7`, `10.0.0.0/8`, `[fd00::1]:80`.
    ///
    /// # Errors
    /// What is wrong with the first entry that cannot be read, without the entry.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, String> {
        entries.iter().map(|entry| Entry::parse(entry.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    /// True when the operator names this host, with this port or with any: its addresses are not checked then.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        let matches = |host_entry: &Host| match host_entry {
            Host::Name(pattern) => matches_host(pattern, host),
            Host::Block(..) => false,
        };
        self.on_port(port).any(|entry| matches(&entry.host))
    }

    /// True when the operator names this address, by itself or by its block.
    pub(super) fn holds(&self, address: IpAddr, port: u16) -> bool {
        let matches = |host_entry: &Host| match host_entry {
            Host::Name(_) => false,
            Host::Block(block, length) => within(address, *block, *length),
        };
        self.on_port(port).any(|entry| matches(&entry.host))
    }

    /// True when an entry for this host or address names exactly this port.
    pub(super) fn names_port(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let with_port = Self(self.0.iter().filter(|entry| entry.port == Some(port)).cloned().collect());
        with_port.names(host, port) || address.is_some_and(|address| with_port.holds(address, port))
    }

    fn on_port(&self, port: u16) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(move |entry| entry.port.is_none_or(|only| only == port))
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "must be host names, addresses or blocks, such as \"wiki.corp\", \"*.corp\", \"10.0.0.7:8080\" or \
             \"10.0.0.0/8\""
                .to_owned()
        };
        let text = text.trim();
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self { host: block(address, None).ok_or_else(wrong)?, port: None });
        }
        if let Some((address, length)) = text.split_once('/') {
            let address = address.trim_start_matches('[').trim_end_matches(']').parse().map_err(|_| wrong())?;
            let length = length.parse().map_err(|_| wrong())?;
            return Ok(Self { host: block(address, Some(length)).ok_or_else(wrong)?, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.parse().map_err(|_| wrong())?)),
            _ => (text, None),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Self { host: block(address, None).ok_or_else(wrong)?, port });
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*?".contains(&byte);
        // A pattern without a letter of its own would open every private network.
        if !name.bytes().all(sound) || !name.bytes().any(|byte| byte.is_ascii_alphanumeric()) {
            return Err(wrong());
        }
        Ok(Self { host: Host::Name(name.into()), port })
    }
}

/// A block in the form that addresses are compared in: IPv4 where it is IPv4.
fn block(address: IpAddr, length: Option<u32>) -> Option<Host> {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(bits);
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Some(Host::Block(address.to_canonical(), length.checked_sub(96).filter(|length| *length <= 32)?))
        }
        _ => (length <= bits).then_some(Host::Block(address, length)),
    }
}

/// True when a manifest's `[capabilities] network` holds a pattern for this host. A pattern is a name or an address,
/// may hold `*` and `?`, and may end in `:port`; `*` alone stands for every host on every port.
pub(super) fn in_network(network: &[Box<str>], host: &str, port: u16) -> bool {
    let with_port = format!("{host}:{port}");
    network.iter().any(|pattern| {
        let pattern = pattern.trim().to_ascii_lowercase();
        let pattern = pattern.trim_end_matches('.').replace(['[', ']'], "");
        matches_host(&pattern, host) || (pattern.contains(':') && matches_host(&pattern, &with_port))
    })
}

/// `*` stands for any text, `?` for one byte. Both sides are in lower case.
fn matches_host(pattern: &str, host: &str) -> bool {
    agentsvc_systems::kernel::glob::matches(pattern, host)
}

#[cfg(test)]
mod tests {
    use super::{AllowedHosts, in_network};

    fn allowed(entries: &[&str]) -> AllowedHosts {
        AllowedHosts::parse(entries).unwrap()
    }

    #[test]
    fn entries_name_hosts_addresses_and_ports() {
        let list =
            allowed(&["Wiki.corp", "*.lab", "db.corp:8080", "10.0.0.7:81", "192.168.0.0/16", "[fd00::1]:80", "::1"]);
        assert!(list.names("wiki.corp", 80) && list.names("wiki.corp", 9));
        assert!(list.names("a.b.lab", 80) && !list.names("lab", 80));
        assert!(list.names("db.corp", 8080) && !list.names("db.corp", 80));
        assert!(!list.names("10.0.0.7", 81), "an address is held, not named");
        let holds = |address: &str, port| list.holds(address.parse().unwrap(), port);
        assert!(holds("10.0.0.7", 81) && !holds("10.0.0.7", 80) && !holds("10.0.0.8", 81));
        assert!(holds("192.168.9.9", 1) && !holds("192.169.0.1", 1));
        assert!(holds("fd00::1", 80) && !holds("fd00::1", 81) && holds("::1", 5) && !holds("::2", 5));
        assert!(list.names_port("db.corp", None, 8080) && !list.names_port("wiki.corp", None, 22));
        assert!(list.names_port("10.0.0.7", "10.0.0.7".parse().ok(), 81));
    }

    #[test]
    fn mapped_entries_mean_the_address_they_carry() {
        let list = allowed(&["::ffff:10.0.0.0/104", "::ffff:127.0.0.1"]);
        assert!(list.holds("10.9.9.9".parse().unwrap(), 80) && list.holds("127.0.0.1".parse().unwrap(), 80));
    }

    #[test]
    fn senseless_entries_are_refused() {
        for entry in [
            "",
            "*",
            "*.*:80",
            "http://x",
            "a b",
            "x:port",
            "x:70000",
            "10.0.0.0/33",
            "fd00::/129",
            "::ffff:10.0.0.0/8",
            "/8",
            "é",
        ] {
            assert!(AllowedHosts::parse(&[entry]).is_err(), "{entry}");
        }
    }

    #[test]
    fn networks_are_globs_over_hosts() {
        let list = |patterns: &[&str]| patterns.iter().map(|pattern| Box::from(*pattern)).collect::<Vec<Box<str>>>();
        for (patterns, host, expected) in [
            (&["*"][..], "anything.example", true),
            (&[], "example.com", false),
            (&["example.com"], "example.com", true),
            (&["Example.COM."], "example.com", true),
            (&["example.com"], "www.example.com", false),
            (&["example.com"], "example.com.evil.net", false),
            (&["*.example.com"], "www.example.com", true),
            (&["*.example.com"], "example.com", false),
            (&["*.example.com"], "evilexample.com", false),
            (&["a.example", "b.example"], "b.example", true),
            (&["example.com:443"], "example.com", true),
            (&["example.com:8443"], "example.com", false),
            (&["[::1]"], "::1", true),
            (&["192.168.*"], "192.168.0.1", true),
        ] {
            assert_eq!(in_network(&list(patterns), host, 443), expected, "{patterns:?} {host}");
        }
    }
}
