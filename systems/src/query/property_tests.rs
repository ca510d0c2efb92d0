//! Queries nobody would write: no text makes the reader panic, what is printed is read as the same, and what is found is
//! what a simple walk over everything finds.

use std::cmp::Ordering;

use agentsvc_components::{
    AgentId, ApprovalId, GoalId, RunId, ScheduleId, SessionId, TaskId, Timestamp, TriggerId, TurnId,
};
use bevy_ecs::prelude::{Component, Entity, World};
use proptest::prelude::*;
use uuid::Uuid;

use super::ast::{Aggregate, Column, Query};
use super::check::path;
use super::dialect::KEYWORDS;
use super::made::{Maker, Rng};
use super::parse::parse;
use super::tests::{run, world};
use super::{KINDS, Kind, prepare};
use crate::kernel::expr::{Comparison, Expr, Literal, Term, Value};
use crate::kernel::table::{Item, Row};

/// A world that lies open: every row of a kind, by a walk over its entities.
struct Open<'w> {
    world: &'w World,
    kind: &'static Kind,
    rows: Vec<Row<'w>>,
    now: Timestamp,
}

fn entities<C: Component>(world: &mut World) -> Vec<Entity> {
    world.query_filtered::<Entity, bevy_ecs::prelude::With<C>>().iter(world).collect()
}

/// The kinds whose rows are entities, and all of those.
fn all_of(world: &mut World, kind: &Kind) -> Vec<Entity> {
    use agentsvc_components::schedule::{Schedule, ScheduleKind};
    let of_family = |world: &mut World, family: ScheduleKind| {
        let all = entities::<ScheduleId>(world);
        all.into_iter().filter(|e| world.get::<Schedule>(*e).is_some_and(|s| s.kind == family)).collect()
    };
    match kind.name {
        "agents" => entities::<AgentId>(world),
        "sessions" => {
            let all = entities::<SessionId>(world);
            let shown = |e: &Entity| !world.get::<agentsvc_components::session::Session>(*e).unwrap().ephemeral;
            all.into_iter().filter(shown).collect()
        }
        "turns" => entities::<TurnId>(world),
        "triggers" => entities::<TriggerId>(world),
        "schedules" => of_family(world, ScheduleKind::Schedule),
        "cron_jobs" => of_family(world, ScheduleKind::Cron),
        "goals" => entities::<GoalId>(world),
        "tasks" => entities::<TaskId>(world),
        "runs" => entities::<RunId>(world),
        "approvals" => entities::<ApprovalId>(world),
        other => panic!("{other} is not walked"),
    }
}

const WALKED: [&str; 10] =
    ["agents", "sessions", "turns", "triggers", "schedules", "cron_jobs", "goals", "tasks", "runs", "approvals"];

