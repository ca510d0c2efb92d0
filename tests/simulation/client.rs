//! The client: what it asks for, and what it remembers of the answers. Here are agents and sessions.

use agentsvc_components::agent::AgentMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::session::message::Role;
use agentsvc_components::{AgentId, SessionId, Timestamp};
use agentsvc_systems::agent::{
    AgentPatch, CloneAgent, RemoveAgents, SetMode, SpawnAgent, SpawnAgents, Spawned, StartAgents, StopAgents,
    UpdateAgent,
};
use agentsvc_systems::manifest;
use agentsvc_systems::schedule::NewSchedule;
use agentsvc_systems::session::{
    CleanupSessions, ClearHistory, CreateSession, ImportSession, ImportedMessage, RemoveSession, ResetSession,
    SetLabel, SwitchSession,
};
use uuid::Uuid;

use super::action::What;
use super::facts::GONE;
use super::house::{House, text_block};
use super::{talk, work};

pub(crate) use work::{decide_all, quiet};

/// One request.
pub(crate) fn act(house: &mut House, what: What) {
    match what {
        What::Spawn => {
            let command = spawn_command(house);
            house.ask(command, born);
        }
        What::SpawnMany => {
            let count = 2 + house.dice.below(4);
            let commands = (0..count).map(|_| spawn_command(house)).collect();
            house.ask(SpawnAgents(commands), |house, all| all.into_iter().flatten().for_each(|one| born(house, one)));
        }
        What::Clone => {
            let Some(agent) = agent(house) else { return };
            house.ask(CloneAgent { agent, name: None, text: "name = \"copy\"\n".into() }, born);
        }
        What::Update => update(house),
        What::Remove => {
            let Some(agent) = agent(house) else { return };
            forget_agent(house, agent);
            let fact = house.facts.submit(format!("agent/{agent}"), GONE);
            house.ask(RemoveAgents(vec![agent]), move |house, _| house.facts.acknowledge(fact));
        }
        What::StopAgent | What::StartAgent => {
            let Some(agent) = agent(house) else { return };
            let is_stop = what == What::StopAgent;
            let fact = house.facts.submit(format!("running/{agent}"), if is_stop { "Stopped" } else { "Running" });
            let is_done = move |house: &mut House, ok: bool| {
                if ok {
                    house.facts.acknowledge(fact);
                }
            };
            if is_stop {
                house.ask(StopAgents(vec![agent]), move |house, all| {
                    is_done(house, all.iter().all(|(_, one)| one.is_ok()))
                });
            } else {
                house.ask(StartAgents(vec![agent]), move |house, all| {
                    is_done(house, all.iter().all(|(_, one)| one.is_ok()))
                });
            }
        }
        What::SetMode => {
            let Some(agent) = agent(house) else { return };
            let mode = house.dice.pick(&[AgentMode::Normal, AgentMode::Stable]);
            house.ask(SetMode { agent, mode }, |_, _| {});
        }
        What::NewSession | What::Label | What::Switch | What::RemoveSession | What::Reset => sessions(house, what),
        What::ClearHistory | What::Cleanup | What::Import => histories(house, what),
        other => talk::act(house, other),
    }
}

/// One of the agents that the client knows, most often a young one.
pub(crate) fn agent(house: &mut House) -> Option<AgentId> {
    let count = house.known.agents.len();
    let from = if house.dice.chance(80) { count.saturating_sub(6) } else { 0 };
    house.dice.any(&house.known.agents[from..])
}

