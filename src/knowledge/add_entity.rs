//! `knowledge_add_entity`: puts an entity into the agent's knowledge.

use agentsvc_api::knowledge::batch::{About, Batch, NewEntity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{may_write, own};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "knowledge_add_entity",
    "Adds an entity to your knowledge graph: a person, organization, project, concept, event, location, document, tool or \
     anything else. An entity of the same name and type is updated: new properties are added, equal ones replaced.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::MemoryWrite)
.order(40);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Its name, at most 256 bytes.
    name: String,
    /// Its type, a word such as person.
    entity_type: String,
    /// Facts about it, such as {"role": "engineer"}; at most 4 KiB.
    properties: Option<Map<String, Value>>,
}

async fn run(context: Context, Input { name, entity_type, properties }: Input) -> Result<Ended, String> {
    may_write(&context)?;
    let about = About { properties, ..About::default() };
    let entity = NewEntity::new(("name", "entity_type"), &name, &entity_type, about);
    let entity = entity.map_err(|refusal| format!("Not valid: {}.", refusal.message))?;
    let id = entity.key.to_string();
    let batch = Batch { entities: vec![entity], relations: Vec::new() };
    let written = own(&context).write(batch).await.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
    let what = match (written.entities_created, written.entities_updated) {
        (0, 0) => "already exists",
        (0, _) => "was updated",
        _ => "was added",
    };
    Ok(Ended::Text(format!("{id:?} {what}.")))
}
