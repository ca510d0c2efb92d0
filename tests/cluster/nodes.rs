//! Three daemons of the real binary, each with a home of its own and a link of its own to each NATS server.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use super::proxy::{Link, Mode};
use super::servers::{PASSWORD, Process, SERVERS, Servers, USER, free_addresses};
use crate::support::daemon::command;
use crate::support::http::Client;
use crate::support::until;

/// Nodes of the cluster.
pub(crate) const NODES: usize = 3;
/// The stream of the journal.
pub(crate) const STREAM: &str = "agentsvc-0";
/// 32 bytes in base64.
const VAULT_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A node.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) api: SocketAddr,
    home: TempDir,
    process: Option<Process>,
    /// Its ways to the NATS servers.
    links: Vec<Link>,
    config: String,
}

impl Node {
    /// A node that is not yet started, with more lines of configuration.
    pub(crate) fn new(name: &str, servers: &Servers, rest: &str) -> Self {
        let links: Vec<Link> = (0..SERVERS).map(|at| servers.link_to(at)).collect();
        let urls: Vec<String> = links.iter().map(|link| format!("\"nats://{}\"", link.address())).collect();
        let api = free_addresses(1)[0];
        let home = tempfile::tempdir().expect("a temporary directory");
        let credentials = home.path().join("nats.user");
        fs::write(&credentials, format!("{USER}:{PASSWORD}")).expect("a file can be written");
        let config = format!(
            "api_listen = \"{api}\"\nrate_limit_per_second = 1000000\n{rest}\n\
             [cluster]\nservers = [{}]\nnode = \"{name}\"\nurl = \"http://{api}\"\ncredentials = {credentials:?}\n",
            urls.join(", ")
        );
        let node = Self { name: name.to_owned(), api, home, process: None, links, config };
        node.write_config();
        node
    }

    fn write_config(&self) {
        fs::write(self.home.path().join("config.toml"), &self.config).expect("config.toml can be written");
    }

    /// It is configured as a daemon without a cluster.
    pub(crate) fn make_alone(&self) {
        let alone = self.config.split("[cluster]").next().unwrap_or_default();
        fs::write(self.home.path().join("config.toml"), alone).expect("config.toml can be written");
    }

    /// It is configured as a node again.
    pub(crate) fn join(&self) {
        self.write_config();
    }

    pub(crate) fn start(&mut self) {
        if self.process.is_some() {
            return;
        }
        let log = self.home.path().join("stderr.txt");
        let log = File::options().create(true).append(true).open(log).expect("a log can be written");
        let mut command = command(self.home.path());
        command.arg("start").env("AGENTSVC_VAULT_KEY", VAULT_KEY).stdout(Stdio::null()).stderr(log);
        self.process = Some(Process::new(command.spawn().expect("the binary starts")));
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Ends it in order.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.ask_to_end();
        }
    }

    pub(crate) fn process(&self) -> &Process {
        self.process.as_ref().expect("it runs")
    }

    /// Has it ended by itself?
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::has_ended)
    }

    /// Removes everything that it has, but its configuration, its credentials, and what it said. It is not running.
    pub(crate) fn wipe(&self) {
        for entry in fs::read_dir(self.home.path()).expect("a home is there").flatten() {
            let path = entry.path();
            match entry.file_name().to_str() {
                Some("config.toml" | "stderr.txt" | "nats.user") => {}
                _ if path.is_dir() => fs::remove_dir_all(&path).expect("a directory can be removed"),
                _ => fs::remove_file(&path).expect("a file can be removed"),
            }
        }
    }

    /// Its ways to the NATS servers do so.
    pub(crate) fn set_links(&self, mode: Mode) {
        self.links.iter().for_each(|link| link.set(mode));
    }

    /// Its way to one of the NATS servers does so.
    pub(crate) fn set_link(&self, server: usize, mode: Mode) {
        self.links[server].set(mode);
    }

    pub(crate) fn client(&self) -> Client {
        Client::hasty(self.api)
    }

    /// What it says of the cluster.
    pub(crate) fn cluster(&self) -> Option<Value> {
        let reply = self.client().try_send("GET", "/api/cluster", &[], None).ok()?;
        (reply.status == 200).then(|| serde_json::from_slice(&reply.body).ok()).flatten()
    }

    /// The errors that it logged.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.logged("ERROR")
    }

    /// What it logged at this level.
    pub(crate) fn logged(&self, level: &str) -> Vec<String> {
        let text = fs::read_to_string(self.home.path().join("stderr.txt")).unwrap_or_default();
        text.lines().filter(|line| line.contains(level)).map(str::to_owned).collect()
    }

    /// What it wrote to stderr, its last lines.
    pub(crate) fn said(&self) -> String {
        let text = fs::read_to_string(self.home.path().join("stderr.txt")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("--- node {}\n{}\n", self.name, lines[lines.len().saturating_sub(40)..].join("\n"))
    }
}

/// The node that says itself that it owns the world.
pub(crate) fn owner(nodes: &[Node]) -> Option<usize> {
    let is_owner = |node: &Node| node.cluster().is_some_and(|known| known["role"] == "owner");
    nodes.iter().position(|node| node.process.is_some() && is_owner(node))
}

/// Waits until a node owns the world.
pub(crate) fn wait_for_owner(nodes: &mut [Node]) -> usize {
    until("a node owns the world", || {
        if let Some(ended) = nodes.iter_mut().find_map(|node| node.has_ended().then(|| node.said())) {
            panic!("a node ended by itself\n{ended}");
        }
        owner(nodes)
    })
}
