//! What a takeover waits for, and what nodes say that have nothing to do with one.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::faults::{CLIENTS, Cluster, lists};
use super::load::Load;
use super::nodes::{NODES, Node, STREAM, owner};
use crate::support::clients::skipped;
use crate::support::{Rng, until};

/// The longest time without an acknowledged write while a machine is away that had the owner and the server that leads the stream:
/// servers take up to 9 seconds to choose another one. On a machine that does other things, too.
const LOST_MAX: Duration = Duration::from_secs(16);

#[test]
fn what_a_takeover_needs_is_there_before_the_first_one() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start("");
    let (_, opened) = cluster.servers.began(STREAM);
    for bucket in ["OBJ_agentsvc-files", "OBJ_agentsvc-copies"] {
        let (made, _) = cluster.servers.began(bucket);
        assert!(made < opened, "{bucket} was made after the world was opened\n{}", cluster.said());
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "how long writes waited is a result")]
fn the_owner_and_the_server_that_leads_the_stream_are_lost_together() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    let clients = cluster.nodes.iter().map(Node::client).collect();
    let load = Arc::new(Load::new(lists(&cluster), clients));
    let loaders: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let load = load.clone();
            thread::spawn(move || load.run(Rng(seed)))
        })
        .collect();
    for _ in 0..2 {
        let at = until("a node owns the world", || owner(&cluster.nodes));
        let leader = until("the stream has a leader", || cluster.servers.leader_of(STREAM));
        let since = Instant::now();
        cluster.nodes[at].kill();
        cluster.servers.kill(leader);
        let gap = until("something is acknowledged", || load.gap_since(since));
        println!("{gap:?} until the next acknowledged write");
        assert!(gap < LOST_MAX, "{gap:?}\n{}", cluster.said());
        cluster.servers.restart(leader);
        cluster.servers.wait_well();
        cluster.nodes[at].start();
        cluster.wait_well();
    }
    load.stop();
    loaders.into_iter().for_each(|loader| loader.join().expect("a client does not panic"));
    until("every list can be read through every node", || load.read_all().then_some(()));
    assert_eq!(load.anomalies(), [], "{}", cluster.said());
    let failed: Vec<String> =
        cluster.nodes.iter().flat_map(|node| node.logged("could not take the world over")).collect();
    assert_eq!(failed, Vec::<String>::new(), "none is tried before the servers answer");
}

#[test]
fn a_standby_that_stops_and_starts_in_order_warns_of_nothing() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    let at = until("a node owns the world", || owner(&cluster.nodes));
    let standby = (at + 1) % NODES;
    cluster.nodes[standby].stop();
    cluster.nodes[standby].start();
    cluster.wait_well();
    cluster.nodes[standby].stop();
    for node in &cluster.nodes {
        assert_eq!(node.logged(" WARN "), Vec::<String>::new(), "{}", cluster.said());
    }
}
