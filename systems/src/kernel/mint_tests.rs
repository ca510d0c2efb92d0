//! Ids that belong to an agent are in its slot, and commands say whose slot they are for.

use std::path::Path;

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

/// The source files of this crate.
fn sources() -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(std::fs::read_to_string(path).unwrap()) }
        }
    }
    files
}

/// The fields of a type of this name.
fn fields<'a>(file: &'a str, name: &str) -> &'a str {
    let begins = [format!("pub struct {name} {{"), format!("pub struct {name}("), format!("pub enum {name} {{")];
    let rest = begins.iter().find_map(|begin| file.split_once(begin.as_str())).map_or("", |(_, rest)| rest);
    rest.split(['}', ';']).next().unwrap_or("")
}

#[test]
fn every_command_of_an_agent_is_for_its_slot() {
    // What belongs to no agent, though an agent may ask for it.
    let of_root = ["ClaimTask", "ClaimNextTask", "HandEnvironment"];
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in sources() {
        let written = file.split("\nimpl Command for ").skip(1).map(|part| {
            let place = part.split("PLACE: Place<Self> = Place::").nth(1).unwrap().split([';', '(']).next().unwrap();
            (part.split(' ').next().unwrap(), place)
        });
        let declared = file.split("\ncommand!").skip(1).map(|part| {
            let (declared, _) = part.split_once("\" ").unwrap().1.split_once('|').unwrap();
            let place = declared.trim_end_matches([',', ' ', '\n', '(']).rsplit(' ').next().unwrap();
            (declared.split(' ').next().unwrap(), place.split('(').next().unwrap())
        });
        for (name, place) in written.chain(declared) {
            let fields = fields(&file, name);
            let owned = ["AgentId", "SessionId", "TriggerId", "ScheduleId", "ApprovalId"];
            let names_one = owned.iter().any(|id| {
                fields.contains(&format!("agent: {id},"))
                    || fields.trim() == format!("pub {id})")
                    || fields.contains("pub session: SessionId,")
                    || fields.contains(&format!("id: {id},"))
            });
            count += 1;
            if names_one && !["Id", "Name"].contains(&place) && !of_root.contains(&name) {
                wrong.push((name.to_owned(), place.to_owned()));
            }
        }
    }
    assert_eq!(wrong, []);
    assert!(count > 90, "{count} commands were found");
}

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
