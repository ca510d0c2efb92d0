//! From words to a condition, by recursive descent. The grammar stands at the head of `mod.rs`.

use super::lexer::{self, Token, compares, error, tokens};
use super::{Condition, Error, Operand, Operator, Test};

/// Parentheses and negations that may stand in each other. More: refused.
const DEPTH_MAX: usize = 32;

/// Reads a condition.
pub(super) fn parse(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Condition, Error> {
    let trimmed = text.trim();
    let skipped = text.len() - text.trim_start().len();
    if trimmed.is_empty() {
        return Err(Error { column: 1, text: "the condition is empty".to_owned() });
    }
    if !compares(trimmed) {
        return match tokens(trimmed).as_deref() {
            Ok([(_, Token::Text(quoted))]) if quoted.is_empty() => Err(error(text, skipped, "the text is empty")),
            Ok([(_, Token::Text(quoted))]) => Ok(Condition::Bare(quoted.as_str().into())),
            _ => Ok(Condition::Bare(trimmed.into())),
        };
    }
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, is_known };
    let test = parser.any(0)?;
    match parser.next() {
        None => Ok(Condition::Test(test)),
        Some(_) => {
            parser.at -= 1;
            Err(parser.expected("'and', 'or' or the end"))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token<'a>)>,
    at: usize,
    is_known: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// Where the next word stands, in bytes.
    fn place(&self) -> usize {
        self.tokens.get(self.at).map_or(self.text.trim_end().len(), |(at, _)| *at)
    }

    fn fault(&self, why: impl Into<String>) -> Error {
        error(self.text, self.place(), why)
    }

    fn expected(&self, what: &str) -> Error {
        let end = if self.peek().is_none() { " before the end" } else { "" };
        self.fault(format!("expected {what}{end}"))
    }

    /// Takes the keyword when it comes next.
    fn take(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is_next);
        is_next
    }

    fn any(&mut self, depth: usize) -> Result<Test, Error> {
        let mut tests = vec![self.all(depth)?];
        while self.take("or") {
            tests.push(self.all(depth)?);
        }
        Ok(if tests.len() == 1 { tests.remove(0) } else { Test::Any(tests) })
    }

    fn all(&mut self, depth: usize) -> Result<Test, Error> {
        let mut tests = vec![self.one(depth)?];
        while self.take("and") {
            tests.push(self.one(depth)?);
        }
        Ok(if tests.len() == 1 { tests.remove(0) } else { Test::All(tests) })
    }

    fn one(&mut self, depth: usize) -> Result<Test, Error> {
        if depth > DEPTH_MAX {
            return Err(self.fault(format!("more than {DEPTH_MAX} parentheses and negations stand in each other")));
        }
        if self.take("not") {
            return Ok(Test::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.peek() == Some(&Token::Open) {
            self.at += 1;
            let inner = self.any(depth + 1)?;
            if self.peek() != Some(&Token::Close) {
                return Err(self.expected("')'"));
            }
            self.at += 1;
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Test, Error> {
        let left = self.operand()?;
        if self.take("matches") {
            return match self.peek().cloned() {
                Some(Token::Regex(pattern)) => {
                    self.at += 1;
                    Ok(Test::Matches(left, pattern))
                }
                _ => Err(self.expected("a regular expression such as /yes|no/")),
            };
        }
        let Some(Token::Operator(operator)) = self.peek() else {
            return Err(self.expected("contains, equals, ==, !=, <, <=, >, >= or matches"));
        };
        let operator: Operator = *operator;
        self.at += 1;
        Ok(Test::Compare(left, operator, self.operand()?))
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        const WANTED: &str = "output, input, a variable, a text in quotes or a number";
        let operand = match self.peek() {
            Some(Token::Text(text)) => Operand::Text(text.as_str().into()),
            Some(Token::Number(number)) => Operand::Number(*number),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("output") => Operand::Output,
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("input") => Operand::Input,
            Some(Token::Word(word)) if !lexer::is_keyword(word) => {
                if !(self.is_known)(word) {
                    let why = format!("no step before stores a variable {word:?}; a text is put in quotes");
                    return Err(self.fault(why));
                }
                Operand::Variable((*word).into())
            }
            _ => return Err(self.expected(WANTED)),
        };
        self.at += 1;
        Ok(operand)
    }
}
