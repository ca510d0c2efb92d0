//! Which rows a condition lets through at most, where an index knows them: those of some ids, or with some value.

use uuid::Uuid;

use super::plan::{Scalar, Test};
use crate::kernel::expr::{Comparison, Value};
use crate::kernel::table::{Cursor, Item, Kind, Lookup, Page};

/// Which rows of a kind are looked at; the filter is asked for each of them all the same.
#[derive(Debug)]
pub(super) enum Access {
    /// All.
    All,
    /// Those with these ids.
    Ids(Vec<Uuid>),
    /// Those that an index knows by the value of a field.
    Lookup(&'static Lookup, Value<'static>),
}

impl Access {
    /// Reads a page; gives where the next one begins.
    pub(super) fn read(&self, kind: &Kind, page: &mut Page<'_, '_>) -> Cursor {
        match self {
            Self::All => (kind.source.all)(page),
            Self::Ids(ids) => {
                let (world, by_id) = (page.world, kind.source.by_id);
                page.nth(ids, |id| Some(Item::Entity(by_id?(world, *id)?)))
            }
            Self::Lookup(lookup, value) => (lookup.rows)(page, value),
        }
    }
}

/// How the rows of `kind` are looked at. Everything that passes `filter` is among them.
pub(super) fn access(kind: &'static Kind, filter: Option<&Test>) -> Access {
    let mut tests = Vec::new();
    if let Some(filter) = filter {
        conjuncts(filter, &mut tests);
    }
    let found = |look: fn(&'static Kind, &Test) -> Option<Access>| tests.iter().find_map(|test| look(kind, test));
    found(by_ids).or_else(|| found(by_value)).unwrap_or(Access::All)
}

/// The conditions that all hold when `test` does.
fn conjuncts<'t>(test: &'t Test, into: &mut Vec<&'t Test>) {
    match test {
        Test::And(all) => all.iter().for_each(|test| conjuncts(test, into)),
        other => into.push(other),
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
    kind.source.by_id?;
    let ids: Vec<&Value<'static>> = match test {
        Test::In(Scalar::Field(path), choices) if path.via.is_empty() && path.field.name == "id" => {
            choices.iter().collect()
        }
        other => equal(other).filter(|(name, _)| name == "id").map(|(_, id)| vec![id])?,
    };
    let mut ids: Vec<Uuid> =
        ids.into_iter().map(|id| if let Value::Id(id) = id { Some(*id) } else { None }).collect::<Option<_>>()?;
    // An id that is named twice is one row.
    ids.sort_unstable();
    ids.dedup();
    Some(Access::Ids(ids))
}

fn by_value(kind: &'static Kind, test: &Test) -> Option<Access> {
    let (name, value) = equal(test)?;
    let lookup = kind.source.lookups.iter().find(|lookup| lookup.fields.contains(&name.as_str()))?;
    Some(Access::Lookup(lookup, value.clone()))
}
