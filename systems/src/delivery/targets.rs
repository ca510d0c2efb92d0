//! Targets are set and read.

use agentsvc_components::agent::Agent;
use agentsvc_components::delivery::{Receipt, SourceKind, Target, Targets, TargetsId};
use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::trigger::Trigger;
use agentsvc_components::workflow::Workflow;
use agentsvc_components::{Actor, AgentId, Refusal, ScheduleId, TriggerId, WorkflowId};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::index::{AllTargets, QUOTA, Receipts};
use super::list::ReceiptView;
use super::{audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::channel;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, state};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::schedule::Schedules;
use crate::taint;
use crate::trigger::Triggers;

/// What has targets: a schedule, cron job, trigger or workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Of which kind.
    pub kind: SourceKind,
    /// Its id.
    pub id: Uuid,
}

/// What is known of a source.
pub(super) struct Known {
    /// What it is called.
    pub(super) name: Box<str>,
    /// Who answers.
    pub(super) agent: Option<AgentId>,
}

/// What the world knows of the targets of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetsView {
    /// Where its answers go. Secrets are sealed.
    pub targets: Vec<Target>,
    /// The newest deliveries, newest first.
    pub deliveries: Vec<ReceiptView>,
}

/// Sets where the answers of a source go, all of it; none is nowhere. An instance of a channel may be named by its channel type,
/// where there is only one of that. Refused: a bad field (400, naming it), no such source (404), a turn in which untrusted
/// content was read (403), and no room (429).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetTargets {
    /// Of what.
    pub source: Source,
    /// Where to.
    pub targets: Vec<Target>,
}

command! {
    write "set_targets" SetTargets => TargetsView, Root, |it, world| Answer::stored(set(world, it))
}

/// Reads the targets of a source, and its newest deliveries.
#[derive(Clone, Copy, Debug)]
pub struct GetTargets(pub Source);

command! {
    read "get_targets" GetTargets => TargetsView, Root, |it, world| Answer::Now(get(world, it.0))
}

fn set(world: &mut World, SetTargets { source, targets }: SetTargets) -> Result<TargetsView, Refusal> {
    let of = known(world, source)?;
    check_trusted(world, &targets)?;
    let targets = checked(world, source.kind, &of, targets)?;
    let id = TargetsId(source.id);
    let at = world.resource::<AllTargets>().get(id);
    let it = Targets { kind: source.kind, targets, updated_at: world.resource::<Now>().0 };
    let was = state::<Targets>(world, id).map_or(0, Targets::bytes);
    let room = world.resource::<AllTargets>().used;
    QUOTA.admit(room, usize::from(at.is_none() && !it.targets.is_empty()), it.bytes().saturating_sub(was))?;
    let kinds: Vec<&str> = it.targets.iter().map(|target| target.kind().as_str()).collect();
    let details = json!({ "kind": source.kind.as_str(), "id": source.id, "targets": kinds });
    world.audit(audit_kinds::DELIVERY_TARGETS_SET, of.agent, details);
    match at {
        Some(at) if it.targets.is_empty() => {
            world.despawn(at);
        }
        Some(at) => change(world, at, |targets: &mut Targets| *targets = it),
        None if it.targets.is_empty() => {}
        None => {
            let entity = world.spawn((id, it)).id();
            world.mark(entity);
        }
    }
    get(world, source)
}

fn get(world: &World, source: Source) -> Result<TargetsView, Refusal> {
    known(world, source)?;
    let targets = state::<Targets>(world, TargetsId(source.id)).map(|it| it.targets.clone()).unwrap_or_default();
    let all = world.resource::<Receipts>();
    let newest = all.of(source.id, None).take(limits::RECEIPTS_EACH_MAX);
    let deliveries = newest.filter_map(|id| ReceiptView::of(world, all.get(id)?)).collect();
    Ok(TargetsView { targets, deliveries })
}

/// The source, if there is one.
pub(super) fn known(world: &World, Source { kind, id }: Source) -> Result<Known, Refusal> {
    let missing = || Refusal::not_found(kind.noun(), id);
    let of_agent = |entity: Entity| id_of::<AgentId>(world, entity);
    match kind {
        SourceKind::Schedule | SourceKind::Cron => {
            let family = if kind == SourceKind::Cron { ScheduleKind::Cron } else { ScheduleKind::Schedule };
            let at = world.resource::<Schedules>().get(family, ScheduleId(id)).ok_or_else(missing)?;
            let schedule = world.get::<Schedule>(at).ok_or_else(missing)?;
            let name = schedule.name.clone().unwrap_or_else(|| kind.as_str().into());
            Ok(Known { name, agent: Some(of_agent(schedule.agent)) })
        }
        SourceKind::Trigger => {
            let at = world.resource::<Triggers>().get(TriggerId(id)).ok_or_else(missing)?;
            let trigger = world.get::<Trigger>(at).ok_or_else(missing)?;
            let agent = trigger.target.unwrap_or(trigger.agent);
            let name = world.get::<Agent>(agent).map(|agent| agent.name.to_string()).unwrap_or_default();
            Ok(Known { name: format!("trigger of {name}").into(), agent: Some(of_agent(agent)) })
        }
        SourceKind::Workflow => {
            let workflow = state::<Workflow>(world, WorkflowId(id)).ok_or_else(missing)?;
            Ok(Known { name: workflow.name.to_string().into(), agent: None })
        }
    }
}

