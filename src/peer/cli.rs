//! `peers`: the nodes that are connected, and those whose keys are pinned.

use clap::Subcommand;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Table, field, items};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `peers`.
#[derive(Debug, Subcommand)]
pub(crate) enum Peers {
    /// List the peers since the daemon started
    List,
    /// Show this node: its id, addresses and the fingerprint of its key
    Status,
    /// List the peers whose keys are pinned
    Trusted,
    /// Delete the pinned key of a peer; its next key is then pinned
    Forget {
        /// Its node id
        node_id: String,
    },
}

impl Run for Peers {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (answer, render): (Value, fn(&Value) -> String) = match self {
            Self::List => (context.block_on(client.get("/api/peers", &[]))?, listed),
            Self::Status => (context.block_on(client.get("/api/network/status", &[]))?, status),
            Self::Trusted => (context.block_on(client.get("/api/network/trusted", &[]))?, trusted),
            Self::Forget { node_id } => {
                let id = percent_encoding::utf8_percent_encode(&node_id, percent_encoding::NON_ALPHANUMERIC);
                (context.block_on(client.delete(&format!("/api/network/trusted/{id}")))?, forgotten)
            }
        };
        context.print(&answer, render)
    }
}

fn listed(answer: &Value) -> String {
    let mut table = Table::new(&["NODE", "NAME", "ADDRESS", "STATE", "AGENTS"]);
    for peer in items(answer, "peers") {
        let agents: Vec<String> = items(peer, "agents").map(|agent| field(agent, "/name")).collect();
        let of = |key: &str| field(peer, key);
        table.row([&of("/node_id"), &of("/node_name"), &of("/address"), &of("/state"), &agents.join(", ")]);
    }
    table.render()
}

fn status(answer: &Value) -> String {
    let of = |key: &str| field(answer, key);
    if answer["online"] != true {
        let why = if answer["enabled"] == true { of("/problem") } else { "network_enabled is false".to_owned() };
        return format!("the network is off: {why}\n");
    }
    let problem = answer["problem"].as_str().map(|problem| format!("problem:     {problem}\n"));
    format!(
        "node:        {}\nname:        {}\nlisten:      {}\nfingerprint: {}\npeers:       {} connected, {} pinned\n{}",
        of("/node_id"),
        of("/node_name"),
        items(answer, "listen_addrs").filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        of("/identity_fingerprint"),
        of("/connected_peers"),
        items(answer, "pinned_peers").count(),
        problem.unwrap_or_default(),
    )
}

fn trusted(answer: &Value) -> String {
    let mut table = Table::new(&["NODE", "NAME", "MODE", "LAST VERIFIED", "FINGERPRINT"]);
    for peer in items(answer, "trusted") {
        let of = |key: &str| field(peer, key);
        table.row([&of("/node_id"), &of("/node_name"), &of("/mode"), &of("/last_verified"), &of("/fingerprint")]);
    }
    table.render()
}

fn forgotten(answer: &Value) -> String {
    format!("{} is forgotten; its next key is pinned\n", field(answer, "/node_id"))
}
