//! A model call is back: its events are written and summed up, whatever became of its turn.

use bevy_ecs::prelude::World;

use agentsvc_components::agent::Agent;
use agentsvc_components::compaction::call::SummaryEnd;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::message::{Usage, calls_of};
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd};
use agentsvc_components::usage::record::{CallRecord, UsageRecord};
use agentsvc_components::usage::{CallEnd, CallUse, Scope};
use agentsvc_components::{AgentId, Micros};

use super::{CallBooked, CallEnded, Rollups, Spent, SpentByStrangers, calls, clip, rows};
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::people;
use crate::rehearsal::{self, Note};
use crate::usage::metrics::CallTotals;

/// Settles the call of a turn: fills in the answer's cost and gives what the call used in all, the models that failed
/// before included.
pub(crate) fn model(world: &mut World, attempt: Attempt, end: &mut ModelEnd) -> Usage {
    let Some(call) = calls::end(world, attempt) else { return Usage::default() };
    let latency_ms = elapsed(world, &call);
    let uses = match end {
        ModelEnd::Answered(answer) => of_answer(answer, latency_ms, CallEnd::Answered),
        ModelEnd::Aborted(answer) => of_answer(answer, latency_ms, CallEnd::Aborted),
        ModelEnd::Failed(failure) if failure.spent.is_empty() => vec![asked(&call, latency_ms, CallEnd::Failed)],
        ModelEnd::Failed(failure) => std::mem::take(&mut failure.spent),
    };
    let (sum, last) = all(world, &call, uses);
    if let ModelEnd::Answered(answer) | ModelEnd::Aborted(answer) = end {
        answer.usage.cost = last.cost;
    }
    react(world, &CallEnded { agent: call.agent, above: call.above, user: call.user });
    sum
}

/// Settles the calls of a summary; gives what they used.
pub(crate) fn summary(world: &mut World, attempt: Attempt, end: &mut SummaryEnd) -> Usage {
    let Some(call) = calls::end(world, attempt) else { return Usage::default() };
    let mut uses = std::mem::take(&mut end.calls);
    if uses.is_empty() {
        let end_of = if end.written.is_ok() { CallEnd::Answered } else { CallEnd::Failed };
        let latency_ms = elapsed(world, &call);
        uses.push(CallUse { usage: end.usage, ..asked(&call, latency_ms, end_of) });
    }
    let (sum, _) = all(world, &call, uses);
    end.usage.cost = sum.cost;
    react(world, &CallEnded { agent: call.agent, above: call.above, user: call.user });
    sum
}

/// Settles a call whose cost is no matter of tokens, such as that of an image; `None` as its cost is all that was reserved.
/// Gives what was booked, or nothing when it was settled before, as a start does.
pub(crate) fn fixed(world: &mut World, attempt: Attempt, cost: Option<Micros>, end: CallEnd) -> Option<Micros> {
    let call = calls::end(world, attempt)?;
    let cost = cost.unwrap_or(call.reserved).min(call.reserved);
    let latency_ms = elapsed(world, &call);
    let used = CallUse { usage: Usage { cost, ..Usage::default() }, ..asked(&call, latency_ms, end) };
    world.resource_mut::<CallTotals>().unknown += u64::from(end == CallEnd::Unknown);
    write(world, &call, 0, used);
    react(world, &CallEnded { agent: call.agent, above: call.above, user: call.user });
    Some(cost)
}

fn elapsed(world: &World, call: &CallRecord) -> u32 {
    u32::try_from(world.resource::<Now>().0.ms_since(call.at)).unwrap_or(u32::MAX)
}

/// A call of the model that was asked first, of which nothing else is known.
fn asked(call: &CallRecord, latency_ms: u32, end: CallEnd) -> CallUse {
    let (provider, model) = (call.provider.clone(), call.model.clone());
    CallUse { provider, model, latency_ms, end, ..CallUse::default() }
}