/// A turn that has read untrusted content chooses no place where answers go.
fn check_trusted(world: &World, targets: &[Target]) -> Result<(), Refusal> {
    taint::check_lasting(world)?;
    let is_agent = matches!(world.resource::<Acting>().0, Actor::Agent { .. });
    if is_agent && !targets.is_empty() && !taint::acting(world).is_none() {
        let text = "this conversation has read untrusted content, so it cannot set where answers are delivered";
        return Err(Refusal::of(error_codes::DELIVERY_UNTRUSTED, text));
    }
    Ok(())
}

/// The targets with the names of their instances.
fn checked(world: &World, kind: SourceKind, of: &Known, mut targets: Vec<Target>) -> Result<Vec<Target>, Refusal> {
    let most = limits::TARGETS_MAX;
    if targets.len() > most {
        return Err(Refusal::bad_field("delivery_targets", format!("delivery_targets has more than {most} entries")));
    }
    for (at, target) in targets.iter_mut().enumerate() {
        let bad = |key: &str, why: &str| {
            let field = format!("delivery_targets[{at}].{key}");
            let text = format!("{field}: {why}");
            Refusal::bad_field(&field, text)
        };
        check_texts(target).map_err(|(key, why)| bad(key, &why))?;
        match target {
            Target::Channel { instance, .. } => {
                *instance = one_instance(world, instance).map_err(|why| bad("channel_type", &why))?;
            }
            Target::Email { instance, .. } => {
                *instance = one_instance(world, instance).map_err(|why| bad("account_id", &why))?;
                let is_mail = channel::named(world, instance).is_some_and(|of_type| &*of_type == "email");
                if !is_mail {
                    return Err(bad("account_id", "the channel is none for mail"));
                }
            }
            Target::LocalFile { .. } | Target::LastChannel if of.agent.is_none() => {
                let why = format!("a {} has no agent of its own for this type", kind.as_str());
                return Err(bad("type", &why));
            }
            Target::LocalFile { .. } | Target::LastChannel | Target::Webhook { .. } => {}
        }
    }
    Ok(targets)
}

/// The instance that a name, or a channel type that only one has, means.
fn one_instance(world: &World, word: &str) -> Result<Box<str>, String> {
    if channel::named(world, word).is_some() {
        return Ok(word.into());
    }
    match &*channel::of_type(world, word) {
        [only] => Ok(only.clone()),
        [] => Err(format!("there is no channel {word:?}")),
        _ => Err(format!("there are several channels of the type {word:?}; name one in account_id")),
    }
}

/// What is wrong with a text: the key, and why.
fn check_texts(target: &Target) -> Result<(), (&'static str, String)> {
    let line = |key: &'static str, text: &str, most: usize| {
        if text.is_empty() || text.len() > most || text.chars().any(char::is_control) {
            return Err((key, format!("must be one line of 1 to {most} bytes")));
        }
        Ok(())
    };
    let most = limits::TARGET_TEXT_BYTES_MAX;
    let maybe = |key, text: &Option<Box<str>>| text.as_deref().map_or(Ok(()), |text| line(key, text, most));
    match target {
        Target::Channel { instance, recipient, thread } => {
            line("channel_type", instance, most)?;
            maybe("recipient", recipient)?;
            maybe("thread_id", thread)
        }
        Target::LastChannel => Ok(()),
        Target::Webhook { url, .. } => {
            line("url", url, limits::TARGET_URL_BYTES_MAX)?;
            let is_web = url.starts_with("http://") || url.starts_with("https://");
            if is_web { Ok(()) } else { Err(("url", "must begin with http:// or https://".to_owned())) }
        }
        Target::LocalFile { path, .. } => {
            line("path", path, most)?;
            let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
            let why = || ("path", "must be relative to the agent's workspace and stay in it".to_owned());
            if leaves { Err(why()) } else { Ok(()) }
        }
        Target::Email { to, subject_template, .. } => {
            line("to", to, most)?;
            if !to.contains('@') || to.contains([' ', ',', ';']) {
                return Err(("to", "must be one address".to_owned()));
            }
            maybe("subject_template", subject_template)
        }
    }
}

/// A source leaves the world: its targets and what became of them go too. What is on its way goes on.
pub(super) fn gone(world: &mut World, source: Uuid) {
    if let Some(at) = world.resource::<AllTargets>().get(TargetsId(source)) {
        world.despawn(at);
    }
    let ended: Vec<Entity> = {
        let all = world.resource::<Receipts>();
        let found = all.of(source, None).filter_map(|id| all.get(id));
        found.filter(|at| world.get::<Receipt>(*at).is_some_and(|it| it.ended_at.is_some())).collect()
    };
    for at in ended {
        world.despawn(at);
    }
}
