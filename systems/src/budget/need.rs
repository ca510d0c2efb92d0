//! What a call needs before it may go out: the most that it can cost.

use std::borrow::Cow;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState, OwnedBy, SpawnedBy};
use agentsvc_components::compaction::{Compaction, CompactionState};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::session::Session;
use agentsvc_components::turn::{ModelName, Turn, TurnState};
use agentsvc_components::usage::Scope;
use agentsvc_components::usage::record::CallRecord;
use agentsvc_components::{AgentId, Micros, Refusal, SessionId};
use uuid::Uuid;

use super::error_codes::PRICE_UNKNOWN;
use super::fixed::FixedCall;
use super::limits;
use super::verdict::price_unknown;
use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::kernel::index::{self, id_of};
use crate::people;
use crate::taint;
use crate::usage::{Rollups, begin};

/// Tokens of one summary, as its writer bounds them.
const SUMMARY_TOKENS_MAX: u32 = 4_096;
/// What summaries have in the column `channel`.
const COMPACTION: &str = "compaction";

/// What a call needs.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// Whose call.
    pub(crate) agent: AgentId,
    /// The agents above it, nearest first: it counts at their limits too.
    pub(crate) above: Vec<AgentId>,
    /// The user whom it belongs to: it counts at the limits of that user too.
    pub(crate) user: Option<UserId>,
    /// The most that it can cost.
    pub(crate) worst: Micros,
    /// Every model that it may ask is known to cost nothing: no budget of money stands in its way.
    pub(crate) is_free: bool,
    /// A model that it may ask and whose price is not known, where a budget of money is in force.
    pub(crate) unpriced: Option<Box<str>>,
    /// The bound of its answer, where a budget makes one necessary.
    pub(crate) answer_tokens_max: Option<u32>,
    /// The model calls of a summary, likewise.
    pub(crate) calls_max: Option<u32>,
    /// The labels of strangers, where any of them began what calls.
    pub(crate) strangers: Taint,
    /// The session in which they began it.
    pub(crate) began_in: Option<SessionId>,
    agent_name: Box<str>,
    session: SessionId,
    channel: Cow<'static, str>,
    provider: Box<str>,
    model: Box<str>,
    is_aside: bool,
}

impl Need {
    /// The need of a call of this turn: says of strangers where they began it.
    pub(super) fn by_strangers(self, world: &World, turn: Entity) -> Self {
        let strangers = taint::of(world, turn).of_strangers();
        Self { strangers, began_in: taint::began_in(world, turn), ..self }
    }
}

/// What the next call of a turn or compaction needs; `None` when it makes none now.
pub(crate) fn need(world: &World, entity: Entity) -> Option<Need> {
    if let Some(turn) = world.get::<Turn>(entity) {
        let owner = world.get::<Agent>(turn.agent)?;
        if turn.state != TurnState::Reserving || owner.state != AgentState::Running {
            return None;
        }
        let asked = turn.request.as_ref().and_then(|request| request.max_tokens);
        let model = turn.request.as_ref().and_then(|request| request.model.as_deref());
        let chat = turn.request.as_ref().and_then(|request| request.chat.as_ref());
        let channel = chat.map_or(Cow::Borrowed(turn.origin.as_str()), |chat| chat.channel_type.to_string().into());
        let need = of(world, turn.agent, (owner, model), turn.session, channel, Size::Turn(asked));
        return Some(need.by_strangers(world, entity));
    }
    let job = world.get::<Compaction>(entity).filter(|job| job.state == CompactionState::Reserving)?;
    let owner = world.get::<Agent>(job.agent)?;
    let strangers = world.get::<Session>(job.session)?.taint.with(owner.taint.own).of_strangers();
    let need = of(world, job.agent, (owner, None), job.session, COMPACTION.into(), Size::Summary);
    let began_in = (!strangers.is_none()).then_some(need.session);
    Some(Need { strangers, began_in, ..need })
}

/// What the next turn of an agent will need.
pub(super) fn of_agent(world: &World, entity: Entity) -> Option<Need> {
    let owner = world.get::<Agent>(entity)?;
    Some(of(world, entity, (owner, None), owner.current, Cow::Borrowed(""), Size::Turn(None)))
}

/// How long answers can be, and how many there can be.
#[derive(Clone, Copy)]
enum Size {
    /// One answer of each model, with the request's own bound.
    Turn(Option<u32>),
    /// Several summaries of any of the models.
    Summary,
}

