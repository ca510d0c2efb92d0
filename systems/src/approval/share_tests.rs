//! Approvals of the agents of one user.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, RefusalKind};
use uuid::Uuid;

use super::tests::world;
use super::*;

fn small(agent: AgentId) -> RequestApproval {
    RequestApproval { agent, action: "act".into(), description: Box::default(), payload: "{}".into() }
}

#[test]
fn the_agents_of_one_user_leave_approvals_to_others() {
    let (mut world, other) = world();
    world.actor = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(UserId(Uuid::from_u128(1))) };
    let agents: Vec<AgentId> =
        (0..4).map(|n| world.ask(crate::testing::spawn_command(&format!("of-ann-{n}"))).unwrap().agent).collect();
    world.actor = Actor::Api;
    let per_agent = limit::APPROVALS_PENDING_OF_FAMILY_MAX / agents.len();
    for agent in &agents {
        (0..per_agent).for_each(|_| drop(world.begin(small(*agent))));
    }
    world.step();
    for _ in 0..2 {
        for agent in &agents {
            let refused = world.ask(small(*agent)).unwrap_err();
            assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::TooMany, Some(60)));
            assert!(refused.message.contains("of the same user or family"), "{}", refused.message);
        }
        world.ask(small(other)).unwrap();
        world.restart();
    }
}
