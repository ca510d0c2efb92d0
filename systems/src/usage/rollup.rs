//! The sums: kept with every event, read without a scan, stored once a step.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::usage::record::{CallRecord, ScopeUseRecord, SweepUsage, UsageSwept};
use agentsvc_components::usage::{Bucket, CallUse, Period, Scope, UsageSum};
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::families::{Families, FamilyUse};
use super::node::Node;
use super::{calendar, rows, windows};
use crate::config::Settings;
use crate::kernel::arrivals::Settle;
use crate::kernel::clock::Now;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::record::Error;
use crate::kernel::restore::Records;

/// Minutes that are kept, the current one included: an hour and the minute it begins in.
const MINUTES_KEPT: i64 = 61;
/// Where usage of too many models is counted.
const OTHER: &str = "other";

/// Every sum.
#[derive(Resource, Default)]
pub(crate) struct Rollups {
    sums: BTreeMap<Bucket, UsageSum>,
    /// How many models have a sum.
    models: usize,
    scopes: HashMap<Scope, Node>,
    /// What the descendants of agents have spent and reserved.
    pub(super) families: Families,
    /// Agents by what they spent, the most first.
    ranking: BTreeSet<(Reverse<Micros>, AgentId)>,
    /// Agents by their last call.
    recent: BTreeSet<(Timestamp, AgentId)>,
    /// What this step changed.
    dirty: BTreeSet<Bucket>,
    dirty_scopes: BTreeSet<Scope>,
    /// The day for which old events were swept.
    swept: Option<i64>,
    /// When the newest call went out.
    latest: Timestamp,
}

/// What an operator says that a scope has spent; `None` is as it is booked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// Money of today.
    pub today: Option<Micros>,
    /// Money of this month.
    pub month: Option<Micros>,
    /// Tokens of this hour.
    pub hour_tokens: Option<u64>,
    /// Money of all time.
    pub total: Option<Micros>,
}

/// What a scope has spent and reserved in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// The period's number.
    pub(crate) index: i64,
    /// Spent: micro-dollars, or tokens of an hour.
    pub(crate) spent: u64,
    /// Reserved, in micro-dollars; nothing for hours.
    pub(crate) reserved: u64,
}

impl Rollups {
    /// The moment at which a call counts that goes out now: no clock that is set back opens a period anew.
    pub(crate) fn moment(&self, now: Timestamp) -> Timestamp {
        windows::moment(self.latest, now)
    }

    /// What `scope` has spent in the period that `now` is in.
    pub(crate) fn spent(&self, scope: Scope, period: Period, now: Timestamp) -> Spent {
        let at = self.moment(now);
        let nothing = Spent { index: calendar::index(period, at), ..Spent::default() };
        self.scopes.get(&scope).map_or(nothing, |node| node.spent(period, at))
    }

    /// What counts at the limits of `scope` in that period: what it has spent and reserved, and at an agent's what its
    /// descendants have.
    pub(crate) fn counted(&self, scope: Scope, period: Period, now: Timestamp) -> Spent {
        let own = self.spent(scope, period, now);
        let Some(family) = scope.agent().and_then(|agent| self.families.of(agent)) else { return own };
        let below = family.spent(period, self.moment(now));
        let (spent, reserved) = (own.spent.saturating_add(below.spent), own.reserved.saturating_add(below.reserved));
        Spent { spent, reserved, ..own }
    }

    /// What `scope` has used since ever.
    pub(crate) fn total(&self, scope: Scope) -> UsageSum {
        self.scopes.get(&scope).map(|node| node.stored.total).unwrap_or_default()
    }

    /// The sum of one bucket.
    pub(crate) fn sum(&self, bucket: &Bucket) -> UsageSum {
        self.sums.get(bucket).copied().unwrap_or_default()
    }

    /// The buckets from `from` to `to`, both included.
    pub(super) fn range(&self, from: Bucket, to: Bucket) -> impl Iterator<Item = (&Bucket, &UsageSum)> {
        // An empty range and not a panic where the ends are the wrong way round.
        let to = if to < from { from.clone() } else { to };
        self.sums.range(from..=to)
    }