/// `model` answers instead of the agent's own.
fn of(
    world: &World,
    entity: Entity,
    (owner, model): (&Agent, Option<&ModelName>),
    session: Entity,
    channel: Cow<'static, str>,
    size: Size,
) -> Need {
    let settings = world.resource::<Settings>();
    let agent = id_of::<AgentId>(world, entity);
    let manifest = &owner.manifest.manifest;
    let own = &manifest.model;
    let first = settings.resolve(&model.map_or_else(|| Cow::Borrowed(own), |model| Cow::Owned(model.chosen(own))));
    let fallbacks = manifest.fallback_models.iter().map(|choice| settings.aliases.fallback(&first, choice));
    let calls = std::iter::once(Cow::Borrowed(&first)).chain(fallbacks);
    let price = |choice: &ModelChoice| settings.prices.at_most(&choice.provider, &choice.model);
    let is_free = calls.clone().all(|choice| price(&choice).is_some_and(|price| price.is_free()));
    let worst = |choice: Cow<'_, ModelChoice>| worst_of(settings, &choice, size);
    let (above, user) = (above(world, entity), user(world, entity));
    let is_bounded = !is_free && Scope::path_of(agent, &above, user).any(|scope| is_bounded(world, scope));
    let unpriced = calls.clone().find_map(|choice| unpriced(settings, &choice)).filter(|_| is_bounded);
    let most_calls = u32::try_from(manifest.fallback_models.len()).unwrap_or(0).saturating_add(1);
    let most_calls = most_calls.min(limit::SUMMARY_CALLS_MAX as u32);
    let (worst, calls_max) = match size {
        Size::Turn(_) => (calls.map(worst).fold(Micros::ZERO, Micros::plus), None),
        Size::Summary => {
            let dearest = calls.map(worst).max().unwrap_or_default();
            let most = if is_bounded { most_calls } else { limit::SUMMARY_CALLS_MAX as u32 };
            (Micros(dearest.0.saturating_mul(u64::from(most))), is_bounded.then_some(most_calls))
        }
    };
    Need {
        agent,
        above,
        user,
        worst,
        is_free,
        unpriced,
        answer_tokens_max: is_bounded.then_some(settings.budget.answer_tokens_max),
        calls_max,
        strangers: Taint::NONE,
        began_in: None,
        agent_name: owner.name.clone(),
        session: id_of(world, session),
        channel,
        provider: first.provider.clone(),
        model: first.model.clone(),
        is_aside: false,
    }
}

/// What a call inside a tool call of a turn needs: one answer of at most so many tokens of the agent's model, no other model.
/// Gives the model, too.
pub(super) fn inside(
    world: &World,
    turn: &Turn,
    channel: &'static str,
    answer_tokens_max: u32,
) -> Option<(Need, ModelChoice)> {
    let owner = world.get::<Agent>(turn.agent)?;
    let choice = world.resource::<Settings>().resolve(&owner.manifest.manifest.model);
    let need = aside(world, turn.agent, turn.session, channel, &choice, (None, answer_tokens_max))?;
    Some((need, choice))
}

/// What a call of `choice` needs that an agent makes beside its turns: one answer of at most so many tokens to a prompt of at most
/// so many, of a full context where that is not bounded.
pub(super) fn aside(
    world: &World,
    agent: Entity,
    session: Entity,
    channel: impl Into<Cow<'static, str>>,
    choice: &ModelChoice,
    (prompt_tokens_max, answer_tokens_max): (Option<u32>, u32),
) -> Option<Need> {
    let owner = world.get::<Agent>(agent)?;
    world.get::<Session>(session)?;
    let settings = world.resource::<Settings>();
    let (agent, above, user) = (id_of::<AgentId>(world, agent), above(world, agent), user(world, agent));
    let is_free = settings.prices.at_most(&choice.provider, &choice.model).is_some_and(|price| price.is_free());
    let is_bounded = !is_free && Scope::path_of(agent, &above, user).any(|scope| is_bounded(world, scope));
    let (size, most) = (Size::Turn(Some(answer_tokens_max)), prompt_tokens_max.unwrap_or(u32::MAX));
    Some(Need {
        agent,
        above,
        user,
        worst: worst_of_prompt(settings, choice, size, most),
        is_free,
        unpriced: unpriced(settings, choice).filter(|_| is_bounded),
        answer_tokens_max: is_bounded.then_some(answer_tokens_max),
        calls_max: None,
        strangers: Taint::NONE,
        began_in: None,
        agent_name: owner.name.clone(),
        session: id_of(world, session),
        channel: channel.into(),
        provider: choice.provider.clone(),
        model: choice.model.clone(),
        is_aside: true,
    })
}

