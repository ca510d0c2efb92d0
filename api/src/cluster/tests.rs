//! Tests of the routes of clusters, with a cluster that does as it is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::ready;
use hyper::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::http::reply;
use crate::http::settings::ApiSettings;
use crate::testing::{front, get, send};

/// A cluster of the nodes a, b and c, where b is furthest but is drained.
struct Fake {
    role: Role,
    /// What was asked of it, and what it answers with.
    asked: Mutex<Vec<String>>,
    refuses: Option<ClusterError>,
    is_fresh: bool,
}

impl Fake {
    fn ask<T: Send + 'static>(&self, what: String, done: T) -> BoxFuture<'static, Result<T, ClusterError>> {
        self.asked.lock().push(what);
        Box::pin(ready(self.refuses.clone().map_or(Ok(done), Err)))
    }
}

fn node(name: &str, role: NodeRole, index: u64) -> NodeRow {
    NodeRow {
        name: name.to_owned(),
        url: format!("http://{name}:4545"),
        version: None,
        role,
        is_draining: name == "b",
        epoch: 3,
        index,
        lag: 10 - index,
        last_heard: None,
        checked: None,
    }
}

fn moved() -> Moved {
    Moved { owner: "c".to_owned(), epoch: 4, paused_ms: 180 }
}

impl Cluster for Fake {
    fn role(&self) -> Role {
        self.role.clone()
    }

    fn secret(&self) -> [u8; 32] {
        [1; 32]
    }

    fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    fn finishes(&self, _url: &str) -> bool {
        false
    }

    fn leave(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    fn status(&self) -> ClusterStatus {
        let nodes = [("a", NodeRole::Owner, 10), ("b", NodeRole::Standby, 9), ("c", NodeRole::Standby, 8)];
        let world = WorldRow { world: 0, owner: Some("a".to_owned()), epoch: 3, index: 10, since: None, problem: None };
        ClusterStatus {
            node: "a".to_owned(),
            cluster: "main".to_owned(),
            nodes: nodes.into_iter().map(|(name, role, index)| node(name, role, index)).collect(),
            worlds: vec![world],
            stream: None,
            servers: Vec::new(),
            is_journal_alone: true,
            problems: vec!["the servers do not answer".to_owned()],
        }
    }

    fn move_to(self: Arc<Self>, world: u16, node: String) -> BoxFuture<'static, Result<Moved, ClusterError>> {
        self.ask(format!("move {world} {node}"), moved())
    }

    fn drain(self: Arc<Self>, node: String) -> BoxFuture<'static, Result<Drained, ClusterError>> {
        self.ask(format!("drain {node}"), Drained { moved: vec![(0, moved())] })
    }

    fn verify(self: Arc<Self>) -> BoxFuture<'static, Result<Verified, ClusterError>> {
        let node = |name: &str, is_same| VerifiedNode { name: name.to_owned(), is_same };
        let nodes = vec![node("b", Some(true)), node("c", None)];
        let found = Verified { index: 10, hash: "ab".to_owned(), entries: 7, nodes, problems: Vec::new() };
        self.ask("verify".to_owned(), found)
    }
}

/// A node of that cluster.
fn of(role: Role, refuses: Option<ClusterError>) -> (Arc<Api>, Arc<Fake>) {
    of_fake(Fake { role, asked: Mutex::default(), refuses, is_fresh: true })
}

fn of_fake(fake: Fake) -> (Arc<Api>, Arc<Fake>) {
    let (api, fake) = (front(ApiSettings::default()), Arc::new(fake));
    join(&api, Arc::clone(&fake) as _);
    (api, fake)
}

async fn post(api: &Arc<Api>, path: &str, body: &'static str) -> (u16, Value) {
    let response = send(api, Request::post(path).header("content-type", "application/json"), body).await;
    (response.status().as_u16(), reply::collect(response).await)
}

#[tokio::test]
async fn a_single_daemon_says_that_it_is_one() {
    let api = front(ApiSettings::default());
    assert_eq!(reply::collect(get(&api, "/api/cluster").await).await, json!({ "enabled": false }));
    for path in ["/api/cluster/nodes", "/api/cluster/worlds/0"] {
        let response = get(&api, path).await;
        assert_eq!(response.status(), 404);
        assert_eq!(reply::collect(response).await["code"], "cluster_off");
    }
    for path in ["/api/cluster/worlds/0/move", "/api/cluster/nodes/b/drain", "/api/cluster/verify"] {
        let (status, body) = post(&api, path, "").await;
        assert_eq!((status, &body["code"]), (404, &json!("cluster_off")), "{path}");
    }
    let metrics = reply::text(get(&api, "/api/metrics").await).await;
    assert!(!metrics.contains("agentsvc_cluster") && !metrics.contains("agentsvc_http_forwarded_total"));
}

