//! May a call go out? And what is told when a budget is nearly, or entirely, used up.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::event::Event;
use agentsvc_components::kernel::refusal::Detail;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::usage::{OverBudget, Period, Scope};
use agentsvc_components::{AgentId, Micros, Refusal, RefusalKind, SessionId, Timestamp};

use super::error_codes::PRICE_UNKNOWN;
use super::{Budgets, CallStarts, EXCEEDED, Need, limits, store};
use crate::budget::metrics::BudgetTotals;
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::index::id_of;
use crate::kernel::reaction::check;
use crate::usage::{Rollups, calendar};

/// A warning is due when so many hundredths of a limit are spent (spec 3, Budget).
const WARN_PERCENT: u128 = 80;
/// The periods that bound money.
const MONEY: [Period; 2] = [Period::Daily, Period::Monthly];
/// Every period.
const ALL: [Period; 3] = [Period::Hourly, Period::Daily, Period::Monthly];

/// May a call go out?
pub(crate) enum Verdict {
    /// There is room at every scope.
    Fits,
    /// There would be room at its scope if calls that are out cost nothing.
    Wait(OverBudget),
    /// There is no room.
    Over(OverBudget),
    /// Nobody knows what it may cost: this model has no price.
    Unpriced(Box<str>),
    /// Another domain's rule is against it ([`CallStarts`]).
    Refused(Box<Refusal>),
}

/// Judges what a call needs at every scope of its path.
pub(crate) fn judge(world: &World, need: &Need) -> Verdict {
    let mut verdict = Verdict::Fits;
    if let Some(model) = &need.unpriced {
        return Verdict::Unpriced(model.clone());
    }
    for scope in Scope::path_of(need.agent, &need.above, need.user) {
        match judge_at(world, scope, need.worst, need.is_free, Micros::ZERO) {
            Verdict::Fits => {}
            wait @ Verdict::Wait(_) => verdict = wait,
            over => return over,
        }
    }
    if let Verdict::Fits = verdict
        && let Err(refusal) =
            check(world, &CallStarts { strangers: need.strangers, began_in: need.began_in, worst: need.worst })
    {
        return Verdict::Refused(Box::new(refusal));
    }
    verdict
}

/// The same at one scope, where `promised` is about to be reserved by others.
pub(super) fn judge_at(world: &World, scope: Scope, worst: Micros, is_free: bool, promised: Micros) -> Verdict {
    let limits = limits(world, scope);
    let now = world.resource::<Now>().0;
    let rollups = world.resource::<Rollups>();
    let mut verdict = Verdict::Fits;
    for period in ALL {
        let limit = match period {
            Period::Hourly => limits.hourly_tokens,
            Period::Daily => limits.daily.map(|limit| limit.0),
            Period::Monthly => limits.monthly.map(|limit| limit.0),
        };
        let Some(limit) = limit.filter(|_| period == Period::Hourly || !is_free) else { continue };
        let spent = rollups.counted(scope, period, now);
        let room = limit.saturating_sub(spent.spent);
        let over = match period {
            Period::Hourly => room == 0,
            _ => room == 0 || worst.0 > room,
        };
        let found = || {
            let resets_at = calendar::ends(period, spent.index);
            OverBudget { agent: scope.agent(), user: scope.user(), period, limit, spent: spent.spent, resets_at }
        };
        if over {
            return Verdict::Over(found());
        }
        let taken = spent.reserved.saturating_add(promised.0).saturating_add(worst.0);
        if period != Period::Hourly && taken > room {
            verdict = Verdict::Wait(found());
        }
    }
    verdict
}

/// Has `scope` room at once for a call that does not wait? What others have reserved is in its way like what is spent. A
/// refusal changes nothing and tells no event.
pub(super) fn at_once(world: &World, scope: Scope, worst: Micros, is_free: bool) -> Result<(), Refusal> {
    let now = world.resource::<Now>().0;
    match judge_at(world, scope, worst, is_free, Micros::ZERO) {
        Verdict::Fits => Ok(()),
        Verdict::Over(over) => Err(refusal(&over, now)),
        Verdict::Unpriced(model) => Err(price_unknown(&model)),
        Verdict::Refused(refusal) => Err(*refusal),
        Verdict::Wait(over) => {
            let told = refusal(&over, now);
            let message = format!("{}; the rest is reserved for active calls", told.message);
            Err(Refusal { message, retry_after_secs: Some(1), ..told })
        }
    }
}

/// Refuses what strangers begin, in this session where that is known, where none of their calls could go out.
pub(crate) fn strangers_at_door(world: &World, taint: Taint, began_in: Option<SessionId>) -> Result<(), Refusal> {
    match check(world, &CallStarts { strangers: taint.of_strangers(), began_in, worst: Micros::ZERO }) {
        Err(refusal) if refusal.kind != RefusalKind::Busy => Err(refusal),
        _ => Ok(()),
    }
}

/// Refuses a message to an agent whose budget was found to be used up in this period; what has not been found yet is
/// found by the turn itself, so that a refusal here never needs an event.
pub(crate) fn at_door(world: &World, owner: Entity) -> Result<(), Refusal> {
    let budgets = world.resource::<Budgets>();
    if budgets.stored.is_empty() {
        return Ok(());
    }
    let agent = id_of::<AgentId>(world, owner);
    let above = super::need::above(world, owner);
    let user = super::need::user(world, owner);
    if !Scope::path_of(agent, &above, user).any(|scope| budgets.stored.contains_key(&scope)) {
        return Ok(());
    }
    let now = world.resource::<Now>().0;
    let Some(need) = super::need::of_agent(world, owner) else { return Ok(()) };
    match judge(world, &need) {
        Verdict::Over(over) if was_told(world, &over, now) => Err(refusal(&over, now)),
        _ => Ok(()),
    }
}

