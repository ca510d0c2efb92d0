//! An agent's knowledge: written, queried, deleted (spec 2, Memory).

use std::sync::Arc;

use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::knowledge::key::{End, parse_relation, relation_row, relations_prefix};
use agentsvc_systems::knowledge::limits::{KNOWLEDGE_DEPTH_MAX, KNOWLEDGE_TRIPLES_MAX};
use agentsvc_systems::knowledge::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::{TextCursor, list_schema};
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::{lists, reply};
use crate::knowledge::batch::Batch;
use crate::knowledge::graph::{AgentGraph, Query};
use crate::knowledge::shape::{EntityBody, EntityView, FoundView, MatchBody, TripleBody};

/// What a query or a change of many costs the client's rate budget.
const COST: u32 = 5;
/// Relations of an answer, unless the client says so.
const LIMIT: usize = 100;
/// Entities that are read from the disk at once.
const PAGE_ENTITIES: usize = 256;
/// Bytes of a name or id in a query.
const TEXT_BYTES_MAX: usize = 512;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/memory/agents/{id}/relations", "Query the knowledge of an agent", |call| Box::pin(query(call)))
        .reaching(Reach::Agent)
        .large()
        .cost(COST)
        .query::<RelationsQuery>()
        .replies(&[Reply::json::<FoundView>(200, "relations that match, nearest first")]),
    Route::post("/api/memory/agents/{id}/relations", "Store relations, all or none", |call| Box::pin(write(call)))
        .reaching(Reach::Agent)
        .cost(COST)
        .body::<RelationsBody>()
        .replies(&[Reply::json::<Processed>(200, "stored"), Reply::error(409, "the knowledge is full")]),
    Route::delete("/api/memory/agents/{id}/relations", "Delete relations that match", |call| Box::pin(remove(call)))
        .reaching(Reach::Agent)
        .cost(COST)
        .query::<EndsQuery>()
        .replies(&[Reply::json::<Deleted>(200, "deleted")]),
    Route::get("/api/memory/agents/{id}/entities", "List the entities of an agent", |call| Box::pin(entities(call)))
        .reaching(Reach::Agent)
        .large()
        .query::<EntitiesQuery>()
        .replies(&[Reply::json::<EntityList>(200, "entities, sorted by name")]),
    Route::delete("/api/memory/agents/{id}/entities/{entity}", "Delete an entity with its relations", |call| {
        Box::pin(remove_entity(call))
    })
    .reaching(Reach::Agent)
    .cost(COST)
    .replies(&[Reply::json::<Deleted>(200, "deleted")]),
];

fn graph(call: &Call) -> Result<AgentGraph, Error> {
    let (bridge, store) = (call.api.bridge.clone(), call.api.service()?);
    Ok(AgentGraph { bridge, store, agent: call.id("id")?, by: None })
}

/// Which relations to delete: at least one parameter.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EndsQuery {
    /// Name or id of the entity where they begin.
    source: Option<String>,
    /// Their type.
    relation: Option<String>,
    /// Name or id of the entity where they end.
    target: Option<String>,
}

impl EndsQuery {
    /// Checks the parameters.
    fn read(self) -> Result<Query, Error> {
        for (field, text) in [("source", &self.source), ("target", &self.target)] {
            let Some(text) = text else { continue };
            let is_text = !text.trim().is_empty() && text.len() <= TEXT_BYTES_MAX;
            if !is_text || text.chars().any(char::is_control) {
                let why = format!("query parameter '{field}' is not a name or id of an entity");
                return Err(Error::bad_field(field, why));
            }
        }
        let relation = self.relation.map(|word| names::type_name("relation", &word)).transpose()?;
        Ok(Query { source: self.source, relation, target: self.target, ..Query::default() })
    }
}

/// Which relations to find.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RelationsQuery {
    /// Name or id of an entity: relations that begin there. With `target`: relations on ways from the one to the other.
    source: Option<String>,
    /// Only relations of this type.
    relation: Option<String>,
    /// Name or id of an entity: relations that end there.
    target: Option<String>,
    /// How many relations to follow from `source`, or back from `target`: 1 to 10. Default: 1.
    max_depth: Option<u64>,
    /// Maximum number of relations, at most 1000. Default: 100.
    limit: Option<usize>,
    /// `next_cursor` of the previous answer, without `source` and `target`.
    cursor: Option<String>,
}

