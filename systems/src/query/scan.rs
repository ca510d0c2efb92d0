//! A query while it is carried out: many short looks, each a read of its own, so that the world is never held for long.

use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use bevy_ecs::prelude::World;

use super::collect::Collected;
use super::plan::{Looked, OutputColumn, Plan};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::expr::{Meter, Value};
use crate::kernel::index::{self, Index};
use crate::kernel::table::{Cursor, Keys, Page, Row};

/// How far a query is. [`Look`] takes it a step further; [`finish`](Self::finish) gives the answer at any moment.
#[derive(Debug)]
pub struct Scan {
    plan: Arc<Plan>,
    cursor: Cursor,
    keys: Keys,
    collected: Collected,
    /// The world's time at the first look.
    now: Option<Timestamp>,
    /// The world that was looked at.
    of: Option<index::Keys>,
    looked_at: u64,
    /// Were rows left out, because to compare their texts takes too long?
    is_cut: bool,
    /// Rows that one look goes over.
    look: usize,
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The columns.
    pub columns: Vec<OutputColumn>,
    /// The rows; as many cells each as there are columns.
    pub rows: Vec<Vec<Value<'static>>>,
    /// How many rows, or groups, there are without the limit.
    pub total: u64,
    /// How many entities were looked at.
    pub looked_at: u64,
    /// Whether all entities were scanned and the result is complete.
    pub complete: bool,
    /// The world's time at the first look; `None` when there was none.
    pub now: Option<Timestamp>,
}

impl Scan {
    /// A query that has not looked at anything.
    #[must_use]
    pub fn new(plan: Arc<Plan>) -> Self {
        let collected = Collected::new(&plan);
        let (cursor, keys) = (Cursor::default(), Keys::new(limit::QUERY_KEYS_MAX));
        Self {
            plan,
            cursor,
            keys,
            collected,
            now: None,
            of: None,
            looked_at: 0,
            is_cut: false,
            look: limit::QUERY_LOOK_MAX,
        }
    }

    /// Is there nothing left to look at, or was the bound of [`limit::QUERY_LOOKED_MAX`] reached?
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.cursor == Cursor::End || self.looked_at >= limit::QUERY_LOOKED_MAX
    }

    /// A look over so many rows at a time.
    #[cfg(test)]
    pub(super) const fn with_looks_of(mut self, rows: usize) -> Self {
        self.look = rows;
        self
    }

    /// One look. When another world has taken the place of the one that was looked at, its rows stand elsewhere: then the
    /// query begins anew.
    fn look(&mut self, world: &World) {
        let of = Some(world.resource::<Index>().keys());
        if self.of.is_some() && self.of != of {
            *self = Self { look: self.look, ..Self::new(Arc::clone(&self.plan)) };
        }
        self.of = of;
        let now = *self.now.get_or_insert_with(|| world.resource::<Now>().0);
        let (plan, collected, looked_at) = (&*self.plan, &mut self.collected, &mut self.looked_at);
        let filter = plan.filter.as_ref();
        let (mut read, is_cut) = (0_usize, &mut self.is_cut);
        let mut visit = |item| {
            let row = Row { world, item, text_max: usize::MAX };
            *looked_at += 1;
            let mut meter = Meter::new(limit::QUERY_LOOK_TEXT_MAX);
            let held = filter.map_or(Ok(true), |filter| filter.holds(&Looked { row: &row, now }, &mut meter));
            read = read.saturating_add(meter.spent());
            *is_cut |= held.is_err();
            if held == Ok(true) {
                read = read.saturating_add(collected.take(plan, row));
            }
            read < limit::QUERY_LOOK_TEXT_MAX
        };
        let (keys, most) = (&mut self.keys, (self.look / plan.kind.source.cost).max(1));
        let mut page = Page { world, cursor: self.cursor, keys, most, visit: &mut visit };
        self.cursor = plan.access.read(plan.kind, &mut page);
    }

    /// The answer, as far as it is known.
    #[must_use]
    pub fn finish(self) -> Found {
        let finished = self.collected.finish(&self.plan);
        Found {
            columns: self.plan.columns.clone(),
            rows: finished.rows,
            total: finished.total,
            looked_at: self.looked_at,
            complete: self.cursor == Cursor::End && !self.keys.cut && !finished.cut && !self.is_cut,
            now: self.now,
        }
    }
}

