//! `[cluster]`: the servers that keep the journal, and what this node is among the others.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::kernel::config::text::{base_url, directory};
use crate::kernel::config::{Reader, Word, table};

table! {
    /// `[cluster]`: several nodes keep one world. Nothing of it has an effect without `servers`.
    #[check(Self::note)]
    pub struct ClusterConfig {
        /// NATS servers of version 2.14 or newer, with JetStream, which keep the journal. Without any, this daemon is alone.
        servers: Vec<Box<str>> => list(server).example("[\"nats://10.0.0.1:4222\"]").protected().at_restart(),
        /// Name of the cluster: letters, digits, `-` and `_`.
        name: Box<str> = "agentsvc".into() => text(name).protected().at_restart(),
        /// Name of this node, different on each: letters, digits, `-` and `_`.
        node: Option<Box<str>> => text(name).example("a").protected().at_restart(),
        /// Where other nodes reach the API of this one.
        url: Option<Box<str>> => url(node_url).example("http://10.0.0.1:4545").protected().at_restart(),
        /// NATS servers that keep each entry, 3 to 5.
        replicas: u8 = 3 => integer(3..=5).protected().at_restart(),
        /// Keep each entry on one NATS server only, for trials: what that server loses is lost.
        unsafe_single_server: bool => flag().protected().at_restart(),
        /// What a change waits for: `journal`, or `journal+standby`, which must have it on its disk, too.
        acks: Acks => choice(Acks::WORDS).protected().at_restart(),
        /// File with `user:password` for the NATS servers, an absolute path.
        credentials: Option<PathBuf> => text(directory).example("/etc/agentsvc/nats.user").protected().at_restart(),
        /// Use NATS servers that take clients without credentials: anyone who reaches them can stop the cluster.
        allow_open_server: bool => flag().protected().at_restart(),
        /// MiB of the journal from which on the owner replaces its beginning by a copy of the world, 1 to 1048576.
        journal_mb: u64 = 512 => integer(1..=1_048_576).protected().at_restart(),
        /// Compare the stores of standbys with that of the owner every hour.
        check: bool = true => flag().protected().at_restart(),
    }
}

agentsvc_components::enum_words! {
    /// What a change waits for before it is answered.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub enum Acks [Word] {
        /// The servers of the journal have it.
        #[default]
        #[serde(rename = "journal")]
        Journal = "journal",
        /// A standby has it on its disk, too.
        #[serde(rename = "journal+standby")]
        Standby = "journal+standby",
    }
}

/// NATS servers at most.
const SERVERS_MAX: usize = 16;
/// The port of one whose URL says none.
const PORT: u16 = 4_222;

impl ClusterConfig {
    /// The ports of the servers.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let port = |server: &str| reqwest::Url::parse(server).ok().and_then(|url| url.port()).unwrap_or(PORT);
        let ports: BTreeSet<u16> = self.servers.iter().map(|server| port(server)).collect();
        ports.into_iter().collect()
    }

    /// Has this daemon a cluster?
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.servers.is_empty()
    }

    /// Servers that keep each entry.
    #[must_use]
    pub fn copies(&self) -> usize {
        if self.unsafe_single_server { 1 } else { self.replicas.into() }
    }

    fn note(&self, reader: &mut Reader<'_, '_>) {
        if !self.is_on() {
            return;
        }
        if self.servers.len() > SERVERS_MAX {
            reader.problem("servers", format!("must be {SERVERS_MAX} servers at most"));
        }
        if self.node.is_none() {
            reader.problem("node", "must be set where `servers` is: the name of this node".to_owned());
        }
        if self.url.is_none() {
            reader.problem("url", "must be set where `servers` is: where the other nodes reach this one".to_owned());
        }
        if self.allow_open_server {
            let text = "anyone who reaches the NATS servers may stop the cluster".to_owned();
            reader.warning("allow_open_server", text);
        }
        if self.unsafe_single_server {
            let text = "one NATS server keeps each entry of the journal: what it loses is lost".to_owned();
            reader.warning("unsafe_single_server", text);
        }
    }
}

