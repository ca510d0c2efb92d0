//! A query as it was written.

/// A part of a query and the column at which it begins. Equal parts at different places are equal.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The column, counted from 1.
    pub column: usize,
    /// The part.
    pub node: T,
}

impl<T> At<T> {
    pub(super) const fn new(column: usize, node: T) -> Self {
        Self { column, node }
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// A query. Its clauses may be written in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// What is looked at: `agents`.
    pub kind: At<String>,
    /// `where`: which of those.
    pub filter: Option<Expr>,
    /// `group by`.
    pub group: Vec<At<Name>>,
    /// What is shown; empty means the usual.
    pub columns: Vec<At<Column>>,
    /// `sort by`.
    pub sort: Vec<SortKey>,
    /// `limit`: at most so many rows.
    pub limit: Option<At<u64>>,
}

/// The name of a field, with the relations that lead to it: `agent.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub Vec<String>);

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Every field.
    All,
    /// One field.
    Field(Name),
    /// A figure over the rows of a group, or over all.
    Sum(Aggregate, Option<Name>),
}

/// What is made of the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// How many there are; of a field, how many have one.
    Count,
    /// The sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The mean.
    Avg,
}

impl Aggregate {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Count, Self::Sum, Self::Min, Self::Max, Self::Avg];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
        }
    }
}

/// What rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// A field, or a figure that is among the columns.
    pub by: At<Column>,
    /// The greatest first.
    pub descending: bool,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Both hold.
    And(Box<Expr>, Box<Expr>),
    /// One of them holds.
    Or(Box<Expr>, Box<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// Two values compared.
    Compare(At<Term>, Comparison, At<Term>),
    /// `~`: the text matches the glob; `!~` is the negation.
    Glob(At<Term>, At<String>, bool),
    /// The text has this in it, whatever its case.
    Contains(At<Term>, At<String>),
    /// One of these.
    In(At<Term>, Vec<At<Literal>>, bool),
    /// Nothing is there; `is not null` is the negation.
    IsNull(At<Term>, bool),
    /// A field that says yes or no.
    Holds(At<Term>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Equal, Self::Unequal, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    /// Its mark.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Of a field.
    Field(Name),
    /// Written down.
    Literal(Literal),
    /// The world's time when the query began.
    Now,
    /// The sum, or the difference when the last is true.
    Sum(Box<At<Term>>, Box<At<Term>>, bool),
}

/// A value that is written down.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `true`, `false`.
    Bool(bool),
    /// `1_000`, `-0.5`.
    Number(f64),
    /// `"text"`.
    Text(String),
    /// Milliseconds since 1970: `2026-11-22T10:00:00Z`.
    Time(i64),
    /// Milliseconds: `1h30m`.
    Duration(i64),
}
