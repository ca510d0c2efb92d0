//! From tokens to a query: the clauses.

use agentsvc_components::kernel::limit;

use super::ast::{Aggregate, At, Column, Name, Query, SortKey};
use super::error::{QueryError, hint};
use super::lex::{Placed, Token, tokens};

/// Words that begin a clause.
const CLAUSES: [&str; 5] = ["where", "group", "select", "sort", "limit"];

/// Reads a query.
///
/// # Errors
/// The first mistake and where it stands.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let tokens = tokens(text)?;
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens, at: 0, end, depth: 0 };
    let query = parser.query()?;
    match parser.peek() {
        None => Ok(query),
        Some(_) => Err(parser.unexpected("a clause: where, group by, select, sort by or limit")),
    }
}

/// The tokens and how far they are read.
pub(super) struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// One behind the last column.
    end: usize,
    /// Conditions around the one that is read.
    pub(super) depth: usize,
}

impl Parser {
    fn query(&mut self) -> Result<Query, QueryError> {
        let (column, kind) = self.name_word("what is looked at, such as `agents`")?;
        let mut query = Query {
            kind: At::new(column, kind),
            filter: None,
            group: Vec::new(),
            columns: Vec::new(),
            sort: Vec::new(),
            limit: None,
        };
        loop {
            let column = self.column();
            let twice = |word: &str| Err(QueryError::new(column, format!("`{word}` stands here for the second time")));
            if self.eat("where") {
                if query.filter.is_some() {
                    return twice("where");
                }
                query.filter = Some(self.condition()?);
            } else if self.eat("group") {
                self.expect("by")?;
                if !query.group.is_empty() {
                    return twice("group by");
                }
                query.group = self.list(Self::name)?;
            } else if self.eat("select") || self.peek_aggregate().is_some() {
                if !query.columns.is_empty() {
                    return twice("select");
                }
                query.columns = self.list(Self::output)?;
            } else if self.eat("sort") || self.eat("order") {
                self.expect("by")?;
                if !query.sort.is_empty() {
                    return twice("sort by");
                }
                query.sort = self.list(Self::sort_key)?;
            } else if self.eat("limit") {
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
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, QueryError>) -> Result<Vec<T>, QueryError> {
        let mut list = vec![one(self)?];
        while self.eat_mark(",") {
            if list.len() >= limit::QUERY_COLUMNS_MAX {
                let message = format!("more than {} stand here", limit::QUERY_COLUMNS_MAX);
                return Err(QueryError::new(self.column(), message));
            }
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// The name of a field.
    pub(super) fn name(&mut self) -> Result<At<Name>, QueryError> {
        let (column, first) = self.name_word("the name of a field")?;
        let mut parts = vec![first];
        while self.eat_mark(".") {
            parts.push(self.name_word("the name of a field")?.1);
        }
        Ok(At::new(column, Name(parts)))
    }

    /// One column of `select`.
    fn output(&mut self) -> Result<At<Column>, QueryError> {
        let column = self.column();
        if self.eat_mark("*") {
            return Ok(At::new(column, Column::All));
        }
        let Some(aggregate) = self.peek_aggregate() else {
            let name = self.name()?;
            return Ok(At::new(name.column, Column::Field(name.node)));
        };
        self.at += 1;
        let of = if self.eat_mark("(") {
            let all = aggregate == Aggregate::Count && self.eat_mark("*");
            let of = if all { None } else { Some(self.name()?.node) };
            self.expect_mark(")")?;
            of
        } else if aggregate == Aggregate::Count {
            None
        } else {
            // `sum tokens` is as good as `sum(tokens)`.
            Some(self.name()?.node)
        };
        Ok(At::new(column, Column::Sum(aggregate, of)))
    }

    fn sort_key(&mut self) -> Result<SortKey, QueryError> {
        let by = self.output()?;
        if by.node == Column::All {
            return Err(QueryError::new(by.column, "rows are sorted by fields, not by `*`"));
        }
        let descending = self.eat("desc");
        if !descending {
            self.eat("asc");
        }
        Ok(SortKey { by, descending })
    }

    fn rows(&mut self) -> Result<At<u64>, QueryError> {
        let column = self.column();
        let most = limit::QUERY_ROWS_MAX as u64;
        match self.next() {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            Some(Token::Number(rows)) if rows.fract() == 0.0 && (0.0..=most as f64).contains(&rows) => {
                Ok(At::new(column, rows as u64))
            }
            _ => Err(QueryError::new(column, format!("limit is a whole number from 0 to {most}"))),
        }
    }

    /// The aggregate whose word comes next.
    fn peek_aggregate(&self) -> Option<Aggregate> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        Aggregate::ALL.into_iter().find(|aggregate| word.eq_ignore_ascii_case(aggregate.as_str()))
    }

    /// The token that comes next.
    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Where it stands.
    pub(super) fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(column, _)| *column)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at)?.1.clone();
        self.at += 1;
        Some(token)
    }

    /// Is this keyword next?
    pub(super) fn is_next(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
    }

    /// Takes a keyword if it is next.
    pub(super) fn eat(&mut self, keyword: &str) -> bool {
        let is_next = self.is_next(keyword);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a mark if it is next.
    pub(super) fn eat_mark(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Mark(next)) if *next == mark);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, keyword: &str) -> Result<(), QueryError> {
        if self.eat(keyword) { Ok(()) } else { Err(self.unexpected(&format!("`{keyword}`"))) }
    }

    pub(super) fn expect_mark(&mut self, mark: &str) -> Result<(), QueryError> {
        if self.eat_mark(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    fn name_word(&mut self, what: &str) -> Result<(usize, String), QueryError> {
        let column = self.column();
        match self.peek() {
            Some(Token::Word(word)) if !is_keyword(word) => {
                let word = word.clone();
                self.at += 1;
                Ok((column, word))
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Something else than `expected` comes next.
    pub(super) fn unexpected(&self, expected: &str) -> QueryError {
        let found = match self.peek() {
            None => "the query ends here".to_owned(),
            Some(Token::Word(word)) => {
                let near = hint(
                    word,
                    CLAUSES.into_iter().chain(["and", "or", "by"]).filter(|near| !word.eq_ignore_ascii_case(near)),
                );
                return QueryError::new(self.column(), format!("expected {expected}, found `{word}`{near}"));
            }
            Some(Token::Mark(mark)) => format!("found `{mark}`"),
            Some(Token::Number(number)) => format!("found {number}"),
            Some(Token::Text(_)) => "found a text".to_owned(),
            Some(Token::Time(time)) => format!("found {time}"),
            Some(Token::Duration(_)) => "found a duration".to_owned(),
        };
        QueryError::new(self.column(), format!("expected {expected}; {found}"))
    }
}

/// Words that are no names. No field and no kind is called so; a test sees to it.
pub(super) const KEYWORDS: [&str; 24] = [
    "where", "group", "by", "select", "sort", "order", "limit", "and", "or", "not", "in", "is", "null", "contains",
    "asc", "desc", "now", "true", "false", "count", "sum", "min", "max", "avg",
];

fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}