fn server(text: &str) -> Result<Box<str>, String> {
    let wrong = || "must be the URL of a NATS server, such as \"nats://10.0.0.1:4222\", without a user or a password";
    let url = reqwest::Url::parse(text).map_err(|_| wrong())?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.has_host();
    if is_plain && matches!(url.scheme(), "nats" | "tls") { Ok(text.into()) } else { Err(wrong().to_owned()) }
}

/// Where a node is reached. Nodes do not speak TLS with one another, and answer at the root only.
fn node_url(text: &str) -> Result<Box<str>, String> {
    let wrong = || "must be `http://host:port`, such as \"http://10.0.0.1:4545\"".to_owned();
    let url = base_url(text).map_err(|_| wrong())?;
    let place = url.strip_prefix("http://").and_then(|place| place.rsplit_once(':'));
    let is_fit = |(host, port): (&str, &str)| !host.contains(['/', '?', '#']) && port.parse::<u16>().is_ok();
    if place.is_some_and(is_fit) { Ok(url) } else { Err(wrong()) }
}

/// A name that can be a part of a subject and of the name of a stream.
fn name(text: &str) -> Result<Box<str>, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=40).contains(&text.len()) && text.bytes().all(is_fit) {
        Ok(text.into())
    } else {
        Err("must be letters, digits, `-` and `_`, 40 at most".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Acks, ClusterConfig, SERVERS_MAX};
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<ClusterConfig>, Error> {
        read_table("cluster", text)
    }

    #[test]
    fn a_cluster_is_read_and_checked() {
        let read = |text: &str| parse(text).map(|loaded| loaded.config);
        assert_eq!(read("").unwrap(), ClusterConfig::default());
        assert!(!ClusterConfig::default().is_on());
        let text = "[cluster]\nservers = [\"nats://h:4222\"]\nnode = \"a\"\nurl = \"http://h:4545\"\n";
        let cluster = read(text).unwrap();
        assert_eq!((cluster.is_on(), cluster.copies(), cluster.acks), (true, 3, Acks::Journal));
        let several = text.replace("\"nats://h:4222\"", "\"nats://h:4333\", \"tls://i\", \"nats://[::1]:4333\"");
        assert_eq!(read(&several).unwrap().ports(), [4_222, 4_333]);
        let many = text.replace("\"nats://h:4222\"", &["\"nats://h\""; SERVERS_MAX + 1].join(", "));
        assert!(read(&many).unwrap_err().to_string().contains("cluster.servers: must be 16 servers at most"));
        let cluster = read(&format!("{text}unsafe_single_server = true\nacks = \"journal+standby\"\n")).unwrap();
        assert_eq!((cluster.copies(), cluster.acks, cluster.allow_open_server), (1, Acks::Standby, false));
        let open = parse(&format!("{text}allow_open_server = true\n")).unwrap();
        assert!(open.config.allow_open_server && open.warnings.len() == 1, "{:?}", open.warnings);
        for (text, says) in [
            ("servers = [\"nats://h:4222\"]\nurl = \"http://h:1\"", "cluster.node: must be set"),
            ("servers = [\"nats://h:4222\"]\nnode = \"a\"", "cluster.url: must be set"),
            ("url = \"https://h:4545\"", "must be `http://host:port`"),
            ("url = \"http://h:4545/agents\"", "must be `http://host:port`"),
            ("url = \"http://h\"", "must be `http://host:port`"),
            ("servers = [\"http://h:4222\"]", "must be the URL of a NATS server"),
            ("servers = [\"nats://u:p@h:4222\"]", "without a user or a password"),
            ("name = \"a.b\"", "cluster.name: must be letters"),
            ("replicas = 1", "cluster.replicas: must be 3 to 5"),
        ] {
            let error = read(&format!("[cluster]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
