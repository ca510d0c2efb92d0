//! The input log: segments whose frames are torn or damaged are cut off there, and entries are read and replayed or
//! refused.

use std::fs;
use std::path::PathBuf;

use agentsvc::replay::inputs::segment::{HEADER, SegmentReader};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::Settings;
use agentsvc_systems::replay::{Entry, Epoch, Player, Rows, quick_hash};

use super::feed::Feed;
use super::scratch;

/// `input` is a byte and, by that, a segment as it is on the disk, frames whose lengths and sums are put right, or one
/// entry.
pub fn run(input: &[u8]) {
    let mut feed = Feed(input);
    match feed.byte() % 3 {
        0 => segment(feed.0),
        1 => segment(&framed(&mut feed)),
        _ => replay(&[feed.0.to_vec()]),
    }
}

/// A segment of frames that are whole.
fn framed(feed: &mut Feed<'_>) -> Vec<u8> {
    let mut segment = HEADER.to_vec();
    while !feed.is_empty() {
        let payload = feed.piece();
        segment.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        segment.extend_from_slice(&quick_hash(payload).to_le_bytes());
        segment.extend_from_slice(payload);
    }
    segment
}

fn segment(bytes: &[u8]) {
    let path: PathBuf = scratch::room().join("segment");
    fs::write(&path, bytes).expect("it can be written");
    let Ok(mut reader) = SegmentReader::open(&path) else { return };
    let mut entries = Vec::new();
    while let Ok(Some(frame)) = reader.next_frame() {
        if let agentsvc::replay::inputs::segment::Frame::Entry(entry) = frame {
            entries.push(entry);
        }
    }
    replay(&entries);
}

/// Replays entries in a world that was empty.
fn replay(entries: &[Vec<u8>]) {
    let epoch = Epoch {
        after: StepMark::default(),
        now: Timestamp(1_700_000_000_000),
        seed: [5; 32],
        settings: Settings::default(),
        memory: Vec::new(),
        next_log: 0,
        born: Timestamp(0),
    };
    let mut player: Option<Player> = None;
    for bytes in entries {
        let Ok(entry) = Entry::read(bytes) else { return };
        let player = player.get_or_insert_with(|| Player::new(&epoch, Rows::new()).expect("an empty world"));
        if player.feed(&entry).is_err() {
            return;
        }
    }
}
