//! From a query as it was written to one that can be carried out.

use std::sync::Arc;

use agentsvc_components::kernel::limit;

use super::ast::{Aggregate, Column, Query, SortKey};
use super::dialect::DIALECT;
use super::narrow::access;
use super::parse::parse;
use super::plan::{KeyOf, Output, OutputColumn, Path, Plan, PlannedKey};
use super::{KINDS, Kind};
use crate::kernel::expr::{self, At, Error, Fields, Name, Type, hint};

/// Relations that may lead from one to the next.
const RELATIONS_MAX: usize = 3;

/// Reads and checks a query.
///
/// # Errors
/// The first mistake and where it stands.
pub fn prepare(text: &str) -> Result<Arc<Plan>, Error> {
    check(&parse(text)?).map(Arc::new)
}

/// Checks a query.
///
/// # Errors
/// The first mistake and where it stands.
fn check(query: &Query) -> Result<Plan, Error> {
    let kind = KINDS.into_iter().find(|kind| kind.name == query.kind.node).ok_or_else(|| {
        let name = &query.kind.node;
        let near = hint(name, KINDS.into_iter().map(|kind| kind.name));
        let near = if near.is_empty() { "; GET /api/world/query/schema lists them all".to_owned() } else { near };
        Error::new(query.kind.column, format!("unknown kind `{name}`{near}"))
    })?;
    let filter = query.filter.as_ref().map(|expr| expr::check(&DIALECT, &kind, expr)).transpose()?;
    let sums = query.columns.iter().any(|column| matches!(column.node, Column::Sum(..)));
    let (output, columns) = if sums || !query.group.is_empty() { groups(kind, query)? } else { rows(kind, query)? };
    let sort = query.sort.iter().map(|key| sort_key(kind, &output, key)).collect::<Result<_, _>>()?;
    Ok(Plan {
        kind,
        access: access(kind, filter.as_ref()),
        filter,
        output,
        columns,
        sort,
        limit: query.limit.as_ref().map_or(limit::QUERY_ROWS_DEFAULT, |limit| limit.node as usize),
    })
}

impl Fields for &'static Kind {
    type Field = Path;

    fn field(&self, name: &Name, column: usize) -> Result<(Path, Type), Error> {
        let path = path(self, name, column)?;
        let of = path.field.kind;
        Ok((path, of))
    }
}

/// The field that a name means.
pub(super) fn path(kind: &'static Kind, name: &Name, column: usize) -> Result<Path, Error> {
    let (mut at, mut via) = (kind, Vec::new());
    let Some((last, way)) = name.0.split_last() else { return Err(Error::new(column, "a name is missing")) };
    for part in way {
        let Some(relation) = at.relation(part) else {
            let near = hint(part, at.relations.iter().map(|relation| relation.name));
            return Err(Error::new(column, format!("{} have no relation `{part}`{near}", at.name)));
        };
        if via.len() == RELATIONS_MAX {
            return Err(Error::new(column, format!("a field path can have at most {RELATIONS_MAX} relations")));
        }
        via.push(relation);
        at = relation.to;
    }
    if let Some(field) = at.field(last) {
        return Ok(Path { via, field });
    }
    if let Some(relation) = at.relation(last) {
        let message =
            format!("`{last}` is a relation to {}; use `{name}.id` or another of its fields", relation.to.name);
        return Err(Error::new(column, message));
    }
    let near = hint(last, at.fields.iter().map(|field| field.name));
    Err(Error::new(column, format!("unknown field `{last}` of {}{near}", at.name)))
}

fn heading(name: &Name, path: &Path) -> OutputColumn {
    OutputColumn { name: name.to_string(), kind: path.field.kind }
}

/// Each row is shown.
fn rows(kind: &'static Kind, query: &Query) -> Result<(Output, Vec<OutputColumn>), Error> {
    let (mut paths, mut columns) = (Vec::new(), Vec::new());
    let mut add = |name: &Name, column: usize| {
        let path = path(kind, name, column)?;
        columns.push(heading(name, &path));
        paths.push(path);
        Ok::<_, Error>(())
    };
    let named = |text: &str| Name(text.split('.').map(str::to_owned).collect());
    if query.columns.is_empty() {
        for name in kind.shown {
            add(&named(name), query.kind.column)?;
        }
    }
    for column in &query.columns {
        match &column.node {
            Column::Field(name) => add(name, column.column)?,
            Column::All => {
                for field in kind.fields {
                    add(&named(field.name), column.column)?;
                }
            }
            Column::Sum(..) => {}
        }
    }
    if paths.len() > limit::QUERY_COLUMNS_MAX {
        let message = format!("more than {} columns", limit::QUERY_COLUMNS_MAX);
        return Err(Error::new(query.columns.last().map_or(1, |last| last.column), message));
    }
    Ok((Output::Rows(paths), columns))
}

