//! What a node tells the others, and what it has heard of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use agentsvc_api::cluster::{NodeRole, NodeRow, Role};
use agentsvc_api::http::timestamp::timestamp_now;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::moment::boot_time;
use super::nats::Standing;

/// Milliseconds between two beats of a node.
pub(super) const BEAT_MS: u64 = 250;
/// Milliseconds without a beat after which a node is taken for dead.
pub(super) const SILENCE_MS: u64 = 1_500;
/// Milliseconds without any beat, its own among them, after which an owner answers no more: another may have taken over.
const ALONE_MS: u64 = 2_000;

/// What a node says of itself four times a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Beat {
    pub(super) node: String,
    /// Where it answers.
    pub(super) url: String,
    /// Its release.
    version: String,
    /// A word of [`NodeRole`].
    role: String,
    /// The newest epoch that it knows from the journal.
    pub(super) epoch: u64,
    /// The newest entry that it has.
    pub(super) index: u64,
    /// The newest entry that is on its disk.
    #[serde(default)]
    synced: u64,
    /// It takes nothing over.
    #[serde(default)]
    pub(super) draining: bool,
    /// The node that it hands the world to.
    #[serde(default)]
    pub(super) next: Option<String>,
    /// Different in each start: two nodes may have one name by mistake.
    instance: u64,
}

impl Beat {
    /// What it is.
    pub(super) fn role(&self) -> NodeRole {
        NodeRole::ALL.iter().copied().find(|role| role.as_str() == self.role).unwrap_or(NodeRole::Joining)
    }
}

/// Another node.
#[derive(Clone, Debug)]
pub(super) struct Other {
    pub(super) beat: Beat,
    /// When it was last heard, in milliseconds since the machine was started.
    at: u64,
}

impl Other {
    /// Has it been heard of lately?
    pub(super) fn is_alive(&self, now: u64) -> bool {
        now.saturating_sub(self.at) < SILENCE_MS
    }
}

/// This node and the others.
pub(crate) struct Members {
    node: String,
    url: String,
    instance: u64,
    /// Which of [`NodeRole::ALL`] this node is.
    role: AtomicU8,
    pub(super) standing: Arc<Standing>,
    /// The newest entry that is on the disk of this node.
    pub(super) synced: AtomicU64,
    /// When anybody was last heard, this node itself by way of a server among them.
    heard: AtomicU64,
    draining: AtomicBool,
    next: Mutex<Option<String>>,
    others: Mutex<BTreeMap<String, Other>>,
    /// What is wrong, by what it is about.
    problems: Mutex<BTreeMap<&'static str, String>>,
}

impl Members {
    /// The node `node`, which answers at `url`, before it has joined.
    pub(super) fn new(node: &str, url: &str, instance: u64) -> Self {
        Self {
            node: node.to_owned(),
            url: url.to_owned(),
            instance,
            role: AtomicU8::default(),
            standing: Arc::default(),
            synced: AtomicU64::default(),
            heard: AtomicU64::default(),
            draining: AtomicBool::default(),
            next: Mutex::default(),
            others: Mutex::default(),
            problems: Mutex::default(),
        }
        .being(NodeRole::Joining)
    }

    fn being(self, role: NodeRole) -> Self {
        self.set_role(role);
        self
    }

    /// The name of this node.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// From here on this node is this.
    pub(super) fn set_role(&self, role: NodeRole) {
        let at = NodeRole::ALL.iter().position(|it| *it == role).unwrap_or_default();
        self.role.store(u8::try_from(at).unwrap_or_default(), Ordering::Release);
    }

    /// What this node is.
    pub(super) fn own_role(&self) -> NodeRole {
        NodeRole::ALL.get(usize::from(self.role.load(Ordering::Acquire))).copied().unwrap_or(NodeRole::Joining)
    }

    /// What this node is for those who ask its API.
    pub(super) fn role(&self) -> Role {
        match self.own_role() {
            NodeRole::Owner if !self.is_alone() => Role::Owner,
            NodeRole::Standby | NodeRole::Joining => {
                Role::Standby { owner: self.owner().map(|owner| owner.beat.url.into()) }
            }
            _ => Role::Moving,
        }
    }

    /// Has nobody been heard for so long that another may own the world?
    fn is_alone(&self) -> bool {
        boot_time().saturating_sub(self.heard.load(Ordering::Acquire)) > ALONE_MS
    }

    /// Has a server handed on a beat within this time?
    pub(super) fn hears_within(&self, ms: u64) -> bool {
        boot_time().saturating_sub(self.heard.load(Ordering::Acquire)) <= ms
    }

