//! Schedules of the agents of one user.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, RefusalKind};
use uuid::Uuid;

use super::CreateSchedule;
use super::tests::{create, fixture, plain};
use crate::testing::spawn_command;

#[test]
fn the_agents_of_one_user_make_no_more_schedules_than_a_family() {
    let (mut world, other) = fixture();
    world.actor = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(UserId(Uuid::from_u128(1))) };
    let agents: Vec<AgentId> =
        (0..2).map(|n| world.ask(spawn_command(&format!("of-ann-{n}"))).unwrap().agent).collect();
    // Many make the next ones slower, whichever of the agents they are for.
    for n in 0..10 * limit::AGENT_SCHEDULES_FAST {
        create(&mut world, plain(agents[n % 2], "@daily"));
    }
    let fast = |agent| CreateSchedule { new: plain(agent, "every 5m"), by_tool: false };
    assert_eq!(world.ask(fast(agents[0])).unwrap_err().kind, RefusalKind::BadRequest);
    for n in 10 * limit::AGENT_SCHEDULES_FAST..limit::SHARE_SCHEDULES_MAX {
        create(&mut world, plain(agents[n % 2], "@daily"));
    }
    let daily = |agent| CreateSchedule { new: plain(agent, "@daily"), by_tool: false };
    assert_eq!(world.ask(daily(agents[1])).unwrap_err().kind, RefusalKind::TooMany);
    world.actor = Actor::Api;
    world.ask(daily(other)).unwrap();
    world.ask(fast(other)).unwrap();
}
