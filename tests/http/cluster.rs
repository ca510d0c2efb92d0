//! The routes of clusters on a single daemon; those of nodes are tested with nodes.

use serde_json::json;

use crate::support::daemon::Daemon;

#[test]
fn a_single_daemon_is_no_node_of_a_cluster() {
    let daemon = Daemon::with("");
    assert_eq!(daemon.get("/api/cluster").expect(200), json!({ "enabled": false }));
    for refused in [
        daemon.get("/api/cluster/nodes"),
        daemon.get("/api/cluster/worlds/0"),
        daemon.post("/api/cluster/worlds/0/move", &json!({ "node": "b" })),
        daemon.poke("/api/cluster/nodes/b/drain"),
        daemon.poke("/api/cluster/verify"),
    ] {
        assert_eq!(refused.expect(404)["code"], "cluster_off");
    }
    daemon.get("/api/ready").expect(200);
}
