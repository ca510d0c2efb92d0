//! What happens once in the life of a cluster: an upgrade of all nodes, a node that has a world of its own, servers that lost what
//! they had acknowledged.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::faults::{CLIENTS, Cluster, lists, lists_at};
use super::history::Outcome;
use super::load::Load;
use super::nodes::{NODES, Node, STREAM, owner};
use super::proxy::Mode;
use super::servers::{SERVERS, Servers};
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
    // Nobody is told that an outcome is not known either: what was begun is answered before the world goes.
    assert_eq!(load.odd(), Vec::<String>::new(), "answers that are neither done nor `moving`\n{}", cluster.said());
}

#[test]
fn the_world_is_moved_under_load_and_what_was_begun_is_answered() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start("");
    let clients = cluster.nodes.iter().map(Node::client).collect();
    let load = Arc::new(Load::new(lists(&cluster), clients));
    let loaders: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let load = load.clone();
            thread::spawn(move || load.run(Rng(seed)))
        })
        .collect();
    for _ in 0..NODES {
        let at = until("a node owns the world", || owner(&cluster.nodes));
        let (from, to) = (&cluster.nodes[at], &cluster.nodes[(at + 1) % NODES]);
        let since = Instant::now();
        let body = serde_json::json!({ "node": to.name });
        let moved = from.client().post("/api/cluster/worlds/0/move", &body).expect(200);
        assert_eq!(moved["owner"], to.name.as_str(), "{moved}");
        let gap = until("something is acknowledged", || load.gap_since(since));
        assert!(gap < MOVE_MAX, "{gap:?}\n{}", cluster.said());
        cluster.wait_well();
    }
    load.stop();
    loaders.into_iter().for_each(|loader| loader.join().expect("a client does not panic"));
    until("every list can be read through every node", || load.read_all().then_some(()));
    assert_eq!(load.anomalies(), [], "{}", cluster.said());
    assert_eq!(load.odd(), Vec::<String>::new(), "answers that are neither done nor `moving`\n{}", cluster.said());
    let errors: Vec<String> = cluster.nodes.iter().flat_map(Node::errors).collect();
    assert_eq!(errors, Vec::<String>::new(), "a move is no error");
}

#[test]
fn a_second_node_with_the_name_of_another_ends_and_says_why() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start("");
    let mut second = Node::new(&cluster.nodes[0].name, &cluster.servers, "");
    second.start();
    until("it has ended", || second.has_ended().then_some(()));
    let said = second.said();
    assert!(said.contains("[cluster] node") && said.contains("called"), "{said}");
    cluster.wait_well();
    let client = cluster.nodes[0].client();
    let load = Load::new(lists(&cluster), vec![client.clone()]);
    assert_eq!(load.append(&client, 0), Outcome::Done, "{}", cluster.said());
}

#[test]
fn a_standby_that_meets_a_hole_in_the_journal_joins_again_from_a_copy() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start_over(Servers::start().with_erasable_stream(STREAM), "");
    let at = until("a node owns the world", || owner(&cluster.nodes));
    let standby = (at + 1) % NODES;
    cluster.nodes[standby].kill();
    let client = cluster.nodes[at].client();
    let load = Load::new(lists_at(&cluster, at), vec![client.clone()]);
    for list in 0..8 {
        assert_eq!(load.append(&client, list % 4), Outcome::Done);
    }
    cluster.servers.erase_before_last(STREAM, 3);
    assert_eq!(load.append(&client, 0), Outcome::Done);
    cluster.nodes[standby].start();
    let says_so = |node: &Node| {
        let known = node.cluster()?;
        let mut problems = known["problems"].as_array()?.iter().filter_map(|it| it.as_str().map(str::to_owned));
        problems.find(|problem| problem.contains("the journal has lost entry"))
    };
    until("it says that it does not follow", || says_so(&cluster.nodes[standby]));
    cluster.wait_well();
    until("it says so no more", || says_so(&cluster.nodes[standby]).is_none().then_some(()));
    cluster.nodes[at].stop();
    until("another node owns the world", || owner(&cluster.nodes));
    let other = Load::new(load.lists().to_vec(), vec![cluster.nodes[standby].client()]);
    until("every list can be read", || other.read_all().then_some(()));
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

#[test]
fn a_node_that_is_cut_off_with_its_own_server_answers_no_reads() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start("");
    let (made, _) = lists(&cluster).swap_remove(0);
    let leader = until("the stream has a leader", || cluster.servers.leader_of(STREAM));
    let (server, alone) = ((leader + 1) % SERVERS, 0);
    for at in 0..NODES {
        for other in (0..SERVERS).filter(|other| (at == alone) != (*other == server)) {
            cluster.nodes[at].set_link(other, Mode::Cut);
        }
    }
    until("the node owns the world", || {
        let at = owner(&cluster.nodes)?;
        let body = serde_json::json!({ "node": cluster.nodes[alone].name }).to_string();
        let path = "/api/cluster/worlds/0/move";
        let _asked = cluster.nodes[at].client().try_send("POST", path, &[], Some(body.as_bytes()));
        (owner(&cluster.nodes)? == alone).then_some(())
    });
    cluster.wait_well();
    cluster.servers.set_routes(server, Mode::Cut);
    until("another node owns the world", || {
        let is_owner = |node: &Node| node.cluster().is_some_and(|known| known["role"] == "owner");
        cluster.nodes[1..].iter().any(is_owner).then_some(())
    });
    let read = || cluster.nodes[alone].client().try_send("GET", &format!("/api/agents/{made}"), &[], None).ok();
    until("it answers reads no more", || read().filter(|reply| reply.status == 503));
    for _ in 0..20 {
        assert_ne!(read().map(|reply| reply.status), Some(200), "an old state\n{}", cluster.said());
    }
    cluster.servers.set_routes(server, Mode::Open);
    cluster.nodes.iter().for_each(|node| node.set_links(Mode::Open));
    cluster.wait_well();
    until("it answers reads again", || read().filter(|reply| reply.status == 200));
}
