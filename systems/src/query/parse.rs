//! From tokens to a query: the clauses.

use agentsvc_components::kernel::limit;

use super::ast::{Aggregate, Column, Query, SortKey};
use super::dialect::{DIALECT, tokens};
use crate::kernel::expr::{At, Error, Parser, Token};

/// Reads a query.
///
/// # Errors
/// The first mistake and where it stands.
pub(super) fn parse(text: &str) -> Result<Query, Error> {
    let end = text.chars().count() + 1;
    let mut parser = Clauses(Parser::new(&DIALECT, tokens(text)?, end));
    let query = parser.query()?;
    parser.0.finish("a clause: where, group by, select, sort by or limit")?;
    Ok(query)
}

/// Reads the clauses.
struct Clauses<'a>(Parser<'a>);

impl Clauses<'_> {
    fn query(&mut self) -> Result<Query, Error> {
        let kind = self.0.name_word("a kind, such as `agents`")?;
        let mut query =
            Query { kind, filter: None, group: Vec::new(), columns: Vec::new(), sort: Vec::new(), limit: None };
        loop {
            let column = self.0.column();
            let twice = |word: &str| Err(Error::new(column, format!("duplicate `{word}`")));
            if self.0.eat("where") {
                if query.filter.is_some() {
                    return twice("where");
                }
                query.filter = Some(self.0.condition()?);
            } else if self.0.eat("group") {
                self.0.expect("by")?;
                if !query.group.is_empty() {
                    return twice("group by");
                }
                query.group = self.list(|this| this.0.name())?;
            } else if self.0.eat("select") || self.peek_aggregate().is_some() {
                if !query.columns.is_empty() {
                    return twice("select");
                }
                query.columns = self.list(Self::output)?;
            } else if self.0.eat("sort") || self.0.eat("order") {
                self.0.expect("by")?;
                if !query.sort.is_empty() {
                    return twice("sort by");
                }
                query.sort = self.list(Self::sort_key)?;
            } else if self.0.eat("limit") {
                if query.limit.is_some() {
                    return twice("limit");
                }
                query.limit = Some(self.rows()?);
            } else {
                return Ok(query);
            }
        }
    }

    /// At least one of something, with commas between.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let mut list = vec![one(self)?];
        while self.0.eat_mark(",") {
            if list.len() >= limit::QUERY_COLUMNS_MAX {
                let message = format!("more than {} items", limit::QUERY_COLUMNS_MAX);
                return Err(Error::new(self.0.column(), message));
            }
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// One column of `select`.
    fn output(&mut self) -> Result<At<Column>, Error> {
        let column = self.0.column();
        if self.0.eat_mark("*") {
            return Ok(At::new(column, Column::All));
        }
        let Some(aggregate) = self.peek_aggregate() else {
            let name = self.0.name()?;
            return Ok(At::new(name.column, Column::Field(name.node)));
        };
        self.0.next();
        let of = if self.0.eat_mark("(") {
            let all = aggregate == Aggregate::Count && self.0.eat_mark("*");
            let of = if all { None } else { Some(self.0.name()?.node) };
            self.0.expect_mark(")")?;
            of
        } else if aggregate == Aggregate::Count {
            None
        } else {
            // `sum tokens` is as good as `sum(tokens)`.
            Some(self.0.name()?.node)
        };
        Ok(At::new(column, Column::Sum(aggregate, of)))
    }

    fn sort_key(&mut self) -> Result<SortKey, Error> {
        let by = self.output()?;
        if by.node == Column::All {
            return Err(Error::new(by.column, "cannot sort by `*`; name a field"));
        }
        let descending = self.0.eat("desc");
        if !descending {
            self.0.eat("asc");
        }
        Ok(SortKey { by, descending })
    }

    fn rows(&mut self) -> Result<At<u64>, Error> {
        let column = self.0.column();
        let most = limit::QUERY_ROWS_MAX as u64;
        match self.0.next() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            Some(Token::Number(rows)) if rows.fract() == 0.0 && (0.0..=most as f64).contains(&rows) => {
                Ok(At::new(column, rows as u64))
            }
            _ => Err(Error::new(column, format!("limit must be a whole number from 0 to {most}"))),
        }
    }

    /// The aggregate whose word comes next.
    fn peek_aggregate(&self) -> Option<Aggregate> {
        let Some(Token::Word(word)) = self.0.peek() else { return None };
        Aggregate::ALL.into_iter().find(|aggregate| word.eq_ignore_ascii_case(aggregate.as_str()))
    }
}
