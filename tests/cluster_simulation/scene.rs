//! One run: nodes, servers, what was acknowledged, and what must hold after every action.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc::kernel::store::Error;
use agentsvc::kernel::store::journal::Journal;
use agentsvc::kernel::store::journal::entry::{Body, Position};
use agentsvc::kernel::store::journal::shared::Shared;
use agentsvc_components::kernel::record::{Op, Space};
use sha2::{Digest, Sha256};

use super::action::{Action, What};
use super::engine::{Engine, Way};
use super::node::{End, Node, Role};
use super::rng::Rng;

/// Nodes of a cluster.
pub(crate) const NODES: usize = 3;
/// Keys that groups write again and again.
const KEYS: u64 = 12;
/// Rounds after which a calm engine must have answered.
const CALM_ROUNDS: usize = 200;

/// What the servers of a run are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    /// Compare-and-set works.
    Good,
    /// Every append is taken.
    WithoutCompare,
    /// Acknowledged entries get lost.
    Lying,
}

/// The run.
pub(crate) struct Scene {
    engine: Engine,
    nodes: Vec<Node>,
    kind: Servers,
    /// The mark of the newest group.
    group: u64,
    /// What the observer has read: it reads all that is acknowledged, at once.
    observer: Position,
    hashes: BTreeMap<u64, [u8; 32]>,
    /// The entry of each group.
    groups: BTreeMap<u64, u64>,
    acknowledged: BTreeSet<u64>,
    /// What the rows are at each entry, by who had them first.
    rows: BTreeMap<u64, [u8; 32]>,
    /// Nodes that held what was lost when it was.
    held: BTreeSet<usize>,
    pub(crate) counts: Counts,
    pub(crate) trace: Vec<String>,
}

/// What was seen in runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) groups: u64,
    pub(crate) takeovers: u64,
    pub(crate) fenced: u64,
    pub(crate) lies: u64,
    pub(crate) halts: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.groups += other.groups;
        self.takeovers += other.takeovers;
        self.fenced += other.fenced;
        self.lies += other.lies;
        self.halts += other.halts;
    }
}

type Checked = Result<(), String>;

fn text(error: Error) -> String {
    error.to_string()
}

impl Scene {
    pub(crate) fn new(seed: u64) -> Result<Self, String> {
        let kind = Rng(seed).pick(&[Servers::Good, Servers::WithoutCompare, Servers::Lying]);
        let engine = Engine::default();
        engine.with(|servers| servers.takes_all = kind == Servers::WithoutCompare);
        let nodes = (0..NODES).map(|number| Node::new(number, &engine)).collect::<Result<_, _>>().map_err(text)?;
        Ok(Self {
            engine,
            nodes,
            kind,
            group: 0,
            observer: Position::default(),
            hashes: BTreeMap::new(),
            groups: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            rows: BTreeMap::new(),
            held: BTreeSet::new(),
            counts: Counts::default(),
            trace: vec![format!("servers: {kind:?}")],
        })
    }

