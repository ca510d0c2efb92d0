//! The condition language of workflows: when a conditional step runs, and when a loop has done enough
//! (spec 1, Workflow, `condition` and `until`). A loose dialect of [`expr`], and bare texts.
//!
//! ```text
//! condition  = bare | any
//! any        = all { "or" all }
//! all        = one { "and" one }
//! one        = "not" one | "(" any ")" | comparison
//! comparison = operand operator operand | operand "matches" regex
//! operator   = "contains" | "equals" | "==" | "!=" | "<" | "<=" | ">" | ">="
//! operand    = "output" | "input" | variable | text | number
//! variable   = letter or "_", then letters, digits, "_", "-" and "."
//! text       = in double or single quotes, with \\ \" \' \n \r \t
//! number     = [ "-" ] digits [ "." digits ]
//! regex      = "/" pattern "/" [ "i" ]
//! ```
//!
//! A text without any operator outside of quotes is *bare*: it holds when the output contains it, case ignored. What is
//! only a quoted text is bare too, so that quotes make any text bare. Words of the language may be written in any case.

mod dialect;
#[cfg(test)]
mod tests;

pub(crate) use dialect::{is_keyword, is_name};

use agentsvc_components::Timestamp;

use self::dialect::{DIALECT, compares};
use crate::kernel::expr::{
    self, At, Error, Expr, Fields, Literal, Meter, Name, Parser, Scene, Spent, Term, Test, Token, Type, Value,
};

/// A condition, ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Condition(Test<Box<str>>);

/// What a condition is asked about.
pub(crate) struct Values<'a> {
    /// The output: of the step before, or of the loop's last iteration.
    pub(crate) output: &'a str,
    /// The input of the step.
    pub(crate) input: &'a str,
    /// What a step stored under a name; an empty text when it stored nothing.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl Condition {
    /// Reads a condition; `is_known` tells which variables there are.
    pub(crate) fn parse(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Self, Error> {
        expr::check(&DIALECT, &Texts, &read(text, is_known)?).map(Self)
    }

    /// Does it hold?
    ///
    /// # Errors
    /// [`Spent`] when that takes more than `meter` has left.
    pub(crate) fn holds(&self, values: &Values<'_>, meter: &mut Meter) -> Result<bool, Spent> {
        meter.take(self.0.compile_units())?;
        self.0.holds(values, meter)
    }

    /// The size of its regular expressions.
    pub(crate) fn patterns_size(&self) -> usize {
        self.0.patterns_size()
    }
}

/// The condition as it was written; a bare text is what the output is to contain.
fn read(text: &str, is_known: &dyn Fn(&str) -> bool) -> Result<Expr, Error> {
    let trimmed = text.trim();
    let begin = text.chars().take_while(|c| c.is_whitespace()).count() + 1;
    if trimmed.is_empty() {
        return Err(Error::new(1, "the condition is empty"));
    }
    if !compares(trimmed) {
        return match expr::tokens(trimmed, &DIALECT).as_deref() {
            Ok([(_, Token::Text(quoted))]) if quoted.is_empty() => Err(Error::new(begin, "the string is empty")),
            Ok([(_, Token::Text(quoted))]) => Ok(bare(quoted)),
            _ => Ok(bare(trimmed)),
        };
    }
    let unknown = |word: &str| {
        let why = || format!("no earlier step sets the variable {word:?}; put strings in quotes");
        (!is_known(word)).then(why)
    };
    let end = text.trim_end().chars().count() + 1;
    let mut parser = Parser::new(&DIALECT, expr::tokens(text, &DIALECT)?, end).refusing(&unknown);
    let expr = parser.condition()?;
    parser.finish("'and', 'or' or the end")?;
    Ok(expr)
}

fn bare(text: &str) -> Expr {
    let literal = Term::Literal(Literal::Text(text.to_owned()));
    Expr::Contains(At::new(1, dialect::field("output")), At::new(1, literal))
}

/// Every name is the name of a text.
struct Texts;

impl Fields for Texts {
    type Field = Box<str>;

    fn field(&self, name: &Name, _column: usize) -> Result<(Box<str>, Type), Error> {
        Ok((name.to_string().into(), Type::Text))
    }
}

impl Scene<Box<str>> for Values<'_> {
    fn value<'s>(&'s self, field: &'s Box<str>) -> Value<'s> {
        Value::text(match &**field {
            "output" => self.output,
            "input" => self.input,
            name => (self.variable)(name).unwrap_or_default(),
        })
    }

    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}
