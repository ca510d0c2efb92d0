//! The trigger: waits for events of the world and fires turns; an entity with a [`TriggerId`](crate::TriggerId) and
//! the components [`Trigger`] and [`TriggerState`] (spec 1, Trigger).

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
pub mod record;

use std::collections::VecDeque;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::event::EventKind;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, SessionId, TurnId};
use crate::kernel::time::Timestamp;
use crate::manifest::SessionMode;
use crate::turn::TurnEnd;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "trigger", uses: &["event", "manifest", "turn"] };

/// What a trigger waits for: the single key of the pattern's object and what stands below it (spec 1, Pattern shapes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Filter for events.
    pub on: On,
    /// Which of those.
    pub filter: Filter,
}

impl Pattern {
    /// Bytes of its text.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match &self.filter {
            Filter::Name(text)
            | Filter::CustomType(text)
            | Filter::Content(text)
            | Filter::Assignee(AssigneeMatch::Exactly(text)) => text.len(),
            Filter::None | Filter::Assignee(AssigneeMatch::Owner | AssigneeMatch::Nobody) => 0,
        }
    }
}

/// Which events a pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum On {
    /// `all`: every event.
    All,
    /// `lifecycle`: agents come, go, stop, start and change.
    Lifecycle,
    /// `system`: schedules, workflows, approvals, budgets and memory.
    System,
    /// `content_match`: every event that carries text.
    Content,
    /// One kind, under its own name.
    Kind(EventKind),
}

/// Which of the events a pattern looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    /// All of them.
    None,
    /// `name_pattern`: the name of the event's agent matches this glob.
    Name(Box<str>),
    /// `assignee_match`: the task is assigned so.
    Assignee(AssigneeMatch),
    /// `event_type`: a custom event of exactly this type.
    CustomType(Box<str>),
    /// `substring`: the event's text has this in it, whatever its case.
    Content(Box<str>),
}

/// To whom a posted task must be assigned (spec 1, Triggers, rule 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AssigneeMatch {
    /// `self`: the assignee's id is the id of the trigger's owner.
    Owner,
    /// `unassigned`: nobody, that is no assignee or an empty one.
    Nobody,
    /// Anything else, `any` too: exactly this text.
    Exactly(Box<str>),
}

/// What a trigger is. Changed by commands only.
#[derive(Component, Clone, Debug)]
pub struct Trigger {
    /// Who owns it; it goes with its owner.
    pub agent: Entity,
    /// Agent that receives the message instead of the owner.
    pub target: Option<Entity>,
    /// What it waits for.
    pub pattern: Pattern,
    /// The message, in which `{{event}}` stands for the event's compact JSON.
    pub prompt_template: Box<str>,
    /// Fires it has in all; 0 is without bound.
    pub max_fires: u64,
    /// Seconds between two fires; `None` is the daemon's default.
    pub cooldown_secs: Option<u32>,
    /// Where its turns run; `None` is as the manifest of the agent that gets the message says.
    pub session_mode: Option<SessionMode>,
    /// False: its matches are counted and nothing else.
    pub enabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whose share of all triggers it takes.
    pub holder: Option<Holder>,
    /// It was made without a holder: its matches wait in nobody's line, whoever has made it longer since.
    pub is_in_nobodys_line: bool,
}

impl Trigger {
    /// In whose line its matches wait.
    #[must_use]
    pub fn line(&self) -> Option<Holder> {
        self.holder.filter(|_| !self.is_in_nobodys_line)
    }

    /// Bytes of its texts.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.prompt_template.len() + self.pattern.bytes()
    }
}

/// What a trigger has done so far. A box, because most triggers of a large world have not done anything yet.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerState(pub Option<Box<FireLog>>);