fn was_told(world: &World, over: &OverBudget, now: Timestamp) -> bool {
    let told = world.resource::<Budgets>().of(over.scope()).exceeded[over.period as usize];
    told == Some(world.resource::<Rollups>().spent(over.scope(), over.period, now).index)
}

/// Why a turn or compaction is refused.
pub(crate) enum Denial {
    /// A budget has no room for it. Said once for the period.
    Over(OverBudget),
    /// The price of this model is not known.
    Unpriced(Box<str>),
    /// Another domain's rule is against it.
    Refused(Box<Refusal>),
}

/// A turn or compaction is refused: gives what its asker is told.
pub(crate) fn refused(world: &mut World, denial: &Denial) -> Refusal {
    world.resource_mut::<BudgetTotals>().refusals += 1;
    match denial {
        Denial::Over(over) => {
            tell_exceeded(world, over.scope(), over.period);
            refusal(over, world.resource::<Now>().0)
        }
        Denial::Unpriced(model) => price_unknown(model),
        Denial::Refused(refusal) => (**refusal).clone(),
    }
}

/// What an asker is told whose model has no price.
pub(super) fn price_unknown(model: &str) -> Refusal {
    let text = format!(
        "the price of model {model:?} is not known and a budget is in force; set prices.{model:?} (0 for a free model) or \
         budget.unknown_price_per_m"
    );
    Refusal::of(PRICE_UNKNOWN, text)
}

/// What an asker is told (decisions, Money: 429 with scope, limit and reset time).
fn refusal(over: &OverBudget, now: Timestamp) -> Refusal {
    let whose = match over.scope() {
        Scope::Agent(agent) => format!("of agent {agent}"),
        Scope::User(user) => format!("of user {user}"),
        Scope::Global => "of all agents".to_owned(),
    };
    let (period, resets_at) = (over.period.as_str(), over.resets_at);
    let text = match over.period {
        Period::Hourly => format!(
            "the hourly token limit {whose} is exhausted: {} of {} tokens used; it resets at {resets_at}",
            over.spent, over.limit
        ),
        _ => format!(
            "the {period} budget {whose} does not cover another call: {} of {} USD spent; it resets at {resets_at}",
            Micros(over.spent),
            Micros(over.limit)
        ),
    };
    let seconds = u32::try_from(resets_at.ms_since(now).div_ceil(1_000)).unwrap_or(u32::MAX);
    let refusal = Refusal::new(RefusalKind::TooMany, text)
        .with_code(EXCEEDED)
        .with("scope", Detail::Text(over.scope().to_string()))
        .with("period", Detail::Text(period.to_owned()))
        .with("reset_at", Detail::Text(resets_at.to_string()));
    let refusal = match over.period {
        Period::Hourly => {
            refusal.with("limit_tokens", Detail::Count(over.limit)).with("used_tokens", Detail::Count(over.spent))
        }
        _ => refusal
            .with("limit_usd", Detail::Money(Micros(over.limit)))
            .with("spent_usd", Detail::Money(Micros(over.spent))),
    };
    Refusal { retry_after_secs: Some(seconds.max(1)), ..refusal }
}

/// Something was spent at `scope`: tells when a limit is nearly or entirely used up.
pub(super) fn spent(world: &mut World, scope: Scope) {
    let limits = limits(world, scope);
    let now = world.resource::<Now>().0;
    for (period, limit) in MONEY.into_iter().zip([limits.daily, limits.monthly]) {
        let Some(limit) = limit else { continue };
        let spent = world.resource::<Rollups>().counted(scope, period, now);
        if u128::from(spent.spent) * 100 >= u128::from(limit.0) * WARN_PERCENT {
            let mut record = world.resource::<Budgets>().of(scope);
            let place = &mut record.warned[period as usize - 1];
            if *place != Some(spent.index) {
                *place = Some(spent.index);
                store(world, scope, record);
                let agent = scope.agent();
                let (scope, period) = (scope.to_string(), period.as_str().to_owned());
                world.event(Event::BudgetWarning { scope, period, agent });
            }
        }
        if spent.spent >= limit.0 {
            tell_exceeded(world, scope, period);
        }
    }
    if let Some(limit) = limits.hourly_tokens
        && world.resource::<Rollups>().counted(scope, Period::Hourly, now).spent >= limit
    {
        tell_exceeded(world, scope, Period::Hourly);
    }
}

fn tell_exceeded(world: &mut World, scope: Scope, period: Period) {
    let now = world.resource::<Now>().0;
    let index = world.resource::<Rollups>().spent(scope, period, now).index;
    let mut record = world.resource::<Budgets>().of(scope);
    let place = &mut record.exceeded[period as usize];
    if *place == Some(index) {
        return;
    }
    *place = Some(index);
    store(world, scope, record);
    let agent = scope.agent();
    let (scope, period) = (scope.to_string(), period.as_str().to_owned());
    world.event(Event::BudgetExceeded { scope, period, agent });
}
