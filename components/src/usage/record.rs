//! The stored forms of usage and budgets. A call that is out has a record until it is settled; the event, the sums and
//! the end of that record are one commit, so that nothing is counted twice or lost.

use serde::{Deserialize, Serialize};

use crate::kernel::attempt::Attempt;
use crate::kernel::effect::Effect;
use crate::kernel::id::{AgentId, JobId, SessionId, UserId};
use crate::kernel::money::Micros;
use crate::kernel::outcome::Outcome;
use crate::kernel::record::is_default;
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::usage::{CallUse, Limits, Scope, UsageSum};

/// Erase the usage events that are older; comes back as [`UsageSwept`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepUsage(pub Timestamp);

impl Effect for SweepUsage {}

/// The usage events of before that moment were erased. It is the one that was asked for or an earlier one: where the clock is
/// not believed, less is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSwept(pub Timestamp);

impl Outcome for UsageSwept {
    const NAME: &'static str = "SweptUsage";
}

/// One usage event: a model call that ended (spec 3, Usage event).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// When the call went out. Also in the key.
    pub at: Timestamp,
    /// Whose call.
    pub agent: AgentId,
    /// What the agent was called.
    pub agent_name: Box<str>,
    /// Who pays; `None` is the agent itself.
    #[serde(default)]
    pub billed: Option<AgentId>,
    /// In which session.
    pub session: SessionId,
    /// Where the turn's message came from; `compaction` for summaries.
    pub channel: Box<str>,
    /// The call.
    pub call: CallUse,
}

/// A model call that is out, and the money that is reserved for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The turn, compaction or probe. Also in the key, with `number`.
    #[serde(rename = "turn")]
    pub job: JobId,
    /// Which try of it.
    pub number: u32,
    /// Whose; the nil id of one that is nobody's, such as the test of a provider.
    pub agent: AgentId,
    /// The agents above it, nearest first: it counts at their limits too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub above: Vec<AgentId>,
    /// The user whom the agent belonged to: it counts at the limits of that user too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Option<UserId>,
    /// What the agent is called.
    pub agent_name: Box<str>,
    /// In which session.
    pub session: SessionId,
    /// As in [`UsageRecord`].
    pub channel: Box<str>,
    /// The provider that is asked first.
    pub provider: Box<str>,
    /// The model that is asked first.
    pub model: Box<str>,
    /// When it went out.
    pub at: Timestamp,
    /// The most it can cost.
    pub reserved: Micros,
    /// A budget bounds its answer: it costs no more than what is reserved.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_bounded: bool,
    /// It goes out beside the turns and compactions, such as inside a tool call: it has no place in the line of its provider.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_aside: bool,
    /// The labels of strangers, where any of them began what calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strangers: Taint,
    /// The session in which they began it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub began_in: Option<SessionId>,
}

impl CallRecord {
    /// The attempt that settles it.
    #[must_use]
    pub const fn attempt(&self) -> Attempt {
        Attempt { job: self.job, number: self.number }
    }

    /// Whose money it costs first.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        Scope::of(self.agent)
    }

    /// Where its money counts: at its agent, at the user of that, and at everybody's.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        Scope::path_of(self.agent, &[], self.user)
    }
}

/// What was spent in the hour, the day and the month that a clock was in, which then jumped far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Which day `day_cost` is of.
    pub day: i64,
    /// Money of that day.
    pub day_cost: Micros,
    /// Which month `month_cost` is of.
    pub month: i64,
    /// Money of that month.
    pub month_cost: Micros,
    /// Which hour `hour_tokens` is of.
    pub hour: i64,
    /// Tokens of that hour.
    pub hour_tokens: u64,
}

impl Windows {
    /// Nothing spent yet.
    pub const NONE: Self = Self {
        day: i64::MIN,
        day_cost: Micros::ZERO,
        month: i64::MIN,
        month_cost: Micros::ZERO,
        hour: i64::MIN,
        hour_tokens: 0,
    };
}

/// What a scope has spent. Times are counted from 1970 in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeUseRecord {
    /// Whose; `None` is a user's, or everybody's. Also in the key.
    pub agent: Option<AgentId>,
    /// Which user's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub user: Option<UserId>,
    /// All time.
    pub total: UsageSum,
    /// Which day `day_cost` is of.
    pub day: i64,
    /// Money of that day.
    pub day_cost: Micros,
    /// Which month `month_cost` is of.
    pub month: i64,
    /// Money of that month.
    pub month_cost: Micros,
    /// Which hour `hour_tokens` is of.
    pub hour: i64,
    /// Tokens of that hour.
    pub hour_tokens: u64,
    /// When its last call went out.
    pub last_at: Timestamp,
    /// Windows that a clock has left by a far jump, the oldest first: they count again when it comes back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub away: Vec<Windows>,
}

impl ScopeUseRecord {
    /// Nothing spent yet.
    #[must_use]
    pub fn new(scope: Scope) -> Self {
        Self {
            agent: scope.agent(),
            user: scope.user(),
            total: UsageSum::default(),
            day: i64::MIN,
            day_cost: Micros::ZERO,
            month: i64::MIN,
            month_cost: Micros::ZERO,
            hour: i64::MIN,
            hour_tokens: 0,
            last_at: Timestamp(i64::MIN),
            away: Vec::new(),
        }
    }

    /// The windows of its last call.
    #[must_use]
    pub const fn windows(&self) -> Windows {
        let &Self { day, day_cost, month, month_cost, hour, hour_tokens, .. } = self;
        Windows { day, day_cost, month, month_cost, hour, hour_tokens }
    }

    /// Counts in these windows from here on; gives those before.
    pub const fn turn_to(&mut self, windows: Windows) -> Windows {
        let before = self.windows();
        (self.day, self.day_cost) = (windows.day, windows.day_cost);
        (self.month, self.month_cost) = (windows.month, windows.month_cost);
        (self.hour, self.hour_tokens) = (windows.hour, windows.hour_tokens);
        before
    }

    /// Whose.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::from_ids(self.agent, self.user)
    }
}

/// The limits of a scope that were set by the API, and of which times its events were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetRecord {
    /// Whose; `None` is a user's, or everybody's. Also in the key.
    pub agent: Option<AgentId>,
    /// Which user's.
    #[serde(skip_serializing_if = "is_default")]
    pub user: Option<UserId>,
    /// Limits set by the API.
    pub limits: Limits,
    /// The day and the month that a warning was sent for.
    pub warned: [Option<i64>; 2],
    /// The hour, the day and the month for which it was said that the budget is used up.
    pub exceeded: [Option<i64>; 3],
}

impl BudgetRecord {
    /// Whose.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::from_ids(self.agent, self.user)
    }
}
