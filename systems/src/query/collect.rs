//! What a query keeps of the rows that it looks at: the first rows in the order asked for, or a sum for each group.
//! Both are bounded: what is beyond is counted and not kept.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use agentsvc_components::kernel::limit;
use hashbrown::HashMap;

use super::ast::Aggregate;
use super::plan::{KeyOf, Output, Path, Plan};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::Row;

/// A row of the answer.
pub(super) type Cells = Vec<Value<'static>>;

/// What is kept so far.
#[derive(Debug)]
pub(super) enum Collected {
    Rows(Rows),
    Groups(Groups),
}

/// The answer's rows.
pub(super) struct Finished {
    pub(super) rows: Vec<Cells>,
    /// Rows without the limit.
    pub(super) total: u64,
    /// Something was not kept that belongs to the answer.
    pub(super) cut: bool,
}

impl Collected {
    pub(super) fn new(plan: &Plan) -> Self {
        match &plan.output {
            Output::Rows(_) => Self::Rows(Rows::default()),
            Output::Groups { .. } => Self::Groups(Groups::default()),
        }
    }

    /// Takes in a row that passed the filter; gives the bytes of the texts that were made for that.
    pub(super) fn take(&mut self, plan: &Plan, row: Row<'_>) -> usize {
        // Texts are cut in the answer.
        let row = &Row { text_max: limit::QUERY_CELL_BYTES_MAX, ..row };
        match (self, &plan.output) {
            (Self::Rows(rows), Output::Rows(paths)) => rows.take(plan, paths, row),
            (Self::Groups(groups), Output::Groups { by, sums, .. }) => groups.take(by, sums, row),
            _ => 0,
        }
    }

    /// The answer.
    pub(super) fn finish(self, plan: &Plan) -> Finished {
        match self {
            Self::Rows(rows) => rows.finish(),
            Self::Groups(groups) => groups.finish(plan),
        }
    }
}

/// The first rows in the order asked for.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// The last one on top.
    kept: BinaryHeap<Kept>,
    total: u64,
    bytes: usize,
    /// What the first of the rows is sorted by that there was no room for. None behind it is kept: the rest is the
    /// beginning of the answer, without a gap.
    dropped: Option<Key>,
}

/// What a row is sorted by, with the way of each key.
type Key = Vec<(Value<'static>, bool)>;

/// A row that is kept.
#[derive(Debug)]
struct Kept {
    key: Key,
    /// Rows with equal keys stand in the order in which they were found.
    number: u64,
    cells: Cells,
    bytes: usize,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        by_keys(&self.key, &other.key).then(self.number.cmp(&other.number))
    }
}

fn by_keys(one: &[(Value<'_>, bool)], other: &[(Value<'_>, bool)]) -> Ordering {
    let orders = one.iter().zip(other).map(|((one, descending), (other, _))| directed(one, other, *descending));
    orders.fold(Ordering::Equal, Ordering::then)
}

/// The order of two keys. Nothing stands last, whichever way.
fn directed(one: &Value<'_>, other: &Value<'_>, descending: bool) -> Ordering {
    let order = one.order(other);
    if descending && !one.is_null() && !other.is_null() { order.reverse() } else { order }
}

