//! From an event to the triggers that wait for it, at the cost of those it finds and not of those there are.
//!
//! | pattern                      | stands under                                        |
//! |------------------------------|-----------------------------------------------------|
//! | `all`, `lifecycle`, `system` | one set each                                        |
//! | a kind alone                 | the kind                                            |
//! | a kind and `name_pattern`    | the kind and the name, its head, or a piece of it ([`Names`]) |
//! | `task_posted`, `self`        | the owner's id                                      |
//! | `task_posted`, `unassigned`  | one set                                             |
//! | `task_posted`, a text        | the text                                            |
//! | `custom` and `event_type`    | the type                                            |
//! | `content_match`              | a piece of the text ([`Grams`])                     |
//!
//! Every trigger stands in exactly one place, so that what is found never has one twice. In each place those of one line stand
//! together: an event that finds very many of one holder looks at none of them before their turn comes. Nor are their globs and texts
//! compared before, so that what they cost counts for their holder.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::error_codes::TRIGGERS_FULL;
use bevy_ecs::prelude::{Entity, Resource};
use hashbrown::HashMap;

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::trigger::{AssigneeMatch, Filter, On, Pattern};
use agentsvc_components::{AgentId, TriggerId};

use super::names::{Names, drop_member};
use super::ngram_index::Grams;
use crate::event::pattern::{is_lifecycle, is_system};
use crate::kernel::glob::{self, Glob};
use crate::kernel::quota::{Quota, Used};
use crate::kernel::share::Shares;

/// What triggers may take.
pub(super) const QUOTA: Quota =
    Quota { count: limit::TRIGGERS_MAX, bytes: limit::TRIGGERS_BYTES_MAX, what: "triggers", code: TRIGGERS_FULL };

/// A pool of which each holder's share is as many as it may have.
pub(super) const SHARED: Quota = Quota { count: limit::SHARE_TRIGGERS_MAX * limit::POOL_SHARES, ..QUOTA };

/// The line that matches of a trigger wait in: that of its holder, or of nobody.
pub(super) type Line = Option<Holder>;

/// Triggers in the order of their creation.
pub(super) type Members = BTreeSet<(TriggerId, Entity)>;

/// A trigger, as the index has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) id: TriggerId,
    pub(super) entity: Entity,
    pub(super) line: Line,
}

/// Triggers by their lines. Most sets have one trigger, and most triggers are nobody's.
#[derive(Debug, Default)]
pub(super) struct Set {
    of_nobody: Members,
    held: BTreeMap<Holder, Members>,
}

impl Set {
    pub(super) fn insert(&mut self, Member { id, entity, line }: Member) {
        let members = match line {
            None => &mut self.of_nobody,
            Some(holder) => self.held.entry(holder).or_default(),
        };
        members.insert((id, entity));
    }

