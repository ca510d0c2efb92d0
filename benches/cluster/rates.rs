//! How much the owner takes while it sends all of it to the journal and two standbys.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Stage;
use crate::measure::goals::{self, Goal};
use crate::measure::{Row, Run, cpu_seconds, drive, ms, percentile, post, size};

/// Agents that get messages.
const AGENTS: usize = 1_000;

/// Whole turns against a model that answers at once.
pub(crate) fn turns(stage: &Stage) {
    let clients = clients();
    let agents: Vec<String> = stage.agents.iter().take(AGENTS.max(clients)).cloned().collect();
    // Each connection has agents of its own: none waits for another's turn.
    let request = move |connection: usize, n: usize| {
        let own = agents.len().saturating_sub(connection).div_ceil(clients).max(1);
        let agent = &agents[(connection + n % own * clients) % agents.len()];
        post(&format!("/api/agents/{agent}/message"), r#"{"message":"What is the answer?"}"#)
    };
    let asked = measure(stage, clients, 200, request);
    asked.row("POST message, whole durable turn", stage, (&goals::CLUSTER_TURNS, 2_000.0));
}

/// Durable creation.
pub(crate) fn creates(stage: &Stage) {
    let asked = measure(stage, clients(), 201, |connection, n| {
        let manifest = format!("name = \"a-{connection}-{n}\"\ndescription = \"One of many\"\n");
        post("/api/agents", &json!({ "manifest_toml": manifest }).to_string())
    });
    asked.row("POST /api/agents, durable", stage, (&goals::CLUSTER_CREATES, 8_000.0));
}

/// Connections at once: enough that the owner always has something to do while the journal is waited for.
fn clients() -> usize {
    size("AGENTSVC_BENCH_CLIENTS", 512, 64)
}

/// What a run took, and what it took of this program.
struct Asked {
    run: Run,
    clients: usize,
    /// Part of a core that this program used, with its model.
    own: f64,
    /// Entries by which the last node was behind in the end.
    lag: u64,
}

fn measure(
    stage: &Stage,
    clients: usize,
    status: u16,
    request: impl Fn(usize, usize) -> Vec<u8> + Clone + 'static,
) -> Asked {
    stage.wait_level();
    let (owner, pid) = (stage.owner(), std::process::id());
    let time = Duration::from_secs(size("AGENTSVC_BENCH_SECS", 10, 2) as u64);
    let (began, used) = (Instant::now(), cpu_seconds(pid));
    let run = stage.client.block_on(drive(owner, clients, time, status, request));
    let own = (cpu_seconds(pid) - used) / began.elapsed().as_secs_f64();
    Asked { run, clients, own, lag: stage.lag() }
}

impl Asked {
    fn row(&self, what: &str, stage: &Stage, (goal, least): (&Goal, f64)) {
        let Self { run, clients, own, lag } = self;
        let what = format!("cluster: {what}, {clients} connections, {} agents", stage.agents.len());
        let (p50, p99) = (percentile(&run.latencies, 0.5), percentile(&run.latencies, 0.99));
        Row::new(what, format!("{:.0}/s, p50 {}, p99 {}", run.rate(), ms(p50), ms(p99)))
            .beside(format!(
                "clients and model {:.0} % of a core; a standby {lag} entries behind in the end",
                own * 100.0
            ))
            .goal(goal, run.rate() >= least)
            .print();
    }
}
