//! Changes of skills as the daemon makes them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::change::Change;
use crate::http::timestamp::Moment;
use crate::skill_source::sources::SourceError;

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Name of the skill.
    pub skill: String,
    /// Its version now; of a deleted skill the last.
    pub version: String,
    /// Its content hash now; empty of a deleted skill.
    pub content_hash: String,
    /// What the scan noticed, in sentences.
    pub warnings: Vec<String>,
}

/// A change that an agent proposed and that waits for a decision.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Candidate {
    /// Id.
    pub id: Uuid,
    /// Name of the skill.
    pub skill_name: String,
    /// `create`, `update`, `patch`, `rollback`, `delete`, `write_file` or `remove_file`.
    pub action: &'static str,
    /// Why, in the agent's words.
    pub changelog: String,
    /// Agent that proposed it.
    pub agent_id: Uuid,
    /// Its name.
    pub agent_name: String,
    /// Session in which it was proposed; null outside of a conversation.
    pub session_id: Option<Uuid>,
    /// Untrusted content that the turn had read, such as `web`.
    pub taint: Vec<String>,
    /// When it was proposed.
    pub created_at: Moment,
    /// Content hash that the skill had; null for a new skill. If it has another one now, the change cannot be approved.
    pub base_hash: Option<String>,
    /// What the scan noticed, in sentences.
    pub warnings: Vec<String>,
    /// The whole change: its texts. Absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Value>,
}

/// The skills of this home, changed. All calls block on the disk.
pub trait SkillEvolution: Send + Sync {
    /// Makes a change, now. `author` stands in the history of the skill. Durable when it returns; a failure leaves the skill as
    /// it was.
    ///
    /// # Errors
    /// [`SourceError::Wrong`] names the field; [`SourceError::Blocked`] when the scan refuses what would come of it;
    /// [`SourceError::NotFound`], [`SourceError::Exists`]; a conflict when the skill has another content hash than the change
    /// names, or no such version is kept; [`SourceError::Busy`] while another change is under way;
    /// [`SourceError::TooLarge`]; or the disk's.
    fn apply(&self, change: &Change, author: &str) -> Result<Changed, SourceError>;

    /// The changes that wait, oldest first; those of one agent, if one is named.
    ///
    /// # Errors
    /// The disk's.
    fn pending(&self, agent: Option<Uuid>) -> Result<Vec<Candidate>, SourceError>;

    /// One of them, with its texts.
    ///
    /// # Errors
    /// [`SourceError::NotFound`], or the disk's.
    fn candidate(&self, id: Uuid) -> Result<Candidate, SourceError>;

    /// Makes one of them. Safe to repeat when a crash came between the change and the removal of the proposal.
    ///
    /// # Errors
    /// As [`apply`](Self::apply); the proposal stays then.
    fn approve(&self, id: Uuid) -> Result<Changed, SourceError>;

    /// Removes one of them.
    ///
    /// # Errors
    /// As [`candidate`](Self::candidate).
    fn reject(&self, id: Uuid) -> Result<(), SourceError>;
}
