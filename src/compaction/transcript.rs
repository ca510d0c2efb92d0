//! Whole turns of a log as plain text.

use std::fmt::Write;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::session::content::{Content, MessageRange};
use agentsvc_components::LogId;
use agentsvc_components::session::message::{Block, Role, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_systems::prompt::shorten;

use crate::model::extract::{ASSISTANT, USER};
use crate::skill::active;

/// Rows read at once.
const ROWS: usize = 64;
/// Bytes of one text of a message.
const TEXT_BYTES_MAX: usize = 12 << 10;
/// Bytes of one tool result.
const RESULT_BYTES_MAX: usize = 2 << 10;
/// Bytes of one tool call's arguments.
const CALL_BYTES_MAX: usize = 1 << 10;

/// A run of whole turns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// What was said and done, one entry after the other.
    pub(super) text: String,
    /// Of a single turn: the first of those that answer the same message.
    from: u32,
    /// The turn behind the last one.
    pub(super) upto: u32,
    /// Messages that a session counts.
    pub(super) messages: u32,
    /// Bytes of all that was said and done, before long texts were cut.
    pub(super) bytes: usize,
    /// Skills whose instructions were read, the last ones last.
    pub(super) skills: Vec<String>,
    /// The model answered in it; of a single turn.
    is_answered: bool,
}

impl Part {
    fn add(&mut self, turn: &Self) {
        self.text.push_str(&turn.text);
        self.messages += turn.messages;
        self.bytes += turn.bytes;
        turn.skills.iter().for_each(|skill| active::add(&mut self.skills, skill.clone()));
    }

    /// Takes the place of `before`, which answers the same message, or gives its own to it where the model did not answer here. Both
    /// count as messages of the session.
    fn replace(&mut self, before: Self) {
        let (from, messages) = (before.from, self.messages + before.messages);
        if before.is_answered && !self.is_answered {
            *self = Self { upto: self.upto, ..before };
        }
        (self.from, self.messages) = (from, messages);
    }
}

/// Reads turns from `from` up to and without `upto`, as many as fit into `bytes_max`; at least one.
pub(super) fn read(
    content: &dyn Content,
    log: LogId,
    from: u32,
    upto: u32,
    bytes_max: usize,
) -> Result<Part, ContentError> {
    let (mut part, mut turn) = (Part::default(), Part { from, upto: from, ..Part::default() });
    // What the turn answers again.
    let mut before: Option<Part> = None;
    let mut after = from.checked_sub(1).map(|ordinal| (ordinal, u32::MAX));
    loop {
        let rows = content.messages(log, MessageRange::After { after, limit: ROWS })?;
        let is_last = rows.len() < ROWS;
        for row in rows {
            after = Some((row.ordinal, row.index));
            if row.ordinal != turn.upto {
                if let Some(before) = before.take() {
                    turn.replace(before);
                }
                if row.record.repeats.is_some() && turn.messages > 0 {
                    before = Some(std::mem::take(&mut turn));
                } else if !take(&mut part, &mut turn, bytes_max) {
                    return Ok(part);
                }
                (turn.from, turn.upto) = (row.ordinal, row.ordinal);
            }
            if row.ordinal >= upto {
                match before.take() {
                    // A later turn, which stays, has its place.
                    Some(before) if !part.text.is_empty() => part.messages += before.messages,
                    Some(mut before) => drop(take(&mut part, &mut before, bytes_max)),
                    None => {}
                }
                part.upto = upto;
                return Ok(part);
            }
            say(&mut turn, row.index, &row.record);
        }
        if is_last {
            if let Some(before) = before.take() {
                turn.replace(before);
            }
            if take(&mut part, &mut turn, bytes_max) {
                part.upto = upto;
            }
            return Ok(part);
        }
    }
}

