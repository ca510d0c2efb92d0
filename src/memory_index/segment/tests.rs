//! Segments are read as they were written, merged, and refused when damaged.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::tail::{Analysed, Tail};
use super::*;

fn doc(key: u16, fingerprint: u64) -> Doc {
    let mut bytes = [0; 32];
    bytes[30..].copy_from_slice(&key.to_be_bytes());
    Doc { key: bytes, fingerprint }
}

fn tail(docs: &[(u16, u64)]) -> Memory {
    let mut tail = Tail::default();
    for (key, version) in docs {
        tail.add(Analysed::new(doc(*key, *version), &format!("word{key} version{version} common"), None));
    }
    tail.to_memory()
}

fn hash(word: &str) -> u64 {
    let mut first = None;
    analysis::terms(word, &mut |term| first = first.or(Some(term.hash)));
    first.expect("a term")
}

fn written(dir: &Path, name: &str, sources: &[Source<'_>]) -> Segment {
    let path = dir.join(name);
    assert!(merge(&path, sources, &mut |_| true).expect("a file"));
    Segment::open(&path).expect("a file").expect("a whole one")
}

/// The entries that a word leads to.
fn led(segment: &Segment, word: &str) -> Vec<Doc> {
    let Some(found) = segment.find(hash(word)).expect("a read") else { return Vec::new() };
    let (bytes, count) = (segment.read(found).expect("a read"), found.count());
    let docs: Vec<Doc> = Postings::new(&bytes).map(|(number, _)| segment.doc(number).expect("an entry")).collect();
    assert_eq!(docs.len(), count as usize);
    docs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn merged_segments_have_the_latest_of_each_entry(
        parts in prop::collection::vec(prop::collection::vec((0_u16..200, 0_u64..4), 0..60), 1..5)
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let memories: Vec<Memory> = parts.iter().map(|part| tail(part)).collect();
        let segments: Vec<Segment> = memories
            .iter()
            .enumerate()
            .filter(|(_, memory)| !memory.docs.is_empty())
            .map(|(number, memory)| written(dir.path(), &format!("{number}.segment"), &[Source::Memory(memory)]))
            .collect();
        let latest: BTreeMap<u16, u64> = parts.iter().flatten().copied().collect();
        let sources: Vec<Source<'_>> = segments.iter().map(Source::Segment).collect();
        if latest.is_empty() {
            prop_assert!(!merge(&dir.path().join("none.segment"), &sources, &mut |_| true).expect("no file"));
            return Ok(());
        }
        let merged = written(dir.path(), "merged.segment", &sources);
        prop_assert_eq!(merged.docs() as usize, latest.len());
        for (number, (key, version)) in latest.iter().enumerate() {
            prop_assert_eq!(merged.doc(number as u32).expect("an entry"), doc(*key, *version));
            prop_assert_eq!(merged.first_from(&doc(*key, 0).key).expect("a read"), number as u32);
            prop_assert_eq!(led(&merged, &format!("word{key}")), vec![doc(*key, *version)]);
        }
        prop_assert_eq!(led(&merged, "common").len(), latest.len());
        prop_assert!(led(&merged, "absent").is_empty());
    }

    #[test]
    fn postings_are_read_as_they_were_written(list in prop::collection::btree_map(0_u32..u32::MAX, 1_u8.., 0..50)) {
        let (mut bytes, mut before) = (Vec::new(), None);
        for (doc, times) in &list {
            push(&mut bytes, before, *doc, *times);
            before = Some(*doc);
        }
        prop_assert_eq!(Postings::new(&bytes).collect::<BTreeMap<_, _>>(), list);
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Postings::new(&bytes).count() <= bytes.len());
    }
}

#[test]
fn damage_anywhere_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("1.segment");
    let segment = written(dir.path(), "1.segment", &[Source::Memory(&tail(&[(1, 1), (2, 1)]))]);
    assert_eq!((segment.docs(), segment.words()), (2, 6));
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        // Bytes of the header that mean nothing are covered by its checksum too.
        assert!(Segment::open(&path).unwrap().is_none(), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(Segment::open(&path).unwrap().is_none(), "cut at {at}");
    }
}

#[test]
fn lengths_are_near_enough() {
    for words in (0..2_000).chain([10_000, u32::MAX]) {
        let back = words_of(length_of(words));
        assert!(back <= words && (words > 10_000 || f64::from(back) >= f64::from(words) * 0.88), "{words} {back}");
    }
}

#[test]
fn what_is_left_out_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let memory = tail(&[(1, 1), (2, 1), (3, 1)]);
    let path = dir.path().join("1.segment");
    merge(&path, &[Source::Memory(&memory)], &mut |it| *it != doc(2, 1)).unwrap();
    let segment = Segment::open(&path).unwrap().unwrap();
    assert_eq!(led(&segment, "common"), [doc(1, 1), doc(3, 1)]);
    assert!(led(&segment, "word2").is_empty());
    assert!(!merge(&path, &[Source::Segment(&segment)], &mut |_| false).unwrap());
}
