//! Three NATS servers on loopback. What goes from one to another, and from clients to them, goes over links that can fail.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::proxy::{Link, Mode};
use crate::support::clients::installed;
use crate::support::http::Client as HttpClient;
use crate::support::until;

/// Servers of a cluster.
pub(crate) const SERVERS: usize = 3;

/// What clients of the servers need.
pub(crate) const USER: &str = "agentsvc";
pub(crate) const PASSWORD: &str = "of-the-servers";

/// A process that can be killed, stopped and continued. Dropped: killed.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    pub(crate) fn kill(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).expect("a child that was not waited for can be signalled");
    }

    /// Stops it where it is: its connections stay, and it says nothing.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on as if nothing had happened.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&mut self) {
        self.signal(Signal::TERM);
        until("the process ends", || self.0.try_wait().expect("a child can be waited for"));
    }

    /// Has it ended by itself?
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports that are free now, for programs that must be told theirs: below those that the system gives to connections, one of which
/// would otherwise take a port between now and the program's start.
pub(crate) fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    /// The ports looked at: from this one on, and how many.
    const FIRST: u16 = 10_000;
    const PORTS: u16 = 20_000;
    let start = (std::process::id() % u32::from(PORTS)) as u16;
    let free = std::iter::repeat_with(|| FIRST + (start + TAKEN.fetch_add(1, Ordering::Relaxed)) % PORTS)
        .take(usize::from(PORTS))
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .filter(|address| TcpListener::bind(address).is_ok());
    let found: Vec<SocketAddr> = free.take(count).collect();
    assert_eq!(found.len(), count, "loopback has free ports");
    found
}

struct Server {
    process: Option<Process>,
    client: SocketAddr,
    monitor: SocketAddr,
}

/// The servers.
pub(crate) struct Servers {
    home: TempDir,
    servers: Vec<Server>,
    /// What goes from one server (row) to another (column).
    routes: Vec<Vec<Link>>,
    /// Makes a link to an address.
    link: fn(SocketAddr) -> Link,
}

fn program() -> PathBuf {
    installed().join("venv-nats/bin/nats-server")
}

impl Servers {
    /// Starts them, and waits until they are one cluster.
    pub(crate) fn start() -> Self {
        Self::start_over(Link::to)
    }