/// Takes a query one look further: over at most [`limit::QUERY_LOOK_MAX`] rows.
#[derive(Debug)]
pub struct Look(pub Box<Scan>);

command! {
    read "query_look" Look => Box<Scan>, All, |it, world| {
        let mut scan = it.0;
        if !scan.is_done() {
            scan.look(world);
        }
        Answer::read(scan)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::Manifest;

    use super::super::prepare;
    use super::super::tests::crowd_with;
    use super::*;
    use crate::agent::SpawnAgent;
    use crate::manifest;
    use crate::testing::TestWorld;

    /// Carries a query out, and counts its looks.
    fn run(world: &mut TestWorld, text: &str) -> (Found, usize) {
        let (mut scan, mut looks) = (Box::new(Scan::new(prepare(text).unwrap())), 0);
        while !scan.is_done() {
            scan = world.ask(Look(scan)).unwrap();
            looks += 1;
        }
        (scan.finish(), looks)
    }

    #[test]
    fn a_row_whose_texts_take_too_long_is_left_out_and_the_answer_says_so() {
        let mut world = crowd_with(3, &"a".repeat(4 << 10));
        let glob = format!("description ~ \"*{}b\"", "a".repeat(200));
        let most = limit::QUERY_LOOK_TEXT_MAX / (203 * (4 << 10));
        for (globs, complete) in [(most, true), (most + 1, false)] {
            let text = format!("agents where {}", vec![glob.as_str(); globs].join(" or "));
            let (found, _) = run(&mut world, &text);
            assert_eq!((found.total, found.looked_at, found.complete), (0, 3, complete), "{globs}");
        }
    }

    #[test]
    fn a_look_ends_early_where_long_texts_are_held_against_a_glob() {
        let mut world = crowd_with(30, &"a".repeat(4 << 10));
        let glob = format!("description ~ \"*{}b\"", "a".repeat(200));
        for (test, fewest) in [(glob.as_str(), 4), ("description contains 'ab'", 1)] {
            let (found, looks) = run(&mut world, &format!("agents where {test} select name"));
            assert!((fewest..fewest * 2).contains(&looks), "{test}: {looks} looks");
            assert_eq!((found.total, found.looked_at, found.complete), (0, 30, true), "{test}");
        }
        let longer = format!("agents where description ~ \"{}\"", "a".repeat(limit::QUERY_GLOB_BYTES_MAX + 1));
        let error = prepare(&longer).unwrap_err();
        assert_eq!((error.column, error.message.as_str()), (28, "the glob is longer than 256 bytes"));
    }

    #[test]
    fn long_lists_of_words_are_made_no_longer_than_they_are_shown_and_are_counted_where_all_of_them_is_asked_for() {
        let mut world = TestWorld::new();
        let tags: Vec<Box<str>> = (0..4_000).map(|at| format!("{at:060}").into()).collect();
        let shared = Manifest { tags: tags.clone(), ..Manifest::default() };
        for at in 0..40 {
            let (manifest, hash) = (shared.clone(), manifest::hash(&shared));
            world.ask(SpawnAgent { name: format!("a{at}").into(), manifest, hash, text: String::new() }).unwrap();
        }
        let (found, looks) = run(&mut world, "agents select tags, name");
        let shown = Value::Text(tags.join(", ")[..limit::QUERY_CELL_BYTES_MAX].to_owned().into());
        assert!(found.rows.len() == 40 && found.rows.iter().all(|row| row[0] == shown));
        assert_eq!(looks, 1);
        for (test, total) in [("tags = 'x'", 0), ("tags contains '3999'", 40), ("tags is null", 0)] {
            let (found, looks) = run(&mut world, &format!("agents where {test}"));
            assert_eq!((found.total, looks), (total, 3), "{test}");
        }
        let (found, looks) = run(&mut world, "agents group by tags select count, min(tags)");
        // What is grouped by stands first, then the figures.
        assert!(found.rows[0][0] == shown && found.rows[0][2] == shown, "{:?}", found.rows);
        assert_eq!((found.total, looks), (1, 1));
    }
}
