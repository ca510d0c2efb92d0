//! A query as it was written.

use std::fmt::{self, Display, Formatter};

use crate::kernel::expr::{At, Expr, Name};

/// A query. Its clauses may be written in any order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Query {
    /// What is looked at: `agents`.
    pub(super) kind: At<String>,
    /// `where`: which of those.
    pub(super) filter: Option<Expr>,
    /// `group by`.
    pub(super) group: Vec<At<Name>>,
    /// What is shown; empty means the usual.
    pub(super) columns: Vec<At<Column>>,
    /// `sort by`.
    pub(super) sort: Vec<SortKey>,
    /// `limit`: at most so many rows.
    pub(super) limit: Option<At<u64>>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Every field.
    All,
    /// One field.
    Field(Name),
    /// A figure over the rows of a group, or over all.
    Sum(Aggregate, Option<Name>),
}

agentsvc_components::enum_words! {
    /// What is made of the rows of a group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Aggregate [ALL, as_str] {
        /// How many there are; of a field, how many have one.
        Count = "count",
        /// The sum.
        Sum = "sum",
        /// The least.
        Min = "min",
        /// The greatest.
        Max = "max",
        /// The mean.
        Avg = "avg",
    }
}

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SortKey {
    /// A field, or a figure that is among the columns.
    pub(super) by: At<Column>,
    /// The greatest first.
    pub(super) descending: bool,
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Field(name) => name.fmt(f),
            Self::Sum(aggregate, None) => f.write_str(aggregate.as_str()),
            Self::Sum(aggregate, Some(name)) => write!(f, "{}({name})", aggregate.as_str()),
        }
    }
}
