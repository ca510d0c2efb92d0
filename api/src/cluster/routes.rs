//! The cluster: its nodes, the world that they keep, and what moves it.

use std::cmp::Reverse;
use std::sync::Arc;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use serde_json::{Value, json};

use super::audit_kinds::{CLUSTER_DRAIN_REQUESTED, CLUSTER_MOVE_REQUESTED, CLUSTER_VERIFIED};
use super::error_codes::{CLUSTER_BUSY, CLUSTER_NOT_READY, CLUSTER_OFF, CLUSTER_UNKNOWN, JOURNAL_UNAVAILABLE};
use super::shape::{
    ClusterBody, ClusterItem, DrainedBody, MoveBody, MovedItem, NodeItem, NodeList, VerifiedBody, WorldDetail,
    WorldItem,
};
use super::{Cluster, ClusterError, NodeRole, NodeRow};
use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::metrics::{MetricsText, label_value};
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// The errors of a single daemon.
const OFF: Reply = Reply::error(404, "this daemon is no node of a cluster, or there is no such node or world");
/// The errors of what cannot be done now.
const BUSY: Reply = Reply::error(409, "the world is being moved, or the node cannot own it now");
const UNKNOWN: Reply = Reply::error(504, "it was started, and its outcome is not known");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/cluster", "Get the cluster", |call| Box::pin(cluster(call))).near().replies(&[Reply::json::<
        ClusterBody,
    >(
        200,
        "the cluster, or that there is none",
    )]),
    Route::get("/api/cluster/nodes", "List the nodes of the cluster", |call| Box::pin(nodes(call)))
        .near()
        .replies(&[Reply::json::<NodeList>(200, "the nodes, by name"), OFF]),
    Route::get("/api/cluster/worlds/{p}", "Get a world of the cluster", |call| Box::pin(world(call)))
        .near()
        .replies(&[Reply::json::<WorldDetail>(200, "the world"), OFF]),
    Route::post("/api/cluster/worlds/{p}/move", "Move a world to another node", |call| Box::pin(move_world(call)))
        .body::<MoveBody>()
        .cost(10)
        .outlasts_world()
        .replies(&[Reply::json::<MovedItem>(200, "the world was moved"), OFF, BUSY, UNKNOWN]),
    Route::post("/api/cluster/nodes/{n}/drain", "Drain a node of the cluster", |call| Box::pin(drain(call)))
        .cost(10)
        .outlasts_world()
        .replies(&[Reply::json::<DrainedBody>(200, "the node owns nothing until it restarts"), OFF, BUSY, UNKNOWN]),
    Route::post("/api/cluster/verify", "Compare the nodes of the cluster", |call| Box::pin(verify(call)))
        .cost(100)
        .without_room()
        .replies(&[Reply::json::<VerifiedBody>(200, "what was found"), OFF, BUSY]),
];

impl From<ClusterError> for Error {
    fn from(error: ClusterError) -> Self {
        let text = error.to_string();
        match error {
            ClusterError::NoNode(_) | ClusterError::NoWorld(_) => Self::not_found(text),
            ClusterError::NotOwner | ClusterError::Busy => Self::of(CLUSTER_BUSY, text),
            ClusterError::NotReady(_) => Self::of(CLUSTER_NOT_READY, text),
            ClusterError::Journal(_) => Self::of(JOURNAL_UNAVAILABLE, text).retry_after(1),
            ClusterError::Unknown(_) => Self::of(CLUSTER_UNKNOWN, text),
        }
    }
}

fn service(call: &Call) -> Result<Arc<dyn Cluster>, Error> {
    let text = "this daemon is no node of a cluster: its configuration has no [cluster] servers";
    call.api.services.get::<dyn Cluster>().ok_or_else(|| Error::of(CLUSTER_OFF, text))
}

async fn cluster(call: Call) -> Result<Response, Error> {
    let cluster = call.api.services.get::<dyn Cluster>();
    let cluster = cluster.map(|cluster| ClusterItem::from((cluster.role(), cluster.status())));
    reply::ok(&ClusterBody { enabled: cluster.is_some(), cluster })
}

