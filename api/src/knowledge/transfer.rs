//! The knowledge of an agent as a whole, out and in.

use agentsvc_components::Refusal;
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::knowledge::limits::{KNOWLEDGE_ENTITIES_MAX, KNOWLEDGE_RELATIONS_MAX, KNOWLEDGE_TRIPLES_MAX};

use crate::http::error::Error;
use crate::knowledge::batch::{Batch, Written};
use crate::knowledge::graph::{AgentGraph, Query};
use crate::knowledge::shape::{EntityBody, EntityView, FoundView, MatchBody, MatchView};

/// Entities that are read from the disk at once.
const PAGE_ENTITIES: usize = 256;

/// Entities behind one, in the order of their names.
pub(crate) async fn entities_page(
    graph: AgentGraph,
    after: Option<EntityKey>,
) -> Result<Page<EntityView, EntityKey, ()>, Error> {
    let rows = graph.entities(after, PAGE_ENTITIES).await?;
    let next = rows.last().filter(|_| rows.len() == PAGE_ENTITIES).map(|(key, _)| key.clone());
    let items = rows.into_iter().map(|(key, record)| EntityView::of(key, record)).collect();
    Ok(Page { items, next, total: () })
}

/// Relations behind one.
pub(crate) async fn matches_page(
    graph: AgentGraph,
    after: Option<RelationKey>,
) -> Result<Page<MatchView, RelationKey, ()>, Error> {
    let query = Query { depth: 1, limit: KNOWLEDGE_TRIPLES_MAX, after, ..Query::default() };
    let found = graph.find(query).await?;
    let next = found.next.clone();
    Ok(Page { items: FoundView::of(found, None).into_matches(), next, total: () })
}

/// The batches that store these entities and relations. All are checked before any is stored.
pub(crate) fn batches(entities: Vec<EntityBody>, matches: Vec<MatchBody>) -> Result<Vec<Batch>, Error> {
    let lengths =
        [("entities", entities.len(), KNOWLEDGE_ENTITIES_MAX), ("matches", matches.len(), KNOWLEDGE_RELATIONS_MAX)];
    for (field, length, most) in lengths {
        if length > most as usize {
            return Err(Error::bad_field(field, format!("{field}: more than {most}")));
        }
    }
    let mut batches = vec![Batch::default()];
    for (at, entity) in entities.into_iter().enumerate() {
        let entity = entity.read(&format!("entities[{at}]."))?;
        place(&mut batches).entities.push(entity);
    }
    for (at, found) in matches.into_iter().enumerate() {
        let relation = found.read(&format!("matches[{at}]."))?;
        place(&mut batches).relations.push(relation);
    }
    Ok(batches)
}

/// The last batch, or a new one where that is full.
fn place(batches: &mut Vec<Batch>) -> &mut Batch {
    let last = batches.pop().unwrap_or_default();
    let is_full = last.entities.len() + last.relations.len() >= KNOWLEDGE_TRIPLES_MAX;
    batches.push(last);
    if is_full {
        batches.push(Batch::default());
    }
    let at = batches.len() - 1;
    &mut batches[at]
}

/// Stores the batches, one after the other.
///
/// # Errors
/// One is refused; those before it are stored.
pub(crate) async fn import(graph: &AgentGraph, batches: Vec<Batch>) -> Result<Written, Refusal> {
    let mut sum = Written::default();
    for batch in batches {
        if batch.entities.is_empty() && batch.relations.is_empty() {
            continue;
        }
        let written = graph.write(batch).await?;
        sum.entities_created += written.entities_created;
        sum.entities_updated += written.entities_updated;
        sum.relations_created += written.relations_created;
        sum.relations_updated += written.relations_updated;
    }
    Ok(sum)
}
