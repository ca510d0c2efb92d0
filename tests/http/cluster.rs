//! The routes of clusters on a single daemon; those of nodes are tested with nodes.

use serde_json::json;

use crate::support::daemon::Daemon;

#[test]
fn a_single_daemon_is_no_node_of_a_cluster() {
    let daemon = Daemon::with("");
    assert_eq!(daemon.get("/api/cluster").expect(200), json!({ "enabled": false }));
    let (world, node) = (0, "b");
    for refused in [
        daemon.get("/api/cluster/nodes"),
        daemon.get(&format!("/api/cluster/worlds/{world}")),
        daemon.post(&format!("/api/cluster/worlds/{world}/move"), &json!({ "node": node })),
        daemon.poke(&format!("/api/cluster/nodes/{node}/drain")),
        daemon.poke("/api/cluster/verify"),
    ] {
        assert_eq!(refused.expect(404)["code"], "cluster_off");
    }
    daemon.get("/api/ready").expect(200);
}
