//! A summary came back, or a compaction loses its home.

use crate::compaction::error_codes;
use crate::compaction::metrics::CompactionTotals;
use crate::kernel::counters::StaleOutcomes;
use crate::model::ModelTotals;
use crate::session::error_codes as session_codes;
use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::compaction::call::{Summary, SummaryEnd, SummaryOutcome};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::Usage;
use agentsvc_components::{CompactionId, Refusal, RefusalKind};

use super::start::attempt_of;
use super::{CompactionReply, CompactionWaiters, Compactions, plan};
use crate::event::told::Tell;
use crate::kernel::arrivals::Settle;
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::record;
use crate::model::admission::Admission;
use crate::{budget, session, taint, usage};

impl Settle for SummaryOutcome {
    fn settle(self, world: &mut World) {
        let Self(attempt, mut end) = self;
        world.resource_mut::<Admission>().give_back(attempt);
        world.resource_mut::<ModelTotals>().calls += 1;
        usage::summary(world, attempt, &mut end);
        settle(world, attempt, end);
    }
}

/// Settles the outcome of a request for a summary. A stale one is counted and dropped.
fn settle(world: &mut World, attempt: Attempt, outcome: SummaryEnd) {
    let found = world.resource::<Compactions>().by_id.get(&CompactionId(attempt.job.0)).copied();
    let job = found.and_then(|entity| world.get::<Compaction>(entity)).filter(|job| job.attempt == attempt.number);
    let (Some(entity), Some(job)) = (found, job.cloned()) else {
        world.resource_mut::<StaleOutcomes>().0 += 1;
        return;
    };
    let brought = outcome.written.as_ref().map(|summary| summary.taint).unwrap_or_default();
    let applied = outcome.written.and_then(|summary| apply(world, &job, summary, outcome.usage));
    if applied.is_ok() {
        taint::brought(world, job.session, brought);
    }
    let waiters = close(world, entity);
    match applied {
        Ok(reply) => {
            world.resource_mut::<CompactionTotals>().completed += 1;
            let (agent, session) = (id_of(world, job.agent), reply.session);
            let (messages_before, messages_after) = (reply.messages_before, reply.messages_after);
            world.event(Event::SessionCompacted { agent, session, messages_before, messages_after });
            for slot in waiters {
                world.resource_mut::<Outbox>().reply(slot, Ok(reply.clone()));
            }
            go_on(world, &job, reply.messages_after);
        }
        Err(why) => {
            world.resource_mut::<CompactionTotals>().failed += 1;
            pause(world, job.session);
            let refusal = Refusal::new(RefusalKind::Failed, format!("the session could not be compacted: {why}"));
            let refusal = refusal.with_code(error_codes::COMPACTION_FAILED);
            for slot in waiters {
                world.resource_mut::<Outbox>().reply(slot, Err(refusal.clone()));
            }
        }
    }
}

/// Stores the summary and points the session behind what it summarises; changes nothing when it is of no use.
fn apply(world: &mut World, job: &Compaction, summary: Summary, usage: Usage) -> Result<CompactionReply, String> {
    let id = id_of(world, job.session);
    let created_at = world.resource::<Now>().0;
    let mut home = world.get_mut::<Session>(job.session).ok_or("the session no longer exists")?;
    if home.log != job.log || home.compacted != job.from {
        return Err("the history has changed in the meantime".to_owned());
    }
    if summary.upto <= job.from || summary.upto > job.upto.min(home.next_ordinal) {
        return Err("the summary covers none of the messages".to_owned());
    }
    let replaced = summary.messages + u32::from(job.from > 0);
    let messages_before = home.message_count;
    let messages_after = messages_before.saturating_sub(replaced) + 1;
    home.message_count = messages_after;
    home.compacted = summary.upto;
    let row = SummaryRecord {
        from: job.from,
        upto: summary.upto,
        messages: replaced,
        text: summary.text,
        created_at,
        model: format!("{}/{}", summary.provider, summary.model).into(),
        usage,
    };
    session::put_row(world, job.session, record::put_content(record::summary_key(job.log, row.upto), &row));
    world.mark(job.session);
    Ok(CompactionReply { session: id, messages_before, messages_after, messages_summarised: replaced, usage })
}

/// A summary that stopped short of what was planned is followed by the next one; else the session is left alone for a
/// while.
fn go_on(world: &mut World, job: &Compaction, messages: u32) {
    let reached = world.get::<Session>(job.session).map_or(job.upto, |home| home.compacted);
    if reached < job.upto && messages > limit::COMPACTION_MESSAGES {
        plan::automatic(world, job.session);
    } else {
        pause(world, job.session);
    }
}

fn pause(world: &mut World, session: Entity) {
    let Some(messages) = world.get::<Session>(session).map(|home| home.message_count) else { return };
    let until = messages.saturating_add(limit::COMPACTION_PAUSE_MESSAGES);
    world.resource_mut::<Compactions>().pause(session, until);
}

/// Ends a compaction that no budget has room for.
pub(crate) fn refuse(world: &mut World, entity: Entity, refusal: &Refusal) {
    let Some(session) = world.get::<Compaction>(entity).map(|job| job.session) else { return };
    world.resource_mut::<CompactionTotals>().failed += 1;
    pause(world, session);
    for slot in close(world, entity) {
        world.resource_mut::<Outbox>().reply(slot, Err(refusal.clone()));
    }
}

/// Takes a compaction out of the world, and gives back who waited for it.
fn close(world: &mut World, entity: Entity) -> Vec<crate::ReplySlot<CompactionReply>> {
    let waiters = world.resource_mut::<CompactionWaiters>().0.get().remove(&entity).unwrap_or_default();
    budget::leave_line(world, entity);
    world.despawn(entity);
    waiters
}

/// Ends the compaction of a session whose history is about to go, and forgets its pause.
pub(super) fn end(world: &mut World, session: Entity, why: &str) {
    let mut compactions = world.resource_mut::<Compactions>();
    compactions.paused.remove(&session);
    let Some(entity) = compactions.of(session) else { return };
    let is_out = world.get::<Compaction>(entity).is_some_and(|job| job.state == CompactionState::Calling);
    if let Some(attempt) = attempt_of(world, entity).filter(|_| is_out) {
        world.effect(Abort(attempt));
    }
    for slot in close(world, entity) {
        let refusal = Refusal::of(session_codes::SESSION_REMOVED, why.to_owned());
        world.resource_mut::<Outbox>().reply(slot, Err(refusal));
    }
}
