//! A log as a cluster of servers keeps it, with everything that can go wrong there. Nothing happens by itself: each message
//! arrives, each copy is made and each answer is given when the run says so.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard};

use agentsvc::kernel::store::Error;
use agentsvc::kernel::store::journal::seal::Seal;
use agentsvc::kernel::store::journal::shared::{Answer, Log, Numbered};

/// An append on its way.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    node: usize,
    life: u64,
    number: u64,
    encoded: Vec<u8>,
}

/// An entry as the leader has it, and whom it is to answer.
#[derive(Debug)]
struct Stored {
    encoded: Vec<u8>,
    asker: Option<(usize, u64, u64)>,
}

/// What one life of a node's process waits for.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// It waits for the answer to this number.
    pub(crate) waits_for: Option<u64>,
    given: Option<Answer>,
    answers: BTreeMap<u64, VecDeque<Answer>>,
    pub(crate) is_dead: bool,
    /// Commits that were handed over, and those that were let go, by their numbers.
    pub(crate) sent: u64,
    pub(crate) released: Vec<u64>,
    /// Something other than a commit is under way: a takeover, an erasure.
    pub(crate) is_busy: bool,
    /// The writer has ended.
    pub(crate) is_over: bool,
}

impl Caller {
    /// Nothing more happens here before something else does.
    fn rests(&self) -> bool {
        self.is_dead
            || self.is_over && !self.is_busy
            || self.waits_for.is_some() && self.given.is_none()
            || !self.is_busy && self.released.len() as u64 == self.sent
    }
}

/// The state of the log and of those who use it.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    entries: BTreeMap<u64, Stored>,
    /// The leader's newest number.
    last: u64,
    /// What a majority has: only that is read and answered.
    committed: u64,
    /// Appends on their way, in the order in which they were sent.
    pub(crate) wire: Vec<Message>,
    /// Who uses it: node and life.
    pub(crate) callers: BTreeMap<(usize, u64), Caller>,
    /// The compare-and-set is broken: every append is taken.
    pub(crate) takes_all: bool,
    /// The oldest number that was acknowledged and lost.
    pub(crate) lost: Option<u64>,
}

impl Servers {
    /// A message arrives; it may do so again.
    pub(crate) fn arrive(&mut self, at: usize, is_doubled: bool) {
        if self.wire.is_empty() {
            return;
        }
        let at = at % self.wire.len();
        let message = if is_doubled { self.wire[at].clone() } else { self.wire.remove(at) };
        let Message { node, life, number, encoded } = message;
        if number == self.last + 1 || self.takes_all {
            self.last += 1;
            self.entries.insert(self.last, Stored { encoded, asker: Some((node, life, number)) });
        } else if let Some(caller) = self.callers.get_mut(&(node, life)) {
            caller.answers.entry(number).or_default().push_back(Answer::Unknown);
        }
    }

    /// A message is lost.
    pub(crate) fn lose_message(&mut self, at: usize) {
        if !self.wire.is_empty() {
            self.wire.remove(at % self.wire.len());
        }
    }

    /// All that the leader has is on a majority now.
    pub(crate) fn replicate(&mut self) {
        for (number, stored) in self.entries.range_mut(self.committed + 1..) {
            let Some((node, life, asked)) = stored.asker.take() else { continue };
            if let Some(caller) = self.callers.get_mut(&(node, life)) {
                caller.answers.entry(asked).or_default().push_back(Answer::Stored(*number));
            }
        }
        self.committed = self.last;
    }

    /// Another leader, which has only a part of what was not yet on a majority.
    pub(crate) fn elect(&mut self, kept: usize) {
        let open = (self.last - self.committed) as usize;
        self.last = self.committed + (kept % (open + 1)) as u64;
        self.entries.split_off(&(self.last + 1));
        // Whom the old leader would have answered hears nothing.
        self.entries.range_mut(self.committed + 1..).for_each(|(_, stored)| stored.asker = None);
    }

    /// Loses what was acknowledged: the newest entries, or, when `in_the_middle`, one of the older ones.
    pub(crate) fn lie(&mut self, count: usize, in_the_middle: bool) {
        if self.committed < 3 || self.lost.is_some() {
            return;
        }
        let first = self.committed - (count as u64 % (self.committed - 1));
        if in_the_middle && first < self.committed {
            self.entries.remove(&first);
        } else {
            self.entries.split_off(&first);
            (self.last, self.committed) = (first - 1, first - 1);
        }
        self.lost = Some(first);
    }

