//! Answers go to their targets, and deliveries come to their ends.

use std::sync::Arc;

use agentsvc_components::channel::send::SendState;
use agentsvc_components::delivery::{
    DeliveryOrder, Receipt, ReceiptId, SourceKind, Target, TargetKind, Targets, TargetsId,
};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use super::index::Receipts;
use super::limits;
use super::targets::{Source, known};
use crate::agent::holder_of;
use crate::channel::{self, DeliverToChat, KeyedSendEnded, SendTo};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::outbox::Emit;
use crate::turn::FiredTurnEnded;
use crate::workflow::RunCompleted;

/// The name of the kind of jobs. Its input is a [`DeliveryOrder`] as JSON.
pub const NAME: &str = "target_delivery";
/// What a try may take beyond the receiver's time.
const TIMEOUT_MARGIN_MS: u32 = 5_000;
/// Bytes of an order as JSON: a byte of a text can be six there.
const INPUT_BYTES_MAX: usize = 6 * (limits::TARGET_ANSWER_BYTES_MAX + 4 * limits::TARGET_URL_BYTES_MAX);

/// Deliveries to webhooks and files. One that was under way when the daemon ended goes out again under the same id, by which
/// receivers of webhooks can know it, and files do.
pub(super) const JOB: JobKind = JobKind {
    name: NAME,
    repeatable: true,
    tries_max: limits::TARGET_TRIES_MAX,
    backoff_ms: limits::TARGET_BACKOFF_MS,
    backoff_ms_max: limits::TARGET_BACKOFF_MS_MAX,
    deadline_ms: limits::TARGET_DEADLINE_MS,
    timeout_ms: limits::TARGET_TIMEOUT_MS + TIMEOUT_MARGIN_MS,
    lane: limits::TARGET_DELIVERIES_OUT_MAX,
    subject_lane: 1,
    is_shared: false,
    is_ordered: true,
    count_max: limits::TARGET_DELIVERIES_OPEN_MAX,
    subject_count_max: limits::TARGET_DELIVERIES_OPEN_EACH_MAX,
    subject_bytes_max: limits::TARGET_DELIVERIES_BYTES_MAX,
    input_bytes_max: INPUT_BYTES_MAX,
    bytes_max: limits::TARGET_DELIVERIES_BYTES_MAX,
    settle,
};

/// Does a job of this domain bring such a delivery to its end? The others are sends of channels.
pub(super) const fn is_own(target: TargetKind) -> bool {
    matches!(target, TargetKind::Webhook | TargetKind::LocalFile)
}

/// A turn that a schedule, cron job or trigger began has ended.
pub(super) fn turn_ended(world: &mut World, FiredTurnEnded { origin, ended }: &FiredTurnEnded) {
    let id = match origin {
        Origin::Schedule { schedule } => schedule.0,
        Origin::Trigger { trigger } => trigger.0,
        _ => return,
    };
    if ended.end == TurnEnd::Done && !channel::is_silent(&ended.text) {
        fan_out(world, id, ended.turn.0, (&ended.text, ended.taint));
    }
}

/// A run of a workflow has given what it was to give.
pub(super) fn run_completed(world: &mut World, run: &RunCompleted) {
    if !channel::is_silent(&run.output) {
        fan_out(world, run.workflow.0, run.run.0, (&run.output, run.taint));
    }
}

/// What goes out of one source.
struct Outgoing<'a> {
    source: Source,
    name: Box<str>,
    agent: Option<AgentId>,
    of: Uuid,
    text: &'a str,
    taint: Taint,
}

/// Sends an answer to each target. One that fails is on record, and changes nothing for the others, or the turn.
fn fan_out(world: &mut World, source: Uuid, of: Uuid, (text, taint): (&str, Taint)) {
    let Some(Targets { kind, targets, .. }) = state::<Targets>(world, TargetsId(source)).cloned() else { return };
    let source = Source { kind, id: source };
    let Ok(about) = known(world, source) else { return };
    let text = &text[..text.floor_char_boundary(limits::TARGET_ANSWER_BYTES_MAX)];
    let out = Outgoing { source, name: about.name, agent: about.agent, of, text, taint };
    for (place, target) in targets.iter().enumerate() {
        let (id, sent) = match target {
            Target::Webhook { .. } | Target::LocalFile { .. } => own(world, &out, place, target),
            Target::Channel { .. } | Target::LastChannel | Target::Email { .. } => chat(world, &out, target),
        };
        keep(world, id, &out, target, sent);
    }
    trim(world, source.id);
}

/// Adds the job of a delivery.
fn own(world: &mut World, out: &Outgoing<'_>, place: usize, target: &Target) -> (ReceiptId, Result<(), Refusal>) {
    let order = DeliveryOrder {
        target: target.clone(),
        source: out.source.id,
        source_kind: out.source.kind,
        name: out.name.clone(),
        agent: out.agent,
        of: out.of,
        at: world.resource::<Now>().0,
        text: out.text.into(),
        taint: out.taint,
    };
    let input = Arc::from(serde_json::to_string(&order).unwrap_or_default());
    // Each target has a lane of its own, so that none waits for another; the low bits of an id are its slot.
    let subject = Uuid::from_u128(out.source.id.as_u128() ^ ((place as u128) << 12));
    let holder = out.agent.and_then(|agent| index::agent(world, agent).ok()).map(|agent| holder_of(world, agent));
    match job::add(world, NAME, NewJob { subject, owner: None, holder, input }) {
        Ok(job) => (ReceiptId(job.0), Ok(())),
        Err(refusal) => (mint(world, Slot::ROOT), Err(refusal)),
    }
}

