//! A schedule or cron job is created (spec 1, POST /api/schedules and POST /api/cron/jobs).

use crate::kernel::text;
use crate::schedule::audit_kinds;
use std::str::FromStr;

use bevy_ecs::prelude::{Entity, World};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Schedule, ScheduleKind};
use agentsvc_components::{AgentId, Refusal, ScheduleId, Timestamp};
use serde_json::json;

use super::rule::Rule;
use super::times::{QUOTA, Schedules, Timing, plan};
use super::view::{ScheduleView, definition};
use crate::agent::{is_limited, kin, reached};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_for;
use crate::kernel::outbox::Emit;
use crate::kernel::{index, record};
use crate::taint;

/// Slots of a rule of a tool that are compared with one another.
const SLOTS_LOOKED_AT: usize = 10;

/// A schedule or cron job that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSchedule {
    /// Its family.
    pub kind: ScheduleKind,
    /// Whose.
    pub agent: AgentId,
    /// What it is called; a cron job must have a name.
    pub name: Option<Box<str>>,
    /// Its rule: cron or interval syntax.
    pub rule: Box<str>,
    /// The IANA zone of a cron expression; UTC when left out.
    pub timezone: Option<Box<str>>,
    /// What the agent is told; not empty.
    pub prompt: Box<str>,
    /// Does it fire?
    pub enabled: bool,
    /// Missed policy.
    pub missed: MissedPolicy,
    /// What happens to slots while a turn is open.
    pub overlap: OverlapPolicy,
    /// Session continuity of its turns; as the manifest says when left out.
    pub session_mode: Option<SessionMode>,
}

/// Creates a schedule or cron job. Refused: a bad field (400, naming it), an unknown agent (404), a daemon that is full
/// (429).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreateSchedule {
    /// What.
    pub new: NewSchedule,
    /// An agent's tool asks: no more than [`limit::AGENT_SCHEDULES_MAX`] for each agent, and
    /// [`limit::SHARE_SCHEDULES_MAX`] for all agents of its user, or of its family.
    pub by_tool: bool,
}

command! {
    write "create_schedule" CreateSchedule => ScheduleView, Id(|it| it.new.agent.0), |it, world|
        Answer::stored(create(world, it))
}

fn create(world: &mut World, command: CreateSchedule) -> Result<ScheduleView, Refusal> {
    let CreateSchedule { new, by_tool } = command;
    let now = world.resource::<Now>().0;
    let (rule, zone) = check(&new, now)?;
    let agent = reached(world, new.agent)?;
    taint::check_lasting(world)?;
    if by_tool {
        check_agents_share(world, agent)?;
    }
    if by_tool || is_limited(world) {
        let made = check_share(world, agent)?;
        check_pace(new.kind, &rule, zone, now, made)?;
    }
    let schedule = Schedule {
        agent,
        kind: new.kind,
        name: new.name,
        rule: new.rule,
        timezone: zone.name().into(),
        prompt: new.prompt,
        missed: new.missed,
        overlap: new.overlap,
        session_mode: new.session_mode,
        created_at: now,
        updated_at: now,
        anchored_at: now,
        enabled: new.enabled,
        cursor: now,
        past: None,
        taint: taint::acting(world),
        user: taint::acting_user(world),
        wake: None,
    };
    QUOTA.admit(world.resource::<Schedules>().used, 1, schedule.bytes())?;
    let (id, entity) = place(world, schedule, rule, zone);
    ScheduleView::of(world, entity).ok_or_else(|| Refusal::not_found(new.kind.noun(), id))
}

/// Brings a schedule into the world, stores it and plans its first slot.
pub(super) fn place(world: &mut World, schedule: Schedule, rule: Rule, zone: Tz) -> (ScheduleId, Entity) {
    let (agent, kind) = (schedule.agent, schedule.kind);
    let id: ScheduleId = mint_for(world, agent);
    let quiet = schedule.wake.as_ref().and_then(|wake| wake.quiet);
    let timing = Timing { rule: Some(rule), zone, quiet, visit: None, open: 0 };
    let entity = world.spawn((id, schedule, timing)).id();
    if let Some(record) = definition(world, entity) {
        world.op(record::put(&record));
    }
    world.mark(entity);
    plan(world, entity);
    let owner = index::id_of::<AgentId>(world, agent);
    world.audit(audit_kinds::SCHEDULE_CREATED, owner, json!({ "id": id, "kind": kind.noun() }));
    (id, entity)
}

/// The schedules and cron jobs of an agent.
fn all_of(schedules: &Schedules, agent: Entity) -> impl Iterator<Item = ScheduleId> {
    schedules.of(agent, ScheduleKind::Schedule, None).chain(schedules.of(agent, ScheduleKind::Cron, None))
}

