//! Loading the world, and reading content while it runs.

use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::session::content::{Content, MessageRange, MessageRow};
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{AgentId, LogId, Timestamp, TurnId};
use agentsvc_systems::agent::SweptLog;
use agentsvc_systems::kernel::record::{MessageKey, encode, manifest_text_key, message_key};
use uuid::Uuid;

use super::*;
use crate::kernel::store::load::{Progress, load};

/// Puts `count` sweep records, the smallest kind, with ids as `id` gives them.
fn fill(store: &Store, count: u64, id: impl Fn(u64) -> u64) {
    let mut batch = store.database.batch().durability(None);
    for number in 0..count {
        batch.insert(&store.world, [&b"w"[..], &id(number).to_be_bytes()].concat(), [1_u8]);
    }
    batch.commit().unwrap();
}

/// Spreads numbers over all of u64, the same way each time.
const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn loading_in_parallel_gives_what_loading_alone_gives() {
    const COUNT: u64 = 60_000;
    let (_home, store) = store();
    // Ids of one burst, ids all over the place, and two that stand alone at the ends.
    fill(&store, COUNT, |number| 1 << 40 | number);
    fill(&store, COUNT, spread);
    fill(&store, 2, |number| if number == 0 { 1 } else { u64::MAX });
    let alone = load(&store, 1, &Progress::default()).unwrap();
    assert!(alone.iter::<SweptLog>().is_sorted());
    assert_eq!(alone.len(), usize::try_from(2 * COUNT + 2).unwrap());
    for threads in [2, 3, 8] {
        let progress = Progress::default();
        let together = load(&store, threads, &progress).unwrap();
        assert!(together.iter::<SweptLog>().eq(alone.iter()), "{threads} threads read something else");
        assert_eq!(progress.records.load(Ordering::Relaxed), alone.len() as u64);
        assert_eq!(progress.bytes.load(Ordering::Relaxed), 10 * alone.len() as u64);
    }
}

#[test]
fn an_empty_world_loads() {
    let (_home, store) = store();
    let records = load(&store, 4, &Progress::default()).unwrap();
    assert!(records.is_empty());
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let (_home, store) = store();
    fill(&store, 20_000, spread);
    store.world.insert("a\x01\x02", [1, 0xc1]).unwrap();
    for threads in [1, 4] {
        let error = load(&store, threads, &Progress::default()).unwrap_err();
        let Error::Record { key, kind, .. } = &error else { panic!("{error}") };
        assert_eq!((key.as_str(), *kind), ("610102", 'a'));
    }
    store.world.remove("a\x01\x02").unwrap();
    store.world.insert("?nonsense", "x").unwrap();
    let error = load(&store, 2, &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::Record { kind: '?', .. }), "{error}");
}

/// Puts messages of `log` at the given places; the text names the place.
fn put_messages(store: &Store, log: u64, places: &[(u32, u32)]) {
    for (ordinal, index) in places {
        let record = MessageRecord {
            turn: TurnId(Uuid::from_u128(u128::from(*ordinal))),
            role: Role::User,
            blocks: vec![Block::Text { text: format!("{ordinal}/{index}") }],
            created_at: Timestamp(1),
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        let key = message_key(MessageKey { log: LogId(log), ordinal: *ordinal, index: *index });
        store.content.insert(key, encode(&record)).unwrap();
    }
}

/// The places of what is read.
fn places(store: &Store, log: u64, range: MessageRange) -> Vec<(u32, u32)> {
    let rows = store.messages(LogId(log), range).unwrap();
    for MessageRow { ordinal, index, record } in &rows {
        assert_eq!(record.blocks, [Block::Text { text: format!("{ordinal}/{index}") }]);
    }
    rows.into_iter().map(|row| (row.ordinal, row.index)).collect()
}

#[test]
fn messages_are_read_by_log_in_ranges() {
    let (_home, store) = store();
    put_messages(&store, 1, &[(0, 0), (u32::MAX, u32::MAX)]);
    put_messages(&store, 2, &[(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (300, 0)]);
    put_messages(&store, 3, &[(0, 0)]);
    let after = |after, limit| places(&store, 2, MessageRange::After { after, limit });
    assert_eq!(after(None, 2), [(0, 0), (0, 1)]);
    assert_eq!(after(Some((0, 1)), 3), [(1, 0), (1, 1), (1, 2)]);
    assert_eq!(after(Some((1, 2)), 10), [(300, 0)]);
    assert_eq!(after(Some((300, 0)), 10), []);
    assert_eq!(after(None, 0), []);
    let newest = |ordinal: u32, limit| {
        let before = ordinal.checked_add(1).map(|ordinal| (ordinal, 0));
        places(&store, 2, MessageRange::Newest { before, limit, bytes: usize::MAX })
    };
    assert_eq!(newest(u32::MAX, 2), [(1, 2), (300, 0)]);
    assert_eq!(newest(1, 3), [(1, 0), (1, 1), (1, 2)]);
    assert_eq!(newest(0, 100), [(0, 0), (0, 1)]);
    assert_eq!(
        places(&store, 1, MessageRange::Newest { before: None, limit: 9, bytes: usize::MAX }),
        [(0, 0), (u32::MAX, u32::MAX)]
    );
    assert_eq!(places(&store, 4, MessageRange::After { after: None, limit: 9 }), []);
}

#[test]
fn a_broken_message_and_a_broken_text_are_errors_that_name_their_key() {
    let (_home, store) = store();
    let key = message_key(MessageKey { log: LogId(9), ordinal: 0, index: 0 });
    store.content.insert(key, [1, 0xc1]).unwrap();
    let error = store.messages(LogId(9), MessageRange::After { after: None, limit: 1 }).unwrap_err();
    assert!(error.to_string().contains("720000000000000009"), "{error}");
    let agent = AgentId(Uuid::from_u128(5));
    assert_eq!(store.manifest_text(agent).unwrap(), None);
    store.content.insert(manifest_text_key(agent), "name = 'x'").unwrap();
    assert_eq!(store.manifest_text(agent).unwrap().as_deref(), Some("name = 'x'"));
    store.content.insert(manifest_text_key(agent), [0xff]).unwrap();
    assert!(store.manifest_text(agent).unwrap_err().to_string().contains("not UTF-8"));
}
