//! From tokens to a query: conditions and values.
//!
//! ```text
//! condition := both { "or" both }
//! both      := one { "and" one }
//! one       := "not" one | "(" condition ")" | value test
//! test      := ( = | != | < | <= | > | >= ) value | ( ~ | !~ ) text | "contains" text
//!            | [ "not" ] "in" "(" literal { "," literal } ")" | "is" [ "not" ] "null" | nothing
//! value     := part { ( + | - ) part }
//! part      := literal | - number | - duration | "now" | field
//! ```

use agentsvc_components::kernel::limit;

use super::ast::{At, Comparison, Expr, Literal, Term};
use super::error::QueryError;
use super::lex::Token;
use super::parse::Parser;

impl Parser {
    /// A whole condition.
    pub(super) fn condition(&mut self) -> Result<Expr, QueryError> {
        let mut expr = self.both()?;
        while self.eat("or") {
            self.wider()?;
            expr = Expr::Or(Box::new(expr), Box::new(self.both()?));
        }
        Ok(expr)
    }

    fn both(&mut self) -> Result<Expr, QueryError> {
        let mut expr = self.one()?;
        while self.eat("and") {
            self.wider()?;
            expr = Expr::And(Box::new(expr), Box::new(self.one()?));
        }
        Ok(expr)
    }

    /// Conditions that stand beside each other make a tree that is as deep as they are many.
    fn wider(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth <= limit::QUERY_CONDITIONS_MAX {
            return Ok(());
        }
        Err(QueryError::new(self.column(), format!("more than {} conditions", limit::QUERY_CONDITIONS_MAX)))
    }

    fn one(&mut self) -> Result<Expr, QueryError> {
        if self.eat("not") {
            self.wider()?;
            return Ok(Expr::Not(Box::new(self.one()?)));
        }
        if self.eat_mark("(") {
            self.wider()?;
            let expr = self.condition()?;
            self.expect_mark(")")?;
            return Ok(expr);
        }
        let left = self.value()?;
        self.test(left)
    }

    fn test(&mut self, left: At<Term>) -> Result<Expr, QueryError> {
        for comparison in Comparison::ALL {
            if self.eat_mark(comparison.as_str()) {
                return Ok(Expr::Compare(left, comparison, self.value()?));
            }
        }
        for (mark, negated) in [("~", false), ("!~", true)] {
            if self.eat_mark(mark) {
                return Ok(Expr::Glob(left, self.text("a glob in quotes, such as \"ops-*\"")?, negated));
            }
        }
        if self.eat("contains") {
            return Ok(Expr::Contains(left, self.text("a text in quotes")?));
        }
        if self.eat("is") {
            let negated = self.eat("not");
            self.expect("null")?;
            return Ok(Expr::IsNull(left, negated));
        }
        let negated = self.eat("not");
        if self.eat("in") {
            return Ok(Expr::In(left, self.choices()?, negated));
        }
        if negated {
            return Err(self.unexpected("`in`"));
        }
        match left.node {
            Term::Field(_) => Ok(Expr::Holds(left)),
            _ => Err(self.unexpected("a comparison, such as `=`")),
        }
    }

    fn choices(&mut self) -> Result<Vec<At<Literal>>, QueryError> {
        self.expect_mark("(")?;
        let mut choices = Vec::new();
        loop {
            let value = self.part()?;
            match value.node {
                Term::Literal(literal) => choices.push(At::new(value.column, literal)),
                _ => return Err(QueryError::new(value.column, "only written values stand between the brackets")),
            }
            if !self.eat_mark(",") {
                break;
            }
            if choices.len() >= limit::QUERY_CHOICES_MAX {
                let message = format!("more than {} values", limit::QUERY_CHOICES_MAX);
                return Err(QueryError::new(self.column(), message));
            }
        }
        self.expect_mark(")")?;
        Ok(choices)
    }

    fn text(&mut self, what: &str) -> Result<At<String>, QueryError> {
        let column = self.column();
        match self.peek() {
            Some(Token::Text(_)) => match self.next() {
                Some(Token::Text(text)) => Ok(At::new(column, text)),
                _ => Err(self.unexpected(what)),
            },
            _ => Err(self.unexpected(what)),
        }
    }

    fn value(&mut self) -> Result<At<Term>, QueryError> {
        let mut value = self.part()?;
        loop {
            let minus = match self.peek() {
                Some(Token::Mark("+")) => false,
                Some(Token::Mark("-")) => true,
                _ => return Ok(value),
            };
            self.next();
            self.wider()?;
            let column = value.column;
            value = At::new(column, Term::Sum(Box::new(value), Box::new(self.part()?), minus));
        }
    }

    fn part(&mut self) -> Result<At<Term>, QueryError> {
        let column = self.column();
        let literal = |literal| Ok(At::new(column, Term::Literal(literal)));
        if self.eat("now") {
            return Ok(At::new(column, Term::Now));
        }
        if self.eat("true") {
            return literal(Literal::Bool(true));
        }
        if self.eat("false") {
            return literal(Literal::Bool(false));
        }
        if self.is_next("null") {
            return Err(QueryError::new(column, "whether something is there is asked by `is null` or `is not null`"));
        }
        match self.peek() {
            Some(Token::Word(_)) => {
                let name = self.name()?;
                Ok(At::new(name.column, Term::Field(name.node)))
            }
            Some(Token::Mark("-")) => {
                self.next();
                match self.next() {
                    Some(Token::Number(number)) => literal(Literal::Number(-number)),
                    Some(Token::Duration(ms)) => literal(Literal::Duration(-ms)),
                    _ => Err(QueryError::new(column, "only a number or a duration stands behind a minus")),
                }
            }
            Some(Token::Number(number)) => {
                let number = *number;
                self.next();
                literal(Literal::Number(number))
            }
            Some(Token::Time(time)) => {
                let time = time.0;
                self.next();
                literal(Literal::Time(time))
            }
            Some(Token::Duration(ms)) => {
                let ms = *ms;
                self.next();
                literal(Literal::Duration(ms))
            }
            Some(Token::Text(_)) => {
                let text = self.text("a text")?;
                literal(Literal::Text(text.node))
            }
            _ => Err(self.unexpected("a field or a value")),
        }
    }
}
