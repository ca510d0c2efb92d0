//! What must hold of a whole world at the end of every step, whatever happened to it.
//!
//! | look at                | what is found wrong                                                                   |
//! |------------------------|---------------------------------------------------------------------------------------|
//! | [`Engine::check`]      | indexes that differ from a full scan, entities without an owner, two running turns of a session, whoever waits in no line, sums that do not add up, queues beyond their bounds |
//! | [`Engine::differences`] | rows of the store that are not what the live world would write: a dirty mark was forgotten |
//!
//! Both look at everything and cost accordingly: they are for tests, the simulation (`tests/simulation.rs`) and people who look
//! for a fault, never for the loop. Each domain knows what must hold of it: a function `check` beside its index.

mod rows;

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::kernel::engine::Engine;

/// A row's key and its value, as [`Engine::differences`] compares them.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What was found wrong, one sentence each; at most [`Faults::MAX`].
#[derive(Debug, Default)]
pub struct Faults(Vec<String>);

impl Faults {
    /// Sentences that are kept. One fault often brings others with it; the first ones tell enough.
    const MAX: usize = 64;

    /// Something is wrong unless `holds`.
    pub(crate) fn that(&mut self, holds: bool, wrong: impl FnOnce() -> String) {
        if !holds && self.0.len() < Self::MAX {
            self.0.push(wrong());
        }
    }

    /// Something is wrong unless what an index holds is what a full scan finds.
    pub(crate) fn same<T: PartialEq + Debug>(&mut self, what: &str, index: &T, scan: &T) {
        self.that(index == scan, || format!("{what}: the index holds {index:?}, a full scan finds {scan:?}"));
    }
}

impl Engine {
    /// Looks at the whole world and says what does not hold, one sentence each; empty when all is well. Between two steps
    /// only: within one, things are on their way.
    pub fn check(&mut self) -> Vec<String> {
        let mut faults = Faults::default();
        let world = self.whole();
        for domain in crate::kernel::domain::all() {
            (domain.check)(world, &mut faults);
        }
        faults.0
    }

    /// Compares the world space of a store, in which every step up to now was written, with what the live world would
    /// write of itself. A restart from such a store brings back what was seen last. Rows of what is to be erased (`w`)
    /// are left out: they are intents that nothing in the world stands for.
    pub fn differences(&mut self, stored: &Rows) -> Vec<String> {
        rows::differences(self.whole(), stored)
    }
}
