//! Queries that make sense, by chance, and how they are written.

use std::fmt::{self, Display, Formatter};

use agentsvc_components::Timestamp;
use uuid::Uuid;

use super::ast::{Aggregate, Column, Query, SortKey};
use super::check::path;
use crate::kernel::expr::{At, Comparison, Expr, Literal, Name, Term, Type, Value};
use crate::kernel::table::{Kind, Row};

/// Chance, from a seed.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)) >> 11) as usize % sides
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

fn at<T>(node: T) -> At<T> {
    At { column: 0, node }
}

/// Makes queries that make sense, over values that are there.
pub(super) struct Maker<'d, 'w> {
    pub(super) rng: &'d mut Rng,
    pub(super) kind: &'static Kind,
    pub(super) rows: &'d [Row<'w>],
    pub(super) now: Timestamp,
}

impl Maker<'_, '_> {
    /// A field of the kind, or of what it leads to.
    fn name(&mut self, of: impl Fn(Type) -> bool) -> (Name, Type) {
        let mut all = Vec::new();
        for field in self.kind.fields.iter().filter(|field| of(field.kind)) {
            all.push((vec![field.name.to_owned()], field.kind));
        }
        for relation in self.kind.relations {
            for field in relation.to.fields.iter().filter(|field| of(field.kind)) {
                all.push((vec![relation.name.to_owned(), field.name.to_owned()], field.kind));
            }
        }
        let (name, kind) = self.rng.pick(&all).clone();
        (Name(name), kind)
    }

    /// A value that some row has there, or one like it.
    fn literal(&mut self, name: &Name, kind: Type) -> Literal {
        let row = self.rows.get(self.rng.roll(self.rows.len().max(1)));
        let value = row.map_or(Value::Null, |row| path(self.kind, name, 0).unwrap().read(row));
        let near = self.rng.roll(3) as i64 - 1;
        match (value, kind) {
            (Value::Bool(it), _) => Literal::Bool(it),
            (Value::Number(it), _) => Literal::Number(it + near as f64),
            (Value::Text(it), _) => Literal::Text(it.into_owned()),
            (Value::Time(it), _) => Literal::Time(it.0 + near),
            (Value::Duration(it), _) => Literal::Duration(it + near),
            (Value::Id(it), _) => Literal::Text(it.to_string()),
            (Value::Null, Type::Bool) => Literal::Bool(near == 0),
            (Value::Null, Type::Number) => Literal::Number(near as f64),
            (Value::Null, Type::Word(words)) => Literal::Text((*self.rng.pick(words)).to_owned()),
            (Value::Null, Type::Text) => Literal::Text("\\ \"x\"\n".to_owned()),
            (Value::Null, Type::Id) => Literal::Text(Uuid::nil().to_string()),
            (Value::Null, Type::Time) => Literal::Time(self.now.0),
            (Value::Null, Type::Duration) => Literal::Duration(near * 3_600_001),
        }
    }

