//! Ids that belong to an agent are in its slot, and commands say whose slot they are for.

use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::{AgentId, ApprovalId, GoalId, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::agent::{AgentFilter, FindAgent, GetAgent, ListAgents};
use crate::approval::{ApprovalFilter, ApprovalView, ListApprovals, RequestApproval};
use crate::event::parse_pattern;
use crate::goal::{GoalView, ListGoals};
use crate::kernel::command::Command;
use crate::kernel::entities::Get;
use crate::schedule::{CreateSchedule, NewSchedule};
use crate::session::CreateSession;
use crate::testing::{TestWorld, spawn_command};
use crate::trigger::{CreateTrigger, NewTrigger};
use crate::turn::{NewMessage, PostMessage};

#[test]
fn a_command_is_for_the_slot_of_what_it_names() {
    fn slot<C: Command>(command: &C) -> Option<u16> {
        C::PLACE.slot(command, Timestamp(1_000)).map(Slot::number)
    }
    let id = |ms: u128| Uuid::from_u128(ms << 80 | 0xabc);
    assert_eq!(slot(&GetAgent(AgentId(id(1_000)))), Some(0xabc));
    assert_eq!(slot(&GetAgent(AgentId(id(999)))), Some(0), "of an older release");
    assert_eq!(slot(&FindAgent("scout".into())), Some(Slot::of_name("scout").number()));
    assert_eq!(slot(&Get::<GoalView>(GoalId(id(1_000)))), Some(0));
    assert_eq!(slot(&ListGoals::default()), Some(0));
    assert_eq!(slot(&Get::<ApprovalView>(ApprovalId(id(1_000)))), Some(0xabc));
    for agent in [None, Some(AgentId(id(1_000)))] {
        let filter = ApprovalFilter { decided: false, agent };
        assert_eq!(slot(&ListApprovals { filter, after: None, limit: 1 }), agent.map(|_| 0xabc));
    }
    assert_eq!(slot(&ListAgents { filter: AgentFilter::default(), after: None, limit: 1 }), None);
    let spawn = spawn_command("scout");
    assert_eq!(slot(&spawn), slot(&FindAgent("scout".into())));
}

#[test]
fn what_belongs_to_an_agent_is_minted_in_its_slot() {
    let mut world = TestWorld::new();
    for name in ["scout", "clerk"] {
        let agent = world.spawn(name);
        let session = world.ask(CreateSession { agent, label: None }).unwrap();
        let taken = world.ask(PostMessage { agent, session: None, message: NewMessage::text("hello") }).unwrap();
        let new = NewSchedule {
            kind: ScheduleKind::Cron,
            agent,
            name: Some("n".into()),
            rule: "@hourly".into(),
            timezone: None,
            prompt: "x".into(),
            enabled: true,
            missed: MissedPolicy::One,
            overlap: OverlapPolicy::Queue,
            session_mode: None,
        };
        let schedule = world.ask(CreateSchedule { new, by_tool: false }).unwrap().id;
        let (description, payload) = (Box::default(), "{}".into());
        let approval = RequestApproval { agent, action: "act".into(), description, payload };
        let approval = world.ask(approval).unwrap().id;
        let trigger = NewTrigger {
            pattern: parse_pattern(&json!({ "task_claimed": {} })).unwrap(),
            prompt_template: "x".into(),
            enabled: true,
            max_fires: 0,
            cooldown_secs: None,
            session_mode: None,
            target: None,
        };
        let trigger = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
        let ids = [agent.0, session.0, taken.session.0, taken.turn.0, schedule.0, approval.0, trigger.0];
        assert_eq!(ids.map(|id| Slot::of_id(id, Timestamp(0))), [Slot::of_name(name); 7]);
        world.restart();
        let later = world.ask(CreateSession { agent, label: None }).unwrap();
        assert_eq!(Slot::of_id(later.0, Timestamp(0)), Slot::of_name(name));
    }
}
