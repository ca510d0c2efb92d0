//! Changes of entries: what they store, count and refuse.

use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use agentsvc_components::proactive_memory::record::{EntryVersion, MemoryEntriesRecord, MemoryEntryRecord};
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, Refusal, Timestamp};

use super::keys::{companions, entry_key, owner_key, parse_entry_key, parse_lead, user_key};
use super::*;
use crate::agent::RemoveAgents;
use crate::config::Settings;
use crate::memory::{PutEntry, PutMemory};
use crate::testing::TestWorld;

fn record(content: &str) -> MemoryEntryRecord {
    MemoryEntryRecord { content: content.into(), confidence: 1.0, ..MemoryEntryRecord::default() }
}

fn about(content: &str, user: &str, category: &str) -> MemoryEntryRecord {
    MemoryEntryRecord { user: Some(user.into()), category: category.into(), ..record(content) }
}

fn new(record: MemoryEntryRecord) -> EntryPut {
    EntryPut { id: None, record, old: None, is_now: true }
}

fn write(agent: AgentId, revision: u64, puts: Vec<EntryPut>, removes: Vec<EntryRemove>) -> WriteEntries {
    WriteEntries { agent, revision, puts, removes, cause: Cause::Asked, due: None, by: None }
}

fn add(world: &mut TestWorld, agent: AgentId, record: MemoryEntryRecord) -> Result<MemoryEntryId, Refusal> {
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    world.ask(write(agent, seen, vec![new(record)], Vec::new())).map(|written| written.ids[0])
}

fn stored(world: &TestWorld, agent: AgentId, id: MemoryEntryId) -> Option<MemoryEntryRecord> {
    let key = entry_key(agent, id);
    world.store.get(&(Space::Content, key.clone())).map(|value| record::decode(&key, value).unwrap())
}

fn content_keys(world: &TestWorld) -> usize {
    world.store.keys().filter(|(space, key)| *space == Space::Content && matches!(key[0], b'e' | b'i' | b'j')).count()
}

#[test]
fn entries_are_stored_counted_changed_and_removed_with_what_leads_to_them() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = add(&mut world, agent, about("likes tea", "ana", "preference")).unwrap();
    let row = stored(&world, agent, id).unwrap();
    assert!(row.created_at > Timestamp(0) && row.created_at == row.updated_at && row.change == 1);
    let lead = |world: &TestWorld, user: &str| world.store.contains_key(&(Space::Content, user_key(user, agent, id)));
    assert!(lead(&world, "ana") && world.store.contains_key(&(Space::Content, owner_key(id, agent))));

    let newer = MemoryEntryRecord { level: Level::Agent, ..about("likes coffee", "bo", "") };
    let seen = world.ask(GetEntryUse(agent)).unwrap();
    assert_eq!((seen.counts.entries(), &*seen.counts.categories), (1, &[("preference".into(), 1)][..]));
    let put = EntryPut { id: Some(id), record: newer, old: Some(Counted::from(&row)), is_now: true };
    let after = world.ask(write(agent, seen.revision, vec![put], Vec::new())).unwrap().after;
    assert_eq!((after.counts.levels, after.counts.bytes, after.changes), ([0, 0, 1], 14, 2));
    assert!(lead(&world, "bo") && !lead(&world, "ana"), "the user's row moves with the entry");

    world.restart();
    let same = world.ask(GetEntryUse(agent)).unwrap();
    assert_eq!((&same.counts, same.changes), (&after.counts, 2));
    let old = Counted::from(&stored(&world, agent, id).unwrap());
    let after = world.ask(write(agent, same.revision, Vec::new(), vec![EntryRemove { id, old }])).unwrap().after;
    assert_eq!((after.counts.entries(), after.counts.bytes, after.counts.categories.len()), (0, 0, 0));
    assert_eq!(content_keys(&world), 0, "nothing leads to what is gone");
    let told: Vec<_> = world.events.iter().filter(|event| matches!(event, Event::MemoryUpdated { .. })).collect();
    assert_eq!(told.len(), 3);
}