    /// Every model's sum.
    pub(crate) fn models(&self) -> impl Iterator<Item = (&Bucket, &UsageSum)> {
        let first = Bucket::Model("".into(), "".into());
        self.sums.range(first..).take_while(|(bucket, _)| matches!(bucket, Bucket::Model(..)))
    }

    /// Agents whose last call went out at `since` or later.
    pub(super) fn active_since(&self, since: Timestamp) -> usize {
        self.recent.range((since, AgentId(uuid::Uuid::nil()))..).count()
    }

    /// The agents that used anything, those that spent most first.
    pub(crate) fn ranked(&self) -> impl Iterator<Item = AgentId> + '_ {
        self.ranking.iter().map(|(_, agent)| *agent)
    }

    /// A call goes out: its money is reserved at every scope, in the periods that it goes out in.
    pub(super) fn reserve(&mut self, call: &CallRecord) {
        self.latest = call.at;
        self.change_reserved(call, Micros::plus);
        self.families.reserve(call);
    }

    /// A call was out when the daemon ended (restore): no call counts before it, as if it were still out.
    pub(super) fn went_out(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at);
    }

    /// A call is back.
    pub(super) fn release(&mut self, call: &CallRecord) {
        self.change_reserved(call, Micros::minus);
        self.families.release(call);
    }

    /// Everything that is reserved.
    pub(super) fn all_reserved(&self) -> BTreeMap<(Scope, Period, i64), Micros> {
        let of_node = |(scope, node): (&Scope, &Node)| {
            let scope = *scope;
            let places: Vec<_> =
                node.reserved.iter().map(|((period, at), sum)| ((scope, *period, *at), *sum)).collect();
            places
        };
        self.scopes.iter().flat_map(of_node).collect()
    }

    /// Every sum.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (&Bucket, &UsageSum)> {
        self.sums.iter()
    }

    /// What every scope has spent that has spent anything.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = (Scope, &ScopeUseRecord)> {
        let used = self.scopes.iter().filter(|(_, node)| node.stored.total.requests > 0);
        used.map(|(scope, node)| (*scope, &node.stored))
    }

    fn change_reserved(&mut self, call: &CallRecord, change: fn(Micros, Micros) -> Micros) {
        if call.reserved.is_zero() {
            return;
        }
        for scope in call.scopes() {
            // What is reserved for an agent or a user that is gone meanwhile went with it.
            let node = match (self.scopes.get_mut(&scope), change(Micros(1), Micros(1)).is_zero()) {
                (Some(node), _) => node,
                (None, true) => continue,
                (None, false) => self.scopes.entry(scope).or_insert_with(|| Node::of(ScopeUseRecord::new(scope))),
            };
            node.change_reserved(call, change);
        }
    }

    /// Adds an event to every sum, that of its agent if that lives, and that of its user. True when the agent is active on a day
    /// for the first time.
    pub(super) fn add(
        &mut self,
        call: &CallRecord,
        used: &CallUse,
        (agent_lives, user): (bool, Option<UserId>),
    ) -> bool {
        let (at, sum) = (call.at, UsageSum::from(used.usage));
        let day = calendar::day(at);
        let (provider, model) = self.model_of(used);
        for bucket in [
            Bucket::Minute(calendar::minute(at)),
            Bucket::Hour(calendar::hour(at)),
            Bucket::Day(day),
            Bucket::Model(provider.clone(), model.clone()),
            Bucket::ModelDay(day, provider, model),
        ] {
            let place = self.sums.entry(bucket.clone()).or_default();
            *place = place.plus(sum);
            self.dirty.insert(bucket);
        }
        self.add_at(Scope::Global, at, sum);
        if let Some(user) = user {
            self.add_at(Scope::User(user), at, sum);
        }
        agent_lives && self.add_at_agent(call.agent, at, sum)
    }

    fn add_at(&mut self, scope: Scope, at: Timestamp, sum: UsageSum) {
        self.dirty_scopes.insert(scope);
        let node = self.scopes.entry(scope).or_insert_with(|| Node::of(ScopeUseRecord::new(scope)));
        node.add(at, sum);
    }

    fn add_at_agent(&mut self, agent: AgentId, at: Timestamp, sum: UsageSum) -> bool {
        let scope = Scope::Agent(agent);
        let before = self.scopes.get(&scope).map(|node| node.stored.clone());
        self.add_at(scope, at, sum);
        if let Some(before) = &before {
            self.unlist(agent, before);
        }
        self.list(agent);
        before.is_none_or(|before| before.day != calendar::day(at))
    }

    fn list(&mut self, agent: AgentId) {
        if let Some(node) = self.scopes.get(&Scope::Agent(agent)).filter(|node| node.stored.total.requests > 0) {
            self.ranking.insert((Reverse(node.stored.total.cost), agent));
            self.recent.insert((node.stored.last_at, agent));
        }
    }

    fn unlist(&mut self, agent: AgentId, stored: &ScopeUseRecord) {
        self.ranking.remove(&(Reverse(stored.total.cost), agent));
        self.recent.remove(&(stored.last_at, agent));
    }

    /// Sets what `scope` has spent in the periods that `now` is in. False when nothing is booked for it.
    pub(crate) fn correct(&mut self, scope: Scope, correction: &Correction, now: Timestamp) -> bool {
        let at = self.moment(now);
        let Some(node) = self.scopes.get_mut(&scope).filter(|node| node.stored.total.requests > 0) else {
            return false;
        };
        let before = node.stored.clone();
        let stored = &mut node.stored;
        windows::turn_to(stored, at);
        if let Some(cost) = correction.today {
            (stored.day, stored.day_cost) = (calendar::day(at), cost);
        }
        if let Some(cost) = correction.month {
            (stored.month, stored.month_cost) = (calendar::month(at), cost);
        }
        if let Some(tokens) = correction.hour_tokens {
            (stored.hour, stored.hour_tokens) = (calendar::hour(at), tokens);
        }
        if let Some(cost) = correction.total {
            stored.total.cost = cost;
        }
        if let Some(agent) = scope.agent() {
            self.unlist(agent, &before);
            self.list(agent);
        }
        self.dirty_scopes.insert(scope);
        true
    }

    /// The names under which a model is counted; of too many models, those of all others.
    fn model_of(&mut self, used: &CallUse) -> (Box<str>, Box<str>) {
        let key = Bucket::Model(used.provider.clone(), used.model.clone());
        if self.sums.contains_key(&key) {
            return (used.provider.clone(), used.model.clone());
        }
        if self.models >= limit::USAGE_MODELS_MAX {
            return (OTHER.into(), OTHER.into());
        }
        self.models += 1;
        (used.provider.clone(), used.model.clone())
    }

    /// Takes out the sums of the kind of `last` up to it, and notes them as changed.
    fn trim(&mut self, first: Bucket, last: Bucket) {
        let old: Vec<Bucket> = self.range(first, last).map(|(bucket, _)| bucket.clone()).collect();
        for bucket in old {
            self.sums.remove(&bucket);
            self.dirty.insert(bucket);
        }
    }
}

