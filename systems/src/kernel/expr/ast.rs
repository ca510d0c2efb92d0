//! An expression as it was written.

use regex::Regex;

/// A part of a text and the column at which it begins. Equal parts at different places are equal.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    /// The column, counted from 1.
    pub(crate) column: usize,
    /// The part.
    pub(crate) node: T,
}

impl<T> At<T> {
    pub(crate) const fn new(column: usize, node: T) -> Self {
        Self { column, node }
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// The name of a field, with the relations that lead to it: `owner.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Vec<String>);

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// All of these hold; at least two.
    And(Vec<Self>),
    /// One of these holds; at least two.
    Or(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// Two values compared.
    Compare(At<Term>, Comparison, At<Term>),
    /// `~`: the text matches the glob; `!~` is the negation.
    Glob(At<Term>, At<String>, bool),
    /// The pattern is found in the text.
    Matches(At<Term>, Pattern),
    /// The text has the other one in it, ignoring case.
    Contains(At<Term>, At<Term>),
    /// One of these.
    In(At<Term>, Vec<At<Literal>>, bool),
    /// The value is absent; `is not null` is the negation.
    IsNull(At<Term>, bool),
    /// A field that is true or false.
    Holds(At<Term>),
}

agentsvc_components::enum_words! {
    /// How two values are compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Comparison [ALL, as_str] {
        /// `=`
        Equal = "=",
        /// `!=`
        Unequal = "!=",
        /// `<`
        Less = "<",
        /// `<=`
        LessOrEqual = "<=",
        /// `>`
        Greater = ">",
        /// `>=`
        GreaterOrEqual = ">=",
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Term {
    /// Of a field.
    Field(Name),
    /// Written down.
    Literal(Literal),
    /// The time of the evaluation.
    Now,
    /// The sum, or the difference when the last is true.
    Sum(Box<At<Self>>, Box<At<Self>>, bool),
}

/// A value that is written down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
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

/// A regular expression that is looked for anywhere in a text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// As written between the slashes, `\/` being `/`.
    pub(super) source: Box<str>,
    /// Written with an `i` behind.
    pub(super) ignore_case: bool,
    /// What there is to compile.
    pub(super) size: usize,
    /// What there is to look at for each byte of a text, at worst.
    pub(super) width: usize,
    pub(super) regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.ignore_case == other.ignore_case
    }
}
