//! `knowledge_add_relation`: joins two entities of the agent's knowledge.

use agentsvc_api::knowledge::batch::{About, Batch, NewEnd, NewRelation};
use agentsvc_components::Refusal;
use agentsvc_systems::knowledge::names;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{may_write, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "knowledge_add_relation",
    "Adds a relation between two entities to your knowledge graph, such as works_at, knows_about, related_to, depends_on, \
     owned_by, created_by, located_in, part_of, uses or produces. Add the entities first: an entity that does not exist is \
     added with the type unknown.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryWrite)
.order(41);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name or id, such as person:ada, of the entity where it begins.
    source: String,
    /// Its type, a word such as works_at.
    relation: String,
    /// Name or id of the entity where it ends.
    target: String,
    /// How sure it is, 0 to 1. Default: 1.
    confidence: Option<f32>,
    /// Facts about it, such as {"since": 2019}; at most 4 KiB.
    properties: Option<Map<String, Value>>,
}

async fn run(context: Context, asked: Input) -> Result<Ended, String> {
    may_write(&context)?;
    let relation = new(asked).map_err(|refusal| format!("Not valid: {}.", refusal.message))?;
    let batch = Batch { entities: Vec::new(), relations: vec![relation] };
    let written = own(&context).write(batch).await.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
    let what = match (written.relations_created, written.relations_updated) {
        (0, 0) => "The relation already exists.",
        (0, _) => "The relation was updated.",
        _ => "The relation was added.",
    };
    let added = match written.entities_created {
        0 => "",
        1 => " One entity was added with the type unknown.",
        _ => " Two entities were added with the type unknown.",
    };
    Ok(Ended::Text(format!("{what}{added}")))
}

fn new(asked: Input) -> Result<NewRelation, Refusal> {
    let Input { source, relation, target, confidence, properties } = asked;
    if let Some(confidence) = confidence {
        names::check_confidence("confidence", confidence)?;
    }
    Ok(NewRelation {
        source: NewEnd::new(("source", ""), &source, None)?,
        relation: names::type_name("relation", &relation)?,
        target: NewEnd::new(("target", ""), &target, None)?,
        about: About { properties, confidence, ..About::default() },
    })
}