/// Adds the send of a delivery.
fn chat(world: &mut World, out: &Outgoing<'_>, target: &Target) -> (ReceiptId, Result<(), Refusal>) {
    let id: ReceiptId = mint(world, Slot::ROOT);
    let chat =
        |instance: &str, chat: Option<Box<str>>, thread| SendTo::Chat { instance: instance.into(), chat, thread };
    let mut text = out.text.to_owned();
    let to = match target {
        Target::Channel { instance, recipient, thread } => Some(chat(instance, recipient.clone(), thread.clone())),
        Target::Email { instance, to, subject_template } => {
            if let Some(subject) = subject_template {
                text = format!("{}\n\n{text}", subject.replace("{name}", &out.name));
            }
            Some(chat(instance, Some(to.clone()), None))
        }
        _ => out.agent.and_then(|agent| channel::last_chat(world, agent)).map(SendTo::Conversation),
    };
    let sent = match to {
        Some(to) => channel::deliver(world, DeliverToChat { key: id.0, to, text, agent: out.agent, is_callers: false })
            .map(|_| ()),
        None => Err(Refusal::not_found("chat of the agent", out.source.id)),
    };
    (id, sent)
}

/// Keeps what is known of a delivery.
fn keep(world: &mut World, id: ReceiptId, out: &Outgoing<'_>, target: &Target, sent: Result<(), Refusal>) {
    let created_at = world.resource::<Now>().0;
    let (channel, recipient): (Box<str>, Box<str>) = match target {
        Target::Channel { instance, recipient, .. } => (instance.clone(), recipient.clone().unwrap_or_default()),
        Target::Email { instance, to, .. } => (instance.clone(), to.clone()),
        Target::Webhook { url, .. } => (host_of(url).into(), Box::default()),
        Target::LocalFile { path, .. } => (Box::default(), path.clone()),
        Target::LastChannel => Default::default(),
    };
    let (state, reason, ended_at) = match sent {
        Ok(()) => (SendState::Queued, None, None),
        Err(refusal) => (SendState::Refused, Some(cut(&refusal.message)), Some(created_at)),
    };
    let receipt = Receipt {
        source: out.source.id,
        source_kind: out.source.kind,
        agent: out.agent,
        of: out.of,
        target: target.kind(),
        channel,
        recipient,
        state,
        reason,
        tries: 0,
        created_at,
        ended_at,
    };
    let entity = world.spawn((id, receipt)).id();
    world.mark(entity);
}

/// The host of a URL and its port: the rest may be a secret.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(limits::RECEIPT_REASON_BYTES_MAX)].into()
}

/// Hears of a try, or of the end of a delivery to a webhook or a file.
fn settle(world: &mut World, job: JobId, of: &Job, event: JobEvent) {
    let (state, reason) = match event {
        JobEvent::Done(_) => (SendState::Acknowledged, None),
        JobEvent::Retried(reason) => (SendState::Queued, Some(reason)),
        JobEvent::Failed(reason) => (SendState::Refused, Some(reason)),
        JobEvent::Unknown => (SendState::Unknown, Some("how it ended is not known".to_owned())),
    };
    let end = End { state, reason: reason.as_deref(), tries: of.tries };
    ended(world, ReceiptId(job.0), &end);
}

/// A send of a channel has ended.
pub(super) fn send_ended(world: &mut World, send: &KeyedSendEnded) {
    let end = End { state: send.state, reason: send.reason.as_deref(), tries: 0 };
    ended(world, ReceiptId(send.key), &end);
}

struct End<'a> {
    state: SendState,
    reason: Option<&'a str>,
    tries: u32,
}

fn ended(world: &mut World, id: ReceiptId, end: &End<'_>) {
    let now = world.resource::<Now>().0;
    let Some(entity) = world.resource::<Receipts>().get(id) else { return };
    change(world, entity, |receipt: &mut Receipt| {
        (receipt.state, receipt.tries, receipt.reason) = (end.state, end.tries, end.reason.map(cut));
        receipt.ended_at = (end.state != SendState::Queued).then_some(now);
    });
    let Some(source) = world.get::<Receipt>(entity).map(|receipt| receipt.source) else { return };
    if end.state != SendState::Queued {
        trim(world, source);
    }
}

/// The ended deliveries beyond those that are kept go, the ones that ended first.
fn trim(world: &mut World, source: Uuid) {
    while let Some(oldest) = world.resource::<Receipts>().over(source) {
        let Some(entity) = world.resource::<Receipts>().get(oldest) else { return };
        world.despawn(entity);
    }
}

/// An agent leaves the world: its deliveries to files and webhooks end, and what is known of them goes.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    let all = world.resource::<Receipts>();
    let own: Vec<(ReceiptId, Entity)> = all.of_agent(agent, None).filter_map(|id| Some((id, all.get(id)?))).collect();
    for (id, entity) in own {
        job::cancel(world, JobId(id.0));
        world.despawn(entity);
    }
}

impl Source {
    /// The source of this kind.
    #[must_use]
    pub const fn new(kind: SourceKind, id: Uuid) -> Self {
        Self { kind, id }
    }
}
