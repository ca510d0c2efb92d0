//! `peers`: the nodes that are connected, and those whose keys are pinned.

use clap::Subcommand;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, field, items};
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
        let (answer, render): (Value, fn(&Value) -> Shown) = match self {
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

fn listed(answer: &Value) -> Shown {
    let mut table = Table::list("peers", &["NODE", "NAME", "ADDRESS", "STATE", "AGENTS"])
        .hint("`agentsvc peers status` shows whether the network is on.");
    for peer in items(answer, "peers") {
        let agents: Vec<String> = items(peer, "agents").map(|agent| field(agent, "/name")).collect();
        let of = |key: &str| field(peer, key);
        table.row([&of("/node_id"), &of("/node_name"), &of("/address"), &of("/state"), &agents.join(", ")]);
    }
    table.into()
}

fn status(answer: &Value) -> Shown {
    let of = |key: &str| field(answer, key);
    if answer["online"] != true {
        let why = if answer["enabled"] == true { of("/problem") } else { "network_enabled is false".to_owned() };
        return format!("the network is off: {why}\n").into();
    }
    let peers = format!("{} connected, {} pinned", of("/connected_peers"), items(answer, "pinned_peers").count());
    let mut table = Table::pairs();
    for (name, value) in [
        ("node", of("/node_id")),
        ("name", of("/node_name")),
        ("listen", of("/listen_addrs")),
        ("fingerprint", of("/identity_fingerprint")),
        ("peers", peers),
        ("problem", of("/problem")),
    ] {
        if !value.is_empty() {
            table.row([name, &value]);
        }
    }
    table.into()
}

fn trusted(answer: &Value) -> Shown {
    let columns = [
        ("NODE", "/node_id"),
        ("NAME", "/node_name"),
        ("MODE", "/mode"),
        ("LAST VERIFIED", "/last_verified"),
        ("FINGERPRINT", "/fingerprint"),
    ];
    Table::of("pinned peers", items(answer, "trusted"), &columns).into()
}

fn forgotten(answer: &Value) -> Shown {
    format!("deleted the key of {}; its next key is pinned\n", field(answer, "/node_id")).into()
}