async fn query(call: Call) -> Result<Response, Error> {
    let graph = graph(&call)?;
    let RelationsQuery { source, relation, target, max_depth, limit, cursor } = call.query()?;
    let limit = lists::limit(limit)?.unwrap_or(LIMIT);
    let depth = max_depth.unwrap_or(1);
    let depth = u8::try_from(depth).ok().filter(|depth| (1..=KNOWLEDGE_DEPTH_MAX).contains(depth));
    let depth = depth.ok_or_else(|| {
        Error::bad_field("max_depth", format!("query parameter 'max_depth' must be 1 to {KNOWLEDGE_DEPTH_MAX}"))
    })?;
    let query = EndsQuery { source, relation, target }.read()?;
    let after = cursor.map(|cursor| after(&graph, &query, &cursor)).transpose()?;
    // An agent that does not live has no knowledge.
    graph.usage().await?;
    let found = graph.find(Query { depth, limit, after, ..query }).await?;
    let next = found.next.as_ref().map(|next| TextCursor(tail(&graph, next).into()).to_string());
    reply::ok(&FoundView::of(found, next))
}

/// What tells a relation from the others of its agent, as a text.
fn tail(graph: &AgentGraph, relation: &RelationKey) -> String {
    let start = relations_prefix(graph.agent, End::Any, None).len();
    String::from_utf8_lossy(&relation_row(graph.agent, relation)[start..]).into_owned()
}

/// The relation that a cursor names.
fn after(graph: &AgentGraph, query: &Query, cursor: &str) -> Result<RelationKey, Error> {
    if query.source.is_some() || query.target.is_some() {
        return Err(Error::bad_field("cursor", "query parameter 'cursor' works without 'source' and 'target' only"));
    }
    let wrong = || Error::bad_field("cursor", "query parameter 'cursor' is not a valid cursor of this list");
    let TextCursor(tail) = lists::cursor(Some(cursor))?.ok_or_else(wrong)?;
    let mut row = relations_prefix(graph.agent, End::Any, None);
    row.extend_from_slice(tail.as_bytes());
    parse_relation(&row).ok_or_else(wrong)
}

/// What to store: `relations`, or an answer of `GET` as it is. The body may also be the array of `relations` alone.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RelationsBody {
    /// At most 1000.
    relations: Option<Vec<TripleBody>>,
    /// Entities, with or without relations; at most 1000.
    entities: Option<Vec<EntityBody>>,
    /// Relations as `GET` gives them; at most 1000.
    matches: Option<Vec<MatchBody>>,
    /// Ignored.
    count: Option<Value>,
    /// Ignored.
    truncated: Option<Value>,
    /// Ignored.
    next_cursor: Option<Value>,
}

/// What was stored.
#[derive(Serialize, JsonSchema)]
struct Processed {
    agent_id: uuid::Uuid,
    /// Relations of the request.
    triples_processed: usize,
    /// Entities that are new.
    entities_created: usize,
    /// Entities that were changed.
    entities_updated: usize,
    /// Relations that are new.
    relations_created: usize,
    /// Relations that were changed.
    relations_updated: usize,
}

async fn write(call: Call) -> Result<Response, Error> {
    let graph = graph(&call)?;
    let is_array = call.is_array();
    let body = if is_array {
        RelationsBody { relations: Some(call.json_array()?), ..RelationsBody::default() }
    } else {
        call.json()?
    };
    let batch = batch(body, if is_array { "" } else { "relations" })?;
    let triples_processed = batch.relations.len();
    // A request without items still needs an agent that lives.
    graph.usage().await?;
    let agent_id = graph.agent.0;
    let written = graph.write(batch).await?;
    reply::ok(&Processed {
        agent_id,
        triples_processed,
        entities_created: written.entities_created,
        entities_updated: written.entities_updated,
        relations_created: written.relations_created,
        relations_updated: written.relations_updated,
    })
}

