//! Queries over the world: a small language that only reads (`docs/query.md`).
//!
//! ```text
//! agents where state = "Running" and tokens > 1000 sort by tokens desc limit 20
//! turns group by state count
//! schedules where next_run < now + 1h and agent.name ~ "ops-*"
//! ```
//!
//! A text becomes tokens ([`lex`]), a query ([`ast`], [`parse`]), a plan whose names are fields and whose comparisons make
//! sense ([`check`], [`plan`]), and is then carried out in short looks ([`scan`]). Nothing of it changes the world.
//!
//! | bound | what happens at it |
//! |---|---|
//! | `QUERY_LOOK_MAX` rows in one look, `QUERY_LOOK_TEXT_MAX` bytes of texts | the next look goes on behind them, after whatever waits for the world |
//! | `QUERY_LOOKED_MAX` rows in all | the answer is what was found so far, and says that it is not complete |
//! | `QUERY_GROUPS_MAX` groups, `QUERY_KEPT_BYTES_MAX` bytes | further ones are not kept; the answer says so |
//! | `QUERY_KEYS_MAX` rows of a kind without an order | further ones are not looked at; the answer says so |

mod ast;
mod check;
mod check_condition;
mod collect;
mod error;
mod lex;
mod narrow;
mod parse;
mod parse_condition;
mod plan;
mod print;
mod scan;
mod source;
mod table;
mod value;

pub use ast::Query;
pub use check::{check, prepare};
pub use error::QueryError;
pub use lex::duration_ms;
pub use parse::parse;
pub use plan::{OutputColumn, Plan};
pub use scan::{Found, Look, Scan};
pub use table::{Field, KINDS, Kind, Relation};
pub use value::{Type, Value};

#[cfg(test)]
mod made;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
