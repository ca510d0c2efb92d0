//! Somebody who reaches the NATS servers, and may do everything there, but has no key of the nodes.

use std::net::TcpListener;

use serde_json::json;

use super::faults::{Cluster, lists};
use super::history::Outcome;
use super::load::Load;
use super::nodes::{Node, owner};
use crate::support::clients::skipped;
use crate::support::until;

/// Messages of each sort.
const MESSAGES: usize = 50;

/// Says that another node owns the world and is reached at `url`, that all nodes are drained, and writes into the journal.
async fn attack(cluster: &Cluster, url: &str) {
    let client = cluster.servers.connect(0).await;
    let beat = json!({
        "node": "x", "url": url, "version": "9", "role": "owner", "epoch": u64::MAX, "index": u64::MAX, "synced": u64::MAX,
        "draining": false, "started": 0, "instance": 7,
    });
    let mut messages = vec![("agentsvc.beat", beat.to_string()), ("agentsvc.journal.0", "hello".to_owned())];
    messages.extend(cluster.nodes.iter().map(|node| ("agentsvc.drain", node.name.clone())));
    for (subject, text) in messages.into_iter().cycle().take(MESSAGES * 5) {
        client.publish(subject, text.into()).await.expect("a server takes it");
    }
    client.flush().await.expect("a server answers");
}

#[test]
fn forged_messages_neither_end_a_cluster_nor_change_it_nor_get_what_clients_send() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    let at = until("a node owns the world", || owner(&cluster.nodes));
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    elsewhere.set_nonblocking(true).expect("a listener can be asked without waiting");
    let url = format!("http://{}", elsewhere.local_addr().expect("it has an address"));
    let all = lists(&cluster);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let clients: Vec<_> = cluster.nodes.iter().map(Node::client).collect();
    let load = Load::new(all.clone(), clients.clone());
    for list in 0..4 {
        runtime.block_on(attack(&cluster, &url));
        for client in &clients {
            let is_done = || (load.append(client, list) == Outcome::Done).then_some(());
            until("a change is acknowledged", is_done);
        }
    }
    until("every list can be read through every node", || load.read_all().then_some(()));
    assert_eq!(load.anomalies(), [], "{}", cluster.said());
    assert_eq!(owner(&cluster.nodes), Some(at), "the world stays where it is\n{}", cluster.said());
    assert!(elsewhere.accept().is_err(), "no node sends anything to an address that no node said");
    for node in &mut cluster.nodes {
        assert!(!node.has_ended(), "{}", node.said());
    }
    let says_so =
        |node: &Node| node.cluster().is_some_and(|known| known["problems"].to_string().contains("is no node"));
    until("each node says that there is something else", || cluster.nodes.iter().all(says_so).then_some(()));
    // A node that was not there takes over behind all of that.
    cluster.nodes[at].kill();
    let next = until("another node owns the world", || owner(&cluster.nodes).filter(|next| *next != at));
    let load = Load::new(all, vec![cluster.nodes[next].client()]);
    until("every list can be read", || load.read_all().then_some(()));
    cluster.nodes[at].start();
    cluster.wait_well();
}
