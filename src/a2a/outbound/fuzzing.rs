//! What a fuzz target does with bytes of external agents: cards, and answers in every dialect.

use agentsvc_components::a2a::outbound::A2aDialect;
use agentsvc_systems::a2a::limits::{A2A_AGENT_NAME_BYTES_MAX, A2A_CARD_BYTES_MAX, A2A_CARD_SKILLS_MAX};

use super::answer::{self, Content};
use super::card;

/// Bytes of what is said in words of ours of an answer that is an error.
const ERROR_BYTES_MAX: usize = 1 << 10;

/// Reads them as a card of an agent at an encrypted address; false when it cannot be used.
pub(crate) fn card(body: &[u8]) -> bool {
    let Ok(read) = card::read("https://a.example", body) else { return false };
    assert!(read.bytes() <= A2A_CARD_BYTES_MAX && read.skills.len() <= A2A_CARD_SKILLS_MAX, "{read:?}");
    assert!(read.endpoint.starts_with("https://"), "messages would not be encrypted: {read:?}");
    let names = read.skills.iter().flat_map(|skill| [&skill.id, &skill.name]).chain([&read.name, &read.version]);
    assert!(names.into_iter().all(|name| name.len() <= A2A_AGENT_NAME_BYTES_MAX && is_line(name)), "{read:?}");
    let texts = read.skills.iter().map(|skill| &skill.description).chain([&read.description, &read.protocol]);
    assert!(texts.into_iter().all(|text| is_line(text)), "{read:?}");
    true
}

/// Reads them as an answer in each dialect; gives in how many it is a task.
pub(crate) fn answer(body: &[u8]) -> usize {
    let dialects = [A2aDialect::V1, A2aDialect::V0, A2aDialect::Tasks, A2aDialect::Rest];
    let is_task = |dialect: &A2aDialect| match answer::read(*dialect, body) {
        Content::Task(report) => {
            assert!(report.state.is_some(), "{report:?}");
            assert!(report.error.as_deref().is_none_or(is_sentence), "{report:?}");
            true
        }
        Content::Error(why) => {
            assert!(is_sentence(&why), "{why:?}");
            false
        }
        Content::NoMethod | Content::NoTask | Content::Unreadable(_) => false,
    };
    dialects.iter().filter(|dialect| is_task(dialect)).count()
}

fn is_sentence(text: &str) -> bool {
    text.len() <= ERROR_BYTES_MAX && is_line(text)
}

fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