    pub(super) fn remove(&mut self, Member { id, entity, line }: Member) {
        let Some(holder) = line else {
            self.of_nobody.remove(&(id, entity));
            return;
        };
        if let Some(members) = self.held.get_mut(&holder) {
            members.remove(&(id, entity));
            if members.is_empty() {
                self.held.remove(&holder);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_nobody.is_empty() && self.held.is_empty()
    }

    /// Those of a line.
    pub(super) fn of(&self, line: Line) -> Option<&Members> {
        match line {
            None => Some(&self.of_nobody),
            Some(holder) => self.held.get(&holder),
        }
    }

    /// The lines of which it has some, with those.
    pub(super) fn lines(&self) -> impl Iterator<Item = (Line, &Members)> {
        let of_nobody = Some((None, &self.of_nobody)).filter(|(_, members)| !members.is_empty());
        let held = self.held.iter().map(|(holder, members)| (Some(*holder), members));
        of_nobody.into_iter().chain(held)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Member> {
        self.lines().flat_map(|(line, members)| {
            members.iter().map(move |(id, entity)| Member { id: *id, entity: *entity, line })
        })
    }
}

/// Sets that an event may have found; none has a trigger of another.
pub(super) type Found<'s> = Vec<Candidates<'s>>;

/// A set, and what is yet to be compared with the event.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'s> {
    pub(super) set: &'s Set,
    test: Option<Test<'s>>,
}

#[derive(Clone, Copy)]
enum Test<'s> {
    /// The name of the event's agent must match.
    Name(&'s Glob),
    /// The event's text must have this in it.
    Content(&'s str),
}

/// What of an event is compared.
#[derive(Default)]
pub(super) struct Subject<'n> {
    name: Option<Cow<'n, str>>,
    /// In one case.
    text: Option<Cow<'n, str>>,
}

impl<'n> Subject<'n> {
    /// What of this event is compared, whose agent has this name.
    pub(super) fn of(event: &'n Event, name: Option<&'n str>) -> Self {
        Self { name: name.map(Cow::Borrowed), text: event.text().map(glob::folded) }
    }

    fn matches(&self, glob: &Glob) -> bool {
        self.name.as_deref().is_some_and(|name| glob.matches(name))
    }

    fn contains(&self, part: &str) -> bool {
        self.text.as_deref().is_some_and(|text| text.contains(part))
    }

    /// Does a trigger of this pattern want the event, that stands where those stand that may want it?
    pub(super) fn is_wanted(&self, pattern: &Pattern) -> bool {
        match &pattern.filter {
            Filter::Name(text) => Glob::parse(text).is_ok_and(|glob| self.matches(&glob)),
            Filter::Content(text) => self.contains(&glob::folded(text)),
            Filter::None | Filter::Assignee(_) | Filter::CustomType(_) => true,
        }
    }
}

impl<'s> Candidates<'s> {
    /// Those of a set, if the name of the event's agent matches.
    pub(super) fn named(set: &'s Set, glob: &'s Glob) -> Self {
        Self { set, test: Some(Test::Name(glob)) }
    }

    /// Do they want the event?
    pub(super) fn pass(&self, subject: &Subject<'_>) -> bool {
        match self.test {
            None => true,
            Some(Test::Name(glob)) => subject.matches(glob),
            Some(Test::Content(part)) => subject.contains(part),
        }
    }
}

impl<'s> From<&'s Set> for Candidates<'s> {
    fn from(set: &'s Set) -> Self {
        Self { set, test: None }
    }
}

/// All triggers of the world.
#[derive(Resource, Default)]
pub(crate) struct Triggers {
    by_id: BTreeMap<TriggerId, Entity>,
    by_owner: BTreeSet<(Entity, TriggerId)>,
    by_target: BTreeSet<(Entity, TriggerId)>,
    matcher: Matcher,
    /// What they take.
    pub(super) used: Used,
    /// What each holder takes of that.
    pub(super) shares: Shares,
}

/// The part that events are shown to.
#[derive(Default)]
pub(super) struct Matcher {
    all: Set,
    lifecycle: Set,
    system: Set,
    kinds: HashMap<EventKind, Kind>,
    owners: HashMap<AgentId, Set>,
    unassigned: Set,
    assignees: HashMap<Box<str>, Set>,
    custom: HashMap<Box<str>, Set>,
    content: Grams<Box<str>>,
}

/// The triggers of one kind.
#[derive(Default)]
struct Kind {
    any: Set,
    names: Names,
}

impl Triggers {
    /// How many there are.
    pub(crate) const fn len(&self) -> usize {
        self.used.count
    }

    /// The trigger `id`.
    pub(crate) fn get(&self, id: TriggerId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    /// Triggers in the order of their creation, from after `after` on.
    pub(crate) fn after(&self, after: Option<TriggerId>) -> impl Iterator<Item = (TriggerId, Entity)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        self.by_id.range((from, Unbounded)).map(|(id, entity)| (*id, *entity))
    }

    /// Those of one owner, likewise.
    pub(crate) fn of_owner(
        &self,
        owner: Entity,
        after: Option<TriggerId>,
    ) -> impl Iterator<Item = (TriggerId, Entity)> + '_ {
        let found = of(&self.by_owner, owner, after);
        found.filter_map(|id| Some((id, self.get(id)?)))
    }