impl<'w> Open<'w> {
    fn value(&self, row: &Row<'w>, term: &Term) -> Value<'w> {
        match term {
            Term::Field(name) => path(self.kind, name, 0).unwrap().read(row),
            Term::Now => Value::Time(self.now),
            Term::Literal(literal) => written(literal),
            Term::Sum(one, other, minus) => {
                let sign = if *minus { -1 } else { 1 };
                match (self.value(row, &one.node), self.value(row, &other.node)) {
                    (Value::Time(time), Value::Duration(ms)) => Value::Time(Timestamp(time.0 + sign * ms)),
                    (Value::Time(one), Value::Time(other)) => Value::Duration(one.0 - other.0),
                    (Value::Number(one), Value::Number(other)) => Value::Number(one + sign as f64 * other),
                    _ => Value::Null,
                }
            }
        }
    }

    fn holds(&self, row: &Row<'w>, expr: &Expr) -> bool {
        match expr {
            Expr::And(all) => all.iter().all(|expr| self.holds(row, expr)),
            Expr::Or(any) => any.iter().any(|expr| self.holds(row, expr)),
            Expr::Not(expr) => !self.holds(row, expr),
            Expr::Compare(one, comparison, other) => {
                let order = ordered(&self.value(row, &one.node), &self.value(row, &other.node));
                match comparison {
                    Comparison::Equal => order == Some(Ordering::Equal),
                    Comparison::Unequal => order != Some(Ordering::Equal),
                    Comparison::Less => order == Some(Ordering::Less),
                    Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    Comparison::Greater => order == Some(Ordering::Greater),
                    Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                }
            }
            Expr::Glob(term, glob, negated) => {
                let is_like = match self.value(row, &term.node) {
                    Value::Text(text) => like(glob.node.as_bytes(), text.as_bytes()),
                    _ => false,
                };
                is_like != *negated
            }
            Expr::Contains(term, part) => match (self.value(row, &term.node), self.value(row, &part.node)) {
                (Value::Text(text), Value::Text(part)) => text.to_lowercase().contains(&part.to_lowercase()),
                _ => false,
            },
            Expr::Matches(..) => panic!("queries have no patterns"),
            Expr::In(term, choices, negated) => {
                let value = self.value(row, &term.node);
                choices.iter().any(|choice| ordered(&value, &written(&choice.node)) == Some(Ordering::Equal))
                    != *negated
            }
            Expr::IsNull(term, negated) => self.value(row, &term.node).is_null() != *negated,
            Expr::Holds(term) => self.value(row, &term.node) == Value::Bool(true),
        }
    }

    /// What a query finds, by the plainest means.
    fn answer(&self, query: &Query) -> (Vec<Vec<Value<'w>>>, u64) {
        let is_in = |row: &&Row<'w>| query.filter.as_ref().is_none_or(|filter| self.holds(row, filter));
        let found: Vec<&Row<'w>> = self.rows.iter().filter(is_in).collect();
        let cell = |row: &Row<'w>, column: &Column| match column {
            Column::Field(name) => self.value(row, &Term::Field(name.clone())),
            other => panic!("{other} is no field"),
        };
        let limit = query.limit.as_ref().map_or(usize::MAX, |limit| limit.node as usize);
        let grouped = !query.group.is_empty();
        let mut keyed: Vec<(Vec<Value<'w>>, Vec<Value<'w>>)> = Vec::new();
        if grouped {
            let fields: Vec<Column> = query.group.iter().map(|name| Column::Field(name.node.clone())).collect();
            let mut groups: Vec<(Vec<Value<'w>>, Vec<&Row<'w>>)> = Vec::new();
            for row in found {
                let key: Vec<Value<'w>> = fields.iter().map(|field| cell(row, field)).collect();
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, rows)) => rows.push(row),
                    None => groups.push((key, vec![row])),
                }
            }
            for (key, rows) in groups {
                let sums = query.columns.iter().map(|column| match &column.node {
                    Column::Sum(aggregate, name) => {
                        let values = rows.iter().map(|row| match name {
                            Some(name) => cell(row, &Column::Field(name.clone())),
                            None => Value::Bool(true),
                        });
                        figure(*aggregate, values.filter(|value| !value.is_null()).collect())
                    }
                    other => panic!("{other} is no figure"),
                });
                let cells: Vec<Value<'w>> = key.iter().cloned().chain(sums).collect();
                let place = |by: &Column| match by {
                    Column::Field(name) => query.group.iter().position(|group| group.node == *name).unwrap(),
                    sum => query.group.len() + query.columns.iter().position(|column| column.node == *sum).unwrap(),
                };
                let keys = query.sort.iter().map(|by| cells[place(&by.by.node)].clone()).collect();
                keyed.push((keys, cells));
            }
        } else {
            for row in found {
                let keys = query.sort.iter().map(|by| cell(row, &by.by.node)).collect();
                keyed.push((keys, query.columns.iter().map(|column| cell(row, &column.node)).collect()));
            }
        }
        let total = keyed.len() as u64;
        keyed.sort_by(|(one, one_row), (other, other_row)| {
            let mut order = Ordering::Equal;
            for (at, key) in query.sort.iter().enumerate() {
                order = order.then(match (one[at].is_null(), other[at].is_null()) {
                    (false, false) if key.descending => ordered(&other[at], &one[at]).unwrap(),
                    (false, false) => ordered(&one[at], &other[at]).unwrap(),
                    (one, other) => one.cmp(&other),
                });
            }
            for at in 0..query.group.len() {
                order = order.then(one_row[at].order(&other_row[at]));
            }
            order
        });
        (keyed.into_iter().map(|(_, cells)| cells).take(limit).collect(), total)
    }
}

fn written(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Number(it) => Value::Number(*it),
        Literal::Text(it) => Value::Text(it.clone().into()),
        Literal::Time(it) => Value::Time(Timestamp(*it)),
        Literal::Duration(it) => Value::Duration(*it),
    }
}

/// The order of two values; none with nothing. A text is what the other one is.
fn ordered(one: &Value<'_>, other: &Value<'_>) -> Option<Ordering> {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::Number(one), Value::Number(other)) => one.partial_cmp(other),
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Time(one), Value::Time(other)) => Some(one.cmp(other)),
        (Value::Duration(one), Value::Duration(other)) => Some(one.cmp(other)),
        (Value::Id(one), Value::Id(other)) => Some(one.cmp(other)),
        (Value::Id(one), Value::Text(other)) => Some(one.cmp(&Uuid::parse_str(other).unwrap())),
        (Value::Null, _) | (_, Value::Null) => None,
        (one, other) => panic!("{one:?} and {other:?} are compared"),
    }
}

