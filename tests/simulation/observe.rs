//! What must hold, looked at from outside the world: the scan of the world itself, what the client was told, money, the audit
//! trail, the order of messages.

use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::auto_dream::DreamId;
use agentsvc_components::memory::record::MemoryUseRecord;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::session::message::Role;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use agentsvc_systems::a2a::outbound::A2aAgentView;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::approval::ApprovalView;
use agentsvc_systems::audit::Walk;
use agentsvc_systems::auto_dream::DreamView;
use agentsvc_systems::budget::GetBudget;
use agentsvc_systems::goal::GoalView;
use agentsvc_systems::hand::HandView;
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::kernel::record;
use agentsvc_systems::mcp::FindMcpPin;
use agentsvc_systems::pairing::DeviceView;
use agentsvc_systems::people::{KeyView, UserView};
use agentsvc_systems::prompt::PromptVersionView;
use agentsvc_systems::schedule::GetSchedule;
use agentsvc_systems::session::GetSession;
use agentsvc_systems::task::TaskView;
use agentsvc_systems::trigger::GetTrigger;
use agentsvc_systems::webhook::WebhookView;
use agentsvc_systems::workflow::{GetRun, WorkflowView};

use super::entries;
use super::facts::GONE;
use super::harness::Harness;
use super::history::history;
use super::money::{Watermarks, money};
use super::{knowledge, mcp};

/// Steps after which the live world is compared with what is stored.
const COMPARE_EVERY: u64 = 6;

/// How often the audit trail was walked.
#[derive(Default)]
pub(crate) struct AuditLog {
    verifications: u64,
}

/// After every step.
pub(crate) fn step(harness: &mut Harness, steps: u64) -> Result<(), String> {
    first(harness.engine.check())?;
    if steps.is_multiple_of(COMPARE_EVERY) {
        first(harness.engine.differences(&harness.disk.seen))?;
    }
    money(harness)
}

/// After every sync.
pub(crate) fn sync(harness: &mut Harness) -> Result<(), String> {
    harness.trail.verifications += 1;
    if !harness.trail.verifications.is_multiple_of(16) || harness.disk.waiting() > 0 {
        return Ok(());
    }
    history(&harness.disk)?;
    trail(harness)
}

/// After a start.
pub(crate) fn start(harness: &mut Harness) {
    harness.watermarks = Watermarks::default();
}

fn first(faults: Vec<String>) -> Result<(), String> {
    faults.into_iter().next().map_or(Ok(()), Err)
}

/// The audit trail is whole.
fn trail(harness: &mut Harness) -> Result<(), String> {
    let row = harness.disk.world.get(record::AUDIT_HEAD_KEY.as_slice());
    let Some(Ok(head)) = row.map(|row| record::decode::<AuditHead>(&record::AUDIT_HEAD_KEY, row)) else {
        return Ok(());
    };
    let newest = (head.first > 1).then(|| agentsvc_components::audit::record::AuditCheckpoint {
        sequence: head.first - 1,
        hash: head.anchor,
        previous: 0,
        first: head.first,
        anchor: head.anchor,
        at: agentsvc_components::Timestamp(0),
    });
    let mut walk = Walk::new(head, None, newest, |_: &[u8], _: &[u8]| true);
    for (key, row) in
        harness.disk.content.range(walk.from()..).take_while(|(key, _)| key.starts_with(&record::AUDIT_PREFIX))
    {
        walk.row(key, row).map_err(|broken| format!("the audit log is broken at {broken}"))?;
    }
    walk.end().map(|_| ()).map_err(|broken| format!("the audit log is broken at its end: {broken}"))
}

/// Everything the client was told is still so.
pub(crate) fn facts(harness: &mut Harness) -> Result<(), String> {
    let all: Vec<_> = harness.facts.all().map(|(key, may_be)| (key.clone(), may_be.clone())).collect();
    for (key, may_be) in all {
        let Some(is) = register(harness, &key) else { continue };
        if !may_be.contains(&is) {
            return Err(format!("what was acknowledged is lost: {key} is {is:?}, and must be one of {may_be:?}"));
        }
    }
    messages(harness)
}