/// Writes the sums that this step changed.
// &mut World: leaves records in the outbox beside its own resource.
pub(crate) fn store_dirty(world: &mut World) {
    let mut rollups = world.resource_mut::<Rollups>();
    if rollups.dirty.is_empty() && rollups.dirty_scopes.is_empty() {
        return;
    }
    let families = rollups.families.store_dirty();
    let (buckets, scopes) = (std::mem::take(&mut rollups.dirty), std::mem::take(&mut rollups.dirty_scopes));
    let mut ops = Vec::with_capacity(buckets.len() + scopes.len());
    for bucket in &buckets {
        ops.push(match rollups.sums.get(bucket) {
            Some(sum) => rows::put_usage_sum(bucket, sum),
            None => rows::remove_usage_sum(bucket),
        });
    }
    for scope in scopes {
        ops.push(match rollups.scopes.get(&scope) {
            Some(node) => rows::put_scope_use(&node.stored),
            None => rows::remove_scope_use(scope),
        });
    }
    ops.extend(families);
    world.resource_mut::<Outbox>().ops.extend(ops);
}

/// Takes in what is stored (restore). Uses of agents that are gone are dropped.
pub(crate) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let sums = records.take::<(Bucket, UsageSum)>();
    let families = records.take::<FamilyUse>();
    let mut rollups = world.resource_mut::<Rollups>();
    rollups.families.load(families);
    rollups.models = sums.iter().filter(|(bucket, _)| matches!(bucket, Bucket::Model(..))).count();
    rollups.sums.extend(sums);
    for stored in records.take::<ScopeUseRecord>() {
        let scope = stored.scope();
        if scope == Scope::Global {
            // Every call counts there too.
            rollups.latest = stored.last_at;
        }
        rollups.scopes.insert(scope, Node::of(stored));
        if let Some(agent) = scope.agent() {
            rollups.list(agent);
        }
    }
    Ok(())
}