impl Rows {
    fn take(&mut self, plan: &Plan, paths: &[Path], row: &Row<'_>) -> usize {
        self.total += 1;
        if plan.limit == 0 {
            return 0;
        }
        let key: Key = plan
            .sort
            .iter()
            .map(|key| {
                let value = match &key.by {
                    KeyOf::Field(path) => path.read(row).kept(limit::QUERY_CELL_BYTES_MAX),
                    KeyOf::Group(_) => Value::Null,
                };
                (value, key.descending)
            })
            .collect();
        let made: usize = key.iter().map(|(value, _)| value.heap_bytes()).sum();
        // Equal to another one it stands behind it, for it was found later.
        let is_behind = |other: &Key| by_keys(&key, other).is_ge();
        let last = self.kept.peek().filter(|_| self.kept.len() >= plan.limit).map(|last| &last.key);
        if last.is_some_and(is_behind) || self.dropped.as_ref().is_some_and(is_behind) {
            return made;
        }
        let cells: Cells = paths.iter().map(|path| path.read(row).kept(limit::QUERY_CELL_BYTES_MAX)).collect();
        let made = made + cells.iter().map(Value::heap_bytes).sum::<usize>();
        let bytes = (cells.len() + key.len()) * size_of::<Value<'_>>() + made;
        self.bytes += bytes;
        self.kept.push(Kept { key, number: self.total, cells, bytes });
        if self.kept.len() > plan.limit {
            self.drop_last();
        }
        while self.bytes > limit::QUERY_KEPT_BYTES_MAX
            && let Some(key) = self.drop_last()
        {
            // All that is kept stands before it, and before those that were dropped earlier.
            self.dropped = Some(key);
        }
        made
    }

    fn drop_last(&mut self) -> Option<Key> {
        let last = self.kept.pop()?;
        self.bytes -= last.bytes;
        Some(last.key)
    }

    fn finish(self) -> Finished {
        let rows = self.kept.into_sorted_vec().into_iter().map(|kept| kept.cells).collect();
        Finished { rows, total: self.total, cut: self.dropped.is_some() }
    }
}

/// A sum for each group.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_key: HashMap<Box<[u8]>, usize>,
    groups: Vec<(Cells, Vec<Sum>)>,
    bytes: usize,
    cut: bool,
}

/// A figure so far.
#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    total: f64,
    least: Option<Value<'static>>,
}

impl Groups {
    fn take(&mut self, by: &[Path], sums: &[(Aggregate, Option<Path>)], row: &Row<'_>) -> usize {
        let mut key = Vec::new();
        let values: Vec<Value<'_>> = by.iter().map(|path| path.read(row)).collect();
        // Texts that differ only behind the cut are one group, as they look.
        let values: Cells = values.into_iter().map(|value| value.kept(limit::QUERY_CELL_BYTES_MAX)).collect();
        values.iter().for_each(|value| value.write_key(&mut key));
        let mut made = key.len();
        let at = match self.by_key.get(key.as_slice()) {
            Some(at) => *at,
            None => {
                let bytes = 2 * key.len() + values.len() * size_of::<Value<'_>>() + sums.len() * size_of::<Sum>();
                let is_full = self.bytes + bytes > limit::QUERY_KEPT_BYTES_MAX;
                // Behind the first that was left out none begins: it would stand there with half of its figures.
                if self.cut || self.groups.len() >= limit::QUERY_GROUPS_MAX || is_full {
                    self.cut = true;
                    return made;
                }
                self.bytes += bytes;
                self.by_key.insert(key.into(), self.groups.len());
                self.groups.push((values, vec![Sum::default(); sums.len()]));
                self.groups.len() - 1
            }
        };
        for ((aggregate, path), sum) in sums.iter().zip(&mut self.groups[at].1) {
            match path {
                None => sum.count += 1,
                Some(path) => {
                    let value = path.read(row);
                    made += value.made_bytes();
                    self.cut |= !sum.add(*aggregate, value, &mut self.bytes);
                }
            }
        }
        made
    }

