//! Pages of a conversation: whole turns, their bound in bytes, and turns that are larger.

use super::*;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{Timestamp, TurnId};

/// A log of turns with so many rows each; only what the page reads.
struct Log(Vec<MessageRow>);

impl Log {
    fn of(turns: &[usize], bytes: usize) -> Self {
        let row = |ordinal: usize, index: usize| MessageRow {
            ordinal: ordinal as u32,
            index: index as u32,
            record: MessageRecord {
                turn: TurnId(Uuid::from_u128(ordinal as u128)),
                role: if index == 0 { Role::User } else { Role::Assistant },
                blocks: vec![Block::Text { text: "x".repeat(bytes) }],
                created_at: Timestamp::default(),
                usage: None,
                model: None,
                stopped: false,
                repeats: None,
            },
        };
        let rows = turns.iter().enumerate();
        Self(rows.flat_map(|(ordinal, rows)| (0..*rows).map(move |index| row(ordinal, index))).collect())
    }

    /// The sizes of the turns of each page, from the newest page back.
    fn pages(&self, limit: usize) -> Vec<Vec<(u32, usize)>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let (rows, next) = page(self, LogId(1), cursor, limit).unwrap();
            let mut turns: Vec<(u32, usize)> = Vec::new();
            for row in rows {
                match turns.last_mut() {
                    Some((ordinal, count)) if *ordinal == row.ordinal => *count += 1,
                    _ => turns.push((row.ordinal, 1)),
                }
            }
            pages.push(turns);
            cursor = next.map(|place| Place::of(place.cursor()));
            if cursor.is_none() {
                return pages;
            }
        }
    }
}

impl Content for Log {
    fn messages(&self, _: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        let MessageRange::Newest { before, limit, bytes } = range else { unreachable!("only the newest are read") };
        let is_before = |row: &&MessageRow| before.is_none_or(|before| (row.ordinal, row.index) < before);
        let (mut rows, mut read) = (Vec::new(), 0);
        for row in self.0.iter().filter(is_before).rev().take(limit) {
            rows.insert(0, row.clone());
            read += row.record.blocks.iter().map(bytes_of).sum::<usize>();
            if read >= bytes {
                break;
            }
        }
        Ok(rows)
    }

    fn result(&self, _: LogId, _: u32, _: u32) -> Result<Option<String>, ContentError> {
        Ok(None)
    }

    fn summary(
        &self,
        _: LogId,
        _: u32,
    ) -> Result<Option<agentsvc_components::compaction::record::SummaryRecord>, ContentError> {
        Ok(None)
    }

    fn summaries(&self, _: LogId) -> Result<Vec<agentsvc_components::compaction::record::SummaryRecord>, ContentError> {
        Ok(Vec::new())
    }
}

#[test]
fn pages_have_whole_turns_and_lose_none() {
    assert_eq!(Log::of(&[2, 3, 2], 1).pages(5), [vec![(1, 3), (2, 2)], vec![(0, 2)]]);
    assert_eq!(Log::of(&[2, 3, 2], 1).pages(100), [vec![(0, 2), (1, 3), (2, 2)]]);
    assert_eq!(Log::of(&[2, 2], 1).pages(3), [vec![(1, 2)], vec![(0, 2)]]);
    // A turn that is longer than the page stands whole on it.
    assert_eq!(Log::of(&[2, 30, 2], 1).pages(4), [vec![(2, 2)], vec![(0, 2), (1, 30)]]);
    assert_eq!(Log::of(&[], 1).pages(4), [vec![]]);
}

#[test]
fn a_page_is_bounded_in_bytes() {
    let half = PAGE_BYTES_MAX / 2 - MESSAGE_BYTES;
    assert_eq!(Log::of(&[1, 1, 1], half).pages(100), [vec![(1, 1), (2, 1)], vec![(0, 1)]]);
    assert_eq!(Log::of(&[1, 1], PAGE_BYTES_MAX + 1).pages(100), [vec![(1, 1)], vec![(0, 1)]]);
    assert_eq!(Log::of(&[1, 2, 1], half).pages(100), [vec![(2, 1)], vec![(1, 2)], vec![(0, 1)]]);
}

#[test]
fn a_turn_that_is_larger_than_a_page_is_split() {
    let half = PAGE_BYTES_MAX / 2 - MESSAGE_BYTES;
    let pages = Log::of(&[1, 5, 1], half).pages(100);
    assert_eq!(pages, [vec![(2, 1)], vec![(1, 2)], vec![(1, 2)], vec![(0, 1), (1, 1)]]);
    let third = PAGE_BYTES_MAX / 3 - MESSAGE_BYTES;
    assert_eq!(Log::of(&[7], third).pages(2), [vec![(0, 3)], vec![(0, 3)], vec![(0, 1)]]);
    let long = Log::of(&[1, TURN_MESSAGES_MAX * 4], 1).pages(100);
    assert!(long.len() > 2 && long.iter().flatten().map(|(_, rows)| rows).sum::<usize>() == TURN_MESSAGES_MAX * 4 + 1);
    assert!(long.iter().flatten().all(|(_, rows)| *rows <= TURN_MESSAGES_MAX));
}

#[test]
fn the_weight_of_a_text_is_that_of_its_json() {
    let text: String = (0..0x80u8).map(char::from).chain("äß😀".chars()).collect();
    assert_eq!(json_bytes(&text) + 2, serde_json::to_string(&text).unwrap().len());
}

#[test]
fn arguments_are_json_or_a_string() {
    assert_eq!(input("{\"a\": 1}").get(), "{\"a\": 1}");
    assert_eq!(input(" ").get(), "{}");
    assert_eq!(input("{a").get(), "\"{a\"");
}
