//! `knowledge_query`: looks things up in the agent's knowledge.

use agentsvc_api::knowledge::graph::{Found, Query};
use agentsvc_api::knowledge::shape::properties;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::EntityKey;
use agentsvc_components::knowledge::record::EntityRecord;
use agentsvc_systems::knowledge::limits::KNOWLEDGE_DEPTH_MAX;
use agentsvc_systems::knowledge::names;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{may_read, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Relations of an answer.
const RELATIONS_MAX: usize = 100;
/// Bytes of an answer, about; below the length from which results are cut in the conversation.
const ANSWER_BYTES_MAX: usize = 24 << 10;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "knowledge_query",
    "Finds relations in your knowledge graph: from a `source`, to a `target`, of a type of `relation`, or all. With `max_depth` \
     it follows relations further from the source, or back from the target; with both, it finds the ways from one to the \
     other. At most 100 relations, the nearest first.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryRead)
.order(42);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name or id, such as person:ada, of the entity where relations begin.
    source: Option<String>,
    /// Type of the relations.
    relation: Option<String>,
    /// Name or id of the entity where they end.
    target: Option<String>,
    /// How many relations to follow, 1 to 10. Default: 1.
    max_depth: Option<u64>,
}

async fn run(context: Context, Input { source, relation, target, max_depth }: Input) -> Result<Ended, String> {
    may_read(&context)?;
    let depth = u8::try_from(max_depth.unwrap_or(1)).ok().filter(|depth| (1..=KNOWLEDGE_DEPTH_MAX).contains(depth));
    let depth = depth.ok_or_else(|| format!("`max_depth` must be 1 to {KNOWLEDGE_DEPTH_MAX}."))?;
    for text in [&source, &target].into_iter().flatten() {
        names::entity_name("name", text).map_err(|refusal| format!("Not valid: {}.", refusal.message))?;
    }
    let relation = relation.map(|word| names::type_name("relation", &word)).transpose();
    let relation = relation.map_err(|refusal| format!("Not valid: {}.", refusal.message))?;
    let query = Query { source, relation, target, depth, limit: RELATIONS_MAX, after: None };
    let found = own(&context).find(query).await.map_err(|refusal| format!("Failed: {}.", refusal.message))?;
    let (text, taint) = told(&found);
    Ok(Ended::Read { text, taint })
}

/// The answer, and the taint of what stands in it.
fn told(found: &Found) -> (String, Taint) {
    let (mut matches, mut entities, mut taint) = (Vec::new(), Map::new(), Taint::NONE);
    let (mut bytes, mut is_cut) = (0, found.is_cut);
    let joined = |key: &EntityKey| found.relations.iter().any(|(of, _)| of.source == *key || of.target == *key);
    // Those that the query names, and nothing joins: all that it knows of them stands here.
    let alone: Vec<_> = found.entities.iter().filter(|(key, _)| !joined(key)).collect();
    for (key, record) in alone {
        bytes += tell(&mut entities, key, record);
        taint = taint.with(record.taint);
    }
    for (key, record) in &found.relations {
        if bytes > ANSWER_BYTES_MAX {
            is_cut = true;
            break;
        }
        let mut told =
            json!({ "source": key.source.to_string(), "relation": key.relation, "target": key.target.to_string() });
        if record.confidence < 1.0 {
            // As a number of eight bytes it would have digits that were never given.
            told["confidence"] = json!((f64::from(record.confidence) * 1e4).round() / 1e4);
        }
        if !record.properties.is_empty() {
            told["properties"] = json!(properties(&record.properties));
        }
        bytes += told.to_string().len();
        taint = taint.with(record.taint);
        for end in [&key.source, &key.target] {
            if let Some(record) = found.entities.get(end) {
                bytes += tell(&mut entities, end, record);
                taint = taint.with(record.taint);
            }
        }
        matches.push(told);
    }
    let mut told = json!({ "matches": matches, "entities": entities });
    if is_cut {
        told["more"] = json!("there are more; ask for less");
    }
    (told.to_string(), taint)
}

/// Adds an entity under its id; gives the bytes that it takes.
fn tell(entities: &mut Map<String, Value>, key: &EntityKey, record: &EntityRecord) -> usize {
    let id = key.to_string();
    if entities.contains_key(&id) {
        return 0;
    }
    let mut told = json!({ "name": record.name });
    if !record.properties.is_empty() {
        told["properties"] = json!(properties(&record.properties));
    }
    let bytes = id.len() + told.to_string().len();
    entities.insert(id, told);
    bytes
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Timestamp;
    use agentsvc_components::knowledge::RelationKey;
    use agentsvc_components::knowledge::record::RelationRecord;

    use super::*;

    fn key(name: &str) -> EntityKey {
        EntityKey { name: name.into(), kind: "person".into() }
    }

    /// Relations from one entity to many others, whose properties have so many bytes.
    fn found(count: usize, bytes: usize) -> Found {
        let entity = |name: &str| EntityRecord {
            name: name.into(),
            properties: format!("{{\"p\":\"{}\"}}", "p".repeat(bytes)).into(),
            confidence: 1.0,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            taint: if name == "n7" { Taint::WEB } else { Taint::NONE },
        };
        let relation = RelationRecord {
            confidence: 0.5,
            properties: "".into(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            taint: Taint::NONE,
        };
        let names: Vec<String> = (0..count).map(|n| format!("n{n}")).collect();
        let to = |name: &String| RelationKey { source: key("hub"), relation: "knows".into(), target: key(name) };
        Found {
            relations: names.iter().map(|name| (to(name), relation.clone())).collect(),
            entities: names.iter().chain([&"hub".to_owned()]).map(|name| (key(name), entity(name))).collect(),
            ..Found::default()
        }
    }

    #[test]
    fn an_answer_is_bounded_says_so_and_has_the_taint_of_what_it_shows() {
        let (text, taint) = told(&found(8, 10));
        let told_all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told_all["matches"].as_array().unwrap().len(), 8);
        assert_eq!(told_all["entities"]["person:n3"]["name"], "n3");
        assert!(told_all.get("more").is_none() && taint == Taint::WEB);
        let (text, taint) = told(&found(8, 4_000));
        assert!(text.len() < ANSWER_BYTES_MAX + 9_000, "{}", text.len());
        let told_some: Value = serde_json::from_str(&text).unwrap();
        assert!(told_some["matches"].as_array().unwrap().len() < 8 && told_some["more"].is_string());
        assert_eq!(taint, Taint::NONE, "what is not shown does not count");
    }
}
