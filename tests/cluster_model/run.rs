//! The rules by which nodes share a journal (`src/kernel/store/journal/shared.rs`), checked in every order of events that fits the bounds.
//!
//! The log here only puts what arrives into one order and keeps it. Its compare-and-set is switched off: it takes every append,
//! twice if it likes, however late. Acknowledgements get lost, owners stop at any moment and go on as if nothing had happened, and
//! candidates read old copies. What must hold is held by the rules alone. Each rule is then left out in turn, and the checker must
//! find how that goes wrong.
//!
//! ```text
//! cargo test -p agentsvc-systems --test cluster_model
//! ```

#![allow(clippy::print_stdout, reason = "how much was looked at is part of what the test says")]

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Entries that the log takes before a run is no longer followed.
const LOG_MAX: usize = 6;
/// Nodes. The first one owns the world at the beginning: it is the zombie of the others.
const NODES: usize = 3;
/// Groups that each node appends, the zombie more than one.
const GROUPS: [u8; NODES] = [2, 1, 1];
/// Groups that an owner has on their way at once.
const IN_FLIGHT: usize = 2;
/// How often a message may arrive.
const ARRIVALS: u8 = 2;

/// What stands in for the hash of an entry.
type Digest = u64;

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    index: u8,
    epoch: u8,
    previous: Digest,
    node: u8,
    /// The group that it brings; `None` for one that opens an epoch.
    group: Option<u8>,
}

