//! The faults, one after the other, under load.

use std::fmt::Write as _;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::load::Load;
use super::nodes::{NODES, Node, STREAM, owner, wait_for_owner};
use super::proxy::Mode;
use super::servers::{SERVERS, Servers};
use crate::support::clients::skipped;
use crate::support::{Rng, number, seed_of_run, some_time, until};

/// Clients at once.
pub(crate) const CLIENTS: u64 = 10;
/// Lists that they append to.
const LISTS: usize = 4;
/// Faults of a run without another word, and how long it goes on at most.
const FAULTS: u64 = 20;
const TIME: Duration = Duration::from_secs(75);

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillOwner,
    FreezeOwner,
    StopOwner,
    /// Every connection of the owner to the servers is broken.
    CutOwner,
    /// They stay, and nothing goes either way.
    HoldOwner,
    /// What it sends does not arrive, and it hears everything.
    MuteOwner,
    /// What it sends arrives, and it hears nothing.
    DeafenOwner,
    SlowOwner,
    WipeStandby,
    KillLeader,
    FreezeLeader,
    CutServer,
    KillFollower,
}

const ALL: [Fault; 13] = [
    Fault::KillOwner,
    Fault::FreezeOwner,
    Fault::KillLeader,
    Fault::CutOwner,
    Fault::WipeStandby,
    Fault::HoldOwner,
    Fault::MuteOwner,
    Fault::StopOwner,
    Fault::DeafenOwner,
    Fault::FreezeLeader,
    Fault::SlowOwner,
    Fault::CutServer,
    Fault::KillFollower,
];

/// Everything.
pub(crate) struct Cluster {
    pub(crate) servers: Servers,
    pub(crate) nodes: Vec<Node>,
}

impl Cluster {
    /// Starts everything, with more lines of configuration for each node.
    pub(crate) fn start(rest: &str) -> Self {
        Self::start_over(Servers::start(), rest)
    }

    /// Starts the nodes of these servers.
    pub(crate) fn start_over(servers: Servers, rest: &str) -> Self {
        let mut nodes: Vec<Node> = ["a", "b", "c"].map(|name| Node::new(name, &servers, rest)).into();
        nodes.iter_mut().for_each(Node::start);
        wait_for_owner(&mut nodes);
        let cluster = Self { servers, nodes };
        cluster.wait_well();
        cluster
    }

    /// Waits until all nodes answer, one of them owns the world, and the others have all that it has.
    pub(crate) fn wait_well(&self) {
        until("all nodes are well", || {
            let owner = owner(&self.nodes)?;
            let known = self.nodes[owner].cluster()?;
            let reply = self.nodes[owner].client().try_send("GET", "/api/cluster/nodes", &[], None).ok()?;
            let rows: serde_json::Value = serde_json::from_slice(&reply.body).ok()?;
            let rows = rows.as_array().or_else(|| rows["items"].as_array()).or_else(|| rows["nodes"].as_array())?;
            let standbys = rows.iter().filter(|row| row["role"] == "standby").count();
            (standbys + 1 == NODES && known["stream"]["leader"].is_string()).then_some(())
        });
    }

    /// Begins a fault. Gives what ends it.
    fn begin(&mut self, fault: Fault, rng: &mut Rng) -> Box<dyn FnOnce(&mut Self)> {
        let at = wait_for_owner(&mut self.nodes);
        let held = |to_target, to_client| Mode::Held { to_target, to_client };
        let on_links = |cluster: &Self, mode| {
            cluster.nodes[at].set_links(mode);
            Box::new(move |cluster: &mut Self| cluster.nodes[at].set_links(Mode::Open)) as Box<dyn FnOnce(&mut Self)>
        };
        let leader = || self.servers.leader_of(STREAM);
        match fault {
            Fault::KillOwner => {
                self.nodes[at].kill();
                Box::new(move |cluster: &mut Self| cluster.nodes[at].start())
            }
            Fault::StopOwner => {
                self.nodes[at].stop();
                Box::new(move |cluster: &mut Self| cluster.nodes[at].start())
            }
            Fault::FreezeOwner => {
                self.nodes[at].process().freeze();
                Box::new(move |cluster: &mut Self| cluster.nodes[at].process().thaw())
            }
            Fault::CutOwner => on_links(self, Mode::Cut),
            Fault::HoldOwner => on_links(self, held(true, true)),
            Fault::MuteOwner => on_links(self, held(true, false)),
            Fault::DeafenOwner => on_links(self, held(false, true)),
            Fault::SlowOwner => on_links(self, Mode::Slow(Duration::from_millis(50 + rng.below(200) as u64))),
            Fault::WipeStandby => {
                let standby = (at + 1 + rng.below(NODES - 1)) % NODES;
                self.nodes[standby].kill();
                self.nodes[standby].wipe();
                Box::new(move |cluster: &mut Self| cluster.nodes[standby].start())
            }
            Fault::KillLeader | Fault::KillFollower => {
                let leader = until("the stream has a leader", leader);
                let server = if fault == Fault::KillLeader { leader } else { (leader + 1) % SERVERS };
                self.servers.kill(server);
                Box::new(move |cluster: &mut Self| cluster.servers.restart(server))
            }
            Fault::FreezeLeader => {
                let leader = until("the stream has a leader", leader);
                self.servers.process(leader).freeze();
                Box::new(move |cluster: &mut Self| cluster.servers.process(leader).thaw())
            }
            Fault::CutServer => {
                let server = rng.below(SERVERS);
                self.servers.set_routes(server, Mode::Cut);
                Box::new(move |cluster: &mut Self| cluster.servers.set_routes(server, Mode::Open))
            }
        }
    }