    fn expr(&mut self, depth: usize) -> Expr {
        let sides = if depth == 0 { 7 } else { 10 };
        let any = |_| true;
        match self.rng.roll(sides) {
            0 => {
                let (name, _) = self.name(any);
                Expr::IsNull(at(Term::Field(name)), self.rng.roll(2) == 0)
            }
            1 => {
                let (name, kind) = self.name(any);
                let choices = (0..=self.rng.roll(3)).map(|_| at(self.literal(&name, kind))).collect();
                Expr::In(at(Term::Field(name)), choices, self.rng.roll(2) == 0)
            }
            2 => {
                let (name, kind) = self.name(|kind| matches!(kind, Type::Text | Type::Word(_)));
                let Literal::Text(text) = self.literal(&name, kind) else { panic!("a text") };
                let part: String = text.chars().skip(self.rng.roll(3)).take(self.rng.roll(5)).collect();
                let term = at(Term::Field(name));
                if self.rng.roll(2) == 0 {
                    Expr::Contains(term, at(Term::Literal(Literal::Text(part.to_uppercase()))))
                } else {
                    Expr::Glob(term, at(format!("*{part}*").replace('e', "?")), self.rng.roll(2) == 0)
                }
            }
            3 => {
                let (name, _) = self.name(|kind| kind == Type::Time);
                let field = at(Term::Field(name));
                let hours = Literal::Duration(self.rng.roll(48) as i64 * 1_800_000);
                let time =
                    at(Term::Sum(Box::new(at(Term::Now)), Box::new(at(Term::Literal(hours))), self.rng.roll(2) == 0));
                Expr::Compare(field, *self.rng.pick(&Comparison::ALL), time)
            }
            4 => {
                let fields = self.kind.fields.iter().chain(self.kind.relations.iter().flat_map(|r| r.to.fields));
                if !fields.into_iter().any(|field| field.kind == Type::Bool) {
                    return self.expr(0);
                }
                let (name, _) = self.name(|kind| kind == Type::Bool);
                Expr::Holds(at(Term::Field(name)))
            }
            5 | 6 => {
                let (name, kind) = self.name(any);
                let literal = self.literal(&name, kind);
                Expr::Compare(at(Term::Field(name)), *self.rng.pick(&Comparison::ALL), at(Term::Literal(literal)))
            }
            7 => Expr::Not(Box::new(self.expr(depth - 1))),
            8 => Expr::And((0..2 + self.rng.roll(2)).map(|_| self.expr(depth - 1)).collect()),
            _ => Expr::Or((0..2 + self.rng.roll(2)).map(|_| self.expr(depth - 1)).collect()),
        }
    }

    pub(super) fn query(&mut self) -> Query {
        let (mut group, mut columns, mut sort) = (Vec::new(), Vec::new(), Vec::new());
        if self.rng.roll(2) == 0 {
            for _ in 0..=self.rng.roll(2) {
                group.push(at(self.name(|_| true).0));
            }
            columns.push(at(Column::Sum(Aggregate::Count, None)));
            for _ in 0..self.rng.roll(3) {
                let aggregate = *self.rng.pick(&Aggregate::ALL);
                let sums = matches!(aggregate, Aggregate::Sum | Aggregate::Avg);
                let (name, _) = self.name(|kind| !sums || matches!(kind, Type::Number | Type::Duration));
                columns.push(at(Column::Sum(aggregate, Some(name))));
            }
            if self.rng.roll(2) == 0 {
                sort.push(SortKey { by: self.rng.pick(&columns).clone(), descending: self.rng.roll(2) == 0 });
            }
        } else {
            for _ in 0..=self.rng.roll(4) {
                columns.push(at(Column::Field(self.name(|_| true).0)));
            }
            for _ in 0..self.rng.roll(3) {
                let by = at(Column::Field(self.name(|_| true).0));
                sort.push(SortKey { by, descending: self.rng.roll(2) == 0 });
            }
            // The last key tells all rows apart, so that there is one right order.
            sort.push(SortKey { by: at(Column::Field(Name(vec!["id".to_owned()]))), descending: false });
        }
        let filter = (self.rng.roll(5) > 0).then(|| self.expr(3));
        let limit = (self.rng.roll(2) == 0).then(|| at(self.rng.roll(6) as u64));
        Query { kind: at(self.kind.name.to_owned()), filter, group, columns, sort, limit }
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.node)?;
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        clause(f, " group by ", &self.group)?;
        clause(f, " select ", &self.columns)?;
        clause(f, " sort by ", &self.sort)?;
        self.limit.as_ref().map_or(Ok(()), |limit| write!(f, " limit {limit}"))
    }
}

fn clause<T: Display>(f: &mut Formatter<'_>, word: &str, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if at == 0 { word } else { ", " })?;
    }
    Ok(())
}

impl Display for SortKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.by, if self.descending { " desc" } else { "" })
    }
}
