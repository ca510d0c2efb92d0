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
    BranchSession, CleanupSessions, ClearHistory, CreateSession, GetSession, ImportSession, ImportedMessage,
    RemoveSession, ResetSession, SetLabel, SwitchSession,
};
use uuid::Uuid;

use super::action::What;
use super::facts::GONE;
use super::harness::{Harness, text_block};
use super::{talk, work};

pub(crate) use work::{decide_all, quiet};

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::Spawn => {
            let command = spawn_command(harness);
            harness.ask(command, born);
        }
        What::SpawnMany => {
            let count = 2 + harness.rng.below(4);
            let commands = (0..count).map(|_| spawn_command(harness)).collect();
            harness.ask(SpawnAgents(commands), |harness, all| {
                all.into_iter().flatten().for_each(|one| born(harness, one))
            });
        }
        What::Clone => {
            let Some(agent) = agent(harness) else { return };
            harness.ask(CloneAgent { agent, name: None, text: "name = \"copy\"\n".into() }, born);
        }
        What::Update => update(harness),
        What::Remove => {
            let Some(agent) = agent(harness) else { return };
            forget_agent(harness, agent);
            let fact = harness.facts.submit(format!("agent/{agent}"), GONE);
            harness.ask(RemoveAgents(vec![agent]), move |harness, _| harness.facts.acknowledge(fact));
        }
        What::StopAgent | What::StartAgent => {
            let Some(agent) = agent(harness) else { return };
            let is_stop = what == What::StopAgent;
            let fact = harness.facts.submit(format!("running/{agent}"), if is_stop { "Stopped" } else { "Running" });
            let is_done = move |harness: &mut Harness, ok: bool| {
                if ok {
                    harness.facts.acknowledge(fact);
                }
            };
            if is_stop {
                harness.ask(StopAgents(vec![agent]), move |harness, all| {
                    is_done(harness, all.iter().all(|(_, one)| one.is_ok()))
                });
            } else {
                harness.ask(StartAgents(vec![agent]), move |harness, all| {
                    is_done(harness, all.iter().all(|(_, one)| one.is_ok()))
                });
            }
        }
        What::SetMode => {
            let Some(agent) = agent(harness) else { return };
            let mode = harness.rng.pick(&[AgentMode::Normal, AgentMode::Stable]);
            harness.ask(SetMode { agent, mode, skills: None }, |_, _| {});
        }
        What::NewSession | What::Label | What::Switch | What::RemoveSession | What::Reset => sessions(harness, what),
        What::ClearHistory | What::Cleanup | What::Import => histories(harness, what),
        other => talk::act(harness, other),
    }
}

/// One of the agents that the client knows, most often a young one.
pub(crate) fn agent(harness: &mut Harness) -> Option<AgentId> {
    let count = harness.known.agents.len();
    let from = if harness.rng.chance(80) { count.saturating_sub(6) } else { 0 };
    harness.rng.any(&harness.known.agents[from..])
}