/// An agent leaves the world: its events stay, what is kept of it alone goes.
pub(crate) fn agent_removed(world: &mut World, agent: AgentId) {
    let mut rollups = world.resource_mut::<Rollups>();
    if let Some(node) = rollups.scopes.remove(&Scope::Agent(agent)) {
        rollups.unlist(agent, &node.stored);
        rollups.dirty_scopes.insert(Scope::Agent(agent));
    }
    if rollups.families.remove(agent) {
        rollups.dirty_scopes.insert(Scope::Agent(agent));
    }
}

/// A user leaves the world: what is kept of that user alone goes.
pub(super) fn user_removed(world: &mut World, user: UserId) {
    let mut rollups = world.resource_mut::<Rollups>();
    if rollups.scopes.remove(&Scope::User(user)).is_some() {
        rollups.dirty_scopes.insert(Scope::User(user));
    }
}

/// On the beat: sums of minutes that are over go, and the outside is asked to erase what is too old, at the start and, when
/// there is any, with each day.
// &mut World: asks the outside to erase rows, by an effect in the outbox.
pub(crate) fn beat(world: &mut World) {
    let now = world.resource::<Now>().0;
    let retention = i64::from(world.resource::<Settings>().usage_retention_days);
    let mut rollups = world.resource_mut::<Rollups>();
    let last_minute = calendar::minute(now) - MINUTES_KEPT;
    if rollups.sums.range(Bucket::Minute(i64::MIN)..=Bucket::Minute(last_minute)).next().is_some() {
        rollups.trim(Bucket::Minute(i64::MIN), Bucket::Minute(last_minute));
    }
    let today = calendar::day(now);
    if rollups.swept == Some(today) {
        return;
    }
    let (is_first, first_kept) = (rollups.swept.replace(today).is_none(), today - retention);
    if is_first || rollups.range(Bucket::Day(i64::MIN), Bucket::Day(first_kept - 1)).next().is_some() {
        world.effect(SweepUsage(Timestamp(first_kept * calendar::DAY_MS)));
    }
}

impl Settle for UsageSwept {
    /// The sums of days whose events are gone go, too.
    fn settle(self, world: &mut World) {
        let first_kept = calendar::day(self.0);
        let mut rollups = world.resource_mut::<Rollups>();
        rollups.trim(Bucket::Hour(i64::MIN), Bucket::Hour(first_kept * 24 - 1));
        rollups.trim(Bucket::Day(i64::MIN), Bucket::Day(first_kept - 1));
        let first_model = |day| Bucket::ModelDay(day, "".into(), "".into());
        let too_old = first_model(i64::MIN)..first_model(first_kept);
        let too_old: Vec<Bucket> = rollups.sums.range(too_old).map(|(bucket, _)| bucket.clone()).collect();
        for bucket in too_old {
            rollups.sums.remove(&bucket);
            rollups.dirty.insert(bucket);
        }
    }
}

/// When the beat sweeps next: with the next day. Sums of minutes that are gone need no beat of their own; nothing reads
/// them.
pub(crate) fn next_due(world: &World) -> Timestamp {
    let swept = world.resource::<Rollups>().swept;
    swept.map_or(Timestamp(i64::MIN), |day| Timestamp((day + 1).saturating_mul(calendar::DAY_MS)))
}
