//! From the moment at which something dies to the next write that is acknowledged.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Stage, rolling};
use crate::measure::goals::{self, Goal};
use crate::measure::{Connection, Row, percentile, size};
use crate::nodes::{self, NODES, STREAM};
use crate::support::{PATIENCE, until};

/// Time between two writes. None waits for another, so that those that a dead node holds up hold up nothing.
const PERIOD: Duration = Duration::from_millis(20);
/// How long one of them may take.
const WRITE_MAX: Duration = Duration::from_secs(10);

/// Keys that are written, so that few of the writes that are under way change the same one.
const KEYS: usize = 64;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outage {
    /// The owner, by SIGKILL.
    Killed,
    /// The owner, by SIGSTOP; it goes on behind the next write.
    Frozen,
    /// The NATS server that leads the stream, by SIGKILL.
    Leader,
    /// The same together with the owner, as if they shared a machine.
    Machine,
}

impl Outage {
    /// Its name on the command line.
    pub(crate) fn part(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Frozen => "frozen",
            Self::Leader => "leader",
            Self::Machine => "machine",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Killed => "owner killed",
            Self::Frozen => "owner frozen",
            Self::Leader => "the stream's leader killed",
            Self::Machine => "the stream's leader and the owner killed",
        }
    }

    fn rounds(self) -> usize {
        match self {
            Self::Killed | Self::Frozen => size("AGENTSVC_BENCH_ROUNDS", 20, 2),
            Self::Leader | Self::Machine => size("AGENTSVC_BENCH_LEADERS", 5, 1),
        }
    }

    fn goal(self) -> (&'static Goal, Duration) {
        match self {
            Self::Killed => (&goals::CLUSTER_KILLED, Duration::from_secs(3)),
            Self::Frozen => (&goals::CLUSTER_FROZEN, Duration::from_secs(3)),
            Self::Leader | Self::Machine => (&goals::CLUSTER_LEADER, Duration::from_secs(12)),
        }
    }

    fn takes_owner(self) -> bool {
        self != Self::Leader
    }
}

/// What a round took.
struct Round {
    gap: Duration,
    /// What the new owner says that it took to open the journal and bring the world to life, and of this to read the rows and to make
    /// a world of them.
    taken: Option<[Duration; 3]>,
}

/// Measures one of them.
pub(crate) fn measure(stage: &mut Stage, outage: Outage) {
    let rounds: Vec<Round> = (0..outage.rounds()).map(|_| round(stage, outage)).collect();
    let mut gaps: Vec<Duration> = rounds.iter().map(|round| round.gap).collect();
    gaps.sort_unstable();
    let (p99, longest) = (percentile(&gaps, 0.99), gaps.last().copied().unwrap_or_default());
    let secs = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let result = format!("p50 {}, p99 {}, max {}", secs(percentile(&gaps, 0.5)), secs(p99), secs(longest));
    let part = |at: usize| {
        let mut times: Vec<Duration> = rounds.iter().filter_map(|round| round.taken.map(|taken| taken[at])).collect();
        times.sort_unstable();
        format!("{} (max {})", secs(percentile(&times, 0.5)), secs(times.last().copied().unwrap_or_default()))
    };
    let what =
        format!("{}, {} agents, {} times: next acknowledged write", outage.what(), stage.agents.len(), gaps.len());
    let mut row = Row::new(what, result);
    if outage.takes_owner() {
        let [all, read, restored] = [0, 1, 2].map(part);
        row = row.beside(format!("of it the takeover {all}: reading the store {read}, restoring the world {restored}"));
    }
    let (goal, limit) = outage.goal();
    row.goal(goal, p99 <= limit).print();
}

fn round(stage: &mut Stage, outage: Outage) -> Round {
    stage.wait_level();
    let Stage { cluster, client, agents, .. } = stage;
    let owner = until("a node owns the world", || nodes::owner(&cluster.nodes));
    let leader = until("the stream has a leader", || cluster.servers.leader_of(STREAM));
    let asked = (0..NODES).filter(|at| !outage.takes_owner() || *at != owner);
    let asked: Vec<SocketAddr> = asked.map(|at| cluster.nodes[at].api).collect();
    let began = Instant::now();
    match outage {
        Outage::Killed => cluster.nodes[owner].kill(),
        Outage::Frozen => cluster.nodes[owner].process().freeze(),
        Outage::Leader => cluster.servers.kill(leader),
        Outage::Machine => {
            cluster.nodes[owner].kill();
            cluster.servers.kill(leader);
        }
    }
    let gap = client.block_on(async { timeout(PATIENCE, next_write(&asked, &agents[0], began)).await });
    let Ok(gap) = gap else { panic!("nothing is acknowledged any more\n{}", cluster.said()) };
    match outage {
        Outage::Killed => cluster.nodes[owner].start(),
        Outage::Frozen => cluster.nodes[owner].process().thaw(),
        Outage::Leader => cluster.servers.restart(leader),
        Outage::Machine => {
            cluster.servers.restart(leader);
            cluster.nodes[owner].start();
        }
    }
    stage.wait_level();
    Round { gap, taken: outage.takes_owner().then(|| taken(stage)).flatten() }
}

/// The time from `since` to the first acknowledgement of a write that began behind it, by one of these nodes.
async fn next_write(nodes: &[SocketAddr], agent: &str, since: Instant) -> Duration {
    let (tell, mut acknowledged) = unbounded_channel();
    let (mut writes, mut beat) = (JoinSet::new(), interval(PERIOD));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for (number, node) in nodes.iter().copied().cycle().enumerate() {
        tokio::select! {
            _ = beat.tick() => {}
            Some(()) = acknowledged.recv() => break,
        }
        let (tell, request) = (tell.clone(), write(agent, number % KEYS));
        writes.spawn(async move {
            if timeout(WRITE_MAX, is_acknowledged(node, &request)).await == Ok(true) {
                // Somebody else was first where nobody listens any more.
                let _ = tell.send(());
            }
        });
    }
    since.elapsed()
}

/// Stores a value under one of a few keys.
fn write(agent: &str, key: usize) -> Vec<u8> {
    let body = json!({ "value": key }).to_string();
    let head = format!("PUT /api/memory/agents/{agent}/kv/probe-{key} HTTP/1.1\r\nhost: localhost\r\n");
    format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn is_acknowledged(node: SocketAddr, request: &[u8]) -> bool {
    let Ok(mut connection) = Connection::open(node).await else { return false };
    matches!(connection.call(request).await, Ok((200, _)))
}

/// What the owner says of how it became the owner.
fn taken(stage: &Stage) -> Option<[Duration; 3]> {
    let at = nodes::owner(&stage.cluster.nodes)?;
    let said = stage.cluster.nodes[at].said();
    let newest = |line: &str, field| rolling::field(said.lines().rev().find(|said| said.contains(line))?, field);
    let loaded = "the stored world is loaded";
    Some([newest("this node owns the world", "ms")?, newest(loaded, "read_ms")?, newest(loaded, "restore_ms")?])
}
