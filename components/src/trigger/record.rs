//! The stored forms of a trigger: what it is, what it did, and the matches that wait to be delivered.

use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind};
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, SessionId, TriggerId, TurnId, UserId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::manifest::SessionMode;
use crate::trigger::FireLog;
use crate::turn::record::TurnRecord;

/// One trigger as its commands left it. What it does is in a record of its own, so that a fire does not write the
/// prompt again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// Also in the key.
    pub id: TriggerId,
    /// Agent that owns it.
    pub agent: AgentId,
    /// What it waits for, as the API writes it: JSON text of an object with one key.
    pub pattern: Box<str>,
    /// The message.
    pub prompt_template: Box<str>,
    /// False: its matches are only counted.
    pub enabled: bool,
    /// Fires it has in all; 0 is without bound.
    #[serde(default)]
    pub max_fires: u64,
    /// Seconds between two fires, unless the daemon's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_secs: Option<u32>,
    /// Where its turns run, unless as the manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_mode: Option<SessionMode>,
    /// Agent that receives the message instead of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<AgentId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whose share of all triggers it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Its matches wait in nobody's line, whoever holds it now.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_in_nobodys_line: bool,
}

record!(TriggerRecord: b'g', TriggerId, id);

/// What one trigger has done so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerStateRecord {
    /// Also in the key.
    pub id: TriggerId,
    /// Its fires.
    pub log: FireLog,
    /// The log knows of the fires in all bursts of smaller numbers; those of the others are to be added to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bursts: u64,
}

record!(TriggerStateRecord: b'h', TriggerId, id);

/// Matches of one event that are not delivered yet. Waves are delivered in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveRecord {
    /// Also in the key.
    pub number: u64,
    /// An event.
    pub kind: EventKind,
    /// The event's compact JSON.
    pub event: Box<str>,
    /// When it happened.
    pub at: Timestamp,
    /// How many fired turns, one begun by the other, lie behind it.
    pub depth: u8,
    /// Untrusted content behind it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The session in which strangers began what it comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub began_in: Option<SessionId>,
    /// The triggers that matched and wait, in the order of their creation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerId>,
    /// In whose line they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// There are too many to list them before their turn comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Box<UnlistedRecord>>,
}

/// Triggers of one line that wait for an event, as they are found when their turn comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlistedRecord {
    /// What happened, and what was known of its agent then.
    pub asked: AskedRecord,
    /// The last one that was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<TriggerId>,
    /// The newest that there was when it happened.
    pub upto: TriggerId,
    /// How many wait at most.
    pub waiting: usize,
}

/// An event as triggers are asked whether they wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRecord {
    /// What happened.
    pub event: Event,
    /// The name of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The user whom its agent belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserId>,
}

/// Fires of one event whose turns wait unchanged. It stands for the records of these turns, and for what the fires added to
/// the logs of their triggers. Written once; a fire whose turn changes leaves it in the commit in which the turn and the
/// trigger's log get records of their own ([`BurstLeftRecord`]), and with the last one it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstRecord {
    /// Also in the key. Numbers grow, and none is given twice as long as anything stored knows of it.
    pub number: u64,
    /// An event.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// How many fired turns, one begun by the other, lie behind it.
    pub depth: u8,
    /// One of the turns: the others differ from it in nothing but what their fires say.
    pub like: TurnRecord,
    /// The fires in the order in which they came about; at most
    /// [`BURST_FIRES_MAX`](crate::kernel::limit::BURST_FIRES_MAX).
    pub fires: Vec<BurstFire>,
}

/// One fire of a burst: its trigger, its turn, whose turn, in which session, at which ordinal of its log, and whether another
/// turn stands before it. Stored by position, because there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstFire(pub TriggerId, pub TurnId, pub AgentId, pub SessionId, pub u32, pub bool);

/// Which fires have left a burst: beside the burst, because it is written again with every step in which one leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstLeftRecord {
    /// Also in the key.
    pub number: u64,
    /// The bit of each fire that has left, the lowest for the first.
    pub left: u64,
}