/// Takes the turn in when there is room for it, or nothing else; else notes that the part ends before it.
fn take(part: &mut Part, turn: &mut Part, bytes_max: usize) -> bool {
    part.upto = turn.from;
    if !part.text.is_empty() && part.text.len() + turn.text.len() > bytes_max {
        return false;
    }
    shorten(&mut turn.text, bytes_max);
    part.add(turn);
    part.upto = turn.upto + 1;
    *turn = Part::default();
    true
}

fn say(turn: &mut Part, index: u32, record: &MessageRecord) {
    let is_message = match record.role {
        Role::User => index == 0,
        Role::Assistant => !text_of(&record.blocks).is_empty(),
        Role::Tool => false,
    };
    turn.messages += u32::from(is_message);
    turn.is_answered |= record.role == Role::Assistant;
    let speaker = if record.role == Role::User { USER } else { ASSISTANT };
    for block in &record.blocks {
        // Writing to a String cannot fail.
        let _ = match block {
            Block::Text { text } if text.is_empty() => Ok(()),
            Block::Reasoning(_) => Ok(()),
            Block::Text { text } => writeln!(turn.text, "{speaker}{}", cut(text, TEXT_BYTES_MAX)),
            Block::ToolCall(call) => {
                if let Some(skill) = active::read_by(&call.name, &call.input) {
                    active::add(&mut turn.skills, skill);
                }
                writeln!(turn.text, "[The assistant calls {}: {}]", call.name, cut(&call.input, CALL_BYTES_MAX))
            }
            Block::ToolResult { name, content, is_error, .. } => {
                let verb = if *is_error { "fails" } else { "gives" };
                writeln!(turn.text, "[{name} {verb}: {}]", cut(content, RESULT_BYTES_MAX))
            }
            Block::Image { .. } => writeln!(turn.text, "[The user shows an image.]"),
        };
        turn.bytes += bytes(block);
    }
}

fn bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.input.len(),
        Block::ToolResult { content, .. } => content.len(),
        Block::Image { .. } | Block::Reasoning(_) => 0,
    }
}

fn cut(text: &str, bytes_max: usize) -> String {
    let mut text = text.trim().to_owned();
    shorten(&mut text, bytes_max);
    text
}

#[cfg(test)]
mod tests {
    use agentsvc_api::session::content::MessageRow;
    use agentsvc_components::compaction::record::SummaryRecord;
    use agentsvc_components::session::message::ToolCall;
    use agentsvc_components::{Timestamp, TurnId};

    use super::*;

    struct Log(Vec<MessageRow>);

    impl Content for Log {
        fn messages(&self, _: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
            let MessageRange::After { after, limit } = range else { panic!("only forwards") };
            let behind = |row: &&MessageRow| after.is_none_or(|after| (row.ordinal, row.index) > after);
            Ok(self.0.iter().filter(behind).take(limit).cloned().collect())
        }

        fn summary(&self, _: LogId, _: u32) -> Result<Option<SummaryRecord>, ContentError> {
            Ok(None)
        }

        fn summaries(&self, _: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
            Ok(Vec::new())
        }

        fn result(&self, _: LogId, _: u32, _: u32) -> Result<Option<String>, ContentError> {
            Ok(None)
        }
    }