/// Checks every item before any is stored. `name` is where the relations stand.
fn batch(body: RelationsBody, name: &str) -> Result<Batch, Error> {
    let RelationsBody { relations, entities, matches, .. } = body;
    if relations.is_none() && entities.is_none() && matches.is_none() {
        return Err(Error::bad_field("relations", "relations: missing; send an array of relations"));
    }
    let (relations, entities) = (relations.unwrap_or_default(), entities.unwrap_or_default());
    let matches = matches.unwrap_or_default();
    let lengths = [("relations", relations.len()), ("entities", entities.len()), ("matches", matches.len())];
    for (field, length) in lengths.into_iter().chain([("relations", relations.len() + matches.len())]) {
        if length > KNOWLEDGE_TRIPLES_MAX {
            return Err(Error::bad_field(field, format!("{field}: more than {KNOWLEDGE_TRIPLES_MAX}")));
        }
    }
    let mut batch = Batch::default();
    for (at, entity) in entities.into_iter().enumerate() {
        batch.entities.push(entity.read(&format!("entities[{at}]."))?);
    }
    for (at, triple) in relations.into_iter().enumerate() {
        batch.relations.push(triple.read(&format!("{name}[{at}]."))?);
    }
    for (at, found) in matches.into_iter().enumerate() {
        batch.relations.push(found.read(&format!("matches[{at}]."))?);
    }
    Ok(batch)
}

/// What was deleted.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    status: &'static str,
    /// Relations that were deleted.
    deleted: usize,
}

async fn remove(call: Call) -> Result<Response, Error> {
    let graph = graph(&call)?;
    let query = call.query::<EndsQuery>()?.read()?;
    graph.usage().await?;
    if query.source.is_none() && query.relation.is_none() && query.target.is_none() {
        return Err(Error::bad_field("source", "give at least one of 'source', 'relation' and 'target'"));
    }
    let deleted = graph.delete_relations(&query).await?;
    reply::ok(&Deleted { status: "deleted", deleted })
}

async fn remove_entity(call: Call) -> Result<Response, Error> {
    let graph = graph(&call)?;
    let entity = call.param("entity")?.into_owned();
    let deleted = graph.delete_entity(&entity).await?;
    let deleted = deleted.ok_or_else(|| Error::not_found(format!("entity not found: {entity}")))?;
    reply::ok(&Deleted { status: "deleted", deleted })
}

/// Which entities to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EntitiesQuery {
    /// Only entities of this type.
    entity_type: Option<String>,
    /// Only entities whose name contains this text, in any case.
    q: Option<String>,
    /// Maximum number of entities. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

list_schema! {
    /// A list of entities.
    EntityList {
        entities: EntityView,
        /// Entities in all, of every type.
        total: u64
    }
}

async fn entities(call: Call) -> Result<Response, Error> {
    let graph = graph(&call)?;
    let EntitiesQuery { entity_type, q, limit, cursor } = call.query()?;
    let limit = lists::limit(limit)?;
    let kind = entity_type.map(|kind| names::type_name("entity_type", &kind)).transpose()?;
    // Keys hold names in lower case, with single spaces.
    let part: Arc<str> = q.unwrap_or_default().to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ").into();
    let after = lists::cursor::<TextCursor>(cursor.as_deref())?;
    if after.as_ref().is_some_and(|TextCursor(text)| split(text).is_none()) {
        return Err(Error::bad_field("cursor", "query parameter 'cursor' is not a valid cursor of this list"));
    }
    let total = u64::from(graph.usage().await?.entities);
    lists::answer(limit, after, Shape::of("entities"), move |after, limit| {
        let (graph, kind, part) = (graph.clone(), kind.clone(), Arc::clone(&part));
        let after = after.and_then(|TextCursor(text)| split(&text));
        async move {
            let limit = limit.min(PAGE_ENTITIES);
            let rows = graph.entities(after, limit).await?;
            let next = (rows.len() == limit).then(|| rows.last().map(|(key, _)| joined(key))).flatten();
            let fits =
                |key: &EntityKey| kind.as_ref().is_none_or(|kind| key.kind == *kind) && key.name.contains(&*part);
            let items = rows.into_iter().filter(|(key, _)| fits(key)).map(|(key, record)| EntityView::of(key, record));
            Ok(Page { items: items.collect(), next, total: Some(total) })
        }
    })
    .await
}

fn joined(key: &EntityKey) -> TextCursor {
    TextCursor(format!("{}\0{}", key.name, key.kind).into())
}

fn split(cursor: &str) -> Option<EntityKey> {
    let (name, kind) = cursor.split_once('\0')?;
    Some(EntityKey { name: name.into(), kind: kind.into() })
}