/// The manifest of a new agent.
pub(crate) fn spawn_command(harness: &mut Harness) -> SpawnAgent {
    let name = harness.text("agent").replace(' ', "-");
    let prompt = harness.rng.pick(&["be brief", "be kind", "be quick"]);
    let mode = harness.rng.pick(&["", "", "session_mode = \"new\"\n", "session_mode = \"persistent\"\n"]);
    let text = format!(
        "name = {name:?}\n{mode}system_prompt = {prompt:?}\n[capabilities]\ntools = [\"*\"]\nagent_spawn = true\n"
    );
    let parsed = manifest::parse(&text).expect("it is a manifest");
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

fn born(harness: &mut Harness, spawned: Spawned) {
    let Spawned { agent, session, .. } = spawned;
    harness.known.agents.push(agent);
    harness.known.sessions.push((agent, session));
    harness.learn(format!("agent/{agent}"), "lives");
    harness.learn(format!("running/{agent}"), "Running");
    harness.learn(format!("session/{agent}/{session}"), "lives");
}

fn update(harness: &mut Harness) {
    let Some(agent) = agent(harness) else { return };
    let prompt: Box<str> = harness.rng.pick(&["be brief", "be kind", "be long", "be quick"]).into();
    let name = harness.rng.chance(30).then(|| harness.text("renamed").replace(' ', "-").into());
    let fact = harness.facts.submit(format!("prompt/{agent}"), &*prompt);
    let patch = AgentPatch { system_prompt: Some(prompt), name, ..AgentPatch::default() };
    harness.ask(UpdateAgent { agent, patch }, move |harness, _| harness.facts.acknowledge(fact));
}

/// An agent goes, and with it what belongs to it.
fn forget_agent(harness: &mut Harness, agent: AgentId) {
    for kind in [
        "running",
        "prompt",
        "session",
        "label",
        "trigger",
        "schedule",
        "memory",
        "knowledge",
        "budget",
        "dream",
        "prompt_version",
    ] {
        harness.facts.forget(&format!("{kind}/{agent}"));
    }
    // Goals lose it, tasks that it has claimed wait again, and triggers with it as a target are switched off.
    harness.facts.forget("goal/");
    harness.facts.forget("task/");
    harness.facts.clear(agent, harness.number);
}

fn sessions(harness: &mut Harness, what: What) {
    let known = harness.known.sessions.clone();
    let from = known.len().saturating_sub(10);
    let Some((agent, session)) = harness.rng.any(&known[from..]) else { return };
    match what {
        What::NewSession => {
            let label = harness.rng.chance(30).then(|| format!("label {}", harness.rng.below(4)));
            harness.ask(CreateSession { agent, label }, move |harness, session| {
                harness.known.sessions.push((agent, session));
                harness.learn(format!("session/{agent}/{session}"), "lives");
            });
        }
        What::Label => {
            let label = harness.rng.pick(&["", "label 0", "label 1", "label 9"]);
            let fact = harness.facts.submit(format!("label/{agent}/{session}"), label);
            harness.ask(SetLabel { session, label: label.into() }, move |harness, _| harness.facts.acknowledge(fact));
        }
        What::Switch => harness.ask(SwitchSession { agent, session }, |_, _| {}),
        What::RemoveSession => {
            harness.facts.clear(agent, harness.number);
            harness.facts.forget(&format!("label/{agent}/{session}"));
            let fact = harness.facts.submit(format!("session/{agent}/{session}"), GONE);
            harness.ask(RemoveSession { session }, move |harness, gone| {
                harness.facts.acknowledge(fact);
                harness.known.sessions.extend(gone.replaced_by.map(|session| (gone.agent, session)));
            });
        }
        _ => {
            // Which session is current, a switch under way may decide.
            harness.facts.clear(agent, harness.number);
            harness.facts.forget(&format!("session/{agent}"));
            harness.facts.forget(&format!("label/{agent}"));
            harness.ask(ResetSession { agent }, move |harness, session| harness.known.sessions.push((agent, session)));
        }
    }
}

fn histories(harness: &mut Harness, what: What) {
    let Some(agent) = agent(harness) else { return };
    match what {
        What::ClearHistory => {
            harness.facts.clear(agent, harness.number);
            harness.ask(ClearHistory { agent }, |_, _| {});
        }
        What::Cleanup => {
            harness.facts.forget("session/");
            harness.facts.forget("label/");
            for agent in harness.known.agents.clone() {
                harness.facts.clear(agent, harness.number);
            }
            let unused_since = Timestamp(harness.now - harness.rng.pick(&[0, 60_000, 3_600_000]));
            harness.ask(CleanupSessions { unused_since, after: None }, |_, _| {});
        }
        _ => {
            let session = SessionId(Uuid::from_u128(u128::from(harness.rng.roll())));
            let at = Timestamp(harness.now - 1_000);
            let mut message =
                |role| ImportedMessage { role, blocks: vec![text_block(harness.text("old"))], at, model: None };
            let messages =
                vec![message(Role::User), message(Role::Assistant), message(Role::User), message(Role::Assistant)];
            let copied = messages[..2].to_vec();
            harness.ask(ImportSession { agent, session, label: None, messages }, move |harness, _| {
                harness.known.sessions.push((agent, session));
            });
            harness.ask(GetSession::ById(session), move |harness, original| {
                let log = original.log;
                harness.ask(BranchSession { session, log, label: None, messages: copied }, move |harness, branch| {
                    harness.known.sessions.push((agent, branch));
                });
            });
        }
    }
}

/// A schedule of some rule.
pub(crate) fn new_schedule(harness: &mut Harness, agent: AgentId, kind: ScheduleKind) -> NewSchedule {
    let rng = &mut harness.rng;
    let rule = rng.pick(&["every 1m", "every 10m", "* * * * *", "*/10 * * * *", "in 90s", "0 0 * * *", "every 1h"]);
    let text = harness.text("act");
    let rng = &mut harness.rng;
    let missed = rng.pick(&[MissedPolicy::Skip, MissedPolicy::One, MissedPolicy::All]);
    let overlap = rng.pick(&[OverlapPolicy::Skip, OverlapPolicy::Queue, OverlapPolicy::Parallel]);
    NewSchedule {
        kind,
        agent,
        name: Some("plan".into()),
        rule: rule.into(),
        timezone: rng.chance(20).then(|| "America/New_York".into()),
        prompt: text.into(),
        enabled: rng.chance(95),
        missed,
        overlap: match missed {
            // Every slot of hours that nobody saw, one behind the other, is a long run: now and then it must be.
            MissedPolicy::All if rng.chance(8) => OverlapPolicy::Queue,
            MissedPolicy::All => OverlapPolicy::Skip,
            _ => overlap,
        },
        session_mode: None,
    }
}
