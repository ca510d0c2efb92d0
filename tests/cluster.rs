//! A cluster of real processes: three NATS servers, three daemons, links between all of them that fail, and clients that append to
//! lists and read them. Nodes and servers are killed, frozen, cut off and wiped; nothing that was acknowledged may be lost, done twice
//! or out of order.
//!
//! ```text
//! cargo test --test cluster                                            a minute, at most 20 faults
//! AGENTSVC_CLUSTER_FAULTS=10000 cargo test --test cluster faults       by hand
//! ```

#[path = "cluster/conformance.rs"]
mod conformance;
#[path = "cluster/disasters.rs"]
mod disasters;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/forged.rs"]
mod forged;
#[path = "cluster/history.rs"]
mod history;
#[path = "cluster/load.rs"]
mod load;
#[path = "cluster/nodes.rs"]
mod nodes;
#[path = "cluster/probe.rs"]
mod probe;
#[path = "cluster/proxy.rs"]
mod proxy;
#[path = "cluster/servers.rs"]
mod servers;
mod support;
#[path = "cluster/takeover.rs"]
mod takeover;
#[path = "cluster/uploads.rs"]
mod uploads;