    /// Was an entry lost, and are later ones there?
    pub(crate) fn has_hole(&self, lost: u64) -> bool {
        !self.entries.contains_key(&lost) && self.committed > lost
    }

    /// Gives a node that waits its answer, if there is one, or tells it that it has waited long enough.
    pub(crate) fn answer(&mut self, node: usize, life: u64, is_lost: bool) {
        let Some(caller) = self.callers.get_mut(&(node, life)) else { return };
        let Some(number) = caller.waits_for else { return };
        let answer = caller.answers.get_mut(&number).and_then(VecDeque::pop_front);
        caller.given = if is_lost { Some(Answer::Unknown) } else { answer };
    }

    fn caller(&mut self, node: usize, life: u64) -> &mut Caller {
        self.callers.entry((node, life)).or_default()
    }
}

/// The servers, and what wakes those that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine(Arc<(Mutex<Servers>, Condvar)>);

impl Engine {
    /// Looks at the servers or changes something there.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Servers) -> T) -> T {
        let result = change(&mut self.lock());
        self.0.1.notify_all();
        result
    }

    /// As [`with`](Self::with), for one life of a node.
    pub(crate) fn of<T>(&self, node: usize, life: u64, change: impl FnOnce(&mut Caller) -> T) -> T {
        self.with(|servers| change(servers.caller(node, life)))
    }

    /// Waits until nothing moves any more.
    pub(crate) fn settle(&self) {
        let is_moving = |servers: &mut Servers| !servers.callers.values().all(Caller::rests);
        drop(self.0.1.wait_while(self.lock(), is_moving).expect("nobody panics with the servers"));
    }

    fn lock(&self) -> MutexGuard<'_, Servers> {
        self.0.0.lock().expect("nobody panics with the servers")
    }
}

/// The way of one life of a node to the servers.
pub(crate) struct Way {
    pub(crate) engine: Engine,
    pub(crate) node: usize,
    pub(crate) life: u64,
}

fn dead() -> Error {
    Error::Io { path: "node".into(), source: io::ErrorKind::ConnectionAborted.into() }
}

impl Log for Way {
    fn seal(&self) -> &Arc<Seal> {
        static SEAL: LazyLock<Arc<Seal>> = LazyLock::new(|| Arc::new(Seal::new(&[7; 32])));
        &SEAL
    }

    fn send(&mut self, number: u64, encoded: &[u8]) -> Result<(), Error> {
        let (node, life) = (self.node, self.life);
        self.engine.with(|servers| {
            if servers.caller(node, life).is_dead {
                return Err(dead());
            }
            servers.wire.push(Message { node, life, number, encoded: encoded.to_vec() });
            Ok(())
        })
    }

    fn answer(&mut self, number: u64) -> Result<Answer, Error> {
        let (node, life) = (self.node, self.life);
        self.engine.of(node, life, |caller| caller.waits_for = Some(number));
        let is_waiting = |servers: &mut Servers| {
            let caller = servers.caller(node, life);
            caller.given.is_none() && !caller.is_dead
        };
        let waited = self.engine.0.1.wait_while(self.engine.lock(), is_waiting);
        let mut servers = waited.expect("nobody panics with the servers");
        let caller = servers.caller(node, life);
        caller.waits_for = None;
        caller.given.take().filter(|_| !caller.is_dead).ok_or_else(dead)
    }

    fn get(&self, number: u64) -> Result<Option<Vec<u8>>, Error> {
        self.engine.with(|servers| {
            // Whoever asks was told that the one before is durable.
            if number > servers.committed + 1 {
                return Err(Error::Lost { index: servers.committed + 1 });
            }
            let found = servers.entries.get(&number).filter(|_| number <= servers.committed);
            Ok(found.map(|stored| stored.encoded.clone()))
        })
    }

    fn bounds(&self) -> Result<(u64, u64), Error> {
        Ok(self.engine.with(|servers| (1, servers.committed)))
    }

    fn read(&self, number: u64) -> Result<Numbered<'_>, Error> {
        let entries: Vec<_> = self.engine.with(|servers| {
            let committed = servers.entries.iter().filter(|(at, _)| **at >= number && **at <= servers.committed);
            committed.map(|(at, stored)| Ok((*at, stored.encoded.clone()))).collect()
        });
        Ok(Box::new(entries.into_iter()))
    }

    fn trim(&mut self, number: u64) -> Result<(), Error> {
        self.engine.with(|servers| servers.entries = servers.entries.split_off(&number));
        Ok(())
    }
}