    /// The node that says that it owns the world, if it is alive.
    pub(super) fn owner(&self) -> Option<Other> {
        let now = boot_time();
        let others = self.others.lock();
        let owners = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Owner);
        owners.max_by_key(|it| it.beat.epoch).cloned()
    }

    /// The node to which an owner that is alive hands the world.
    pub(super) fn named(&self) -> Option<String> {
        let now = boot_time();
        let others = self.others.lock();
        others.values().filter(|it| it.is_alive(now)).find_map(|it| it.beat.next.clone())
    }

    /// The node of this name, if it has ever been heard.
    pub(super) fn other(&self, node: &str) -> Option<Other> {
        self.others.lock().get(node).cloned()
    }

    /// Is this node, or will it soon be, asked to take nothing over?
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// This node takes nothing over from here on.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// The world is handed to this node, or to nobody in particular.
    pub(super) fn set_next(&self, node: Option<String>) {
        *self.next.lock() = node;
    }

    /// Standbys that are alive and may take over, this one among them, the best first: by their index, then by their names. The
    /// one to which the last owner hands the world comes before all.
    pub(super) fn candidates(&self, named: Option<&str>) -> Vec<String> {
        let now = boot_time();
        let others = self.others.lock();
        let fit = others.values().filter(|it| {
            it.is_alive(now) && !it.beat.draining && matches!(it.beat.role(), NodeRole::Standby | NodeRole::Moving)
        });
        let mut all: Vec<(u64, &str)> = fit.map(|it| (it.beat.index, it.beat.node.as_str())).collect();
        if !self.is_draining() {
            all.push((self.standing.index.load(Ordering::Acquire), &self.node));
        }
        all.sort_by(|one, other| {
            let is_named = |node: &str| Some(node) == named;
            let by_index = other.0.cmp(&one.0).then_with(|| one.1.cmp(other.1));
            is_named(other.1).cmp(&is_named(one.1)).then(by_index)
        });
        all.into_iter().map(|(_, node)| node.to_owned()).collect()
    }

    /// The newest entry that a standby has on its disk.
    pub(super) fn synced_elsewhere(&self) -> u64 {
        let now = boot_time();
        let others = self.others.lock();
        let alive = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Standby);
        alive.map(|it| it.beat.synced).max().unwrap_or_default()
    }

    /// What this node says of itself.
    pub(super) fn beat(&self) -> Beat {
        Beat {
            node: self.node.clone(),
            url: self.url.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: self.own_role().as_str().to_owned(),
            epoch: self.standing.epoch.load(Ordering::Acquire),
            index: self.standing.index.load(Ordering::Acquire),
            synced: self.synced.load(Ordering::Acquire),
            draining: self.is_draining(),
            next: self.next.lock().clone(),
            instance: self.instance,
        }
    }

    /// A beat came.
    pub(super) fn hear(&self, beat: Beat) {
        let now = boot_time();
        if beat.node == self.node {
            if beat.instance == self.instance {
                self.heard.store(now, Ordering::Release);
            } else {
                self.set_problem("name", Some(format!("another node is called {:?}, too", self.node)));
            }
            return;
        }
        self.heard.store(now, Ordering::Release);
        self.standing.hear(beat.epoch);
        self.others.lock().insert(beat.node.clone(), Other { beat, at: now });
    }

    /// What is wrong, or is not any more.
    pub(super) fn set_problem(&self, about: &'static str, problem: Option<String>) {
        let mut problems = self.problems.lock();
        match problem {
            Some(text) if problems.get(about) != Some(&text) => {
                tracing::warn!(problem = %text, "the cluster is not well");
                problems.insert(about, text);
            }
            Some(_) => {}
            None => drop(problems.remove(about)),
        }
    }

    /// All that is wrong.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.lock().values().cloned().collect()
    }

    /// All nodes, by name.
    pub(super) fn rows(&self) -> Vec<NodeRow> {
        let (now, wall) = (boot_time(), timestamp_now());
        let last = |others: &BTreeMap<String, Other>| others.values().map(|it| it.beat.index).max().unwrap_or_default();
        let others = self.others.lock();
        let newest = last(&others).max(self.standing.index.load(Ordering::Acquire));
        let row = |beat: Beat, age: u64, is_alive: bool| NodeRow {
            role: if is_alive { beat.role() } else { NodeRole::Silent },
            is_draining: beat.draining,
            epoch: beat.epoch,
            index: beat.index,
            lag: newest.saturating_sub(beat.index),
            last_heard: Some(wall.plus_ms(-i64::try_from(age).unwrap_or(i64::MAX))),
            checked: None,
            name: beat.node,
            url: beat.url,
            version: Some(beat.version),
        };
        let mut rows: Vec<NodeRow> = others
            .values()
            .map(|it| row(it.beat.clone(), now.saturating_sub(it.at), it.is_alive(now)))
            .collect();
        rows.push(row(self.beat(), 0, true));
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        rows
    }
}