    /// Those that route to `target`.
    pub(super) fn of_target(&self, target: Entity) -> impl Iterator<Item = TriggerId> + '_ {
        of(&self.by_target, target, None)
    }

    /// Points a trigger at another target.
    pub(super) fn set_target(&mut self, id: TriggerId, was: Option<Entity>, now: Option<Entity>) {
        if let Some(was) = was {
            self.by_target.remove(&(was, id));
        }
        if let Some(now) = now {
            self.by_target.insert((now, id));
        }
    }

    /// The newest of them.
    pub(super) fn newest(&self) -> Option<TriggerId> {
        self.by_id.last_key_value().map(|(id, _)| *id)
    }

    /// Takes in a trigger of `owner`.
    pub(super) fn insert(&mut self, member: Member, owner: (Entity, AgentId), pattern: &Pattern) {
        self.by_id.insert(member.id, member.entity);
        self.by_owner.insert((owner.0, member.id));
        self.matcher.insert(member, owner.1, pattern);
    }

    /// Takes it out.
    pub(super) fn remove(&mut self, member: Member, owner: (Entity, AgentId), pattern: &Pattern) {
        self.by_id.remove(&member.id);
        self.by_owner.remove(&(owner.0, member.id));
        self.matcher.remove(member, owner.1, pattern);
    }

    /// All of them.
    pub(super) fn all(&self) -> Members {
        self.by_id.iter().map(|(id, entity)| (*id, *entity)).collect()
    }

    /// The index by owner.
    pub(super) const fn by_owner(&self) -> &BTreeSet<(Entity, TriggerId)> {
        &self.by_owner
    }

    /// The index by target.
    pub(super) const fn by_target(&self) -> &BTreeSet<(Entity, TriggerId)> {
        &self.by_target
    }

    /// Every place of every trigger in the index by pattern, in no order.
    pub(super) fn members(&self) -> Vec<Member> {
        let Matcher { all, lifecycle, system, kinds, owners, unassigned, assignees, custom, content } = &self.matcher;
        let sets = [all, lifecycle, system, unassigned].into_iter();
        let sets = sets.chain(kinds.values().map(|kind| &kind.any));
        let sets = sets.chain(owners.values()).chain(assignees.values()).chain(custom.values()).chain(content.sets());
        let names = kinds.values().flat_map(|kind| kind.names.sets());
        sets.chain(names).flat_map(Set::iter).collect()
    }

    /// The part that events are shown to.
    pub(super) fn matcher(&self) -> &Matcher {
        &self.matcher
    }
}

fn of(
    set: &BTreeSet<(Entity, TriggerId)>,
    agent: Entity,
    after: Option<TriggerId>,
) -> impl Iterator<Item = TriggerId> + '_ {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let from = match after {
        Some(id) => Excluded((agent, id)),
        None => Included((agent, TriggerId(uuid::Uuid::nil()))),
    };
    set.range((from, Unbounded)).take_while(move |(owner, _)| *owner == agent).map(|(_, id)| *id)
}

impl Matcher {
    /// The set of a pattern that stands in one.
    fn set(&mut self, owner: AgentId, pattern: &Pattern) -> &mut Set {
        match (&pattern.on, &pattern.filter) {
            // A pattern on content always has a text, which stands elsewhere.
            (On::All | On::Content, _) => &mut self.all,
            (On::Lifecycle, _) => &mut self.lifecycle,
            (On::System, _) => &mut self.system,
            (_, Filter::Assignee(AssigneeMatch::Owner)) => self.owners.entry(owner).or_default(),
            (_, Filter::Assignee(AssigneeMatch::Nobody)) => &mut self.unassigned,
            (_, Filter::Assignee(AssigneeMatch::Exactly(text))) => self.assignees.entry(text.clone()).or_default(),
            (_, Filter::CustomType(word)) => self.custom.entry(word.clone()).or_default(),
            (On::Kind(kind), _) => &mut self.kinds.entry(*kind).or_default().any,
        }
    }

