//! What happens once in the life of a cluster: an upgrade of all nodes, a node that has a world of its own, servers that lost what
//! they had acknowledged.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::faults::{CLIENTS, Cluster, lists};
use super::history::Outcome;
use super::load::Load;
use super::nodes::{NODES, Node, owner};
use super::servers::SERVERS;
use crate::support::clients::skipped;
use crate::support::{Rng, until};

/// The longest time without an acknowledged write while nodes are replaced: figures are taken elsewhere, this is for a machine that
/// does other things, too.
const MOVE_MAX: Duration = Duration::from_secs(8);

#[test]
#[allow(clippy::print_stdout, reason = "how long writes waited is a result")]
fn nodes_are_replaced_one_by_one_under_load() {
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
    for at in 0..NODES {
        let since = Instant::now();
        cluster.nodes[at].stop();
        let gap = until("something is acknowledged", || load.gap_since(since));
        cluster.nodes[at].start();
        cluster.wait_well();
        println!("node {at}: {gap:?} until the next acknowledged write");
        assert!(gap < MOVE_MAX, "{gap:?}\n{}", cluster.said());
    }
    load.stop();
    loaders.into_iter().for_each(|loader| loader.join().expect("a client does not panic"));
    println!("{}", load.sum());
    until("every list can be read through every node", || load.read_all().then_some(()));
    assert_eq!(load.anomalies(), [], "{}", cluster.said());
    // What was under way in a node that stops may break off; nothing else is an error.
    let is_unexpected = |answer: &&String| !answer.contains("\"outcome_unknown\"");
    assert_eq!(load.odd().iter().find(is_unexpected), None, "answers that are neither done nor `moving`");
}

#[test]
fn servers_that_lost_what_they_acknowledged_are_not_believed() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    let clients = cluster.nodes.iter().map(Node::client).collect();
    let load = Load::new(lists(&cluster), clients);
    let client = cluster.nodes[0].client();
    for list in 0..40 {
        assert_eq!(load.append(&client, list % 4), Outcome::Done);
    }
    until("every list can be read through every node", || load.read_all().then_some(()));
    (0..SERVERS).for_each(|at| cluster.servers.kill(at));
    cluster.servers.wipe(0);
    cluster.servers.wipe(1);
    (0..SERVERS).for_each(|at| cluster.servers.restart(at));
    cluster.servers.wait_well();
    // Either the one server that has it gives it to the others, or the nodes say that they cannot go on; none goes on without it.
    until("the cluster goes on with everything or says why it does not", || {
        let says = |node: &Node| node.cluster().is_some_and(|known| known["problems"] != serde_json::json!([]));
        let is_whole = load.append(&client, 0) == Outcome::Done;
        (is_whole || cluster.nodes.iter().all(says)).then_some(())
    });
    load.read_all();
    assert_eq!(load.anomalies(), [], "{}", cluster.said());
}

#[test]
fn a_node_with_a_world_of_its_own_neither_loses_it_nor_takes_that_of_others() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    // A node that was alone, and has an agent.
    let mut alone = Node::new("d", &cluster.servers, "");
    alone.make_alone();
    alone.start();
    let client = alone.client();
    until("it serves its world", || {
        client.try_send("GET", "/api/status", &[], None).ok().filter(|it| it.status == 200)
    });
    client.agent("of-its-own");
    alone.stop();
    // It joins a cluster that has been opened, and is empty as yet.
    alone.join();
    alone.start();
    until("it has said that it joined, or ended", || {
        let has_joined = alone.cluster().is_some_and(|known| known["role"] == "standby" || known["role"] == "owner");
        (has_joined || alone.has_ended()).then_some(())
    });
    let made = cluster.nodes[0].client().agent("of-the-cluster");
    cluster.wait_well();
    // Whoever owns the world afterwards has what the cluster acknowledged.
    for _ in 0..2 {
        let at = until("a node owns the world", || owner(&cluster.nodes));
        let found = cluster.nodes[at].client().get(&format!("/api/agents/{made}"));
        assert_eq!(found.status, 200, "{}\n{}", alone.said(), cluster.said());
        if !alone.has_ended() {
            cluster.nodes[at].kill();
            until("another node owns the world", || {
                let all = alone.cluster().is_some_and(|known| known["role"] == "owner");
                (all || owner(&cluster.nodes).is_some()).then_some(())
            });
            let at_alone = alone.client().try_send("GET", &format!("/api/agents/{made}"), &[], None);
            if let Ok(reply) = at_alone.as_ref().map(|reply| reply.status) {
                assert_ne!(reply, 404, "{}\n{}", alone.said(), cluster.said());
            }
            cluster.nodes[at].start();
        }
    }
}
