//! Inputs that a real world wrote, for the targets that read what it stores.

use std::collections::BTreeMap;

use super::harness::Harness;
use super::http::lived;

/// Entries of the input log that one input has.
const ENTRIES_MAX: usize = 3;

/// Inputs by target and name, such as `record/a`, of worlds in which `requests` were carried out: for each kind of record
/// the shortest row, and the beginning of each input log.
pub fn of(requests: &[Vec<u8>]) -> BTreeMap<String, Vec<u8>> {
    let mut seeds: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (number, requests) in requests.iter().enumerate() {
        let harness = Harness::new();
        harness.keep_journal();
        let journal = lived(requests, harness).take_journal();
        for (key, value) in journal.rows {
            let row = [piece(&key), piece(&value)].concat();
            let kept = seeds.entry(format!("record/{}", kind(&key))).or_insert_with(|| row.clone());
            if row.len() < kept.len() {
                *kept = row;
            }
        }
        let mut log = vec![1];
        for entry in journal.entries.iter().rev().take(ENTRIES_MAX).rev() {
            log.extend(piece(&[&[1], &entry[..]].concat()));
        }
        seeds.insert(format!("inputs/world-{number}"), log);
    }
    seeds
}

/// The first letter of a key, and the second where that tells kinds apart.
fn kind(key: &[u8]) -> String {
    let letters = key.iter().take(2).take_while(|byte| byte.is_ascii_lowercase());
    let parted = matches!(key.first(), Some(b'b' | b'p' | b'x' | b'w'));
    letters.take(if parted { 2 } else { 1 }).map(|byte| char::from(*byte)).collect()
}

fn piece(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&length.to_be_bytes()[..], &bytes[..usize::from(length)]].concat()
}
