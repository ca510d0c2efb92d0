//! Conditions over named values: one language with dialects.
//!
//! A text becomes tokens ([`tokens`]), an expression ([`Parser`], [`Expr`]), a test whose names are fields and whose
//! comparisons make sense ([`check`], [`Test`]), and is then evaluated over values that the caller reads ([`Scene`]).
//!
//! ```text
//! condition := both { "or" both }
//! both      := one { "and" one }
//! one       := "not" one | "(" condition ")" | value test
//! test      := ( = | == | "equals" | != | < | <= | > | >= ) value | ( ~ | !~ ) text | "contains" value
//!            | "matches" pattern | [ "not" ] "in" "(" literal { "," literal } ")" | "is" [ "not" ] "null" | nothing
//! value     := part { ( + | - ) part }
//! part      := literal | - number | - duration | "now" | field
//! ```
//!
//! A [`Dialect`] has some of these: a mark or a keyword that it does not list is not part of it.

mod ast;
mod check;
mod error;
mod eval;
mod lex;
mod literal;
mod parse;
mod pattern;
#[cfg(test)]
mod print;
mod value;

pub(crate) use ast::{At, Comparison, Expr, Literal, Name, Term};
pub(crate) use check::{Fields, check};
pub use error::Error;
pub(crate) use error::hint;
pub(crate) use eval::{Meter, Scalar, Scene, Spent, Test, as_number};
pub(crate) use lex::{Dialect, Lexed, Limits, Messages, Placed, Token, quoted_bytes, tokens};
pub(crate) use literal::{number, pattern};
pub(crate) use parse::Parser;
pub use value::{Type, Value};

#[cfg(test)]
pub(crate) use pattern::compiled;