    /// The last lines of what all of them said.
    pub(crate) fn said(&self) -> String {
        self.nodes.iter().map(Node::said).collect::<String>() + &self.servers.said()
    }
}

/// Agents and sessions, one of each for a list.
pub(crate) fn lists(cluster: &Cluster) -> Vec<(String, String)> {
    lists_at(cluster, 0)
}

/// The same, made by way of this node.
pub(crate) fn lists_at(cluster: &Cluster, at: usize) -> Vec<(String, String)> {
    let client = cluster.nodes[at].client();
    let list = |at: usize| {
        let manifest = format!("name = \"list-{at}\"\n[model]\nprovider = \"builtin\"\nmodel = \"builtin\"\n");
        let made = client.post("/api/agents", &json!({ "manifest_toml": manifest })).expect(201);
        let agent = made["agent_id"].as_str().expect("an id").to_owned();
        let detail = client.get(&format!("/api/agents/{agent}")).expect(200);
        (agent, detail["session_id"].as_str().expect("a session").to_owned())
    };
    (0..LISTS).map(list).collect()
}

#[test]
#[allow(clippy::print_stdout, reason = "how long each fault lasted is a result")]
fn nothing_acknowledged_is_lost_whatever_fails() {
    if skipped() {
        return;
    }
    let faults = number("AGENTSVC_CLUSTER_FAULTS").unwrap_or(FAULTS);
    let is_bounded = number("AGENTSVC_CLUSTER_FAULTS").is_none();
    let mut rng = Rng(seed_of_run(&format!("{faults} faults")));
    let mut cluster = Cluster::start("");
    let clients = cluster.nodes.iter().map(Node::client).collect();
    let load = Arc::new(Load::new(lists(&cluster), clients));
    let loaders: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (load, rng) = (load.clone(), Rng(rng.roll()));
            thread::spawn(move || load.run(rng))
        })
        .collect();
    let (began, mut gaps) = (Instant::now(), Vec::new());
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for at in 0..faults {
            if is_bounded && began.elapsed() > TIME {
                break;
            }
            let fault = if (at as usize) < ALL.len() { ALL[at as usize] } else { ALL[rng.below(ALL.len())] };
            let since = Instant::now();
            let end = cluster.begin(fault, &mut rng);
            let gap = until(&format!("something is acknowledged after {fault:?}"), || load.gap_since(since));
            // The fault lasts on for a while, as it may.
            some_time(&mut rng, Duration::from_millis(1_500));
            end(&mut cluster);
            cluster.wait_well();
            println!("{fault:?}: {gap:?} until the next acknowledged write, well after {:?}", since.elapsed());
            gaps.push((fault, gap));
        }
    }));
    load.stop();
    for loader in loaders {
        loader.join().expect("a client does not panic");
    }
    println!("{}", load.sum());
    if let Err(panic) = failed {
        println!("{}", cluster.said());
        std::panic::resume_unwind(panic);
    }
    until("every list can be read through every node", || load.read_all().then_some(()));
    let anomalies = load.anomalies();
    let mut text = String::new();
    for anomaly in anomalies.iter().take(20) {
        let _ = writeln!(text, "{anomaly}");
    }
    assert!(anomalies.is_empty(), "{} anomalies:\n{text}{}", anomalies.len(), cluster.said());
    assert!(!gaps.is_empty());
}
