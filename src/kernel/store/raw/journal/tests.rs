//! Journals that a kill, a power loss or a failing disk has left.

use super::*;

/// A batch as the engine writes it.
fn encoded(seqno: u64, rows: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut items = Vec::new();
    for (key, value) in rows {
        items.extend([ITEM, 0, 0]);
        items.extend(WORLD.to_le_bytes());
        items.extend((key.len() as u16).to_le_bytes());
        items.extend((value.len() as u32).to_le_bytes());
        items.extend((value.len() as u32).to_le_bytes());
        items.extend(*key);
        items.extend(*value);
    }
    framed(seqno, rows.len(), &items)
}

/// A batch of these items.
fn framed(seqno: u64, count: usize, items: &[u8]) -> Vec<u8> {
    let mut bytes = vec![START];
    bytes.extend((count as u32).to_le_bytes());
    bytes.extend(seqno.to_le_bytes());
    bytes.extend(items);
    bytes.push(END);
    bytes.extend(xxh3_64(items).to_le_bytes());
    bytes.extend(TRAILER);
    bytes
}

fn journal(bytes: Vec<u8>) -> Journal {
    Journal::parse("0.jnl".to_owned(), bytes)
}

fn keys(journal: &Journal) -> Vec<&[u8]> {
    journal.batches().flat_map(|batch| journal.items(batch)).map(|item| item.key).collect()
}

#[test]
fn batches_after_damage_are_read() {
    let batches = [encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]), encoded(3, &[(b"c", b"3")])];
    let whole = batches.concat();
    let read = journal(whole.clone());
    assert!(read.damage(false).is_none() && keys(&read) == [b"a", b"b", b"c"]);
    let second = batches[0].len()..batches[0].len() + batches[1].len();
    for at in second.clone() {
        for mask in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            let read = journal(bytes);
            let found = keys(&read);
            let in_seqno = (second.start + 5..second.start + START_BYTES).contains(&at);
            let damage = read.damage(true);
            assert_eq!(damage.is_none(), in_seqno, "{at}");
            let lost = damage.is_some_and(|damage| damage.is_loss);
            let expected: &[&[u8]] = if lost { &[b"a", b"c"] } else { &[b"a", b"b", b"c"] };
            assert_eq!(found, expected, "{at} {mask}");
            // Only the items and their checksum cannot do without each other.
            let in_items = (second.start + START_BYTES..second.end - TRAILER.len()).contains(&at);
            assert_eq!(lost, in_items, "{at}");
        }
    }
}

#[test]
fn a_batch_that_was_being_written_is_no_damage_at_the_end() {
    let (first, second) = (encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]));
    for length in 0..second.len() {
        let read = journal([first.as_slice(), &second[..length]].concat());
        assert!(read.damage(true).is_none(), "{length}");
        assert_eq!(read.damage(false).is_some(), length > 0, "{length}");
        assert_eq!(keys(&read), [b"a"]);
    }
}

#[test]
fn a_damaged_last_batch_is_damage() {
    let (first, mut second) = (encoded(1, &[(b"a", b"1")]), encoded(2, &[(b"b", b"2")]));
    second[START_BYTES + 3] ^= 1;
    let damage = journal([first.as_slice(), &second].concat()).damage(true).expect("it is damaged");
    assert!(damage.is_loss && !damage.is_unsynced);
    assert_eq!((damage.at, damage.bytes), (first.len(), second.len()));
}

/// A batch that erases rows, as the sweeper writes it; earlier releases did so without a sync.
fn erasing(seqno: u64, rows: usize) -> Vec<u8> {
    let mut items = Vec::new();
    let mut item = |kind, keyspace: u64, key: &[u8]| {
        items.extend([ITEM, kind, 0]);
        items.extend(keyspace.to_le_bytes());
        items.extend((key.len() as u16).to_le_bytes());
        items.extend([0; 8]);
        items.extend(key);
    };
    (0..rows).for_each(|row| item(1, CONTENT, format!("row {row} of a history that was cleared").as_bytes()));
    item(0, WORLD, &CONTENT_KEY);
    framed(seqno, rows + 1, &items)
}