/// Rows are grouped.
fn groups(kind: &'static Kind, query: &Query) -> Result<(Output, Vec<OutputColumn>), Error> {
    let mut by = Vec::new();
    let mut by_columns = Vec::new();
    for name in &query.group {
        let path = path(kind, &name.node, name.column)?;
        by_columns.push(heading(&name.node, &path));
        by.push(path);
    }
    let (mut sums, mut sum_columns, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    let names_groups = query.columns.iter().any(|column| !matches!(column.node, Column::Sum(..)));
    if !names_groups {
        shown.extend(0..by.len());
    }
    let count = At::new(query.kind.column, Column::Sum(Aggregate::Count, None));
    let usual = [count];
    for column in if query.columns.is_empty() { &usual[..] } else { &query.columns } {
        match &column.node {
            Column::All => return Err(Error::new(column.column, "`*` cannot be used with `group by`")),
            Column::Field(name) => {
                let place = query.group.iter().position(|group| group.node == *name).ok_or_else(|| {
                    Error::new(column.column, format!("`{name}` is neither an aggregate nor listed in `group by`"))
                })?;
                shown.push(place);
            }
            Column::Sum(aggregate, name) => {
                let (path, kind) = figure(kind, *aggregate, name.as_ref(), column.column)?;
                shown.push(by.len() + sums.len());
                sums.push((*aggregate, path));
                sum_columns.push(OutputColumn { name: column.node.to_string(), kind });
            }
        }
    }
    let all: Vec<OutputColumn> = by_columns.into_iter().chain(sum_columns).collect();
    let columns = shown.iter().map(|place| all[*place].clone()).collect();
    Ok((Output::Groups { by, sums, shown }, columns))
}

/// What a figure is made of, and what it is.
fn figure(
    kind: &'static Kind,
    aggregate: Aggregate,
    name: Option<&Name>,
    column: usize,
) -> Result<(Option<Path>, Type), Error> {
    let Some(name) = name else { return Ok((None, Type::Number)) };
    let path = path(kind, name, column)?;
    let of = path.field.kind;
    let kind = match aggregate {
        Aggregate::Count => Type::Number,
        Aggregate::Min | Aggregate::Max => of,
        Aggregate::Sum | Aggregate::Avg if matches!(of, Type::Number | Type::Duration) => of,
        Aggregate::Sum | Aggregate::Avg => {
            let message =
                format!("{}(..) needs a number or a duration; `{name}` is a {}", aggregate.as_str(), of.as_str());
            return Err(Error::new(column, message));
        }
    };
    Ok((Some(path), kind))
}

fn sort_key(kind: &'static Kind, output: &Output, key: &SortKey) -> Result<PlannedKey, Error> {
    let (column, descending) = (key.by.column, key.descending);
    let by = match (output, &key.by.node) {
        (Output::Rows(_), Column::Field(name)) => KeyOf::Field(path(kind, name, column)?),
        (Output::Rows(_), other) => {
            return Err(Error::new(column, format!("`{other}` is an aggregate and needs `group by`")));
        }
        (Output::Groups { by, sums, .. }, wanted) => {
            let field = |path: &Path, name: &Name| same(path, name);
            let place = match wanted {
                Column::Field(name) => by.iter().position(|path| field(path, name)),
                Column::Sum(aggregate, name) => {
                    let is_it = |(other, path): &(Aggregate, Option<Path>)| {
                        other == aggregate
                            && match (path, name) {
                                (None, None) => true,
                                (Some(path), Some(name)) => field(path, name),
                                _ => false,
                            }
                    };
                    sums.iter().position(is_it).map(|place| by.len() + place)
                }
                Column::All => None,
            };
            let message = || format!("groups can only be sorted by a column of the result; `{wanted}` is not one");
            KeyOf::Group(place.ok_or_else(|| Error::new(column, message()))?)
        }
    };
    Ok(PlannedKey { by, descending })
}

/// Is this the field that the name means?
fn same(path: &Path, name: &Name) -> bool {
    let way = path.via.iter().map(|relation| relation.name).chain([path.field.name]);
    way.eq(name.0.iter().map(String::as_str))
}