    fn finish(mut self, plan: &Plan) -> Finished {
        let Output::Groups { by, sums, shown } = &plan.output else {
            return Finished { rows: Vec::new(), total: 0, cut: self.cut };
        };
        // Without `group by` there is one group, if an empty one.
        if by.is_empty() && self.groups.is_empty() {
            self.groups.push((Vec::new(), vec![Sum::default(); sums.len()]));
        }
        let figures = |group: (Cells, Vec<Sum>)| -> Cells {
            let (mut cells, found) = group;
            cells.extend(sums.iter().zip(found).map(|((aggregate, path), sum)| sum.finish(*aggregate, path.as_ref())));
            cells
        };
        let mut rows: Vec<Cells> = self.groups.into_iter().map(figures).collect();
        rows.sort_by(|one, other| {
            let asked = plan.sort.iter().map(|key| match key.by {
                KeyOf::Group(at) => directed(&one[at], &other[at], key.descending),
                KeyOf::Field(_) => Ordering::Equal,
            });
            // Then by what they are grouped by, so that the order is always the same.
            let usual = (0..by.len()).map(|at| one[at].order(&other[at]));
            asked.chain(usual).fold(Ordering::Equal, Ordering::then)
        });
        let total = rows.len() as u64;
        rows.truncate(plan.limit);
        let rows = rows.into_iter().map(|row| shown.iter().map(|place| row[*place].clone()).collect()).collect();
        Finished { rows, total, cut: self.cut }
    }
}

impl Sum {
    /// Takes in a value; nothing counts for nothing. `bytes` are those of all that is kept: false when there is no room
    /// for a text among them.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of a duration are far below 2^53")]
    fn add(&mut self, aggregate: Aggregate, value: Value<'_>, bytes: &mut usize) -> bool {
        if value.is_null() {
            return true;
        }
        self.count += 1;
        match (aggregate, &value) {
            (Aggregate::Sum | Aggregate::Avg, Value::Number(number)) => self.total += number,
            (Aggregate::Sum | Aggregate::Avg, Value::Duration(ms)) => self.total += *ms as f64,
            (Aggregate::Min | Aggregate::Max, _) => {
                let is_better = self.least.as_ref().is_none_or(|least| {
                    let order = value.order(least);
                    if aggregate == Aggregate::Min { order.is_lt() } else { order.is_gt() }
                });
                if is_better {
                    let value = value.kept(limit::QUERY_CELL_BYTES_MAX);
                    let before = self.least.as_ref().map_or(0, Value::heap_bytes);
                    let after = *bytes - before + value.heap_bytes();
                    if after > *bytes && after > limit::QUERY_KEPT_BYTES_MAX {
                        return false;
                    }
                    *bytes = after;
                    self.least = Some(value);
                }
            }
            _ => {}
        }
        true
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures are exact up to 2^53")]
    fn finish(self, aggregate: Aggregate, path: Option<&Path>) -> Value<'static> {
        let of = |number: f64| match path.map(|path| path.field.kind) {
            _ if !number.is_finite() => Value::Null,
            Some(Type::Duration) => Value::Duration(number.round() as i64),
            _ => Value::Number(number),
        };
        match aggregate {
            Aggregate::Count => Value::count(self.count),
            Aggregate::Sum => of(self.total),
            Aggregate::Avg if self.count == 0 => Value::Null,
            Aggregate::Avg => of(self.total / self.count as f64),
            Aggregate::Min | Aggregate::Max => self.least.unwrap_or(Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{crowd_with, run};
    use super::*;

    #[test]
    fn what_there_is_no_room_for_ends_the_answer_however_short_the_rows_behind_it_are() {
        let mut world = crowd_with(300, &"x".repeat(limit::QUERY_CELL_BYTES_MAX));
        for at in 0..10 {
            world.spawn(&format!("short-{at}"));
        }
        let columns = vec!["description"; limit::QUERY_COLUMNS_MAX - 1].join(", ");
        for order in ["sort by name", ""] {
            let found = run(&mut world, &format!("agents {order} select name, {columns}"), 100);
            let first = (0..found.rows.len()).map(|at| Value::Text(format!("agent-{at:06}").into()));
            assert!(found.rows.iter().map(|row| row[0].clone()).eq(first), "the first ones, without a gap");
            assert!((200..300).contains(&found.rows.len()), "{}", found.rows.len());
            assert_eq!((found.total, found.complete), (310, false));
        }
    }
}