/// What a call needs whose most is known beforehand.
pub(super) fn fixed(world: &World, call: &FixedCall) -> Result<Need, Refusal> {
    let FixedCall { agent, session, channel, provider, model, most, is_priced, strangers, began_in, remedy } =
        call.clone();
    let owner = agent.map(|agent| index::agent(world, agent)).transpose()?;
    let above = owner.map_or_else(Vec::new, |owner| above(world, owner));
    let user = owner.and_then(|owner| user(world, owner));
    let name = owner.and_then(|owner| world.get::<Agent>(owner)).map_or_else(Box::default, |owner| owner.name.clone());
    let agent = agent.unwrap_or(AgentId(Uuid::nil()));
    if !is_priced && Scope::path_of(agent, &above, user).any(|scope| is_bounded(world, scope)) {
        let text = format!("the price of \"{provider}/{model}\" is not known and a budget is in force; {remedy}");
        return Err(Refusal::of(PRICE_UNKNOWN, text));
    }
    Ok(Need {
        agent,
        above,
        user,
        worst: most,
        is_free: is_priced && most.is_zero(),
        unpriced: None,
        answer_tokens_max: None,
        calls_max: None,
        strangers,
        began_in,
        agent_name: name,
        session: session.unwrap_or(SessionId(Uuid::nil())),
        channel: channel.into(),
        provider,
        model,
        is_aside: true,
    })
}

/// The agents above one that live, nearest first.
pub(super) fn above(world: &World, agent: Entity) -> Vec<AgentId> {
    let parent = |agent: Entity| {
        let id = world.get::<SpawnedBy>(agent)?.0;
        Some((id, index::agent(world, id).ok()?))
    };
    let all = std::iter::successors(parent(agent), |(_, agent)| parent(*agent));
    all.take(limit::AGENT_CHAIN_MAX).map(|(id, _)| id).collect()
}

/// The user whom an agent belongs to, if that user is still there.
pub(super) fn user(world: &World, agent: Entity) -> Option<UserId> {
    world.get::<OwnedBy>(agent).map(|by| by.0).filter(|user| people::lives(world, *user))
}

/// Is a limit of money in force there?
fn is_bounded(world: &World, scope: Scope) -> bool {
    let limits = limits(world, scope);
    limits.daily.or(limits.monthly).is_some()
}

/// The model, when nothing says what it costs.
fn unpriced(settings: &Settings, choice: &ModelChoice) -> Option<Box<str>> {
    let (provider, model) = (&choice.provider, &choice.model);
    let is_known = !settings.budget.unknown_price_per_m.is_zero() || settings.prices.at_most(provider, model).is_some();
    (!is_known).then(|| format!("{provider}/{model}").into())
}

/// A full context and the longest answer.
fn worst_of(settings: &Settings, choice: &ModelChoice, size: Size) -> Micros {
    worst_of_prompt(settings, choice, size, u32::MAX)
}

/// A prompt of so many tokens, or a full context, and the longest answer.
fn worst_of_prompt(settings: &Settings, choice: &ModelChoice, size: Size, prompt_tokens_max: u32) -> Micros {
    let (provider, model) = (&*choice.provider, &*choice.model);
    let context = settings.context_tokens_of(provider, model);
    let answer = match size {
        Size::Turn(asked) => {
            asked.or(choice.max_tokens).unwrap_or_else(|| settings.budget.answer_tokens_max.min(context / 4))
        }
        Size::Summary => SUMMARY_TOKENS_MAX.min(context / 4),
    };
    let price = settings.prices.at_most(provider, model).unwrap_or_else(|| settings.budget.unknown_price());
    price.worst(u64::from(context.min(prompt_tokens_max)), u64::from(answer.min(context)))
}

/// The most that a call can cost that is nobody's and has an answer of so many tokens, and is its model known to cost
/// nothing?
///
/// # Errors
/// A limit is in force, and the price is not known.
pub(super) fn of_nobody(
    world: &World,
    provider: &str,
    model: &str,
    answer_tokens_max: u32,
) -> Result<(Micros, bool), Refusal> {
    let settings = world.resource::<Settings>();
    let choice = ModelChoice { provider: provider.into(), model: model.into(), ..ModelChoice::default() };
    if let Some(model) = unpriced(settings, &choice).filter(|_| is_bounded(world, Scope::Global)) {
        return Err(price_unknown(&model));
    }
    let is_free = settings.prices.at_most(provider, model).is_some_and(|price| price.is_free());
    Ok((worst_of(settings, &choice, Size::Turn(Some(answer_tokens_max))), is_free))
}

/// The call goes out in this step: what it needs is reserved.
pub(crate) fn reserve(world: &mut World, attempt: Attempt, need: Need) {
    let is_aside = need.is_aside;
    let now = world.resource::<Now>().0;
    let at = world.resource::<Rollups>().moment(now);
    let Need {
        agent,
        above,
        user,
        worst,
        agent_name,
        session,
        channel,
        provider,
        model,
        answer_tokens_max,
        strangers,
        began_in,
        ..
    } = need;
    let call = CallRecord {
        job: attempt.job,
        number: attempt.number,
        agent,
        above,
        user,
        agent_name,
        session,
        channel: channel.into(),
        provider,
        model,
        at,
        reserved: worst,
        is_bounded: answer_tokens_max.is_some(),
        is_aside,
        strangers,
        began_in,
    };
    begin(world, call);
}
