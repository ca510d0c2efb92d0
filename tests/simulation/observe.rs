//! What must hold, looked at from outside the world: the scan of the world itself, what the client was told, money, the audit
//! trail, the order of messages.

use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::memory::record::MemoryUseRecord;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::session::message::Role;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::usage::Scope;
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::approval::ApprovalView;
use agentsvc_systems::audit::Walk;
use agentsvc_systems::budget::GetBudget;
use agentsvc_systems::goal::GoalView;
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::kernel::record;
use agentsvc_systems::schedule::GetSchedule;
use agentsvc_systems::session::GetSession;
use agentsvc_systems::task::TaskView;
use agentsvc_systems::trigger::GetTrigger;
use agentsvc_systems::workflow::{GetRun, WorkflowView};

use super::facts::GONE;
use super::house::House;
use super::money::{Watermarks, money};

/// Steps after which the live world is compared with what is stored.
const COMPARE_EVERY: u64 = 6;

/// How often the audit trail was walked.
#[derive(Default)]
pub(crate) struct Trail {
    walks: u64,
}

/// After every step.
pub(crate) fn step(house: &mut House, steps: u64) -> Result<(), String> {
    first(house.engine.check())?;
    if steps.is_multiple_of(COMPARE_EVERY) {
        first(house.engine.differences(&house.disk.seen))?;
    }
    money(house)
}

/// After every sync.
pub(crate) fn sync(house: &mut House) -> Result<(), String> {
    house.trail.walks += 1;
    if house.trail.walks.is_multiple_of(16) && house.disk.waiting() == 0 { trail(house) } else { Ok(()) }
}

/// After a start.
pub(crate) fn start(house: &mut House) {
    house.watermarks = Watermarks::default();
}

fn first(faults: Vec<String>) -> Result<(), String> {
    faults.into_iter().next().map_or(Ok(()), Err)
}

/// The audit trail is whole.
fn trail(house: &mut House) -> Result<(), String> {
    let row = house.disk.world.get(record::AUDIT_HEAD_KEY.as_slice());
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
        house.disk.content.range(walk.from()..).take_while(|(key, _)| key.starts_with(&record::AUDIT_PREFIX))
    {
        walk.row(key, row).map_err(|broken| format!("the audit log is broken at {broken}"))?;
    }
    walk.end().map(|_| ()).map_err(|broken| format!("the audit log is broken at its end: {broken}"))
}

/// Everything the client was told is still so.
pub(crate) fn facts(house: &mut House) -> Result<(), String> {
    let all: Vec<_> = house.facts.all().map(|(key, may_be)| (key.clone(), may_be.clone())).collect();
    for (key, may_be) in all {
        let Some(is) = register(house, &key) else { continue };
        if !may_be.contains(&is) {
            return Err(format!("what was acknowledged is lost: {key} is {is:?}, and must be one of {may_be:?}"));
        }
    }
    messages(house)
}

/// What a register holds.
pub(crate) fn register(house: &mut House, key: &str) -> Option<String> {
    let mut words = key.split('/');
    let (kind, id) = (words.next()?, words.next()?);
    let of = words.next();
    let found = match kind {
        "agent" => house.read(GetAgent(id.parse().ok()?)).map(|_| "lives".to_owned()),
        "running" => house.read(GetAgent(id.parse().ok()?)).map(|view| view.state.as_str().to_owned()),
        "prompt" => house.read(GetAgent(id.parse().ok()?)).map(|view| view.manifest.manifest.system_prompt.to_string()),
        "session" => house.read(GetSession::Of(id.parse().ok()?, of?.parse().ok()?)).map(|_| "lives".to_owned()),
        "label" => {
            let view = house.read(GetSession::Of(id.parse().ok()?, of?.parse().ok()?));
            view.map(|view| view.label.map(String::from).unwrap_or_default())
        }
        "trigger" => house.read(GetTrigger(of?.parse().ok()?)).map(|view| view.prompt_template.to_string()),
        "schedule" => {
            let kind = if of? == "Cron" { ScheduleKind::Cron } else { ScheduleKind::Schedule };
            house.read(GetSchedule { kind, id: words.next()?.parse().ok()? }).map(|view| view.prompt.to_string())
        }
        "goal" => house.read(Get::<GoalView>(id.parse().ok()?)).map(|view| view.goal.title.to_string()),
        "task" => house.read(Get::<TaskView>(id.parse().ok()?)).map(|view| view.task.title.to_string()),
        "workflow" => house.read(Get::<WorkflowView>(id.parse().ok()?)).map(|view| view.workflow.name.to_string()),
        "run" => house.read(GetRun(id.parse().ok()?)).map(|view| view.run.state.as_str().to_owned()),
        "approval" => {
            house.read(Get::<ApprovalView>(id.parse().ok()?)).map(|view| view.approval.state.as_str().to_owned())
        }
        "budget" => {
            let scope = id.parse().map_or(Scope::Global, Scope::Agent);
            house.read(GetBudget(scope)).map(|view| format!("{:?}", view.limits.daily))
        }
        "memory" => Ok(memory(house, id, of?)?),
        _ => return None,
    };
    match found {
        Ok(value) => Some(value),
        Err(Refusal { kind: RefusalKind::NotFound, .. }) => Some(GONE.to_owned()),
        Err(refusal) => Some(refusal.message),
    }
}

fn memory(house: &House, agent: &str, key: &str) -> Option<String> {
    let row = house.disk.content.get(&record::memory_key(agent.parse().ok()?, key));
    let Some(row) = row else { return Some(GONE.to_owned()) };
    let entry: agentsvc_components::memory::record::MemoryRecord = record::decode(key.as_bytes(), row).ok()?;
    Some(entry.value.to_string())
}

/// Acknowledged messages stand in their sessions' logs, in the order in which they were sent.
fn messages(house: &mut House) -> Result<(), String> {
    let all: Vec<_> = house.facts.messages.iter().map(|(session, told)| (*session, told.clone())).collect();
    for (session, told) in all {
        let Ok(view) = house.read(GetSession::ById(session)) else { continue };
        let prefix = record::log_prefix(view.log);
        let rows = house.disk.content.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(&prefix));
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
pub(crate) fn end(house: &mut House) -> Result<(), String> {
    first(house.engine.check())?;
    first(house.engine.differences(&house.disk.seen))?;
    facts(house)?;
    trail(house)?;
    let reserved = house.read(GetBudget(Scope::Global)).map(|view| view.reserved).unwrap_or_default();
    if !reserved.is_zero() {
        return Err(format!("nothing is out, and {reserved:?} is reserved"));
    }
    for (agent, _) in house.known.sessions.clone() {
        let row = house.disk.world.get(&[&b"k"[..], agent.0.as_bytes()].concat());
        let stored = row
            .map(|row| record::decode::<MemoryUseRecord>(b"k", row).map_err(|error| error.to_string()))
            .transpose()?;
        let stored = stored.map_or(0, |stored| stored.entries);
        if house.read(GetAgent(agent)).is_err() {
            continue;
        }
        let prefix = record::memory_prefix(agent);
        let rows = house.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix)).count();
        if rows != stored as usize {
            return Err(format!("agent {agent} has {rows} entries in its memory, counted {stored}"));
        }
    }
    let told: Vec<_> = house.facts.messages.values().flatten().copied().collect();
    for told in told {
        let key = record::trace_key(told.agent, told.turn);
        if house.read(GetAgent(told.agent)).is_ok() && !house.disk.content.contains_key(&key) {
            return Err(format!("the message of turn {} was acknowledged and has no end", told.turn));
        }
    }
    Ok(())
}