    /// Does one thing, and looks whether all is well.
    pub(crate) fn act(&mut self, action: Action) -> Checked {
        let Action { what, node, with } = action;
        let mut rng = Rng(with);
        match what {
            What::Commit => self.commit(node, &mut rng),
            What::Erase => self.erase(node, &mut rng),
            What::Arrive => self.engine.with(|servers| servers.arrive(rng.below(1 << 20), false)),
            What::ArriveTwice => self.engine.with(|servers| servers.arrive(rng.below(1 << 20), true)),
            What::LoseMessage => self.engine.with(|servers| servers.lose_message(rng.below(1 << 20))),
            What::Replicate => self.engine.with(|servers| servers.replicate()),
            What::Elect => self.engine.with(|servers| servers.elect(rng.below(1 << 20))),
            What::Answer => self.engine.with(|servers| servers.answer(node, self.nodes[node].life, false)),
            What::LoseAnswer => self.engine.with(|servers| servers.answer(node, self.nodes[node].life, true)),
            What::Calm => self.calm(node)?,
            What::Open if matches!(self.nodes[node].role, Role::Standby) => {
                let begun = self.nodes[node].open();
                self.note_halt(node, begun)?;
            }
            What::CatchUp if matches!(self.nodes[node].role, Role::Standby) => {
                let caught_up = self.nodes[node].catch_up().map(drop);
                self.note_halt(node, caught_up)?;
            }
            What::Open | What::CatchUp => {}
            What::Sync => self.nodes[node].sync(),
            What::Kill => self.nodes[node].restart(End::Killed).map_err(text)?,
            What::PowerLoss => self.restart_bare(node, End::PowerLost)?,
            What::Wipe => self.restart_bare(node, End::Wiped)?,
            What::Lie => self.lie(&mut rng),
        }
        self.engine.settle();
        self.trace.push(format!("{what:?} {node}: {}", self.sight()));
        self.look()
    }

    /// The disk of a node loses something: it no longer holds what it held.
    fn restart_bare(&mut self, node: usize, end: End) -> Checked {
        self.held.remove(&node);
        self.nodes[node].restart(end).map_err(text)
    }

    /// One line of what is where.
    fn sight(&self) -> String {
        let node = |node: &Node| {
            let role = match node.role {
                Role::Standby => "standby",
                Role::Candidate(_) => "candidate",
                Role::Owner(_) => "owner",
                Role::Halted => "halted",
            };
            let at = node.store().position().unwrap_or_default();
            format!("{role} {}:{}", at.epoch, at.index)
        };
        let nodes: Vec<String> = self.nodes.iter().map(node).collect();
        format!("[{}], {} acknowledged, read {}", nodes.join(", "), self.acknowledged.len(), self.observer.index)
    }

    fn commit(&mut self, node: usize, rng: &mut Rng) {
        self.group += 1;
        let mark = self.group.to_be_bytes();
        let put = |space, key: Vec<u8>, value: Option<Vec<u8>>| Op { space, key, value };
        let mut ops = vec![put(Space::World, [&b"g"[..], &mark].concat(), Some(mark.to_vec()))];
        for _ in 0..rng.below(4) {
            let space = rng.pick(&[Space::World, Space::Content]);
            let value = (!rng.chance(25)).then(|| vec![mark[7]; rng.below(40)]);
            ops.push(put(space, vec![b'k', rng.below(KEYS as usize) as u8], value));
        }
        self.nodes[node].commit(self.group, ops);
    }

    /// Only when nothing else waits there: then it is an entry of its own in every run of a seed.
    fn erase(&self, node: usize, rng: &mut Rng) {
        let life = self.nodes[node].life;
        let rests = |caller: &mut super::engine::Caller| {
            caller.waits_for.is_none() && !caller.is_over && caller.released.len() as u64 == caller.sent
        };
        if self.engine.of(node, life, rests) {
            let keys = (0..=rng.below(3)).map(|_| vec![b'k', rng.below(KEYS as usize) as u8]);
            self.nodes[node].erase(keys.collect::<BTreeSet<_>>().into_iter().collect());
        }
    }

    /// All messages arrive, in order, and are answered, until the node waits for nothing.
    fn calm(&mut self, node: usize) -> Checked {
        for _ in 0..CALM_ROUNDS {
            self.engine.settle();
            let life = self.nodes[node].life;
            if self.engine.of(node, life, |caller| caller.waits_for.is_none()) {
                return Ok(());
            }
            self.engine.with(|servers| {
                (0..servers.wire.len()).for_each(|_| servers.arrive(0, false));
                servers.replicate();
                servers.answer(node, life, false);
            });
            self.engine.settle();
            // Still the same: the answer was lost before.
            self.engine.with(|servers| servers.answer(node, life, true));
        }
        Err(format!("node {node} still waits although all messages arrive"))
    }