fn like(glob: &[u8], text: &[u8]) -> bool {
    match (glob.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => like(rest, text) || (!text.is_empty() && like(glob, &text[1..])),
        (Some((b'?', rest)), Some((_, left))) => like(rest, left),
        (Some((one, rest)), Some((other, left))) => one == other && like(rest, left),
        _ => false,
    }
}

fn figure<'w>(aggregate: Aggregate, values: Vec<Value<'w>>) -> Value<'w> {
    let number = |value: &Value<'_>| match value {
        Value::Number(number) => *number,
        Value::Duration(ms) => *ms as f64,
        other => panic!("{other:?} is summed"),
    };
    let is_time = values.iter().any(|value| matches!(value, Value::Duration(_)));
    let of = |sum: f64| if is_time { Value::Duration(sum.round() as i64) } else { Value::Number(sum) };
    match aggregate {
        Aggregate::Count => Value::Number(values.len() as f64),
        Aggregate::Sum => of(values.iter().map(number).sum()),
        Aggregate::Avg if values.is_empty() => Value::Null,
        Aggregate::Avg => of(values.iter().map(number).sum::<f64>() / values.len() as f64),
        Aggregate::Min => values.into_iter().min_by(|one, other| one.order(other)).unwrap_or(Value::Null),
        Aggregate::Max => values.into_iter().max_by(|one, other| one.order(other)).unwrap_or(Value::Null),
    }
}

fn same(one: &[Vec<Value<'_>>], other: &[Vec<Value<'_>>]) -> bool {
    let cell = |(one, other): (&Value<'_>, &Value<'_>)| match (one, other) {
        (Value::Number(one), Value::Number(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
        (one, other) => one == other,
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one.len() == other.len() && one.iter().zip(other).all(cell))
}

#[test]
fn what_is_found_is_what_a_walk_over_everything_finds() {
    let mut world = world();
    let mut found_something = 0;
    for seed in 0..3_000_u64 {
        let mut rng = Rng(seed);
        let name = *rng.pick(&WALKED);
        let kind = KINDS.into_iter().find(|kind| kind.name == name).unwrap();
        let entities = all_of(world.engine.world_mut(), kind);
        // Asking moves the time of a test's world on by a millisecond.
        let now = world.now.plus_ms(1);
        world.engine.set_now(now);
        let open = {
            let world = world.engine.world();
            let rows = entities
                .iter()
                .map(|entity| Row { world, item: Item::Entity(*entity), text_max: usize::MAX })
                .collect();
            Open { world, kind, rows, now }
        };
        assert_eq!(open.rows.first().map(|row| std::ptr::eq(row.world, open.world)), entities.first().map(|_| true));
        let query = Maker { rng: &mut rng, kind, rows: &open.rows, now }.query();
        let text = query.to_string();
        assert_eq!(parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")), query, "seed {seed}: {text}");
        let (rows, total) = open.answer(&query);
        let rows: Vec<Vec<Value<'static>>> =
            rows.into_iter().map(|row| row.into_iter().map(|cell| cell.kept(usize::MAX)).collect()).collect();
        // One look, so that the time of all of it is that of the walk.
        let found = run(&mut world, &text, 10_000);
        assert!(same(&found.rows, &rows), "seed {seed}: {text}\n{:?}\n{rows:?}", found.rows);
        assert_eq!((found.total, found.complete), (total, true), "seed {seed}: {text}");
        // Many short looks find the same, unless it depends on the time of each.
        if !text.contains("age") && !text.contains("duration") {
            let again = run(&mut world, &text, 1 + seed as usize % 3);
            let depends_on_now = text.contains("now");
            assert!(depends_on_now || same(&again.rows, &rows), "seed {seed}: {text}");
        }
        found_something += usize::from(!rows.is_empty());
    }
    assert!(found_something > 1_000, "only {found_something} queries found anything");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = prepare(&text);
    }

    #[test]
    fn no_row_of_words_makes_the_reader_panic_and_what_it_reads_it_prints(
        words in proptest::collection::vec(0..60_usize, 0..24)
    ) {
        let others = [
            "agents", "turns", "name", "tokens", "state", "agent", ".", ",", "(", ")", "=", "!=", "<", ">=", "~", "+", "-",
            "*", "5", "1.5", "1h", "\"Running\"", "'x'", "2026-11-22", "2026-11-22T10:00:00Z", "created_at", "enabled",
        ];
        let all: Vec<&str> = KEYWORDS.iter().copied().chain(others).collect();
        let text = words.iter().map(|at| all[at % all.len()]).collect::<Vec<_>>().join(" ");
        let text = format!("agents {text}");
        let _ = prepare(&text);
        if let Ok(query) = parse(&text) {
            let printed = query.to_string();
            prop_assert_eq!(parse(&printed).unwrap(), query, "{}", printed);
        }
    }
}