fn full(whose: &str, most: usize) -> Refusal {
    let text = format!("{whose} reached the limit of {most} schedules and cron jobs; delete some first");
    Refusal::full(text, QUOTA.code)
}

/// Refuses a tool's schedule where its agent has as many as tools may make.
fn check_agents_share(world: &World, agent: Entity) -> Result<(), Refusal> {
    let most = limit::AGENT_SCHEDULES_MAX;
    let is_full = all_of(world.resource::<Schedules>(), agent).nth(most - 1).is_some();
    if is_full { Err(full("this agent has", most)) } else { Ok(()) }
}

/// Refuses a schedule of a tool, or of a user, where the family of its agent, or the user, has as many as there may be; gives how
/// many there are.
fn check_share(world: &World, agent: Entity) -> Result<usize, Refusal> {
    let (schedules, most) = (world.resource::<Schedules>(), limit::SHARE_SCHEDULES_MAX);
    let made = kin(world, agent).into_iter().flat_map(|agent| all_of(schedules, agent)).take(most).count();
    if made < most {
        return Ok(made);
    }
    Err(full("the agents of the same user, or those spawned below the same agent and that agent, have", most))
}

/// Refuses a schedule of a tool or a user that fires too often. The more a family or a user has, the slower the next one must be, so that all
/// together begin no more than about twenty turns a minute.
fn check_pace(kind: ScheduleKind, rule: &Rule, zone: Tz, now: Timestamp, made: usize) -> Result<(), Refusal> {
    let factor = i64::try_from(made / limit::AGENT_SCHEDULES_FAST).unwrap_or(i64::MAX).max(1);
    let least_ms = limit::AGENT_SCHEDULE_INTERVAL_MS_MIN.saturating_mul(factor);
    let slots = rule.preview(zone, now, now, SLOTS_LOOKED_AT);
    let is_fast =
        slots.windows(2).any(|pair| pair.first().zip(pair.get(1)).is_some_and(|(one, next)| next.0 - one.0 < least_ms));
    if is_fast {
        let field = kind.rule_field();
        let minutes = least_ms / limit::AGENT_SCHEDULE_INTERVAL_MS_MIN;
        let text = format!(
            "{field}: with {made} schedules and cron jobs, the next one that you create may fire every {minutes} min at most"
        );
        return Err(Refusal::bad_field(field, text));
    }
    Ok(())
}

fn check(new: &NewSchedule, now: Timestamp) -> Result<(Rule, Tz), Refusal> {
    check_name(new.kind, new.name.as_deref())?;
    check_prompt(&new.prompt)?;
    let read = (read_rule(new.kind, &new.rule)?, zone(new.timezone.as_deref())?);
    check_future(new.kind, &read.0, now)?;
    Ok(read)
}

/// Refuses a name that is none. A cron job must have one.
pub(super) fn check_name(kind: ScheduleKind, name: Option<&str>) -> Result<(), Refusal> {
    match name.map(str::trim) {
        None if kind == ScheduleKind::Schedule => Ok(()),
        name => text::check_name("name", name.unwrap_or_default(), limit::NAME_BYTES_MAX),
    }
}

/// Refuses a prompt that says nothing, or too much.
pub(super) fn check_prompt(prompt: &str) -> Result<(), Refusal> {
    text::check_filled("prompt", prompt.trim())?;
    text::check_length("prompt", prompt, limit::SCHEDULE_PROMPT_BYTES_MAX)
}

/// Reads a rule.
pub(super) fn read_rule(kind: ScheduleKind, text: &str) -> Result<Rule, Refusal> {
    let field = kind.rule_field();
    Rule::parse(text).map_err(|error| Refusal::bad_field(field, format!("{field}: {error}")))
}

/// Refuses a rule whose only moment is over.
pub(super) fn check_future(kind: ScheduleKind, rule: &Rule, now: Timestamp) -> Result<(), Refusal> {
    let field = kind.rule_field();
    match rule {
        Rule::At(moment) if *moment <= now => {
            Err(Refusal::bad_field(field, format!("{field}: column 4, timestamp: {moment} is in the past")))
        }
        _ => Ok(()),
    }
}

/// Finds a zone.
pub(super) fn zone(name: Option<&str>) -> Result<Tz, Refusal> {
    let Some(name) = name else { return Ok(Tz::UTC) };
    let unknown = |_| Refusal::bad_field("timezone", format!("timezone: unknown IANA time zone {name:?}"));
    Tz::from_str(name).map_err(unknown)
}