    fn lie(&mut self, rng: &mut Rng) {
        if self.kind != Servers::Lying || self.engine.with(|servers| servers.lost.is_some()) {
            return;
        }
        let in_the_middle = rng.chance(30);
        self.engine.with(|servers| servers.lie(rng.below(4), in_the_middle));
        let Some(lost) = self.engine.with(|servers| servers.lost) else { return };
        self.counts.lies += 1;
        if !in_the_middle {
            let holds = |node: &&Node| node.store().position().is_ok_and(|at| at.index >= lost);
            self.held = self.nodes.iter().filter(holds).map(|node| node.number).collect();
        }
    }

    /// A node that finds a loss halts; where nothing was lost, it must not.
    fn note_halt(&mut self, node: usize, done: Result<(), Error>) -> Checked {
        match done {
            Ok(()) => Ok(()),
            Err(Error::Lost { .. } | Error::Diverged { .. }) if self.engine.with(|servers| servers.lost.is_some()) => {
                self.nodes[node].role = Role::Halted;
                self.counts.halts += 1;
                Ok(())
            }
            Err(error) => Err(format!("node {node}: {error}")),
        }
    }

    /// What must hold.
    fn look(&mut self) -> Checked {
        self.observe()?;
        for node in 0..NODES {
            self.look_at_releases(node)?;
            let was_candidate = matches!(self.nodes[node].role, Role::Candidate(_));
            let opened = self.nodes[node].opened();
            self.note_halt(node, opened)?;
            if was_candidate && matches!(self.nodes[node].role, Role::Owner(_)) {
                self.counts.takeovers += 1;
                self.look_at_owner(node)?;
            }
            let life = self.nodes[node].life;
            if self.engine.of(node, life, |caller| caller.is_over) {
                self.counts.fenced += 1;
                self.nodes[node].restart(End::Killed).map_err(text)?;
            }
            self.look_at_rows(node)?;
        }
        Ok(())
    }

    /// Reads what was acknowledged meanwhile.
    fn observe(&mut self) -> Checked {
        if self.engine.with(|servers| servers.lost.is_some()) {
            return Ok(());
        }
        let way = Way { engine: self.engine.clone(), node: NODES, life: 0 };
        let journal = Shared::new(way, Position::default());
        for entry in journal.read(&self.observer).map_err(text)? {
            let entry = entry.map_err(text)?;
            self.observer = entry.position;
            self.hashes.insert(entry.position.index, entry.position.hash);
            let Body::Step { ops, .. } = &entry.body else { continue };
            for op in ops.iter().filter(|op| op.key.first() == Some(&b'g')) {
                let mark = u64::from_be_bytes(op.key[1..].try_into().map_err(|_| "a mark has eight bytes")?);
                if self.groups.insert(mark, entry.position.index).is_some() {
                    return Err(format!("group {mark} is in the journal twice"));
                }
            }
        }
        Ok(())
    }

    /// What an owner lets go is in the journal, for every reader. Where entries were lost it may not be: others may have come to their
    /// places, and the owner does not compare what stands before its next one.
    fn look_at_releases(&mut self, node: usize) -> Checked {
        let life = self.nodes[node].life;
        let released = self.engine.of(node, life, |caller| caller.released.clone());
        let has_lied = self.engine.with(|servers| servers.lost.is_some());
        for group in released {
            if !self.acknowledged.insert(group) {
                continue;
            }
            self.counts.groups += 1;
            if !self.groups.contains_key(&group) && !has_lied {
                return Err(format!("node {node} let group {group} go, and no reader finds it"));
            }
        }
        Ok(())
    }

    /// A new owner has all that was acknowledged before it.
    fn look_at_owner(&self, node: usize) -> Checked {
        let has_lied = self.engine.with(|servers| servers.lost.is_some());
        if has_lied && self.held.contains(&node) {
            return Err(format!("node {node} held what was lost, and serves without it"));
        }
        if has_lied {
            return Ok(());
        }
        self.has_all(node)
    }

