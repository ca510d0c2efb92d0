//! From tokens to an expression, by recursive descent. The grammar stands in the documentation of the module.

use super::ast::{At, Comparison, Expr, Literal, Name, Pattern, Term};
use super::error::Error;
use super::lex::{Dialect, Placed, Token};

/// The tokens and how far they are read.
pub(crate) struct Parser<'a> {
    dialect: &'a Dialect,
    tokens: Vec<Placed>,
    at: usize,
    /// The column of the end.
    end: usize,
    /// What is wrong with a name that is no field.
    unknown: &'a dyn Fn(&str) -> Option<String>,
    /// Conditions around the one that is read, or all so far.
    depth: usize,
}

impl<'a> Parser<'a> {
    /// Reads `tokens`, whose text ends at the column `end`.
    pub(crate) fn new(dialect: &'a Dialect, tokens: Vec<Placed>, end: usize) -> Self {
        Self { dialect, tokens, at: 0, end, unknown: &|_| None, depth: 0 }
    }

    /// Refuses the names for which `unknown` has a reason.
    pub(crate) fn refusing(self, unknown: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { unknown, ..self }
    }

    /// A whole condition.
    pub(crate) fn condition(&mut self) -> Result<Expr, Error> {
        self.joined("or", Expr::Or, |parser| parser.joined("and", Expr::And, Self::one))
    }

