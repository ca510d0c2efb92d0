//! Keys of the rows of an agent's knowledge. Names and types have no control characters, so a zero byte stands between them.

use agentsvc_components::AgentId;
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};

use crate::kernel::record::{Error, VERSION, hex, is_record, knowledge_prefix};

/// Stands behind the agent in the rows of entities.
const ENTITY: u8 = b'e';
/// In those of relations.
const OUTGOING: u8 = b'o';
/// In those that find relations by their targets.
const INCOMING: u8 = b'i';
/// Where that byte stands.
const KIND_AT: usize = 17;

/// Which relations to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// All.
    Any,
    /// Those that begin here.
    Source(&'a EntityKey),
    /// Those that end here.
    Target(&'a EntityKey),
}

fn key(agent: AgentId, kind: u8, parts: &[&str]) -> Vec<u8> {
    let mut bytes = knowledge_prefix(agent);
    bytes.push(kind);
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            bytes.push(0);
        }
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// The common start of all entities of an agent, or of those with a folded name.
#[must_use]
pub fn entities_prefix(agent: AgentId, name: Option<&str>) -> Vec<u8> {
    name.map_or_else(|| key(agent, ENTITY, &[]), |name| key(agent, ENTITY, &[name, ""]))
}

/// The row of an entity.
#[must_use]
pub fn entity_row(agent: AgentId, entity: &EntityKey) -> Vec<u8> {
    key(agent, ENTITY, &[&entity.name, &entity.kind])
}

/// The row of a relation.
#[must_use]
pub fn relation_row(agent: AgentId, relation: &RelationKey) -> Vec<u8> {
    let RelationKey { source, relation, target } = relation;
    key(agent, OUTGOING, &[&source.name, &source.kind, relation, &target.name, &target.kind])
}

/// The row that finds a relation by its target.
#[must_use]
pub fn incoming_row(agent: AgentId, relation: &RelationKey) -> Vec<u8> {
    let RelationKey { source, relation, target } = relation;
    key(agent, INCOMING, &[&target.name, &target.kind, relation, &source.name, &source.kind])
}

/// The common start of the relations with this end, of one type or of all.
#[must_use]
pub fn relations_prefix(agent: AgentId, end: End<'_>, relation: Option<&str>) -> Vec<u8> {
    let (kind, entity) = match end {
        End::Any => return key(agent, OUTGOING, &[]),
        End::Source(entity) => (OUTGOING, entity),
        End::Target(entity) => (INCOMING, entity),
    };
    match relation {
        Some(relation) => key(agent, kind, &[&entity.name, &entity.kind, relation, ""]),
        None => key(agent, kind, &[&entity.name, &entity.kind, ""]),
    }
}

/// The row of the relation `of`, as it stands among those with this end.
#[must_use]
pub fn row_at(agent: AgentId, end: End<'_>, of: &RelationKey) -> Vec<u8> {
    if matches!(end, End::Target(_)) { incoming_row(agent, of) } else { relation_row(agent, of) }
}

fn parts<const N: usize>(key: &[u8]) -> Option<[&str; N]> {
    let text = std::str::from_utf8(key.get(KIND_AT + 1..)?).ok()?;
    text.split('\0').collect::<Vec<_>>().try_into().ok()
}

/// The entity of a row; `None` for any other key.
#[must_use]
pub fn parse_entity(key: &[u8]) -> Option<EntityKey> {
    let [name, kind] = parts(key).filter(|_| key.get(KIND_AT) == Some(&ENTITY))?;
    Some(EntityKey { name: name.into(), kind: kind.into() })
}

/// The relation of a row, by its source or by its target; `None` for any other key.
#[must_use]
pub fn parse_relation(key: &[u8]) -> Option<RelationKey> {
    let [name, kind, relation, other_name, other_kind] = parts(key)?;
    let one = EntityKey { name: name.into(), kind: kind.into() };
    let other = EntityKey { name: other_name.into(), kind: other_kind.into() };
    let relation = relation.into();
    match *key.get(KIND_AT)? {
        OUTGOING => Some(RelationKey { source: one, relation, target: other }),
        INCOMING => Some(RelationKey { source: other, relation, target: one }),
        _ => None,
    }
}

/// Can the row be read?
pub(super) fn is_readable(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let wrong = |reason: &str| Err(Error::Corrupt { key: hex(key), reason: reason.to_owned() });
    match key.get(KIND_AT) {
        Some(&ENTITY) if parse_entity(key).is_some() => is_record::<EntityRecord>(key, value),
        Some(&OUTGOING) if parse_relation(key).is_some() => is_record::<RelationRecord>(key, value),
        Some(&INCOMING) if parse_relation(key).is_some() => {
            if value == [VERSION] {
                Ok(())
            } else {
                wrong("not empty")
            }
        }
        _ => wrong("neither an entity nor a relation"),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::kernel::record::encode;

    fn entity(name: &str) -> EntityKey {
        EntityKey { name: name.into(), kind: "person".into() }
    }

    #[test]
    fn keys_are_read_back_and_stand_under_their_prefixes() {
        let agent = AgentId(Uuid::from_u128(7));
        let (ada, adam) = (entity("ada"), entity("adam"));
        let relation = RelationKey { source: ada.clone(), relation: "knows".into(), target: adam.clone() };
        let row = entity_row(agent, &ada);
        assert_eq!(parse_entity(&row), Some(ada.clone()));
        assert!(
            row.starts_with(&entities_prefix(agent, None)) && row.starts_with(&entities_prefix(agent, Some("ada")))
        );
        assert!(
            !entity_row(agent, &adam).starts_with(&entities_prefix(agent, Some("ada"))),
            "a longer name is another"
        );
        for (row, end) in
            [(relation_row(agent, &relation), End::Source(&ada)), (incoming_row(agent, &relation), End::Target(&adam))]
        {
            assert_eq!(parse_relation(&row), Some(relation.clone()));
            assert_eq!((row_at(agent, end, &relation), parse_entity(&row)), (row.clone(), None));
            for word in [None, Some("knows")] {
                assert!(row.starts_with(&relations_prefix(agent, end, word)));
            }
            assert!(!row.starts_with(&relations_prefix(agent, end, Some("know"))));
            assert!(row.starts_with(&knowledge_prefix(agent)));
        }
        assert!(!relation_row(agent, &relation).starts_with(&relations_prefix(
            agent,
            End::Source(&entity("ad")),
            None
        )));
    }

    #[test]
    fn rows_that_cannot_be_read_are_told() {
        let agent = AgentId(Uuid::from_u128(7));
        let relation = RelationKey { source: entity("a"), relation: "knows".into(), target: entity("b") };
        assert!(is_readable(&incoming_row(agent, &relation), &[VERSION]).is_ok());
        for (key, value) in [
            (incoming_row(agent, &relation), b"".as_slice()),
            (relation_row(agent, &relation), b""),
            (entity_row(agent, &entity("a")), b"\x01nonsense"),
            (key(agent, b'?', &["a", "b"]), b""),
            (key(agent, ENTITY, &["a"]), &encode(&())),
            (knowledge_prefix(agent), b""),
        ] {
            assert!(is_readable(&key, value).is_err(), "{key:?}");
        }
    }
}