    fn has_all(&self, node: usize) -> Checked {
        let rows = self.nodes[node].rows().map_err(text)?;
        let marks: BTreeSet<&[u8]> =
            rows.iter().filter(|(_, key, _)| key[0] == b'g').map(|(_, _, mark)| &**mark).collect();
        match self.acknowledged.iter().find(|group| !marks.contains(&group.to_be_bytes()[..])) {
            Some(group) => Err(format!("group {group} was acknowledged, and node {node} does not have it")),
            None => Ok(()),
        }
    }

    /// Two nodes at the same entry have the same rows.
    fn look_at_rows(&mut self, node: usize) -> Checked {
        let at = self.nodes[node].store().position().map_err(text)?;
        let has_lied = self.engine.with(|servers| servers.lost.is_some());
        if at.index == 0 || has_lied {
            return Ok(());
        }
        if self.hashes.get(&at.index) != Some(&at.hash) {
            return Err(format!("node {node} holds entry {}, which is not in the journal", at.index));
        }
        let mut hasher = Sha256::new();
        for (space, key, value) in self.nodes[node].rows().map_err(text)? {
            hasher.update([space as u8, key.len() as u8, value.len() as u8]);
            hasher.update(key);
            hasher.update(value);
        }
        let hash: [u8; 32] = hasher.finalize().into();
        if *self.rows.entry(at.index).or_insert(hash) == hash {
            Ok(())
        } else {
            Err(format!("node {node} has other rows at entry {} than another one", at.index))
        }
    }

    /// When everything has come to its end: one node takes over, and all have all.
    pub(crate) fn end(&mut self) -> Checked {
        self.engine.with(|servers| (0..servers.wire.len()).for_each(|_| servers.arrive(0, false)));
        self.engine.with(|servers| servers.replicate());
        for node in 0..NODES {
            self.calm(node)?;
            self.look()?;
            self.nodes[node].restart(End::Killed).map_err(text)?;
        }
        self.engine.with(|servers| servers.wire.clear());
        if let Some(lost) = self.engine.with(|servers| servers.lost) {
            return self.end_of_a_lie(lost);
        }
        self.act(Action { what: What::Open, node: 0, with: 0 })?;
        self.act(Action { what: What::Calm, node: 0, with: 0 })?;
        self.act(Action { what: What::Commit, node: 0, with: 7 })?;
        self.act(Action { what: What::Calm, node: 0, with: 0 })?;
        if !self.acknowledged.contains(&self.group) {
            return Err("a new owner without a rival let nothing go".to_owned());
        }
        for node in 1..NODES {
            self.act(Action { what: What::CatchUp, node, with: 0 })?;
            self.has_all(node)?;
        }
        self.has_all(0)
    }

    /// Whoever still holds what was lost says so, and so does who needs it.
    fn end_of_a_lie(&mut self, lost: u64) -> Checked {
        for node in 0..NODES {
            let at = self.nodes[node].store().position().map_err(text)?;
            let is_truth = self.hashes.get(&at.index) == Some(&at.hash);
            let holds = self.held.contains(&node) && at.index >= lost && is_truth;
            let found = self.nodes[node].catch_up();
            if holds && !matches!(found, Err(Error::Lost { .. } | Error::Diverged { .. })) {
                return Err(format!("node {node} holds what was lost, and finds {found:?}"));
            }
            let is_hole = self.engine.with(|servers| servers.has_hole(lost));
            if is_hole && at.index + 1 < lost && !matches!(found, Err(Error::Lost { .. })) {
                return Err(format!("node {node} needs what was lost, and finds {found:?}"));
            }
            self.note_halt(node, found.map(drop))?;
        }
        Ok(())
    }
}