    fn insert(&mut self, member: Member, owner: AgentId, pattern: &Pattern) {
        match (&pattern.on, &pattern.filter) {
            (On::Kind(kind), Filter::Name(text)) => {
                // It was found to be a glob when it came in.
                let Ok(glob) = Glob::parse(text) else { return };
                self.kinds.entry(*kind).or_default().names.insert(text, &glob, member);
            }
            (_, Filter::Content(text)) => {
                let text: Box<str> = glob::folded(text).into();
                self.content.insert(&text, std::iter::once(&*text), member);
            }
            _ => self.set(owner, pattern).insert(member),
        }
    }

    fn remove(&mut self, member: Member, owner: AgentId, pattern: &Pattern) {
        match (&pattern.on, &pattern.filter) {
            (On::Kind(kind), Filter::Name(text)) => {
                let Ok(glob) = Glob::parse(text) else { return };
                if let Some(kind) = self.kinds.get_mut(kind) {
                    kind.names.remove(text, &glob, member);
                }
            }
            (_, Filter::Content(text)) => self.content.remove(&glob::folded(text).into(), member),
            (_, Filter::Assignee(AssigneeMatch::Owner)) => drop_member(&mut self.owners, &owner, member),
            (_, Filter::Assignee(AssigneeMatch::Exactly(text))) => drop_member(&mut self.assignees, &**text, member),
            (_, Filter::CustomType(word)) => drop_member(&mut self.custom, &**word, member),
            _ => self.set(owner, pattern).remove(member),
        }
    }

    /// May a trigger read the payload of a custom event of this type?
    pub(super) fn reads_custom(&self, event_type: &str) -> bool {
        !self.all.is_empty()
            || !self.content.is_empty()
            || self.custom.contains_key(event_type)
            || self.kinds.get(&EventKind::Custom).is_some_and(|kind| !kind.any.is_empty() || !kind.names.is_empty())
    }

    /// Adds the sets of triggers that may wait for `event`; gives what they are compared with. `name` gives the name of the event's
    /// agent, where it is known; it is asked at most once.
    pub(super) fn find<'s, 'n>(
        &'s self,
        event: &'n Event,
        name: impl FnOnce() -> Option<Cow<'n, str>>,
        found: &mut Found<'s>,
    ) -> Subject<'n> {
        let (kind, mut subject) = (event.kind(), Subject::default());
        push(found, &self.all);
        if is_lifecycle(kind) {
            push(found, &self.lifecycle);
        }
        if is_system(kind) {
            push(found, &self.system);
        }
        if let Some(kind) = self.kinds.get(&kind) {
            push(found, &kind.any);
            if !kind.names.is_empty()
                && let Some(name) = name()
            {
                kind.names.find(&name, found);
                subject.name = Some(name);
            }
        }
        match event {
            Event::TaskPosted { assignee, assignee_id, .. } => {
                match assignee.as_deref().filter(|text| !text.is_empty()) {
                    None => push(found, &self.unassigned),
                    Some(text) => found.extend(self.assignees.get(text).map(Candidates::from)),
                }
                found.extend(assignee_id.and_then(|id| self.owners.get(&id)).map(Candidates::from));
            }
            Event::Custom { event_type, .. } => {
                found.extend(self.custom.get(&**event_type).map(Candidates::from));
            }
            _ => {}
        }
        if !self.content.is_empty()
            && let Some(text) = event.text()
        {
            let text = glob::folded(text);
            self.content.candidates(&text, |part, set| {
                found.push(Candidates { set, test: Some(Test::Content(part)) });
            });
            subject.text = Some(text);
        }
        subject
    }
}

/// Adds a set that has members. Those that stand under a key always have some.
fn push<'s>(found: &mut Found<'s>, set: &'s Set) {
    if !set.is_empty() {
        found.push(set.into());
    }
}
