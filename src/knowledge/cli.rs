//! `knowledge`: query the graph of an agent.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Table};
use crate::kernel::cli::{Error, Run};

/// Subcommands of `knowledge`.
#[derive(Debug, Subcommand)]
pub(crate) enum Knowledge {
    /// Find relations, the nearest first
    Query(Query),
    /// List entities, sorted by name
    Entities(Entities),
}

/// Options of `knowledge query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The agent's name or id
    agent: String,
    /// Name or id of the entity where the relations begin
    #[arg(long, value_name = "ENTITY")]
    source: Option<String>,
    /// Only relations of this type, such as works_at
    #[arg(long, value_name = "TYPE")]
    relation: Option<String>,
    /// Name or id of the entity where the relations end
    #[arg(long, value_name = "ENTITY")]
    target: Option<String>,
    /// How many relations to follow from the source or back from the target: 1 to 10. Default: 1
    #[arg(long, value_name = "COUNT")]
    depth: Option<u8>,
    /// Maximum number of relations. Default: 100
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
}

/// Options of `knowledge entities`.
#[derive(Debug, Args)]
pub(crate) struct Entities {
    /// The agent's name or id
    agent: String,
    /// Only entities of this type, such as person
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Maximum number of entities. Default: 100
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u32,
}

impl Run for Knowledge {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (agent, place, wanted) = match &self {
            Self::Query(query) => (&query.agent, "relations", query.parameters()),
            Self::Entities(list) => (&list.agent, "entities", list.parameters()),
        };
        let found = context.block_on(async {
            let id = client.agent_id(agent).await?;
            let wanted: Vec<(&str, &str)> = wanted.iter().map(|(key, value)| (*key, value.as_str())).collect();
            client.get(&format!("/api/memory/agents/{id}/{place}"), &wanted).await
        })?;
        let (render, is_cut): (fn(&Value) -> Table, bool) = match self {
            Self::Query(_) => (relations, found["truncated"] == true),
            Self::Entities(_) => (entities, !found["next_cursor"].is_null()),
        };
        context.print(&found, render)?;
        if is_cut && !context.json() {
            output::note("There may be more; raise --limit or narrow the query.");
        }
        Ok(())
    }
}

type Parameters = Vec<(&'static str, String)>;

fn given<const N: usize>(parameters: [(&'static str, Option<String>); N]) -> Parameters {
    parameters.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

impl Query {
    fn parameters(&self) -> Parameters {
        given([
            ("source", self.source.clone()),
            ("relation", self.relation.clone()),
            ("target", self.target.clone()),
            ("max_depth", self.depth.map(|depth| depth.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ])
    }
}

impl Entities {
    fn parameters(&self) -> Parameters {
        given([("entity_type", self.kind.clone()), ("limit", Some(self.limit.to_string()))])
    }
}

fn relations(found: &Value) -> Table {
    let columns = [
        ("SOURCE", "/source/id"),
        ("RELATION", "/relation/type"),
        ("TARGET", "/target/id"),
        ("CONFIDENCE", "/relation/confidence"),
    ];
    Table::of("relations", output::items(found, "matches"), &columns)
}

fn entities(found: &Value) -> Table {
    let columns = [("ID", "/id"), ("NAME", "/name"), ("TYPE", "/entity_type"), ("CONFIDENCE", "/confidence")];
    Table::of("entities", output::items(found, "entities"), &columns)
}