#[test]
fn an_index_hears_of_each_change_and_can_tell_what_it_missed() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = add(&mut world, agent, record("one")).unwrap();
    let changed = |world: &TestWorld| -> Vec<EntriesChanged> {
        world.effects.iter().filter_map(|effect| effect.get::<EntriesChanged>().cloned()).collect()
    };
    assert_eq!(changed(&world), [EntriesChanged { agent, number: 1, entries: ChangedEntries::These([id].into()) }]);
    let row = stored(&world, agent, id).unwrap();
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    let found = MemoryEntryRecord { access_count: 1, ..row.clone() };
    let put = EntryPut { id: Some(id), record: found, old: Some(Counted::from(&row)), is_now: false };
    let access = WriteEntries { cause: Cause::Access, ..write(agent, seen, vec![put], Vec::new()) };
    assert_eq!(world.ask(access).unwrap().after.changes, 1, "finding an entry changes nothing that is searched");
    assert_eq!((changed(&world).len(), stored(&world, agent, id).unwrap().change), (1, 1));
    add(&mut world, agent, record("two")).unwrap();
    world.restart();
    assert_eq!(world.ask(GetEntryUse(agent)).unwrap().changes, 2, "a change that nobody heard of can be seen");
}

#[test]
fn a_writer_that_missed_a_change_is_refused() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = add(&mut world, agent, record("one")).unwrap();
    let row = stored(&world, agent, id).unwrap();
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    let put = |content: &str| EntryPut {
        id: Some(id),
        record: record(content),
        old: Some(Counted::from(&row)),
        is_now: true,
    };
    world.ask(write(agent, seen, vec![put("two")], Vec::new())).unwrap();
    let refused = world.ask(write(agent, seen, vec![put("three")], Vec::new())).unwrap_err();
    assert!(is_changed(&refused));
    assert_eq!(&*stored(&world, agent, id).unwrap().content, "two");
    world.ask(write(agent, seen, vec![new(record("other"))], Vec::new())).unwrap();
    // The key-value memory has the same revision, and other keys.
    let entry = PutEntry { key: "k".into(), value: "1".into(), created_at: None, updated_at: None, replaces: None };
    world.ask(PutMemory { agent, revision: seen, entries: vec![entry], by: None }).unwrap();
}

#[test]
fn a_change_names_each_entry_once_and_not_too_many() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let put = |id: u128| EntryPut { id: Some(MemoryEntryId(uuid::Uuid::from_u128(id))), ..new(record("x")) };
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    assert!(world.ask(write(agent, seen, vec![put(1), put(1)], Vec::new())).is_err());
    let remove = EntryRemove { id: put(1).id.unwrap(), old: Counted::from(&record("x")) };
    assert!(world.ask(write(agent, seen, vec![put(1)], vec![remove])).is_err());
    let many = (0..=limits::ENTRY_CHANGES_MAX as u128).map(put).collect();
    assert!(world.ask(write(agent, seen, many, Vec::new())).is_err());
    assert_eq!((world.ask(GetEntryUse(agent)).unwrap().counts.entries(), content_keys(&world)), (0, 0));
    world.ask(write(agent, seen, vec![put(1), put(2)], Vec::new())).unwrap();
    assert_eq!(world.ask(GetEntryUse(agent)).unwrap().counts.entries(), 2);
}

#[test]
fn of_duplicates_only_the_hidden_ones_are_told_as_deleted() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let ids = ["old", "newest"].map(|content| add(&mut world, agent, record(content)).unwrap());
    let put = |world: &TestWorld, id, deleted_at| {
        let known = stored(world, agent, id).unwrap();
        let old = Some(Counted::from(&known));
        EntryPut { id: Some(id), record: MemoryEntryRecord { deleted_at, ..known }, old, is_now: false }
    };
    let puts = vec![put(&world, ids[0], Some(Timestamp(1))), put(&world, ids[1], None)];
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    world.ask(WriteEntries { cause: Cause::Consolidation, ..write(agent, seen, puts, Vec::new()) }).unwrap();
    let told = world.events.iter().filter_map(|event| match event {
        Event::MemoryUpdated { key, deleted, .. } => Some((key.to_string(), *deleted)),
        _ => None,
    });
    let [old, newest] = ids.map(|id| id.to_string());
    assert_eq!(told.skip(2).collect::<Vec<_>>(), [(old, true), (newest, false)]);
}

#[test]
fn there_are_never_more_than_the_configuration_says() {
    let mut world = TestWorld::with(Settings { max_memories_per_agent: 2, ..Settings::default() });
    let agent = world.spawn("a");
    let first = add(&mut world, agent, record("one")).unwrap();
    add(&mut world, agent, record("two")).unwrap();
    assert!(is_changed(&add(&mut world, agent, record("three")).unwrap_err()));
    let old = Counted::from(&stored(&world, agent, first).unwrap());
    let seen = world.ask(GetEntryUse(agent)).unwrap();
    assert_eq!(seen.most, 2);
    let evict = vec![EntryRemove { id: first, old }];
    let after = world.ask(write(agent, seen.revision, vec![new(record("three"))], evict)).unwrap().after;
    assert_eq!(after.counts.entries(), 2);
}

