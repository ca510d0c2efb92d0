//! What a node tells the others, and what it has heard of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use agentsvc_api::cluster::{NodeCheck, NodeRole, Role};
use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_components::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::moment::boot_time;
use super::namesake::Namesake;
use super::nats::Standing;
use super::progress::Progress;

/// Milliseconds between two beats of a node.
pub(super) const BEAT_MS: u64 = 250;
/// Milliseconds without a beat after which a node is taken for dead.
pub(super) const SILENCE_MS: u64 = 1_500;
/// Milliseconds without any beat, its own among them, after which an owner answers no more: another may have taken over.
const ALONE_MS: u64 = 2_000;
/// Milliseconds for which an owner answers reads behind an entry that a majority of the servers has taken from it: another node may
/// have taken over since then. Beats say less, for a server that is cut off hands on those of its own nodes, too.
const LEASE_MS: u64 = 2_000;
/// Milliseconds in which a node that starts may find the servers, and make what is not there, before something is wrong.
const NEW_MS: u64 = 3_000;
/// Other nodes that are kept in mind; the one that is silent for the longest time makes room for another.
pub(super) const NODES_MAX: usize = 64;

/// What a node says of itself four times a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Beat {
    pub(super) node: String,
    /// Where it answers.
    pub(super) url: String,
    /// Its release.
    pub(super) version: String,
    /// A word of [`NodeRole`].
    pub(super) role: String,
    /// The newest epoch that it knows from the journal.
    pub(super) epoch: u64,
    /// The newest entry that it has.
    pub(super) index: u64,
    /// The newest entry that is on its disk.
    #[serde(default)]
    pub(super) synced: u64,
    /// It takes nothing over.
    #[serde(default)]
    pub(super) draining: bool,
    /// The node that it hands the world to.
    #[serde(default)]
    pub(super) next: Option<String>,
    /// It gives the world away, and takes no more requests, but still answers those that it has begun.
    #[serde(default)]
    pub(super) finishing: bool,
    /// The node that it passes requests on to.
    #[serde(default)]
    pub(super) sends_to: Option<String>,
    /// It cannot go on without a copy of the world that holds this entry.
    #[serde(default)]
    pub(super) lacks: Option<u64>,
    /// Since when it owns the world, by its clock, in milliseconds since 1970.
    #[serde(default)]
    pub(super) since: Option<i64>,
    /// When it was started, by its clock, in milliseconds since 1970.
    #[serde(default)]
    pub(super) started: i64,
    /// Different in each start: two nodes may have one name by mistake.
    pub(super) instance: u64,
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
    pub(super) at: u64,
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
    pub(super) instance: u64,
    /// When it was started.
    pub(super) started: Timestamp,
    /// Another node with this name.
    pub(super) namesake: Namesake,
    /// Milliseconds since the machine was started.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Which of [`NodeRole::ALL`] this node is.
    role: AtomicU8,
    pub(super) standing: Arc<Standing>,
    /// The newest entry that is on the disk of this node.
    pub(super) synced: AtomicU64,
    /// When anybody was last heard, this node itself by way of a server among them.
    heard: AtomicU64,
    draining: AtomicBool,
    /// It gives the world away and answers what it has begun.
    pub(super) finishing: AtomicBool,
    /// The entry for which it needs a copy of the world; 0 for none.
    pub(super) lacks: AtomicU64,
    /// How far this node was, to tell how far standbys are behind.
    pub(super) progress: Mutex<Progress>,
    /// Since when this node owns the world, as long as it does.
    since: Mutex<Option<Timestamp>>,
    next: Mutex<Option<String>>,
    pub(super) others: Mutex<BTreeMap<String, Other>>,
    /// The last comparisons of rows, by node.
    pub(super) checked: Mutex<BTreeMap<String, NodeCheck>>,
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
            started: timestamp_now(),
            namesake: Namesake::default(),
            clock: Box::new(boot_time),
            role: AtomicU8::default(),
            standing: Arc::default(),
            synced: AtomicU64::default(),
            heard: AtomicU64::default(),
            draining: AtomicBool::default(),
            finishing: AtomicBool::default(),
            lacks: AtomicU64::default(),
            progress: Mutex::default(),
            since: Mutex::default(),
            next: Mutex::default(),
            others: Mutex::default(),
            checked: Mutex::default(),
            problems: Mutex::default(),
        }
        .being(NodeRole::Joining)
    }

    fn being(self, role: NodeRole) -> Self {
        self.set_role(role);
        self
    }

    /// Milliseconds since the machine was started.
    pub(super) fn now(&self) -> u64 {
        (self.clock)()
    }

    /// The name of this node.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// From here on this node is this.
    pub(super) fn set_role(&self, role: NodeRole) {
        let at = NodeRole::ALL.iter().position(|it| *it == role).unwrap_or_default();
        self.role.store(u8::try_from(at).unwrap_or_default(), Ordering::Release);
        *self.since.lock() = (role == NodeRole::Owner).then(timestamp_now);
    }

    /// Since when this node owns the world, if it does.
    pub(super) fn since(&self) -> Option<Timestamp> {
        *self.since.lock()
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

    /// Has a majority of the servers taken an entry of this node, as the owner, so lately that reads may be answered?
    pub(super) fn is_fresh(&self) -> bool {
        self.now().saturating_sub(self.standing.confirmed()) <= LEASE_MS
    }

    /// Has nobody been heard for so long that another may own the world?
    fn is_alone(&self) -> bool {
        self.now().saturating_sub(self.heard.load(Ordering::Acquire)) > ALONE_MS
    }

    /// Has a server handed on a beat within this time?
    pub(super) fn hears_within(&self, ms: u64) -> bool {
        self.now().saturating_sub(self.heard.load(Ordering::Acquire)) <= ms
    }

    /// The node that says that it owns the world, if it is alive.
    pub(super) fn owner(&self) -> Option<Other> {
        let now = self.now();
        let others = self.others.lock();
        let owners = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Owner);
        owners.max_by_key(|it| it.beat.epoch).cloned()
    }

    /// The node to which an owner that is alive hands the world.
    pub(super) fn named(&self) -> Option<String> {
        let now = self.now();
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
        let now = self.now();
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
            finishing: self.is_finishing(),
            sends_to: self.sends_to(),
            lacks: Some(self.lacks.load(Ordering::Acquire)).filter(|index| *index > 0),
            since: self.since().map(|since| since.0),
            started: self.started.0,
            instance: self.instance,
        }
    }

    /// A beat came.
    pub(super) fn hear(&self, beat: Beat) {
        let now = self.now();
        if beat.node == self.node {
            if beat.instance == self.instance {
                self.heard.store(now, Ordering::Release);
                self.forget_namesake();
            } else {
                self.hear_namesake(&beat);
            }
            return;
        }
        self.heard.store(now, Ordering::Release);
        self.standing.claim(beat.epoch);
        let mut others = self.others.lock();
        if others.len() >= NODES_MAX && !others.contains_key(&beat.node) {
            let longest = others.iter().min_by_key(|(_, other)| other.at).map(|(node, _)| node.clone());
            longest.into_iter().for_each(|node| drop(others.remove(&node)));
        }
        others.insert(beat.node.clone(), Other { beat, at: now });
    }

    /// The rows of a node were compared with those of the owner.
    pub(super) fn set_checked(&self, node: &str, check: NodeCheck) {
        self.checked.lock().insert(node.to_owned(), check);
    }

    /// The nodes that are alive and hold the world, this one among them.
    pub(super) fn alive(&self) -> Vec<String> {
        let now = self.now();
        let others = self.others.lock();
        let alive = others.values().filter(|it| it.is_alive(now) && it.beat.role() == NodeRole::Standby);
        alive.map(|it| it.beat.node.clone()).chain([self.node.clone()]).collect()
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

    /// What is wrong with what began at `since`, unless that is so new that it may well be like this.
    pub(super) fn unless_new(&self, since: u64, problem: String) -> Option<String> {
        (self.now() - since >= NEW_MS).then_some(problem)
    }

    /// What is wrong with `about`.
    pub(super) fn problem(&self, about: &'static str) -> Option<String> {
        self.problems.lock().get(about).cloned()
    }

    /// All that is wrong.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.lock().values().cloned().collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
