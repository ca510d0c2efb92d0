//! What an agent knows as a graph: entities, and relations between them (spec 2, Memory).

pub mod record;

use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "knowledge", uses: &[] };

/// What tells an entity of an agent from its others: its name and type, folded (lower case, single spaces). Orders by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntityKey {
    /// The folded name.
    pub name: Box<str>,
    /// The type, such as `person`; it has no colon.
    pub kind: Box<str>,
}

impl std::fmt::Display for EntityKey {
    /// The id that clients and models see, such as `person:ada lovelace`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// What tells a relation of an agent from its others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RelationKey {
    /// Where it begins.
    pub source: EntityKey,
    /// Its type, such as `works_at`.
    pub relation: Box<str>,
    /// Where it ends.
    pub target: EntityKey,
}

impl RelationKey {
    /// Bytes of its texts: what they count towards the limit of an agent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.source.bytes() + self.target.bytes()) + self.relation.len() as u64
    }
}

impl EntityKey {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.name.len() + self.kind.len()) as u64
    }
}