/// The manifest of a new agent.
pub(crate) fn spawn_command(house: &mut House) -> SpawnAgent {
    let name = house.text("agent").replace(' ', "-");
    let prompt = house.dice.pick(&["be brief", "be kind", "be quick"]);
    let mode = house.dice.pick(&["", "", "session_mode = \"new\"\n", "session_mode = \"persistent\"\n"]);
    let text = format!(
        "name = {name:?}\n{mode}system_prompt = {prompt:?}\n[capabilities]\ntools = [\"*\"]\nagent_spawn = true\n"
    );
    let parsed = manifest::parse(&text).expect("it is a manifest");
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

fn born(house: &mut House, spawned: Spawned) {
    let Spawned { agent, session, .. } = spawned;
    house.known.agents.push(agent);
    house.known.sessions.push((agent, session));
    house.learn(format!("agent/{agent}"), "lives");
    house.learn(format!("running/{agent}"), "Running");
    house.learn(format!("session/{agent}/{session}"), "lives");
}

fn update(house: &mut House) {
    let Some(agent) = agent(house) else { return };
    let prompt: Box<str> = house.dice.pick(&["be brief", "be kind", "be long", "be quick"]).into();
    let name = house.dice.chance(30).then(|| house.text("renamed").replace(' ', "-").into());
    let fact = house.facts.submit(format!("prompt/{agent}"), &*prompt);
    let patch = AgentPatch { system_prompt: Some(prompt), name, ..AgentPatch::default() };
    house.ask(UpdateAgent { agent, patch }, move |house, _| house.facts.acknowledge(fact));
}

/// An agent goes, and with it what belongs to it.
fn forget_agent(house: &mut House, agent: AgentId) {
    for kind in ["running", "prompt", "session", "label", "trigger", "schedule", "memory", "budget"] {
        house.facts.forget(&format!("{kind}/{agent}"));
    }
    // Goals lose it, tasks that it has claimed wait again, and triggers with it as a target are switched off.
    house.facts.forget("goal/");
    house.facts.forget("task/");
    house.facts.clear(agent, house.number);
}

fn sessions(house: &mut House, what: What) {
    let known = house.known.sessions.clone();
    let from = known.len().saturating_sub(10);
    let Some((agent, session)) = house.dice.any(&known[from..]) else { return };
    match what {
        What::NewSession => {
            let label = house.dice.chance(30).then(|| format!("label {}", house.dice.below(4)));
            house.ask(CreateSession { agent, label }, move |house, session| {
                house.known.sessions.push((agent, session));
                house.learn(format!("session/{agent}/{session}"), "lives");
            });
        }
        What::Label => {
            let label = house.dice.pick(&["", "label 0", "label 1", "label 9"]);
            let fact = house.facts.submit(format!("label/{agent}/{session}"), label);
            house.ask(SetLabel { session, label: label.into() }, move |house, _| house.facts.acknowledge(fact));
        }
        What::Switch => house.ask(SwitchSession { agent, session }, |_, _| {}),
        What::RemoveSession => {
            house.facts.clear(agent, house.number);
            house.facts.forget(&format!("label/{agent}/{session}"));
            let fact = house.facts.submit(format!("session/{agent}/{session}"), GONE);
            house.ask(RemoveSession { session }, move |house, gone| {
                house.facts.acknowledge(fact);
                house.known.sessions.extend(gone.replaced_by.map(|session| (gone.agent, session)));
            });
        }
        _ => {
            // Which session is current, a switch under way may decide.
            house.facts.clear(agent, house.number);
            house.facts.forget(&format!("session/{agent}"));
            house.facts.forget(&format!("label/{agent}"));
            house.ask(ResetSession { agent }, move |house, session| house.known.sessions.push((agent, session)));
        }
    }
}

fn histories(house: &mut House, what: What) {
    let Some(agent) = agent(house) else { return };
    match what {
        What::ClearHistory => {
            house.facts.clear(agent, house.number);
            house.ask(ClearHistory { agent }, |_, _| {});
        }
        What::Cleanup => {
            house.facts.forget("session/");
            house.facts.forget("label/");
            for agent in house.known.agents.clone() {
                house.facts.clear(agent, house.number);
            }
            let unused_since = Timestamp(house.now - house.dice.pick(&[0, 60_000, 3_600_000]));
            house.ask(CleanupSessions { unused_since, after: None }, |_, _| {});
        }
        _ => {
            let session = SessionId(Uuid::from_u128(u128::from(house.dice.roll())));
            let at = Timestamp(house.now - 1_000);
            let mut message =
                |role| ImportedMessage { role, blocks: vec![text_block(house.text("old"))], at, model: None };
            let messages =
                vec![message(Role::User), message(Role::Assistant), message(Role::User), message(Role::Assistant)];
            house.ask(ImportSession { agent, session, label: None, messages }, move |house, _| {
                house.known.sessions.push((agent, session));
            });
        }
    }
}

/// A schedule of some rule.
pub(crate) fn new_schedule(house: &mut House, agent: AgentId, kind: ScheduleKind) -> NewSchedule {
    let dice = &mut house.dice;
    let rule = dice.pick(&["every 1m", "every 10m", "* * * * *", "*/10 * * * *", "in 90s", "0 0 * * *", "every 1h"]);
    let text = house.text("act");
    let dice = &mut house.dice;
    let missed = dice.pick(&[MissedPolicy::Skip, MissedPolicy::One, MissedPolicy::All]);
    let overlap = dice.pick(&[OverlapPolicy::Skip, OverlapPolicy::Queue, OverlapPolicy::Parallel]);
    NewSchedule {
        kind,
        agent,
        name: Some("plan".into()),
        rule: rule.into(),
        timezone: dice.chance(20).then(|| "America/New_York".into()),
        prompt: text.into(),
        enabled: dice.chance(95),
        missed,
        overlap: match missed {
            // Every slot of hours that nobody saw, one behind the other, is a long run: now and then it must be.
            MissedPolicy::All if dice.chance(8) => OverlapPolicy::Queue,
            MissedPolicy::All => OverlapPolicy::Skip,
            _ => overlap,
        },
        session_mode: None,
    }
}