/// What a register holds.
pub(crate) fn register(harness: &mut Harness, key: &str) -> Option<String> {
    let mut words = key.split('/');
    let (kind, id) = (words.next()?, words.next()?);
    let of = words.next();
    let found = match kind {
        "agent" => harness.read(GetAgent(id.parse().ok()?)).map(|_| "lives".to_owned()),
        "running" => harness.read(GetAgent(id.parse().ok()?)).map(|view| view.state.as_str().to_owned()),
        "prompt" => {
            harness.read(GetAgent(id.parse().ok()?)).map(|view| view.manifest.manifest.system_prompt.to_string())
        }
        "session" => harness.read(GetSession::Of(id.parse().ok()?, of?.parse().ok()?)).map(|_| "lives".to_owned()),
        "label" => {
            let view = harness.read(GetSession::Of(id.parse().ok()?, of?.parse().ok()?));
            view.map(|view| view.label.map(String::from).unwrap_or_default())
        }
        "trigger" => harness.read(GetTrigger(of?.parse().ok()?)).map(|view| view.prompt_template.to_string()),
        "schedule" => {
            let kind = if of? == "Cron" { ScheduleKind::Cron } else { ScheduleKind::Schedule };
            harness.read(GetSchedule { kind, id: words.next()?.parse().ok()? }).map(|view| view.prompt.to_string())
        }
        "goal" => harness.read(Get::<GoalView>(id.parse().ok()?)).map(|view| view.goal.title.to_string()),
        "hand" => harness.read(Get::<HandView>(id.parse().ok()?)).map(|view| view.instance.state.as_str().to_owned()),
        "webhook" => harness.read(Get::<WebhookView>(id.parse().ok()?)).map(|view| view.webhook.name.to_string()),
        "prompt_version" => {
            harness.read(Get::<PromptVersionView>(of?.parse().ok()?)).map(|view| view.version.description.to_string())
        }
        "user" => harness.read(Get::<UserView>(id.parse().ok()?)).map(|view| view.user.name.to_string()),
        "key" => harness.read(Get::<KeyView>(id.parse().ok()?)).map(|view| view.key.name.to_string()),
        "device" => harness.read(Get::<DeviceView>(id.parse().ok()?)).map(|view| view.device.name.to_string()),
        "mcp_pin" => harness.read(FindMcpPin(id.to_owned())).map(mcp::accepted),
        "external" => harness.read(Get::<A2aAgentView>(id.parse().ok()?)).map(|view| view.agent.name.to_string()),
        "task" => harness.read(Get::<TaskView>(id.parse().ok()?)).map(|view| view.task.title.to_string()),
        "workflow" => harness.read(Get::<WorkflowView>(id.parse().ok()?)).map(|view| view.workflow.name.to_string()),
        "run" => harness.read(GetRun(id.parse().ok()?)).map(|view| view.run.state.as_str().to_owned()),
        "approval" => {
            harness.read(Get::<ApprovalView>(id.parse().ok()?)).map(|view| view.approval.state.as_str().to_owned())
        }
        "budget" => {
            let scope = id.parse().map_or(Scope::Global, Scope::Agent);
            harness.read(GetBudget(scope)).map(|view| format!("{:?}", view.limits.daily))
        }
        "memory" => Ok(memory(harness, id, of?)?),
        "dream" => {
            let id = DreamId::from(id.parse::<AgentId>().ok()?);
            harness.read(Get::<DreamView>(id)).map(|view| view.dream.enabled.to_string())
        }
        "knowledge" => Ok(knowledge::register(harness, id, of?)?),
        _ => return None,
    };
    match found {
        Ok(value) => Some(value),
        Err(Refusal { kind: RefusalKind::NotFound, .. }) => Some(GONE.to_owned()),
        Err(refusal) => Some(refusal.message),
    }
}

fn memory(harness: &Harness, agent: &str, key: &str) -> Option<String> {
    let row = harness.disk.content.get(&record::memory_key(agent.parse().ok()?, key));
    let Some(row) = row else { return Some(GONE.to_owned()) };
    let entry: agentsvc_components::memory::record::MemoryRecord = record::decode(key.as_bytes(), row).ok()?;
    Some(entry.value.to_string())
}

/// Acknowledged messages stand in their sessions' logs, in the order in which they were sent.
fn messages(harness: &mut Harness) -> Result<(), String> {
    let all: Vec<_> = harness.facts.messages.iter().map(|(session, told)| (*session, told.clone())).collect();
    for (session, told) in all {
        let Ok(view) = harness.read(GetSession::ById(session)) else { continue };
        let prefix = record::log_prefix(view.log);
        let rows = harness.disk.content.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(&prefix));
        let mut users = Vec::new();
        for (key, row) in rows {
            let row: MessageRecord =
                record::decode(key, row).map_err(|error| format!("a row cannot be read: {error}"))?;
            if row.role == Role::User && record::parse_message_key(key).is_some_and(|at| at.index == 0) {
                users.push(row.turn);
            }
        }
        let mut places = Vec::new();
        for told in &told {
            let place = users.iter().position(|turn| *turn == told.turn);
            let Some(place) = place else {
                return Err(format!(
                    "the message of turn {} in session {session} was acknowledged and is lost",
                    told.turn
                ));
            };
            places.push((told.number, place));
        }
        places.sort_unstable();
        if !places.is_sorted_by_key(|(_, place)| *place) {
            return Err(format!("messages of session {session} stand out of order: {places:?}"));
        }
    }
    Ok(())
}

/// When everything has come to its end.
pub(crate) fn end(harness: &mut Harness) -> Result<(), String> {
    first(harness.engine.check())?;
    first(harness.engine.differences(&harness.disk.seen))?;
    facts(harness)?;
    trail(harness)?;
    let reserved = harness.read(GetBudget(Scope::Global)).map(|view| view.reserved).unwrap_or_default();
    if !reserved.is_zero() {
        return Err(format!("nothing is out, and {reserved:?} is reserved"));
    }
    for (agent, _) in harness.known.sessions.clone() {
        let row = harness.disk.world.get(&[&b"k"[..], agent.0.as_bytes()].concat());
        let stored = row
            .map(|row| record::decode::<MemoryUseRecord>(b"k", row).map_err(|error| error.to_string()))
            .transpose()?;
        let stored = stored.map_or(0, |stored| stored.entries);
        if harness.read(GetAgent(agent)).is_err() {
            continue;
        }
        let prefix = record::memory_prefix(agent);
        let rows = harness.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix)).count();
        if rows != stored as usize {
            return Err(format!("agent {agent} has {rows} entries in its memory, counted {stored}"));
        }
        entries::check(harness, agent)?;
    }
    knowledge::end(harness)?;
    let told: Vec<_> = harness.facts.messages.values().flatten().copied().collect();
    for told in told {
        let key = record::trace_key(told.agent, told.turn);
        if harness.read(GetAgent(told.agent)).is_ok() && !harness.disk.content.contains_key(&key) {
            return Err(format!("the message of turn {} was acknowledged and has no end", told.turn));
        }
    }
    Ok(())
}
