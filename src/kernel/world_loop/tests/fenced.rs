//! A world that another node owns, until it is ended.

use super::*;
use crate::kernel::store::Error;
use crate::kernel::store::journal::refusing::Refusing;

#[test]
fn a_world_that_another_node_owns_refuses_everything_as_moving() {
    let harness = harness_over(None, Box::new(Refusing(|| Error::Fenced { epoch: 2 })));
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