/// Is this journal, the last one, what a power loss leaves of changes that were never acknowledged?
fn is_unsynced(batches: &[&[u8]]) -> bool {
    let damage = journal(batches.concat()).damage(true).expect("it is damaged");
    assert!(damage.is_loss || !damage.is_unsynced);
    damage.is_unsynced
}

#[test]
fn what_a_power_loss_leaves_is_told_apart() {
    let first = encoded(1, &[(b"a", b"1")]);
    let whole = erasing(2, 100);
    let (erased, also_erased) = (erasing(3, 1), erasing(4, 40));
    let change = |seqno| encoded(seqno, &[(b"c", b"3")]);
    let mut second = whole.clone();
    second[1_000..2_500].fill(0);
    assert!(is_unsynced(&[&first, &second, &change(3)]));
    assert!(is_unsynced(&[&first, &second, &erased]));
    assert!(is_unsynced(&[&first, &second, &erased, &also_erased, &erased]), "none of them was synced");
    assert!(is_unsynced(&[&first, &second, &erased, &also_erased, &change(5)]), "the last one was on its way");
    assert!(is_unsynced(&[&first, &second, &also_erased[..200], &second, &erased]), "several are torn");
    assert!(!is_unsynced(&[&first, &second, &change(3), &change(4)]), "before the last one a sync had ended");
    assert!(!is_unsynced(&[&first, &second, &change(3), &erased]), "the same");
    // A batch with changes is synced before another one begins.
    let mut changes = encoded(2, &[(b"a", b"2"), (b"b", &[7; 4_096])]);
    changes[1_000..2_500].fill(0);
    assert!(!is_unsynced(&[&first, &changes, &erased]) && !is_unsynced(&[&first, &changes, &change(3)]));
    assert!(is_unsynced(&[&first, &changes]), "this one was on its way");
    // No sector of it is empty.
    let mut flipped = whole.clone();
    flipped[1_000] ^= 1;
    assert!(!is_unsynced(&[&first, &flipped, &erased]) && !is_unsynced(&[&first, &flipped]));
    assert!(!is_unsynced(&[&first, &flipped, &second, &erased]), "the first damage is none of a power loss");
}

/// The end of a sector that was synced stays as it was, without the beginning of what came behind.
#[test]
fn a_batch_may_lose_its_beginning_in_a_sector_with_others() {
    let first = encoded(1, &[(b"a", &[7; 300])]);
    let mut second = erasing(2, 3);
    let in_sector = SECTOR_BYTES - first.len();
    assert!((START_BYTES..second.len()).contains(&in_sector));
    second[..in_sector].fill(0);
    assert!(is_unsynced(&[&first, &second, &erasing(3, 20)]));
    assert!(is_unsynced(&[&first, &second]));
    second[in_sector - 1] = 1;
    assert!(!is_unsynced(&[&first, &second, &erasing(3, 20)]), "not all of it is empty");
}

#[test]
fn a_damaged_batch_before_one_that_was_being_written_is_damage() {
    let (first, third) = (encoded(1, &[(b"a", b"1")]), erasing(3, 40));
    // In the row, and in what it begins with.
    for (at, mask) in [(START_BYTES + ITEM_BYTES + 1, 1), (START_BYTES + 1, 0x40), (START_BYTES, 0x40), (0, 0x40)] {
        let mut second = encoded(2, &[(b"b", b"2")]);
        second[at] ^= mask;
        for length in [1, START_BYTES, 100, third.len() - 1] {
            let damage = journal([&first, &second, &third[..length]].concat()).damage(true);
            assert!(damage.is_some_and(|damage| !damage.is_unsynced), "{at} {length}");
        }
    }
}

#[test]
fn a_value_that_imitates_batches_is_not_read_as_batches() {
    let forged = [encoded(2, &[(b"x", b"forged")]), encoded(3, &[(b"y", b"forged")])].concat();
    let (first, third) = (encoded(1, &[(b"a", b"1")]), encoded(3, &[(b"c", b"3")]));
    let mut second = encoded(2, &[(b"b", &forged)]);
    // The length of the key.
    second[START_BYTES + 11] ^= 0x40;
    let read = journal([first, second, third].concat());
    assert_eq!(keys(&read), [b"a", b"c"]);
}