/// The fires of one trigger: also its stored form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FireLog {
    /// How its matches ended.
    pub outcomes: OutcomeCounts,
    /// The time of the event that it last fired for; the cooldown counts from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fired_at: Option<Timestamp>,
    /// Time of the event that it last matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_matched_at: Option<Timestamp>,
    /// Outcome of the last match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<FireOutcome>,
    /// When the minute began in which fires of cascades are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cascade_from: Option<Timestamp>,
    /// Fires of cascades in that minute.
    #[serde(skip_serializing_if = "is_zero")]
    pub cascade_fires: u32,
    /// Turns that were begun and ended because a budget was used up: their matches count as `over_budget`, not as `fired`.
    #[serde(skip_serializing_if = "is_none_yet")]
    pub fires_over_budget: u64,
    /// The last fires, the oldest first; at most
    /// [`TRIGGER_FIRES_KEPT`](crate::kernel::limit::TRIGGER_FIRES_KEPT).
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub fires: VecDeque<Fire>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
const fn is_none_yet(number: &u64) -> bool {
    *number == 0
}

impl FireLog {
    /// Turns that were begun, however they ended: what `max_fires` bounds.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.outcomes.of(FireOutcome::Fired) + self.fires_over_budget
    }

    /// A turn that was begun has ended because a budget was used up: its match ends so too, and counts once.
    pub const fn ran_out_of_budget(&mut self) {
        self.fires_over_budget += 1;
        self.outcomes.take_back(FireOutcome::Fired);
        self.outcomes.add(FireOutcome::OverBudget, 1);
    }
}

/// A fire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fire {
    /// The time of the event.
    pub at: Timestamp,
    /// An event.
    pub on: EventKind,
    /// The turn that it began.
    pub turn: TurnId,
    /// Whose turn.
    pub agent: AgentId,
    /// The session that holds its answer.
    pub session: SessionId,
    /// How the turn ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
}

enum_words! {
    /// How a match ends. Every match ends in exactly one of these.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FireOutcome [ALL, as_str] {
        /// A turn was begun.
        Fired = "fired",
        /// The last fire was too short a time ago.
        CoolingDown = "cooling_down",
        /// `max_fires` is reached.
        Exhausted = "exhausted",
        /// The trigger is switched off.
        Disabled = "disabled",
        /// The agent that would get the message does not run.
        AgentStopped = "agent_stopped",
        /// The daemon is full, or the message too long.
        Refused = "refused",
        /// The event comes from a row of fired turns that is as long as `[triggers] max_depth` allows.
        TooDeep = "too_deep",
        /// The event comes from a fired turn, and the trigger fired `[triggers] cascade_per_minute` times for such.
        RateLimited = "rate_limited",
        /// The agent has no budget left, or the turn that was begun ended for that.
        OverBudget = "over_budget",
    }
}

/// How many matches ended in which way. Stored by name, without the zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(FireOutcome, u64)>", into = "Vec<(FireOutcome, u64)>")]
pub struct OutcomeCounts([u64; FireOutcome::ALL.len()]);

impl OutcomeCounts {
    /// So many ended so.
    #[must_use]
    pub const fn of(&self, outcome: FireOutcome) -> u64 {
        self.0[outcome as usize]
    }

    /// `more` ended so.
    pub const fn add(&mut self, outcome: FireOutcome, more: u64) {
        self.0[outcome as usize] += more;
    }

    /// One that ended so came to another end after all.
    const fn take_back(&mut self, outcome: FireOutcome) {
        self.0[outcome as usize] = self.0[outcome as usize].saturating_sub(1);
    }
}

impl From<Vec<(FireOutcome, u64)>> for OutcomeCounts {
    fn from(counts: Vec<(FireOutcome, u64)>) -> Self {
        let mut all = Self::default();
        counts.into_iter().for_each(|(outcome, count)| all.add(outcome, count));
        all
    }
}

impl From<OutcomeCounts> for Vec<(FireOutcome, u64)> {
    fn from(counts: OutcomeCounts) -> Self {
        let all = FireOutcome::ALL.into_iter().map(|outcome| (outcome, counts.of(outcome)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}