    fn row(ordinal: u32, index: u32, role: Role, block: Block) -> MessageRow {
        let record = MessageRecord {
            turn: TurnId(uuid::Uuid::nil()),
            role,
            blocks: vec![block],
            created_at: Timestamp(0),
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        MessageRow { ordinal, index, record }
    }

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    fn turns(count: u32) -> Log {
        let turn = |n| [row(n, 0, Role::User, text(&format!("ask {n}"))), row(n, 1, Role::Assistant, text("ok"))];
        Log((0..count).flat_map(turn).collect())
    }

    fn read(log: &Log, from: u32, upto: u32, bytes_max: usize) -> Part {
        super::read(log, LogId(1), from, upto, bytes_max).unwrap()
    }

    #[test]
    fn a_turn_is_told_with_its_tools() {
        let call = ToolCall { id: "1".into(), name: "look".into(), input: "{\"at\":1}".into() };
        let result =
            Block::ToolResult { call_id: "1".into(), name: "look".into(), content: "rain".into(), is_error: false };
        let log = Log(vec![
            row(0, 0, Role::User, text("weather?")),
            row(0, 1, Role::Assistant, Block::ToolCall(call)),
            row(0, 2, Role::Tool, result),
            row(0, 3, Role::Assistant, text("It rains.")),
            row(1, 0, Role::User, text("thanks")),
        ]);
        let part = read(&log, 0, 1, 10_000);
        let told = "User: weather?\n[The assistant calls look: {\"at\":1}]\n[look gives: rain]\nAssistant: It rains.\n";
        assert_eq!((&*part.text, part.upto, part.messages), (told, 1, 2));
        assert_eq!(part.bytes, 8 + 12 + 4 + 9);
    }

    #[test]
    fn every_turn_is_told_once_however_the_parts_fall() {
        let log = turns(100);
        for bytes_max in [1, 40, 333, 1_000_000] {
            let (mut from, mut messages, mut text) = (7, 0, String::new());
            while from < 90 {
                let part = read(&log, from, 90, bytes_max);
                assert!(part.upto > from && part.upto <= 90);
                assert!(part.text.len() <= bytes_max.max(1));
                (from, messages) = (part.upto, messages + part.messages);
                text.push_str(&part.text);
            }
            assert_eq!(messages, 2 * 83, "{bytes_max}");
            if bytes_max >= 40 {
                assert!(text.starts_with("User: ask 7\n") && text.ends_with("User: ask 89\nAssistant: ok\n"), "{text}");
            }
        }
        let end = read(&turns(5), 3, 5, 1_000);
        assert_eq!((end.upto, end.messages), (5, 4));
    }

    /// Turns of which each but the first answers the same message again; `answers` are absent where the model gave none.
    fn repeated(answers: &[Option<&str>]) -> Vec<MessageRow> {
        let turn = |(n, answer): (usize, &Option<&str>)| {
            let mut asked = row(n as u32, 0, Role::User, text("why?"));
            asked.record.repeats = (n > 0).then(|| TurnId(uuid::Uuid::nil()));
            let answer = answer.map(|answer| row(n as u32, 1, Role::Assistant, text(answer)));
            std::iter::once(asked).chain(answer).collect::<Vec<_>>()
        };
        answers.iter().enumerate().flat_map(turn).collect()
    }

    #[test]
    fn of_turns_that_answer_the_same_message_one_is_told_and_all_are_counted() {
        let mut log = Log(repeated(&[Some("a"), Some("b"), None]));
        log.0.extend([row(3, 0, Role::User, text("thanks")), row(3, 1, Role::Assistant, text("ok"))]);
        let told = "User: why?\nAssistant: b\nUser: thanks\nAssistant: ok\n";
        let part = read(&log, 0, 4, 10_000);
        assert_eq!((&*part.text, part.upto, part.messages), (told, 4, 7));
        // They stand in one part, also where that is too long for what follows.
        let part = read(&log, 0, 4, 20);
        assert_eq!((part.upto, part.messages), (3, 5));
        // One that stays has the place of those before it.
        let mut log = turns(2);
        log.0.extend(repeated(&[None, Some("a")]).split_off(1).into_iter().map(|row| MessageRow { ordinal: 2, ..row }));
        let part = read(&log, 0, 2, 10_000);
        assert_eq!((&*part.text, part.upto, part.messages), ("User: ask 0\nAssistant: ok\n", 2, 4));
        let end = Log(repeated(&[Some("a"), None]));
        let part = read(&end, 0, 2, 10_000);
        assert_eq!((&*part.text, part.upto, part.messages), ("User: why?\nAssistant: a\n", 2, 3));
        // Where all that is summarised is repeated by what stays, something must be told.
        let part = read(&end, 0, 1, 10_000);
        assert_eq!((&*part.text, part.upto, part.messages), ("User: why?\nAssistant: a\n", 1, 2));
    }
}
