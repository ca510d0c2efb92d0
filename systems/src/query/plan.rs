//! A query that has been checked: names are fields, and every comparison makes sense.

use agentsvc_components::Timestamp;

use super::ast::Aggregate;
use super::narrow::Access;
use crate::kernel::expr::{self, Scene, Type, Value};
use crate::kernel::table::{Field, Kind, Relation, Row};

/// A checked query.
#[derive(Debug)]
pub struct Plan {
    pub(super) kind: &'static Kind,
    pub(super) access: Access,
    pub(super) filter: Option<Test>,
    pub(super) output: Output,
    pub(super) columns: Vec<OutputColumn>,
    pub(super) sort: Vec<PlannedKey>,
    pub(super) limit: usize,
}

/// One column of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputColumn {
    /// Its heading: the field or figure as it is written.
    pub name: String,
    /// What its values are.
    pub kind: Type,
}

/// What is made of the rows.
#[derive(Debug)]
pub(super) enum Output {
    /// Each is shown, with these fields.
    Rows(Vec<Path>),
    /// They are grouped.
    Groups {
        /// By these fields; by none: all are one group.
        by: Vec<Path>,
        /// The figures of each group.
        sums: Vec<(Aggregate, Option<Path>)>,
        /// The columns: places in `by`, then in `sums`.
        shown: Vec<usize>,
    },
}

/// What is sorted by.
#[derive(Debug)]
pub(super) struct PlannedKey {
    pub(super) by: KeyOf,
    pub(super) descending: bool,
}

/// Where a sort key comes from.
#[derive(Debug)]
pub(super) enum KeyOf {
    /// A field of the row.
    Field(Path),
    /// A value of the group: a place in `by`, then in `sums`.
    Group(usize),
}

/// A field, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(super) via: Vec<&'static Relation>,
    pub(super) field: &'static Field,
}

/// A condition.
pub(super) type Test = expr::Test<Path>;

/// What a condition compares.
pub(super) type Scalar = expr::Scalar<Path>;

impl Plan {
    /// The columns of the answer.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }
}

impl Path {
    /// The value of a row; nothing where the way ends.
    pub(super) fn read<'w>(&self, row: &Row<'w>) -> Value<'w> {
        let mut row = *row;
        for relation in &self.via {
            let Some(item) = (relation.follow)(&row) else { return Value::Null };
            row.item = item;
        }
        (self.field.read)(&row)
    }
}

/// A row, and the time at which the query began.
pub(super) struct Looked<'a, 'w> {
    pub(super) row: &'a Row<'w>,
    pub(super) now: Timestamp,
}

impl Scene<Path> for Looked<'_, '_> {
    fn value<'s>(&'s self, field: &'s Path) -> Value<'s> {
        field.read(self.row)
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}