impl Entry {
    fn digest(&self) -> Digest {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
struct Position {
    epoch: u8,
    index: u8,
    digest: Digest,
}

impl Position {
    fn of(entry: &Entry) -> Self {
        Self { epoch: entry.epoch, index: entry.index, digest: entry.digest() }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
enum Role {
    Standby,
    /// It has sent this, having read so many entries.
    Candidate {
        open: Entry,
        read: usize,
    },
    Owner {
        epoch: u8,
        /// What it had read when it began to serve.
        base: Vec<Digest>,
        /// What it appends behind.
        newest: Position,
        /// What it waits for, the oldest first.
        flight: Vec<Entry>,
    },
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    log: Vec<Entry>,
    /// What may still arrive, and how often.
    wire: BTreeMap<Entry, u8>,
    nodes: Vec<Role>,
    /// Groups that each node has appended.
    appended: Vec<u8>,
    /// Nodes that have tried to take over.
    tried: Vec<bool>,
    /// What owners let go.
    released: BTreeSet<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A message arrives at the log.
    Arrive(Entry),
    /// A standby that has read so many entries tries to take over as this index.
    Open { node: usize, read: usize, index: u8 },
    /// An owner appends its next group.
    Append(usize),
    /// A node hears that its oldest message got this number.
    Acknowledge { node: usize, number: usize },
    /// A node waits no longer and looks at what stands where its oldest message should be.
    ReadBack(usize),
}

/// The rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// Rule 1: release only what got the number that it was meant for.
    Number,
    /// Rule 2: an entry that names another previous one is void.
    Previous,
    /// Rule 3: an owner serves when it has read up to its opening.
    ReadingFirst,
    /// Rule 4: what is read back may be another's.
    Comparing,
}

struct Rules {
    without: LeftOut,
}

impl Rules {
    /// Rule 2, for the entry with this number.
    fn is_valid(&self, newest: &Position, number: usize, entry: &Entry) -> bool {
        let is_owner = if entry.group.is_none() { entry.epoch > newest.epoch } else { entry.epoch == newest.epoch };
        is_owner
            && usize::from(entry.index) == number
            && (entry.previous == newest.digest || self.without == LeftOut::Previous)
    }

    /// What every reader of these entries takes for valid.
    fn valid<'a>(&self, log: &'a [Entry]) -> Vec<&'a Entry> {
        let (mut newest, mut valid) = (Position::default(), Vec::new());
        for (at, entry) in log.iter().enumerate() {
            if self.is_valid(&newest, at + 1, entry) {
                newest = Position::of(entry);
                valid.push(entry);
            }
        }
        valid
    }

    /// A candidate's opening got the number that it was meant for.
    fn lead(&self, log: &[Entry], open: &Entry, read: usize) -> Role {
        let until = if self.without == LeftOut::ReadingFirst { read } else { usize::from(open.index) };
        let valid = self.valid(&log[..until]);
        if self.without != LeftOut::ReadingFirst && valid.last() != Some(&open) {
            return Role::Standby;
        }
        let base = valid.iter().map(|entry| entry.digest()).collect();
        Role::Owner { epoch: open.epoch, base, newest: Position::of(open), flight: Vec::new() }
    }

    /// The oldest message of a node is stored at its place, or its place is another's.
    fn settle(&self, state: &mut State, node: usize, is_stored: bool) {
        let role = std::mem::replace(&mut state.nodes[node], Role::Standby);
        state.nodes[node] = match role {
            Role::Candidate { open, read } if is_stored && usize::from(open.index) <= state.log.len() => {
                self.lead(&state.log, &open, read)
            }
            Role::Owner { epoch, base, newest, mut flight } if is_stored => {
                state.released.insert(flight.remove(0));
                Role::Owner { epoch, base, newest, flight }
            }
            // Rule 5.
            _ => Role::Standby,
        };
    }
}

impl State {
    /// What a node waits for first.
    fn oldest(&self, node: usize) -> Option<&Entry> {
        match &self.nodes[node] {
            Role::Standby => None,
            Role::Candidate { open, .. } => Some(open),
            Role::Owner { flight, .. } => flight.first(),
        }
    }
}

impl Model for Rules {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let open = Entry { index: 1, epoch: 1, previous: 0, node: 0, group: None };
        let mut nodes = vec![Role::Standby; NODES];
        nodes[0] = Role::Owner { epoch: 1, base: Vec::new(), newest: Position::of(&open), flight: Vec::new() };
        vec![State {
            log: vec![open],
            wire: BTreeMap::new(),
            nodes,
            appended: vec![0; NODES],
            tried: vec![true, false, false],
            released: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.log.len() < LOG_MAX {
            actions.extend(state.wire.keys().map(|entry| Action::Arrive(*entry)));
        }
        for (node, groups) in GROUPS.iter().enumerate() {
            match &state.nodes[node] {
                // The others are alike: who tries first is called the first of them.
                Role::Standby if !state.tried[node] && state.tried[node - 1] => {
                    // It knows the newest number, or takes that behind what it has read for it.
                    let newest = state.log.len() + 1;
                    let reads = (1..=state.log.len()).flat_map(|read| [(read, newest), (read, read + 1)]);
                    let reads: BTreeSet<_> = reads.collect();
                    actions.extend(reads.into_iter().map(|(read, index)| Action::Open {
                        node,
                        read,
                        index: index as u8,
                    }));
                }
                Role::Owner { flight, .. } if flight.len() < IN_FLIGHT && state.appended[node] < *groups => {
                    actions.push(Action::Append(node));
                }
                _ => {}
            }
            if let Some(oldest) = state.oldest(node) {
                let numbers = (1..=state.log.len()).filter(|number| state.log[number - 1] == *oldest);
                actions.extend(numbers.map(|number| Action::Acknowledge { node, number }));
                actions.push(Action::ReadBack(node));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Arrive(entry) => {
                state.log.push(entry);
                let left = state.wire.get_mut(&entry)?;
                *left -= 1;
                if *left == 0 {
                    state.wire.remove(&entry);
                }
            }
            Action::Open { node, read, index } => {
                let newest = self.valid(&state.log[..read]).last().map(|entry| Position::of(entry))?;
                let open =
                    Entry { index, epoch: newest.epoch + 1, previous: newest.digest, node: node as u8, group: None };
                state.wire.insert(open, ARRIVALS);
                state.nodes[node] = Role::Candidate { open, read };
                state.tried[node] = true;
            }
            Action::Append(node) => {
                state.appended[node] += 1;
                let group = Some(state.appended[node]);
                let Role::Owner { newest, flight, .. } = &mut state.nodes[node] else { return None };
                let Position { epoch, index, digest } = *newest;
                let entry = Entry { index: index + 1, epoch, previous: digest, node: node as u8, group };
                *newest = Position::of(&entry);
                flight.push(entry);
                state.wire.insert(entry, ARRIVALS);
            }
            Action::Acknowledge { node, number } => {
                let index = usize::from(state.oldest(node)?.index);
                self.settle(&mut state, node, index == number || self.without == LeftOut::Number);
            }
            Action::ReadBack(node) => {
                let oldest = *state.oldest(node)?;
                // Nothing there: it is sent again, and may arrive as often as before.
                let there = *state.log.get(usize::from(oldest.index) - 1)?;
                self.settle(&mut state, node, there == oldest || self.without == LeftOut::Comparing);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("what was acknowledged is read by every later owner", |rules: &Self, state: &State| {
                let valid = rules.valid(&state.log);
                let is_read = |entry: &Entry| valid.contains(&entry);
                state.released.iter().all(is_read)
                    && state.nodes.iter().all(|role| {
                        let Role::Owner { epoch, base, .. } = role else { return true };
                        state.released.iter().all(|entry| entry.epoch >= *epoch || base.contains(&entry.digest()))
                    })
            }),
            Property::always("two owners never both release at one index", |_: &Rules, state: &State| {
                let indexes: BTreeSet<u8> = state.released.iter().map(|entry| entry.index).collect();
                indexes.len() == state.released.len()
            }),
            Property::always("a group is applied to what its owner made it of", |rules: &Rules, state: &State| {
                let valid = rules.valid(&state.log);
                valid.windows(2).all(|pair| pair[1].previous == pair[0].digest())
            }),
            Property::sometimes("three nodes release in turn", |_: &Rules, state: &State| {
                state.released.iter().map(|entry| entry.epoch).collect::<BTreeSet<_>>().len() == NODES
            }),
            Property::sometimes("the log takes what a fenced owner appends", |rules: &Rules, state: &State| {
                let newest = rules.valid(&state.log).iter().map(|entry| entry.epoch).max();
                state.log.last().is_some_and(|entry| entry.group.is_some() && Some(entry.epoch) < newest)
            }),
        ]
    }
}

/// What must always hold.
const PROMISES: [&str; 3] = [
    "what was acknowledged is read by every later owner",
    "two owners never both release at one index",
    "a group is applied to what its owner made it of",
];

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn the_rules_keep_their_promises_in_every_order_of_events() {
    let checker = Rules { without: LeftOut::Nothing }.checker().threads(threads()).spawn_bfs().join();
    println!("{} states looked at, {} of them different", checker.state_count(), checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn each_rule_is_needed() {
    let rules = [
        (LeftOut::Number, &PROMISES[..2]),
        (LeftOut::Previous, &PROMISES[2..]),
        (LeftOut::ReadingFirst, &PROMISES[..1]),
        (LeftOut::Comparing, &PROMISES[..2]),
    ];
    for (without, broken) in rules {
        for promise in broken {
            let until = HasDiscoveries::AnyOf(BTreeSet::from([*promise]));
            let checker = Rules { without }.checker().threads(threads()).finish_when(until).spawn_bfs().join();
            assert!(checker.discovery(promise).is_some(), "without the rule {without:?}: {promise}");
        }
    }
}
