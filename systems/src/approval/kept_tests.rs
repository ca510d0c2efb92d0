//! Decided approvals of one family do not push out those of others.

use agentsvc_components::kernel::limit;

use super::tests::decide;
use super::*;
use crate::kernel::entities::Get;
use crate::testing::TestWorld;

#[test]
fn the_family_that_keeps_most_loses_its_oldest() {
    let mut world = TestWorld::new();
    let [one, other] = ["one", "other"].map(|name| world.spawn(name));
    let decided = |world: &mut TestWorld, agent| {
        let (action, description, payload) = ("act".into(), "d".repeat(90).into(), "{}".into());
        let id = world.ask(RequestApproval { agent, action, description, payload }).unwrap().id;
        decide(world, &[id], Decision::Approve).unwrap();
        id
    };
    let ids = [one, other, other].map(|agent| decided(&mut world, agent));
    let bytes = world.ask(Get::<ApprovalView>(ids[0])).unwrap().approval.bytes();
    let mut approvals = world.engine.world_mut().resource_mut::<Approvals>();
    // As if others were there.
    approvals.decided_bytes += limit::APPROVALS_DECIDED_BYTES_MAX + 1 - 4 * bytes;
    let last = decided(&mut world, other);
    let is_kept = |id: &ApprovalId| world.engine.world().resource::<Approvals>().get(*id).is_some();
    assert_eq!([ids[0], ids[1], ids[2], last].each_ref().map(is_kept), [true, false, true, true]);
}
