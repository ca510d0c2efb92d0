//! No budget is exceeded: what is spent and reserved of a day and of a month stays within the limit, and no call goes out
//! when the tokens of an hour are used up.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::record::Space;
use agentsvc_components::usage::Scope;
use agentsvc_components::usage::record::{CallRecord, UsageRecord};
use agentsvc_components::{AgentId, Micros, Timestamp};
use agentsvc_systems::Commit;
use agentsvc_systems::budget::GetBudget;
use agentsvc_systems::kernel::record;
use uuid::Uuid;

use super::harness::Harness;

/// What scopes had taken when they were last looked at: money spent and reserved may exceed a limit only because the limit
/// was lowered, and then it must not grow.
#[derive(Default)]
pub(crate) struct Watermarks(BTreeMap<Scope, [(Timestamp, Micros); 2]>);

/// After every step: the money of everybody, and of every agent that there is.
pub(crate) fn money(harness: &mut Harness) -> Result<(), String> {
    let calls = calls(harness);
    let agents = harness.disk.seen.range(b"a".to_vec()..b"b".to_vec());
    let agents = agents.filter_map(|(key, _)| Uuid::from_slice(&key[1..]).ok()).map(|id| Scope::Agent(AgentId(id)));
    let scopes: Vec<Scope> = std::iter::once(Scope::Global).chain(agents).collect();
    for scope in scopes {
        let Ok(view) = harness.read(GetBudget(scope)) else { continue };
        let taken = [view.today.plus(reserved(&calls, scope, view.resets[0])), view.month.plus(view.reserved)];
        let marks = [(view.resets[0], taken[0]), (view.resets[1], taken[1])];
        let before = harness.watermarks.0.insert(scope, marks).unwrap_or(marks);
        for ((limit, now), before) in [view.limits.daily, view.limits.monthly].into_iter().zip(marks).zip(before) {
            let Some(limit) = limit else { continue };
            // A clock that is set goes to another period.
            let (is_same, now, before) = (now.0 == before.0, now.1, before.1);
            if is_same && now > limit && now > before {
                return Err(format!("the budget of {scope} is exceeded: {now:?} of {limit:?}, {before:?} before"));
            }
        }
    }
    Ok(())
}

/// The calls that are out.
fn calls(harness: &Harness) -> Vec<CallRecord> {
    let rows = harness.disk.seen.range(b"bc".to_vec()..b"bd".to_vec());
    rows.filter_map(|(key, row)| record::decode::<CallRecord>(key, row).ok()).collect()
}

/// What is reserved at a scope for calls of the day that ends then.
fn reserved(calls: &[CallRecord], scope: Scope, end: Timestamp) -> Micros {
    let day = Timestamp(end.0 - 86_400_000)..end;
    let is_its = |call: &&CallRecord| {
        scope.agent().is_none_or(|agent| agent == call.agent) && scope.user().is_none_or(|user| Some(user) == call.user)
    };
    let of_day = calls.iter().filter(|call| day.contains(&call.at)).filter(is_its);
    of_day.fold(Micros::ZERO, |sum, call| sum.plus(call.reserved))
}

/// What a step begins: no call goes out where the tokens of the hour are used up. The limit is looked at before each call,
/// and calls that are out may pass it; so tokens that came in with this step, which may be behind the call, do not count.
pub(crate) fn hours(harness: &mut Harness, commit: &Commit) -> Result<(), String> {
    let rows = commit.ops.iter().filter(|op| op.space == Space::World && op.key.starts_with(b"bc"));
    let begun = rows.filter_map(|op| Some(record::decode::<CallRecord>(&op.key, op.value.as_ref()?)));
    let mut scopes = BTreeSet::new();
    for call in begun {
        let call = call.map_err(|error| format!("a row cannot be read: {error}"))?;
        scopes.extend(call.scopes());
    }
    for scope in scopes {
        let Ok(view) = harness.read(GetBudget(scope)) else { continue };
        let Some(limit) = view.limits.hourly_tokens else { continue };
        let before = view.hour_tokens.saturating_sub(tokens(commit, scope));
        if before >= limit {
            return Err(format!("the hour of {scope} is used up, {before} of {limit} tokens, and a call goes out"));
        }
    }
    Ok(())
}

/// Tokens that a step counts at a scope, or, at that of a user, more.
fn tokens(commit: &Commit, scope: Scope) -> u64 {
    let rows = commit.ops.iter().filter(|op| op.space == Space::Content && op.key.first() == Some(&b'b'));
    // Rows of this kind that are no events say that an agent was active.
    let events = rows.filter_map(|op| record::decode::<UsageRecord>(&op.key, op.value.as_ref()?).ok());
    let its = events.filter(|event| scope.agent().is_none_or(|agent| agent == event.agent));
    its.map(|event| event.call.usage.input_tokens + event.call.usage.output_tokens).sum()
}
