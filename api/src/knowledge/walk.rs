//! Walks over the knowledge of an agent: which relations match a pattern, up to a number of steps from its source, or to its
//! target. A walk visits each entity once, and is bounded in entities and relations.

use std::collections::{BTreeSet, HashMap, VecDeque};

use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::knowledge::key::End;
use agentsvc_systems::knowledge::limits::{KNOWLEDGE_EDGES_MAX, KNOWLEDGE_NODES_MAX};

use crate::http::error::ContentError;
use crate::knowledge::store::Rows;

/// Relations that are read from the disk at once.
const PAGE_RELATIONS: usize = 256;

/// What to look for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Walks begin here; `None` is anywhere.
    pub source: Option<Vec<EntityKey>>,
    /// Only relations of this type.
    pub relation: Option<Box<str>>,
    /// Walks end here; `None` is anywhere.
    pub target: Option<Vec<EntityKey>>,
    /// Relations that a walk follows at most; with neither source nor target it does not matter.
    pub depth: u8,
    /// Relations of the answer.
    pub limit: usize,
    /// Goes on behind this relation; only with neither source nor target.
    pub after: Option<RelationKey>,
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// The relations, nearest to the source (without one, to the target) first; each once.
    pub relations: Vec<RelationKey>,
    /// There may be more.
    pub is_cut: bool,
}

/// The relations that match.
///
/// With a source, those on walks that begin there and follow at most `depth` relations; with a target, those on walks that end
/// there; with both, those on walks from one to the other.
///
/// # Errors
/// The store failed.
pub fn walk(rows: Rows<'_>, pattern: &Pattern) -> Result<Walked, ContentError> {
    let Pattern { source, relation, target, depth, limit, after } = pattern;
    let (relation, edges_max) = (relation.as_deref(), limit.saturating_add(1).min(KNOWLEDGE_EDGES_MAX));
    let (relations, is_cut) = match (source, target) {
        (None, None) => return all(rows, relation, after.clone(), *limit),
        (Some(source), None) => {
            let spread = Spread::over(rows, (Way::Forward, source), relation, *depth, edges_max)?;
            (spread.relations, spread.is_cut)
        }
        (None, Some(target)) => {
            let spread = Spread::over(rows, (Way::Back, target), relation, *depth, edges_max)?;
            (spread.relations, spread.is_cut)
        }
        (Some(source), Some(target)) if *depth == 1 => (between(rows, source, relation, target, *limit)?, false),
        (Some(source), Some(target)) => {
            let forward = Spread::over(rows, (Way::Forward, source), relation, *depth, KNOWLEDGE_EDGES_MAX)?;
            let back = Spread::over(rows, (Way::Back, target), relation, *depth, KNOWLEDGE_EDGES_MAX)?;
            let leads_there = |edge: &RelationKey| {
                let steps = (forward.steps.get(&edge.source), back.steps.get(&edge.target));
                matches!(steps, (Some(to), Some(from)) if to + 1 + from <= *depth)
            };
            let is_cut = forward.is_cut || back.is_cut;
            (forward.relations.into_iter().filter(leads_there).collect(), is_cut)
        }
    };
    Ok(shortened(relations, is_cut, *limit))
}

fn shortened(mut relations: Vec<RelationKey>, is_cut: bool, limit: usize) -> Walked {
    let is_cut = is_cut || relations.len() > limit;
    relations.truncate(limit);
    Walked { relations, is_cut }
}

/// All relations of a type, in the order of their keys.
fn all(
    rows: Rows<'_>,
    relation: Option<&str>,
    mut after: Option<RelationKey>,
    limit: usize,
) -> Result<Walked, ContentError> {
    let mut found = Vec::new();
    loop {
        let page = rows.relations(End::Any, None, after.as_ref(), PAGE_RELATIONS)?;
        let is_last = page.len() < PAGE_RELATIONS;
        after = page.last().cloned();
        found.extend(page.into_iter().filter(|edge| relation.is_none_or(|relation| *edge.relation == *relation)));
        if is_last || found.len() > limit {
            return Ok(shortened(found, false, limit));
        }
    }
}

/// The relations from one of `source` to one of `target`; up to one more than `limit`.
fn between(
    rows: Rows<'_>,
    source: &[EntityKey],
    relation: Option<&str>,
    target: &[EntityKey],
    limit: usize,
) -> Result<Vec<RelationKey>, ContentError> {
    let mut found = Vec::new();
    for source in source.iter().collect::<BTreeSet<_>>() {
        let mut after = None;
        loop {
            let page = rows.relations(End::Source(source), relation, after.as_ref(), PAGE_RELATIONS)?;
            let is_last = page.len() < PAGE_RELATIONS;
            after = page.last().cloned();
            found.extend(page.into_iter().filter(|edge| target.contains(&edge.target)));
            if found.len() > limit {
                return Ok(found);
            }
            if is_last {
                break;
            }
        }
    }
    Ok(found)
}

/// Which way relations are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
}

/// What is reached from some entities.
#[derive(Default)]
struct Spread {
    /// How many relations lie between them and each.
    steps: HashMap<EntityKey, u8>,
    relations: Vec<RelationKey>,
    is_cut: bool,
}

impl Spread {
    fn over(
        rows: Rows<'_>,
        (way, from): (Way, &[EntityKey]),
        relation: Option<&str>,
        depth: u8,
        edges_max: usize,
    ) -> Result<Self, ContentError> {
        let mut spread = Self::default();
        let mut queue: VecDeque<(EntityKey, u8)> = VecDeque::new();
        for entity in from {
            queue.extend(spread.reach(entity, 0).map(|entity| (entity, 0)));
        }
        while let Some((entity, steps)) = queue.pop_front() {
            if steps >= depth {
                continue;
            }
            let mut after = None;
            loop {
                let end = if way == Way::Forward { End::Source(&entity) } else { End::Target(&entity) };
                let page = rows.relations(end, relation, after.as_ref(), PAGE_RELATIONS)?;
                let is_last = page.len() < PAGE_RELATIONS;
                after = page.last().cloned();
                for edge in page {
                    if spread.relations.len() == edges_max {
                        spread.is_cut = true;
                        return Ok(spread);
                    }
                    let next = if way == Way::Forward { &edge.target } else { &edge.source };
                    if let Some(next) = spread.reach(next, steps + 1) {
                        queue.push_back((next, steps + 1));
                    }
                    spread.relations.push(edge);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(spread)
    }

    /// Notes an entity; gives it when it is to be visited.
    fn reach(&mut self, entity: &EntityKey, steps: u8) -> Option<EntityKey> {
        if self.steps.contains_key(entity) {
            return None;
        }
        if self.steps.len() >= KNOWLEDGE_NODES_MAX {
            self.is_cut = true;
            return None;
        }
        self.steps.insert(entity.clone(), steps);
        Some(entity.clone())
    }
}