async fn nodes(call: Call) -> Result<Response, Error> {
    let nodes: Vec<_> = service(&call)?.status().nodes.into_iter().map(NodeItem::from).collect();
    reply::ok(&NodeList { total: nodes.len(), nodes })
}

/// The world that the path names.
fn number(call: &Call) -> Result<u16, Error> {
    let text = call.param("p")?;
    text.parse().map_err(|_| Error::bad_field("p", "path parameter 'p' is not the number of a world, such as 0"))
}

/// The other nodes, that which would take over first.
fn standbys(nodes: Vec<NodeRow>) -> Vec<NodeRow> {
    let mut standbys: Vec<_> = nodes.into_iter().filter(|node| node.role != NodeRole::Owner).collect();
    standbys.sort_by_key(|node| (node.role != NodeRole::Standby || node.is_draining, Reverse(node.index)));
    standbys
}

async fn world(call: Call) -> Result<Response, Error> {
    let (number, status) = (number(&call)?, service(&call)?.status());
    let world = status.worlds.into_iter().find(|world| world.world == number);
    let world = WorldItem::from(world.ok_or(ClusterError::NoWorld(number))?);
    reply::ok(&WorldDetail { world, standbys: standbys(status.nodes).into_iter().map(NodeItem::from).collect() })
}

/// Puts on the trail what a client asks for, while this node still owns it.
async fn note(call: &Call, kind: AuditKind, details: Value) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: None, details }).await
}

async fn move_world(call: Call) -> Result<Response, Error> {
    let (cluster, world) = (service(&call)?, number(&call)?);
    let node = match call.json_or_default::<MoveBody>()?.node {
        Some(node) => node,
        None => {
            let none = || ClusterError::NotReady("no standby can take the world over".to_owned());
            let first = standbys(cluster.status().nodes).into_iter().next();
            first.filter(|node| node.role == NodeRole::Standby && !node.is_draining).ok_or_else(none)?.name
        }
    };
    note(&call, CLUSTER_MOVE_REQUESTED, json!({ "world": world, "node": node })).await?;
    reply::ok(&MovedItem::from((world, cluster.move_to(world, node).await?)))
}

async fn drain(call: Call) -> Result<Response, Error> {
    let (cluster, node) = (service(&call)?, call.param("n")?.into_owned());
    note(&call, CLUSTER_DRAIN_REQUESTED, json!({ "node": node })).await?;
    reply::ok(&DrainedBody::new(node.clone(), cluster.drain(node).await?))
}

async fn verify(call: Call) -> Result<Response, Error> {
    let verified = service(&call)?.verify().await?;
    let (index, hash) = (verified.index, verified.hash.clone());
    let verified = VerifiedBody::from(verified);
    note(&call, CLUSTER_VERIFIED, json!({ "ok": verified.is_ok(), "index": index, "hash": hash })).await?;
    reply::ok(&verified)
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let Some(cluster) = api.services.get::<dyn Cluster>() else { return };
    let status = cluster.status();
    let Some(own) = status.nodes.iter().find(|node| node.name == status.node) else { return };
    out.gauge("agentsvc_cluster_owner", "1 if this node owns the world.", u8::from(own.role == NodeRole::Owner));
    let has_owner = status.worlds.iter().all(|world| world.owner.is_some());
    out.gauge("agentsvc_cluster_has_owner", "1 if this node knows of an owner.", u8::from(has_owner));
    out.gauge("agentsvc_cluster_epoch", "The newest epoch that this node knows.", own.epoch);
    out.gauge("agentsvc_cluster_index", "The last entry of the journal that this node has.", own.index);
    out.gauge("agentsvc_cluster_problems", "Problems that this node sees.", status.problems.len());
    let help = "1 if `acks` asks for a standby, and changes are acknowledged by the journal alone.";
    out.gauge("agentsvc_cluster_journal_alone", help, u8::from(status.is_journal_alone));
    let name = "agentsvc_cluster_lag";
    out.family(name, "Entries of the journal that a node does not have yet.", "gauge");
    for node in &status.nodes {
        out.sample(name, &format!("node=\"{}\"", label_value(&node.name)), node.lag);
    }
}
