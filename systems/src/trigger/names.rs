//! Triggers that look at a name, found by the name: no scan over all globs.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::index::{Candidates, Found, Member, Set};
use super::ngram_index::Grams;
use crate::kernel::glob::Glob;

/// Globs by their text, each with its triggers.
type Globs = BTreeMap<Box<str>, (Glob, Set)>;

/// Globs, each with its triggers. Exact names stand under the name, globs that begin with a text under that text, the
/// others under a piece of the texts in them, and those without any text, such as `???`, in a list of their own.
#[derive(Default)]
pub(super) struct Names {
    exact: HashMap<Box<str>, Set>,
    heads: HashMap<Box<str>, Globs>,
    /// How many heads there are of each length in bytes.
    lengths: BTreeMap<usize, usize>,
    inner: Grams<Box<str>>,
    /// The globs in `inner` and `loose`.
    globs: HashMap<Box<str>, (Glob, usize)>,
    loose: BTreeMap<Box<str>, Set>,
}

impl Names {
    /// Takes in a trigger that looks for `text`, which is a glob.
    pub(super) fn insert(&mut self, text: &str, glob: &Glob, member: Member) {
        if let Some(name) = glob.exact() {
            self.exact.entry(name.into()).or_default().insert(member);
            return;
        }
        let head = glob.head();
        if !head.is_empty() {
            let globs = self.heads.entry(head.into()).or_default();
            if globs.is_empty() {
                *self.lengths.entry(head.len()).or_default() += 1;
            }
            let entry = globs.entry(text.into()).or_insert_with(|| (glob.clone(), Set::default()));
            entry.1.insert(member);
            return;
        }
        let key: Box<str> = text.into();
        if !self.inner.insert(&key, glob.texts(), member) {
            self.loose.entry(key.clone()).or_default().insert(member);
        }
        self.globs.entry(key).or_insert_with(|| (glob.clone(), 0)).1 += 1;
    }

    /// Takes it out again.
    pub(super) fn remove(&mut self, text: &str, glob: &Glob, member: Member) {
        if let Some(name) = glob.exact() {
            drop_member(&mut self.exact, name, member);
            return;
        }
        let head = glob.head();
        if !head.is_empty() {
            return self.remove_head(head, text, member);
        }
        let key: Box<str> = text.into();
        self.inner.remove(&key, member);
        if let Some(set) = self.loose.get_mut(&key) {
            set.remove(member);
            if set.is_empty() {
                self.loose.remove(&key);
            }
        }
        if let Some((_, count)) = self.globs.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.globs.remove(&key);
            }
        }
    }

    fn remove_head(&mut self, head: &str, text: &str, member: Member) {
        let Some(globs) = self.heads.get_mut(head) else { return };
        if let Some((_, set)) = globs.get_mut(text) {
            set.remove(member);
            if set.is_empty() {
                globs.remove(text);
            }
        }
        if globs.is_empty() {
            self.heads.remove(head);
            if let Some(count) = self.lengths.get_mut(&head.len()) {
                *count -= 1;
                if *count == 0 {
                    self.lengths.remove(&head.len());
                }
            }
        }
    }

    /// Every set of members.
    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        let heads = self.heads.values().flat_map(BTreeMap::values).map(|(_, set)| set);
        self.exact.values().chain(heads).chain(self.inner.sets()).chain(self.loose.values())
    }

    /// Is there no trigger at all?
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.heads.is_empty() && self.globs.is_empty()
    }

    /// Adds the triggers whose glob may match `name`.
    pub(super) fn find<'s>(&'s self, name: &str, found: &mut Found<'s>) {
        found.extend(self.exact.get(name).map(Candidates::from));
        for length in self.lengths.keys().take_while(|length| **length <= name.len()) {
            let globs = name.get(..*length).and_then(|head| self.heads.get(head));
            found.extend(globs.into_iter().flat_map(Globs::values).map(|(glob, set)| Candidates::named(set, glob)));
        }
        let named = |key: &str, set: &'s Set| Some(Candidates::named(set, &self.globs.get(key)?.0));
        self.inner.candidates(name, |key, set| found.extend(named(key, set)));
        found.extend(self.loose.iter().filter_map(|(key, set)| named(key, set)));
    }
}

/// Takes a member out of the set under `key`, and the set when it was the last.
pub(super) fn drop_member<K: std::hash::Hash + Eq, Q: std::hash::Hash + hashbrown::Equivalent<K> + ?Sized>(
    sets: &mut HashMap<K, Set>,
    key: &Q,
    member: Member,
) {
    let Some(set) = sets.get_mut(key) else { return };
    set.remove(member);
    if set.is_empty() {
        sets.remove(key);
    }
}
