//! Files that clients sent, and secrets, survive the node that took them.

use serde_json::json;

use super::faults::Cluster;
use super::nodes::{owner, wait_for_owner};
use crate::support::clients::skipped;
use crate::support::daemon::text;
use crate::support::http::Reply;
use crate::support::until;

/// Bytes of a file: several pieces of an object store.
const BYTES: u32 = 3_000_000;

#[test]
fn a_file_that_was_acknowledged_is_read_through_the_next_owner() {
    if skipped() {
        return;
    }
    let mut cluster = Cluster::start("");
    let first = until("a node owns the world", || owner(&cluster.nodes));
    let content: Vec<u8> = (0..BYTES).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let agent = cluster.nodes[first].client().agent("reads-files");
    let file = cluster.nodes[first].client().upload(&agent, "notes.bin", &content);
    let key = json!({ "api_key": "sk-of-the-cluster" });
    cluster.nodes[first].client().post("/api/providers/openai/key", &key).expect(200);
    cluster.nodes[first].kill();
    let next = wait_for_owner(&mut cluster.nodes);
    assert_ne!(first, next);
    let path = format!("/api/uploads/{file}");
    let third = (0..cluster.nodes.len()).find(|at| ![first, next].contains(at)).expect("there are three");
    for at in [next, third] {
        let reply = served(&cluster, at, &path);
        assert_eq!(reply.status, 200, "{}\n{}", reply.text(), cluster.said());
        assert!(reply.body == content, "{} bytes\n{}", reply.body.len(), cluster.said());
    }
    assert_eq!(key_source(&cluster, next), "vault", "{}", cluster.said());
    // The node comes back empty and takes the world over again: it has nothing of its own and needs nothing.
    cluster.nodes[first].wipe();
    cluster.nodes[first].start();
    cluster.wait_well();
    let name = cluster.nodes[first].name.clone();
    let moved = cluster.nodes[next].client().post("/api/cluster/worlds/0/move", &json!({ "node": name }));
    assert_eq!(moved.status, 200, "{}\n{}", moved.text(), cluster.said());
    let reply = served(&cluster, first, &path);
    assert!(reply.status == 200 && reply.body == content, "{}\n{}", reply.status, cluster.said());
    assert_eq!(key_source(&cluster, first), "vault", "{}", cluster.said());
}

/// What a node answers as soon as the world does not move.
fn served(cluster: &Cluster, at: usize, path: &str) -> Reply {
    until("a node answers", || {
        let reply = cluster.nodes[at].client().try_send("GET", path, &[], None).ok()?;
        (reply.status != 503).then_some(reply)
    })
}

/// Where the key of a provider comes from, by what a node says.
fn key_source(cluster: &Cluster, at: usize) -> String {
    text(&served(cluster, at, "/api/providers/openai").expect(200)["key_source"])
}
