//! Which rows a condition lets through at most, where an index knows them: those of some ids, or of one agent.

use super::ast::Comparison;
use super::plan::{Scalar, Test};
use super::source::{Access, AgentKey, Source};
use super::table::Kind;
use super::value::Value;

/// How the rows of `kind` are looked at. Everything that passes `filter` is among them.
pub(super) fn access(kind: &'static Kind, filter: Option<&Test>) -> Access {
    let mut tests = Vec::new();
    if let Some(filter) = filter {
        conjuncts(filter, &mut tests);
    }
    let found = |look: fn(&'static Kind, &Test) -> Option<Access>| tests.iter().find_map(|test| look(kind, test));
    found(by_ids).or_else(|| found(by_agent)).or_else(|| found(by_workflow)).unwrap_or(Access::All)
}

/// The conditions that all hold when `test` does.
fn conjuncts<'t>(test: &'t Test, into: &mut Vec<&'t Test>) {
    if let Test::And(one, other) = test {
        conjuncts(one, into);
        conjuncts(other, into);
    } else {
        into.push(test);
    }
}

/// The field, with the names of the way to it, and what it equals.
fn equal(test: &Test) -> Option<(String, &Value<'static>)> {
    let (one, other) = match test {
        Test::Compare(one, Comparison::Equal, other) => (one, other),
        _ => return None,
    };
    match (one, other) {
        (Scalar::Field(path), Scalar::Value(value)) | (Scalar::Value(value), Scalar::Field(path)) => {
            let way = path.via.iter().map(|relation| relation.name).chain([path.field.name]);
            Some((way.collect::<Vec<_>>().join("."), value))
        }
        _ => None,
    }
}

fn by_ids(kind: &'static Kind, test: &Test) -> Option<Access> {
    if !kind.source.has_ids() {
        return None;
    }
    let ids: Vec<&Value<'static>> = match test {
        Test::In(Scalar::Field(path), choices) if path.via.is_empty() && path.field.name == "id" => {
            choices.iter().collect()
        }
        other => equal(other).filter(|(name, _)| name == "id").map(|(_, id)| vec![id])?,
    };
    let mut ids: Vec<uuid::Uuid> =
        ids.into_iter().map(|id| if let Value::Id(id) = id { Some(*id) } else { None }).collect::<Option<_>>()?;
    // An id that is named twice is one row.
    ids.sort_unstable();
    ids.dedup();
    Some(Access::Ids(ids))
}

fn by_agent(kind: &'static Kind, test: &Test) -> Option<Access> {
    let (name, value) = equal(test)?;
    let key = match (name.as_str(), value) {
        ("agent_id" | "agent.id", Value::Id(id)) if kind.source.has_agents() => AgentKey::Id(*id),
        ("agent.name", Value::Text(name)) if kind.source.has_agents() => AgentKey::Name(name.as_ref().into()),
        ("name", Value::Text(name)) if kind.source == Source::Agents => AgentKey::Name(name.as_ref().into()),
        _ => return None,
    };
    Some(Access::Agent(key))
}

fn by_workflow(kind: &'static Kind, test: &Test) -> Option<Access> {
    match (equal(test)?, kind.source) {
        ((name, Value::Id(id)), Source::Runs) if name == "workflow_id" || name == "workflow.id" => {
            Some(Access::Workflow(*id))
        }
        _ => None,
    }
}