#[test]
fn what_is_not_valid_changes_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let long = "x".repeat(limits::ENTRY_CONTENT_BYTES_MAX + 1);
    let tags = |tags: &[&str]| tags.iter().map(|tag| Box::from(*tag)).collect();
    for (bad, field) in [
        (record(" "), "content"),
        (record(&long), "content"),
        (about("x", "", ""), "user_id"),
        (about("x", "a\0b", ""), "user_id"),
        (about("x", "u", "a\nb"), "category"),
        (MemoryEntryRecord { confidence: 1.5, ..record("x") }, "confidence"),
        (MemoryEntryRecord { confidence: f32::NAN, ..record("x") }, "confidence"),
        (MemoryEntryRecord { tags: tags(&[""]), ..record("x") }, "tags"),
        (MemoryEntryRecord { metadata: long.clone().into(), ..record("x") }, "metadata"),
    ] {
        assert_eq!(add(&mut world, agent, bad).unwrap_err().field.as_deref(), Some(field));
    }
    let versions = vec![EntryVersion { content: long.clone().into(), replaced_at: Timestamp(1) }];
    let bad = MemoryEntryRecord { versions, ..record("x") };
    assert_eq!(add(&mut world, agent, bad).unwrap_err().field.as_deref(), Some("versions"));
    for n in 0..limits::ENTRY_CATEGORIES_MAX {
        add(&mut world, agent, about("x", "u", &format!("c{n}"))).unwrap();
    }
    let refused = add(&mut world, agent, about("x", "u", "one more")).unwrap_err();
    assert_eq!(refused.code.as_deref(), Some("memory_full"));
    assert_eq!(world.ask(GetEntryUse(agent)).unwrap().counts.entries() as usize, limits::ENTRY_CATEGORIES_MAX);
    let unknown = world.ask(write(AgentId(uuid::Uuid::nil()), 0, vec![new(record("x"))], Vec::new())).unwrap_err();
    assert_eq!(unknown.kind, agentsvc_components::RefusalKind::NotFound);
}

#[test]
fn what_is_due_is_known_and_set_anew_by_a_writer_that_saw_all_rows() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let session = |at: i64| MemoryEntryRecord { expires_at: Some(Timestamp(at)), ..record("x") };
    add(&mut world, agent, session(9_000_000_000_000)).unwrap();
    add(&mut world, agent, session(8_000_000_000_000)).unwrap();
    add(&mut world, agent, record("y")).unwrap();
    let seen = world.ask(GetEntryUse(agent)).unwrap();
    assert_eq!(seen.due, Some(Timestamp(8_000_000_000_000)));
    let due = Some(Due(Some(Timestamp(9_000_000_000_000))));
    let scanned = WriteEntries { due, cause: Cause::Age, ..write(agent, seen.revision, Vec::new(), Vec::new()) };
    assert_eq!(world.ask(scanned.clone()).unwrap().after.due, Some(Timestamp(9_000_000_000_000)));
    add(&mut world, agent, session(7_000_000_000_000)).unwrap();
    let stale = world.ask(scanned).unwrap().after;
    assert_eq!(stale.due, Some(Timestamp(7_000_000_000_000)), "rows were added since that scan");
}

#[test]
fn a_removed_agent_takes_its_entries_along() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let id = add(&mut world, agent, about("x", "ana", "")).unwrap();
    add(&mut world, other, about("y", "ana", "")).unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&SweepAgent(agent))));
    let gone = EntriesChanged { agent, number: 2, entries: ChangedEntries::Gone };
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&gone)));
    let kept: Vec<_> = world.store.keys().filter(|(space, key)| *space == Space::World && key[0] == b'E').collect();
    assert_eq!(kept.len(), 1, "the other agent's");
    let key = entry_key(agent, id);
    let value = &world.store[&(Space::Content, key.clone())];
    assert_eq!(companions(&key, value), [owner_key(id, agent), user_key("ana", agent, id)]);
    let page = world.ask(ListEntryUse { after: None, limit: 10 }).unwrap();
    assert_eq!(page.items.iter().map(|known| known.agent).collect::<Vec<_>>(), [other]);
}