/// What was asked before without success, and the answer.
fn of_answer(answer: &mut ModelAnswer, latency_ms: u32, end: CallEnd) -> Vec<CallUse> {
    let mut uses = std::mem::take(&mut answer.before);
    let before = uses.iter().map(|call| call.latency_ms).fold(0, u32::saturating_add);
    uses.push(CallUse {
        provider: answer.provider.as_str().into(),
        model: answer.model.as_str().into(),
        usage: answer.usage,
        tokens_max: answer.tokens_max,
        latency_ms: latency_ms.saturating_sub(before),
        tool_calls: u32::try_from(calls_of(&answer.blocks).len()).unwrap_or(u32::MAX),
        end,
    });
    uses
}

/// Prices and writes every use; gives their sum and the last. No more is believed than a call can have used: by what was
/// sent, even if that costs more than was reserved, or, where that is not known, by what was reserved.
pub(super) fn all(world: &mut World, call: &CallRecord, uses: Vec<CallUse>) -> (Usage, Usage) {
    let (mut sum, mut last) = (Usage::default(), Usage::default());
    let mut left = if call.is_bounded { call.reserved } else { Micros(u64::MAX) };
    for (number, mut used) in uses.into_iter().enumerate() {
        let reported = used.usage;
        used.usage = clip::tokens(world.resource::<Settings>(), &used);
        let cost = cost(world, &used);
        used.usage.cost = if used.tokens_max.take().is_some() { cost } else { cost.min(left) };
        left = left.minus(used.usage.cost);
        let is_believed = (used.usage.input_tokens, used.usage.output_tokens, used.usage.cost)
            == (reported.input_tokens, reported.output_tokens, cost);
        if !is_believed {
            clip::alarm(world, call, &used, reported);
        }
        last = used.usage;
        sum = sum.plus(last);
        write(world, call, u16::try_from(number).unwrap_or(u16::MAX), used);
    }
    (sum, last)
}

/// What a call cost by its model's price. Where there is none it is counted, and costs what is set for such models.
fn cost(world: &mut World, used: &CallUse) -> Micros {
    let settings = world.resource::<Settings>();
    match settings.prices.of(&used.provider, &used.model) {
        Some(price) => price.cost(used.usage),
        None => {
            let cost = settings.budget.unknown_price().cost(used.usage);
            world.resource_mut::<CallTotals>().unpriced += 1;
            cost
        }
    }
}

/// Writes one event and adds it to every sum.
pub(super) fn write(world: &mut World, call: &CallRecord, number: u16, used: CallUse) {
    let (usage, end) = (used.usage, used.end);
    rehearsal::note(world, |world| {
        let priced = world.resource::<Settings>().prices.of(&used.provider, &used.model).is_some();
        Note::Call { agent: call.agent, usage, end, priced }
    });
    let lives = index::agent(world, call.agent).ok();
    let above: Vec<AgentId> = call.above.iter().copied().filter(|id| index::agent(world, *id).is_ok()).collect();
    let user = call.user.filter(|user| people::lives(world, *user));
    let mut rollups = world.resource_mut::<Rollups>();
    let new_day = rollups.add(call, &used, (lives.is_some(), user));
    rollups.families.add(&above, call.at, usage.into());
    if new_day {
        world.op(rows::put_active(call.at, call.agent));
    }
    if let Some(entity) = lives
        && let Some(mut agent) = world.get_mut::<Agent>(entity)
        && usage.input_tokens + usage.output_tokens > 0
    {
        agent.input_tokens = agent.input_tokens.saturating_add(usage.input_tokens);
        agent.output_tokens = agent.output_tokens.saturating_add(usage.output_tokens);
        world.mark(entity);
    }
    let mut counters = world.resource_mut::<CallTotals>();
    counters.input_tokens += usage.input_tokens;
    counters.output_tokens += usage.output_tokens;
    counters.cost_micros += usage.cost.0;
    let event = UsageRecord {
        at: call.at,
        agent: call.agent,
        agent_name: call.agent_name.clone(),
        billed: None,
        session: call.session,
        channel: call.channel.clone(),
        call: used,
    };
    world.op(rows::put_usage(call.attempt(), number, &event));
    react(world, &CallBooked { usage, end });
    for scope in Scope::path_of(call.agent, &above, user) {
        react(world, &Spent { scope });
    }
    if !call.strangers.is_none() {
        let CallRecord { strangers, at, began_in, .. } = *call;
        react(world, &SpentByStrangers { strangers, at, began_in, cost: usage.cost, tokens: usage.tokens() });
    }
}