    /// As [`start`](Self::start), over links that `link` makes.
    pub(crate) fn start_over(link: fn(SocketAddr) -> Link) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (clients, monitors, peers) = (free_addresses(SERVERS), free_addresses(SERVERS), free_addresses(SERVERS));
        let routes: Vec<Vec<Link>> = (0..SERVERS).map(|_| peers.iter().map(|peer| link(*peer)).collect()).collect();
        for (at, links) in routes.iter().enumerate() {
            // One of two servers connects to the other, over one connection: where both do over links, which hide who is
            // behind them, each may go on to close the connection that the other one keeps.
            // A server without routes does not start, and one with fewer than there are others does not expect all of them: the
            // rest lead nowhere.
            let nowhere = (1..SERVERS - at).map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16)));
            let others: Vec<String> = links[..at]
                .iter()
                .map(Link::address)
                .chain(nowhere)
                .map(|address| format!("nats://{address}"))
                .collect();
            // What is advertised answers nobody: no server finds a way around the links.
            let text = format!(
                "server_name: n{at}\nlisten: \"{}\"\nhttp: \"{}\"\n\
                 authorization {{ user: {USER}, password: {PASSWORD} }}\n\
                 jetstream {{ store_dir: \"{}\", sync_interval: always }}\n\
                 cluster {{ name: test, listen: \"{}\", pool_size: -1, no_advertise: true, advertise: \"127.0.0.1:1\", routes: [{}] }}\n",
                clients[at],
                monitors[at],
                home.path().join(format!("n{at}")).display(),
                peers[at],
                others.join(", "),
            );
            fs::write(home.path().join(format!("n{at}.conf")), text).expect("a configuration can be written");
        }
        let servers = clients.into_iter().zip(monitors);
        let servers = servers.map(|(client, monitor)| Server { process: None, client, monitor }).collect();
        let mut all = Self { home, servers, routes, link };
        (0..SERVERS).for_each(|at| all.launch(at));
        all.wait_well();
        all
    }

    /// Makes the stream of a journal so that single entries can be erased: nodes make one that does not allow it.
    pub(crate) fn with_erasable_stream(self, name: &str) -> Self {
        let world = name.rsplit_once('-').expect("a stream is named after a cluster and its world");
        let config = Config {
            name: name.to_owned(),
            subjects: vec![format!("{}.journal.{}", world.0, world.1)],
            storage: StorageType::File,
            num_replicas: SERVERS,
            discard: DiscardPolicy::New,
            ..Config::default()
        };
        // The servers may still choose who leads them.
        until("a stream can be created", || {
            let config = config.clone();
            self.ask(async |context| context.get_or_create_stream(config).await.map(drop)).ok()
        });
        self
    }

    /// Erases the entry that is this far before the last one, as a damaged disk of two servers could.
    pub(crate) fn erase_before_last(&self, name: &str, before: u64) {
        let erased = self.ask(async |context| {
            let stream = context.get_stream(name).await.expect("the stream is there");
            stream.delete_message(stream.cached_info().state.last_sequence - before).await
        });
        assert!(erased.expect("an entry can be erased"));
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, name: &str) {
        let removed = self.ask(async |context| context.delete_stream(name).await.map(drop));
        removed.expect("a stream can be removed");
    }

    /// When a stream was made, and when its first message came, in nanoseconds since 1970.
    pub(crate) fn began(&self, name: &str) -> (i128, i128) {
        self.ask(async |context| {
            let stream = context.get_stream(name).await.expect("the stream is there");
            let info = stream.cached_info();
            (info.created.unix_timestamp_nanos(), info.state.first_timestamp.unix_timestamp_nanos())
        })
    }

    fn ask<T>(&self, work: impl AsyncFnOnce(Context) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async { work(jetstream::new(self.connect(0).await)).await })
    }

    fn launch(&mut self, at: usize) {
        let log = self.home.path().join(format!("n{at}.log"));
        let log = File::options().create(true).append(true).open(log).expect("a log can be written");
        let mut command = Command::new(program());
        command.arg("-c").arg(self.home.path().join(format!("n{at}.conf"))).stdin(Stdio::null());
        let out = log.try_clone().expect("a file can be opened twice");
        let child = command.stdout(out).stderr(log).spawn().expect("nats-server starts");
        self.servers[at].process = Some(Process::new(child));
    }

    /// A client of a server, which has what it needs.
    pub(crate) async fn connect(&self, at: usize) -> Client {
        let options = ConnectOptions::with_user_and_password(USER.to_owned(), PASSWORD.to_owned());
        options.connect(format!("nats://{}", self.address(at))).await.expect("a server answers")
    }

    /// Where clients reach a server.
    pub(crate) fn address(&self, at: usize) -> SocketAddr {
        self.servers[at].client
    }

    /// A link for clients to a server.
    pub(crate) fn link_to(&self, at: usize) -> Link {
        (self.link)(self.address(at))
    }

    /// Waits until every server says that it is well.
    pub(crate) fn wait_well(&self) {
        for (at, server) in self.servers.iter().enumerate() {
            let well = std::panic::catch_unwind(|| {
                until(&format!("the NATS server n{at} is well"), || {
                    let reply = HttpClient::hasty(server.monitor).try_send("GET", "/healthz", &[], None).ok()?;
                    (reply.status == 200).then_some(())
                });
            });
            if let Err(panic) = well {
                eprintln!("{}", self.said());
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// The server that leads `stream`, as any of them knows.
    pub(crate) fn leader_of(&self, stream: &str) -> Option<usize> {
        let said = |server: &Server| {
            let path = "/jsz?streams=true&accounts=true";
            let reply = HttpClient::hasty(server.monitor).try_send("GET", path, &[], None).ok()?;
            let known: Value = serde_json::from_slice(&reply.body).ok()?;
            let accounts = known["account_details"].as_array()?;
            let streams = accounts.iter().filter_map(|account| account["stream_detail"].as_array()).flatten();
            let detail = streams.into_iter().find(|detail| detail["name"] == stream)?;
            detail["cluster"]["leader"].as_str()?.strip_prefix('n')?.parse().ok()
        };
        self.servers.iter().filter(|server| server.process.is_some()).find_map(said)
    }

    /// Kills a server.
    pub(crate) fn kill(&mut self, at: usize) {
        self.servers[at].process = None;
    }

    /// Starts a server that was killed.
    pub(crate) fn restart(&mut self, at: usize) {
        if self.servers[at].process.is_none() {
            self.launch(at);
        }
    }

    /// Removes what a server that was killed has stored.
    pub(crate) fn wipe(&self, at: usize) {
        fs::remove_dir_all(self.home.path().join(format!("n{at}"))).expect("what it stored can be removed");
    }

    pub(crate) fn process(&self, at: usize) -> &Process {
        self.servers[at].process.as_ref().expect("it runs")
    }

    /// What goes between a server and the others does so.
    pub(crate) fn set_routes(&self, at: usize, mode: Mode) {
        for other in (0..SERVERS).filter(|other| *other != at) {
            self.routes[at][other].set(mode);
            self.routes[other][at].set(mode);
        }
    }

    /// The last lines of what the servers said.
    pub(crate) fn said(&self) -> String {
        let said = |at: usize| {
            let text = fs::read_to_string(self.home.path().join(format!("n{at}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- n{at}\n{}\n", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        (0..SERVERS).map(said).collect()
    }
}