#[test]
fn who_plans_a_change_of_many_is_not_refused_because_entries_are_found() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let ids: Vec<MemoryEntryId> =
        (0..100).map(|n| add(&mut world, agent, record(&format!("fact {n}"))).unwrap()).collect();
    let seen = world.ask(GetEntryUse(agent)).unwrap().revision;
    let put = |world: &TestWorld, id: MemoryEntryId| {
        let old = stored(world, agent, id).unwrap();
        let counted = Some(Counted::from(&old));
        EntryPut { id: Some(id), record: MemoryEntryRecord { access_count: 1, ..old }, old: counted, is_now: false }
    };
    for id in &ids {
        let revision = world.ask(GetEntryUse(agent)).unwrap().revision;
        let found = put(&world, *id);
        world.ask(WriteEntries { cause: Cause::Access, ..write(agent, revision, vec![found], Vec::new()) }).unwrap();
    }
    let changes: Vec<EntryPut> = ids.iter().map(|id| put(&world, *id)).collect();
    world.ask(write(agent, seen, changes, Vec::new())).unwrap();
    // One who found an entry does not undo what changed it meanwhile.
    let found = put(&world, ids[0]);
    let late = WriteEntries { cause: Cause::Access, ..write(agent, seen, vec![found], Vec::new()) };
    assert!(is_changed(&world.ask(late).unwrap_err()));
}

#[test]
fn totals_follow_every_change_also_over_a_restart() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let first = add(&mut world, a, about("likes tea", "ana", "preference")).unwrap();
    add(&mut world, a, record("1")).unwrap();
    for text in ["2", "3", "4"] {
        add(&mut world, b, about(text, "ana", "preference")).unwrap();
    }
    let totals = |world: &mut TestWorld, named| world.ask(GetEntryTotals { named }).unwrap();
    let preference = |count: u64| ("preference".into(), count);
    let all = totals(&mut world, 10);
    assert_eq!((all.entries(), all.levels), (5, [5, 0, 0]));
    assert_eq!(all.categories, [preference(4), ("".into(), 1)]);
    assert_eq!(all.agents, [(b, 3), (a, 2)]);
    let some = totals(&mut world, 1);
    assert_eq!((some.entries(), some.categories.len(), some.agents), (5, 1, vec![(b, 3)]));
    let seen = world.ask(GetEntryUse(a)).unwrap().revision;
    let old = Some(Counted::from(&stored(&world, a, first).unwrap()));
    let agents_own = MemoryEntryRecord { level: Level::Agent, ..record("likes coffee") };
    let put = EntryPut { id: Some(first), record: agents_own, old, is_now: true };
    world.ask(write(a, seen, vec![put], Vec::new())).unwrap();
    let all = totals(&mut world, 10);
    assert_eq!((all.levels, all.categories.clone()), ([4, 0, 1], vec![preference(3), ("".into(), 2)]));
    world.restart();
    assert_eq!(totals(&mut world, 10), all);
    world.ask(RemoveAgents(vec![b])).unwrap();
    let all = totals(&mut world, 10);
    assert_eq!((all.entries(), all.categories, all.agents), (2, vec![("".into(), 2)], vec![(a, 2)]));
    world.ask(RemoveAgents(vec![a])).unwrap();
    assert_eq!(totals(&mut world, 10), EntryTotals::default());
}

#[test]
fn keys_say_what_they_lead_to() {
    let (agent, id) = (AgentId(uuid::Uuid::from_u128(7)), MemoryEntryId(uuid::Uuid::from_u128(9)));
    assert_eq!(parse_entry_key(&entry_key(agent, id)), Some((agent, id)));
    assert_eq!(parse_lead(&owner_key(id, agent)), Some((agent, id)));
    assert_eq!(parse_lead(&user_key("ü", agent, id)), Some((agent, id)));
    for bad in [&b""[..], b"e", b"i", b"j", b"j\0", &entry_key(agent, id)[..20], &owner_key(id, agent)[..32]] {
        assert_eq!((parse_entry_key(bad), parse_lead(bad)), (None, None), "{bad:?}");
    }
    let record = MemoryEntriesRecord { agent, counts: Default::default(), changes: 3, due: None };
    let bytes = record::encode(&record);
    assert_eq!(record::decode::<MemoryEntriesRecord>(b"E", &bytes).unwrap(), record);
}
