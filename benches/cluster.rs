//! A cluster of three daemons and three NATS servers on one machine: `cargo bench --bench all -- cluster`, or some of its parts: `killed`,
//! `frozen`, `leader`, `machine`, `rolling`, `turns`, `creates`.
//!
//! The servers and nodes are those of `tests/cluster`, without the links that fail there. `AGENTSVC_BENCH_AGENTS` is the size of the
//! world, `AGENTSVC_BENCH_ROUNDS` how often an owner dies, `AGENTSVC_BENCH_LEADERS` how often a leader of the stream does,
//! `AGENTSVC_BENCH_UPGRADES` how often all nodes are replaced, `AGENTSVC_BENCH_CLIENTS` the connections that ask for turns and
//! agents, and `AGENTSVC_BENCH_SECS` how long they do. `AGENTSVC_BIN` names another binary.

mod outages;
mod rates;
mod rolling;

use std::net::SocketAddr;
use std::time::Instant;

use crate::faults::Cluster;
use crate::measure::{Row, default_model, head, is_wanted, ms, size};
use crate::nodes::{self, NODES};
use crate::proxy::Link;
use crate::servers::Servers;
use crate::support::daemon::text;
use crate::support::http::Client;
use crate::support::model_server::ModelServer;
use crate::support::{clients, until};
use outages::Outage;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Agents that are made with one request.
const BULK: usize = 1_000;

/// What is measured.
struct Stage {
    cluster: Cluster,
    /// Runs what asks.
    client: Runtime,
    /// The agents that were there from the beginning.
    agents: Vec<String>,
    /// Answers at once.
    _model: ModelServer,
}

pub(crate) fn main() {
    head("cluster");
    if clients::skipped() {
        println!("nothing was measured: there is no nats-server");
        return;
    }
    let mut stage = Stage::set(size("AGENTSVC_BENCH_AGENTS", 100_000, 1_000));
    for outage in [Outage::Killed, Outage::Frozen, Outage::Leader, Outage::Machine] {
        if is_wanted(outage.part()) {
            outages::measure(&mut stage, outage);
        }
    }
    if is_wanted("rolling") {
        rolling::measure(&mut stage);
    }
    // The world grows here, so they come last.
    if is_wanted("turns") {
        rates::turns(&stage);
    }
    if is_wanted("creates") {
        rates::creates(&stage);
    }
    println!(
        "\nWithout a cluster: `cargo bench --bench all -- http_load creates turns`, with AGENTSVC_BIN=<binary of another commit> for what it \
         was before."
    );
}

impl Stage {
    /// Starts everything, with a world of so many agents.
    fn set(agents: usize) -> Self {
        let client = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let model = ModelServer::fixed("A short answer of a few words.");
        let cluster = Cluster::start_over(Servers::start_over(Link::straight), &default_model(&model.base_url()));
        let mut stage = Self { cluster, client, agents: Vec::with_capacity(agents), _model: model };
        let (client, began) = (Client::new(stage.owner()), Instant::now());
        while stage.agents.len() < agents {
            let first = stage.agents.len();
            let items: Vec<_> = (first..agents.min(first + BULK))
                .map(|n| json!({ "manifest_toml": format!("name = \"n-{n}\"\ndescription = \"One of many\"\n") }))
                .collect();
            let reply = client.post("/api/agents/bulk", &json!({ "agents": items }));
            let body = reply.expect(reply.status);
            let rows = body["results"].as_array().expect("one result per agent");
            stage.agents.extend(rows.iter().map(|row| text(&row["id"])));
        }
        let (made, lag) = (began.elapsed(), stage.lag());
        stage.wait_level();
        let behind = ms(began.elapsed().saturating_sub(made));
        Row::new(format!("cluster: {agents} agents made, {BULK} with each request"), ms(made))
            .beside(format!("a standby {lag} entries behind; all had them after {behind} more"))
            .print();
        stage
    }

    /// Where the owner answers.
    fn owner(&self) -> SocketAddr {
        let at = until("a node owns the world", || nodes::owner(&self.cluster.nodes));
        self.cluster.nodes[at].api
    }

    /// What the owner says of all nodes.
    fn rows(&self) -> Option<Vec<Value>> {
        let reply = Client::hasty(self.owner()).try_send("GET", "/api/cluster/nodes", &[], None).ok()?;
        let rows: Value = serde_json::from_slice(&reply.body).ok()?;
        let rows = rows.as_array().or_else(|| rows["items"].as_array()).or_else(|| rows["nodes"].as_array());
        rows.cloned()
    }

    /// The most entries by which a node is behind.
    fn lag(&self) -> u64 {
        let rows = self.rows().unwrap_or_default();
        rows.iter().filter_map(|row| row["lag"].as_u64()).max().unwrap_or_default()
    }

    /// Waits until all are well, and all nodes have the same.
    fn wait_level(&self) {
        self.cluster.servers.wait_well();
        self.cluster.wait_well();
        until("no node is behind", || {
            let is_level = |row: &Value| row["lag"] == 0 && (row["role"] == "owner" || row["role"] == "standby");
            self.rows().filter(|rows| rows.len() == NODES && rows.iter().all(is_level)).map(drop)
        });
    }
}
