//! A world that another node owns, until it is ended.

use super::*;
use crate::kernel::store::Error;
use crate::kernel::store::journal::Entries;
use crate::kernel::store::journal::entry::{Body, Position};

/// The journal of a world that another node owns.
struct Fenced;

impl Journal for Fenced {
    fn open(&mut self, _node: &str) -> Result<(), Error> {
        Ok(())
    }

    fn append(&mut self, _body: &Body<'_>) -> Result<Option<Position>, Error> {
        Err(Error::Fenced { epoch: 2 })
    }

    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error> {
        Ok(*position)
    }

    fn read(&self, _position: &Position) -> Result<Entries<'_>, Error> {
        Ok(Box::new(std::iter::empty()))
    }

    fn trim(&mut self, _index: u64) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_world_that_another_node_owns_refuses_everything_as_moving() {
    let harness = harness_over(None, Box::new(Fenced));
    let op = Op { space: Space::World, key: b"a1".to_vec(), value: Some(vec![1]) };
    harness.writer.queue().send(Commit { ops: vec![op], ..Commit::default() });
    while !harness.writer.queue().is_fenced() {
        std::thread::yield_now();
    }
    for refusal in [harness.ask(Write(1)).unwrap_err(), harness.ask(ReadNow).unwrap_err()] {
        assert_eq!((refusal.kind, refusal.code.as_deref()), (RefusalKind::Busy, Some("moving")));
    }
    harness.close();
}