    /// Conditions with a keyword between them.
    fn joined(
        &mut self,
        keyword: &str,
        join: fn(Vec<Expr>) -> Expr,
        part: impl Fn(&mut Self) -> Result<Expr, Error>,
    ) -> Result<Expr, Error> {
        let first = part(self)?;
        if !self.is_next(keyword) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat(keyword) {
            self.wider()?;
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn one(&mut self) -> Result<Expr, Error> {
        let depth = self.depth;
        let one = if self.eat("not") {
            self.deeper()?;
            Expr::Not(Box::new(self.one()?))
        } else if self.eat_mark("(") {
            self.deeper()?;
            let expr = self.condition()?;
            self.expect_mark(")")?;
            expr
        } else {
            let left = self.value()?;
            self.test(left)?
        };
        if self.dialect.is_loose {
            self.depth = depth;
        }
        Ok(one)
    }

    /// Counts a condition that stands beside another one.
    fn wider(&mut self) -> Result<(), Error> {
        if self.dialect.is_loose { Ok(()) } else { self.deeper() }
    }

    /// Counts a condition.
    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        let most = self.dialect.limits.conditions;
        if self.depth <= most {
            return Ok(());
        }
        Err(self.fault(format!("more than {most} {}", self.dialect.messages.conditions)))
    }

    fn test(&mut self, left: At<Term>) -> Result<Expr, Error> {
        for comparison in Comparison::ALL {
            if self.eat_mark(comparison.as_str()) || (comparison == Comparison::Equal && self.eat("equals")) {
                return Ok(Expr::Compare(left, comparison, self.value()?));
            }
        }
        for (mark, negated) in [("~", false), ("!~", true)] {
            if self.eat_mark(mark) {
                return Ok(Expr::Glob(left, self.text("a quoted glob, such as \"ops-*\"")?, negated));
            }
        }
        if self.eat("contains") {
            let part = if self.dialect.is_loose {
                self.value()?
            } else {
                let text = self.text("a quoted string")?;
                At::new(text.column, Term::Literal(Literal::Text(text.node)))
            };
            return Ok(Expr::Contains(left, part));
        }
        if self.eat("matches") {
            return Ok(Expr::Matches(left, self.pattern()?));
        }
        if self.eat("is") {
            let negated = self.eat("not");
            self.expect("null")?;
            return Ok(Expr::IsNull(left, negated));
        }
        if self.dialect.is_keyword("in") {
            let negated = self.eat("not");
            if self.eat("in") {
                return Ok(Expr::In(left, self.choices()?, negated));
            }
            if negated {
                return Err(self.unexpected("`in`"));
            }
        }
        match left.node {
            Term::Field(_) if !self.dialect.is_loose => Ok(Expr::Holds(left)),
            _ => Err(self.unexpected(self.dialect.messages.test)),
        }
    }

    fn choices(&mut self) -> Result<Vec<At<Literal>>, Error> {
        self.expect_mark("(")?;
        let mut choices = Vec::new();
        loop {
            let value = self.part()?;
            match value.node {
                Term::Literal(literal) => choices.push(At::new(value.column, literal)),
                _ => return Err(Error::new(value.column, "only literal values are allowed between the parentheses")),
            }
            if !self.eat_mark(",") {
                break;
            }
            let most = self.dialect.limits.choices;
            if choices.len() >= most {
                return Err(self.fault(format!("more than {most} values")));
            }
        }
        self.expect_mark(")")?;
        Ok(choices)
    }

    fn text(&mut self, what: &str) -> Result<At<String>, Error> {
        let column = self.column();
        let Some(Token::Text(text)) = self.peek() else { return Err(self.unexpected(what)) };
        let text = At::new(column, text.clone());
        self.at += 1;
        Ok(text)
    }

    fn pattern(&mut self) -> Result<Pattern, Error> {
        let Some(Token::Pattern(pattern)) = self.peek() else {
            return Err(self.unexpected("a regular expression such as /yes|no/"));
        };
        let pattern = pattern.clone();
        self.at += 1;
        Ok(pattern)
    }

    fn value(&mut self) -> Result<At<Term>, Error> {
        let mut value = self.part()?;
        loop {
            let minus = self.eat_mark("-");
            if !minus && !self.eat_mark("+") {
                return Ok(value);
            }
            self.wider()?;
            let column = value.column;
            value = At::new(column, Term::Sum(Box::new(value), Box::new(self.part()?), minus));
        }
    }

    fn part(&mut self) -> Result<At<Term>, Error> {
        let column = self.column();
        if self.eat_mark("-") {
            let literal = match self.next() {
                Some(Token::Number(number)) => Literal::Number(-number),
                Some(Token::Duration(ms)) => Literal::Duration(-ms),
                _ => return Err(Error::new(column, "only a number or a duration can follow a minus sign")),
            };
            return Ok(At::new(column, Term::Literal(literal)));
        }
        let term = match self.peek() {
            Some(Token::Word(word)) => match (self.dialect.constant)(&word.to_ascii_lowercase()) {
                Some(constant) => constant.map_err(|why| Error::new(column, why))?,
                None => {
                    let name = self.name()?;
                    return Ok(At::new(name.column, Term::Field(name.node)));
                }
            },
            Some(Token::Number(number)) => Term::Literal(Literal::Number(*number)),
            Some(Token::Time(time)) => Term::Literal(Literal::Time(time.0)),
            Some(Token::Duration(ms)) => Term::Literal(Literal::Duration(*ms)),
            Some(Token::Text(text)) => Term::Literal(Literal::Text(text.clone())),
            _ => return Err(self.unexpected(self.dialect.messages.value)),
        };
        self.at += 1;
        Ok(At::new(column, term))
    }

    /// The name of a field.
    pub(crate) fn name(&mut self) -> Result<At<Name>, Error> {
        let what = self.dialect.messages.name;
        let first = self.name_word(what)?;
        if let Some(why) = (self.unknown)(&first.node) {
            return Err(Error::new(first.column, why));
        }
        let mut parts = vec![first.node];
        while self.eat_mark(".") {
            parts.push(self.name_word(what)?.node);
        }
        Ok(At::new(first.column, Name(parts)))
    }

    /// A word that is no keyword; `what` is expected.
    pub(crate) fn name_word(&mut self, what: &str) -> Result<At<String>, Error> {
        match self.peek() {
            Some(Token::Word(word)) if !self.dialect.is_keyword(word) => {
                let word = At::new(self.column(), word.clone());
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// The token that comes next.
    pub(crate) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Where it stands.
    pub(crate) fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(column, _)| *column)
    }

    /// Takes the token that comes next.
    pub(crate) fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// Is this keyword of the dialect next?
    fn is_next(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword))
            && self.dialect.is_keyword(keyword)
    }

    /// Takes a keyword if it is next.
    pub(crate) fn eat(&mut self, keyword: &str) -> bool {
        let is_next = self.is_next(keyword);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a mark if it is next.
    pub(crate) fn eat_mark(&mut self, mark: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Mark(next)) if *next == mark);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a keyword, which must be next.
    pub(crate) fn expect(&mut self, keyword: &str) -> Result<(), Error> {
        if self.eat(keyword) { Ok(()) } else { Err(self.without(keyword)) }
    }

    /// Takes a mark, which must be next.
    pub(crate) fn expect_mark(&mut self, mark: &str) -> Result<(), Error> {
        if self.eat_mark(mark) { Ok(()) } else { Err(self.without(mark)) }
    }

    fn without(&self, what: &str) -> Error {
        let quote = self.dialect.messages.quote;
        self.unexpected(&format!("{quote}{what}{quote}"))
    }

    /// Something else than `expected` comes next.
    pub(crate) fn unexpected(&self, expected: &str) -> Error {
        self.fault((self.dialect.messages.expected)(expected, self.peek()))
    }

    /// Nothing may come next; `expected` else.
    pub(crate) fn finish(&self, expected: &str) -> Result<(), Error> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn fault(&self, why: String) -> Error {
        Error::new(self.column(), why)
    }
}
