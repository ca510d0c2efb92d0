//! What model calls use, and the budgets that bound it (spec 3, Usage and Budget).

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
pub mod price;
pub mod record;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, UserId};
use crate::kernel::money::Micros;
use crate::kernel::time::Timestamp;
use crate::session::message::Usage;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "usage", uses: &["session"] };

/// How a model call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// Completed.
    #[default]
    Answered,
    /// Without one, or with one that broke off.
    Failed,
    /// Given up by a stop.
    Aborted,
    /// The daemon died while it was out: its tokens are not known, its cost is what was reserved.
    Unknown,
}

/// The most tokens that a call can have had, by what was sent and what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensMax {
    /// The prompt: no more than the bytes of the request.
    pub input: u64,
    /// The answer: what it was bounded to. `None` where it was not.
    pub output: Option<u64>,
}

/// One call of a model: one usage event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallUse {
    /// The provider.
    pub provider: Box<str>,
    /// The model.
    pub model: Box<str>,
    /// Its tokens.
    pub usage: Usage,
    /// The most that they can be, until it is settled; `None` where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<TokensMax>,
    /// How long it took.
    pub latency_ms: u32,
    /// Tool calls in its answer.
    pub tool_calls: u32,
    /// How it ended.
    pub end: CallEnd,
}

/// Sums over usage events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageSum {
    /// Tokens of prompts, cached ones included.
    pub input_tokens: u64,
    /// Cached tokens of prompts.
    pub cached_input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// What they cost.
    pub cost: Micros,
    /// Model calls.
    pub requests: u64,
}

impl UsageSum {
    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost: self.cost.plus(other.cost),
            requests: self.requests.saturating_add(other.requests),
        }
    }

    /// Tokens of both sides.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl From<Usage> for UsageSum {
    /// One request.
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens, cached_input_tokens, cost, .. } = usage;
        Self { input_tokens, cached_input_tokens, output_tokens, cost, requests: 1 }
    }
}

/// What usage is summed over. All in UTC, counted from 1970-01-01.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// One minute.
    Minute(i64),
    /// One hour.
    Hour(i64),
    /// One day.
    Day(i64),
    /// One model of one provider, since ever.
    Model(Box<str>, Box<str>),
    /// One model of one provider on one day.
    ModelDay(i64, Box<str>, Box<str>),
}

/// Whose money it is: the nodes of the tree of budgets. A call counts at its agent and at every parent; a further level
/// stands between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everybody's.
    Global,
    /// One agent's.
    Agent(AgentId),
    /// That of all agents of one user.
    User(UserId),
}

impl Scope {
    /// That of what belongs to `agent`; everybody's of what is nobody's, which has the nil id.
    #[must_use]
    pub const fn of(agent: AgentId) -> Self {
        if agent.0.is_nil() { Self::Global } else { Self::Agent(agent) }
    }

    /// The scope above it.
    #[must_use]
    pub const fn parent(self) -> Option<Self> {
        match self {
            Self::Agent(_) | Self::User(_) => Some(Self::Global),
            Self::Global => None,
        }
    }

    /// Where a call of `agent` counts that belongs to `user`, and these agents are above it, nearest first: at its limits, at
    /// theirs, at those of the user, at everybody's.
    pub fn path_of(agent: AgentId, above: &[AgentId], user: Option<UserId>) -> impl Iterator<Item = Self> + '_ {
        let own = Self::of(agent).agent();
        let agents = own.into_iter().chain(above.iter().copied()).map(Self::Agent);
        agents.chain(user.map(Self::User)).chain(std::iter::once(Self::Global))
    }

    /// The agent, where it is one's.
    #[must_use]
    pub const fn agent(self) -> Option<AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Global | Self::User(_) => None,
        }
    }

    /// The user, where it is one's.
    #[must_use]
    pub const fn user(self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Global | Self::Agent(_) => None,
        }
    }

    /// That of an agent, else of a user, else everybody's.
    #[must_use]
    pub fn from_ids(agent: Option<AgentId>, user: Option<UserId>) -> Self {
        agent.map(Self::Agent).or_else(|| user.map(Self::User)).unwrap_or(Self::Global)
    }
}

impl fmt::Display for Scope {
    /// `global`, the agent's id, or `user:` and the user's id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Agent(agent) => agent.fmt(f),
            Self::User(user) => write!(f, "user:{user}"),
        }
    }
}

enum_words! {
    /// The time that a limit is for; each begins anew in UTC.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Period [as_str] {
        /// A clock hour; bounds tokens.
        Hourly = "hourly",
        /// A calendar day; bounds money.
        Daily = "daily",
        /// A calendar month; bounds money.
        Monthly = "monthly",
    }
}

/// Limits of one scope. `None` says nothing; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Money of a day.
    pub daily: Option<Micros>,
    /// Money of a month.
    pub monthly: Option<Micros>,
    /// Tokens of an hour, both sides.
    pub hourly_tokens: Option<u64>,
}

impl Limits {
    /// What is left open here is taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            daily: self.daily.or(other.daily),
            monthly: self.monthly.or(other.monthly),
            hourly_tokens: self.hourly_tokens.or(other.hourly_tokens),
        }
    }

    /// The lower of each pair.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        let (one, other) = (self.in_force(), other.in_force());
        Self {
            daily: lower(one.daily, other.daily),
            monthly: lower(one.monthly, other.monthly),
            hourly_tokens: lower(one.hourly_tokens, other.hourly_tokens),
        }
    }

    /// Is nothing said?
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.daily.is_none() && self.monthly.is_none() && self.hourly_tokens.is_none()
    }

    /// Only limits that bound something.
    #[must_use]
    pub fn in_force(self) -> Self {
        Self {
            daily: self.daily.filter(|limit| !limit.is_zero()),
            monthly: self.monthly.filter(|limit| !limit.is_zero()),
            hourly_tokens: self.hourly_tokens.filter(|limit| *limit > 0),
        }
    }
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudget {
    /// Whose; `None` is a user's, or everybody's.
    pub agent: Option<AgentId>,
    /// Which user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Of which time.
    pub period: Period,
    /// The limit: micro-dollars, or tokens of an hour.
    pub limit: u64,
    /// What is spent of it.
    pub spent: u64,
    /// When it begins anew.
    pub resets_at: Timestamp,
}

impl OverBudget {
    /// Whose.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::from_ids(self.agent, self.user)
    }
}