#[tokio::test]
async fn the_cluster_its_nodes_and_its_world_are_shown() {
    let (api, _) = of(Role::Owner, None);
    let cluster = reply::collect(get(&api, "/api/cluster").await).await;
    let shown = [&cluster["enabled"], &cluster["name"], &cluster["node"], &cluster["role"], &cluster["owner"]];
    assert_eq!(shown, [&json!(true), &json!("main"), &json!("a"), &json!("owner"), &json!("a")]);
    assert_eq!((&cluster["stream"], &cluster["problems"]), (&Value::Null, &json!(["the servers do not answer"])));
    let nodes = reply::collect(get(&api, "/api/cluster/nodes").await).await;
    assert_eq!((&nodes["total"], &nodes["nodes"][1]["draining"]), (&json!(3), &json!(true)));
    let world = reply::collect(get(&api, "/api/cluster/worlds/0").await).await;
    let standbys: Vec<_> = world["standbys"].as_array().unwrap().iter().map(|node| node["name"].clone()).collect();
    assert_eq!((&world["epoch"], standbys), (&json!(3), vec![json!("c"), json!("b")]));
    assert_eq!(get(&api, "/api/cluster/worlds/1").await.status(), 404);
    assert_eq!(get(&api, "/api/cluster/worlds/x").await.status(), 400);
    let metrics = reply::text(get(&api, "/api/metrics").await).await;
    assert!(metrics.contains("agentsvc_cluster_journal_alone 1"));
    for line in ["agentsvc_cluster_owner 1", "agentsvc_cluster_epoch 3", "agentsvc_cluster_lag{node=\"c\"} 2"] {
        assert!(metrics.lines().any(|shown| shown == line), "{line}");
    }
}

/// What clusters add to the metrics is not there in the tests of the dashboard, whose daemon is alone.
#[tokio::test]
async fn the_dashboard_and_the_guide_name_every_metric_of_a_cluster_and_no_other() {
    let (api, _) = of(Role::Owner, None);
    let metrics = reply::text(get(&api, "/api/metrics").await).await;
    let families: Vec<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let is_ours = |name: &&str| name.starts_with("agentsvc_cluster_") || *name == "agentsvc_http_forwarded_total";
    let ours: BTreeSet<&str> = families.into_iter().filter(is_ours).collect();
    assert!(ours.len() > 7, "{ours:?}");
    for text in [include_str!("../../../docs/grafana.json"), include_str!("../../../docs/cluster-guide.md")] {
        let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
        let named: BTreeSet<&str> = words.filter(is_ours).collect();
        assert_eq!(named, ours);
    }
}

#[tokio::test]
async fn the_world_goes_where_it_is_asked_to_or_to_the_furthest_standby() {
    let (api, fake) = of(Role::Owner, None);
    let gone = json!({ "world": 0, "owner": "c", "epoch": 4, "paused_ms": 180 });
    assert_eq!(post(&api, "/api/cluster/worlds/0/move", "").await, (200, gone.clone()));
    assert_eq!(post(&api, "/api/cluster/worlds/0/move", r#"{"node":"b"}"#).await.0, 200);
    let drained = post(&api, "/api/cluster/nodes/a/drain", "").await;
    assert_eq!(drained, (200, json!({ "node": "a", "moved": [gone] })));
    let (status, verified) = post(&api, "/api/cluster/verify", "").await;
    assert_eq!((status, &verified["ok"], &verified["nodes"][1]["same"]), (200, &json!(false), &Value::Null));
    assert_eq!(*fake.asked.lock(), ["move 0 c", "move 0 b", "drain a", "verify"]);
}

#[tokio::test]
async fn each_reason_not_to_move_has_its_status_and_code() {
    let text = || "why".to_owned();
    for (error, status, code) in [
        (ClusterError::NoNode(text()), 404, None),
        (ClusterError::NoWorld(7), 404, None),
        (ClusterError::NotOwner, 409, Some("cluster_busy")),
        (ClusterError::Busy, 409, Some("cluster_busy")),
        (ClusterError::NotReady(text()), 409, Some("cluster_not_ready")),
        (ClusterError::Journal(text()), 503, Some("journal_unavailable")),
        (ClusterError::Unknown(text()), 504, Some("cluster_unknown")),
    ] {
        let (api, _) = of(Role::Owner, Some(error.clone()));
        let (said, body) = post(&api, "/api/cluster/worlds/0/move", r#"{"node":"b"}"#).await;
        assert_eq!((said, body["code"].as_str()), (status, code), "{error:?}");
    }
}

#[tokio::test]
async fn a_node_without_an_owner_shows_what_it_knows_and_changes_nothing() {
    for role in [Role::Moving, Role::Standby { owner: None }] {
        let (api, fake) = of(role, None);
        assert_eq!(get(&api, "/api/cluster/nodes").await.status(), 200);
        let (status, body) = post(&api, "/api/cluster/verify", "").await;
        assert_eq!((status, &body["code"]), (503, &json!("moving")));
        assert!(fake.asked.lock().is_empty());
    }
}

#[tokio::test]
async fn an_owner_that_may_be_one_no_more_answers_no_reads_and_tries_changes() {
    let fake = Fake { role: Role::Owner, asked: Mutex::default(), refuses: None, is_fresh: false };
    let (api, fake) = of_fake(fake);
    let read = get(&api, "/api/agents").await;
    assert_eq!(read.status(), 503);
    assert_eq!(reply::collect(read).await["code"], "moving");
    assert_eq!(get(&api, "/api/cluster").await.status(), 200, "what it knows of the cluster it shows");
    assert_eq!(post(&api, "/api/cluster/verify", "").await.0, 200);
    assert_eq!(*fake.asked.lock(), ["verify"]);
}
