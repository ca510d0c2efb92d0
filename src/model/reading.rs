//! What the readers of answers share: JSON out of a frame or a body, and the counts of those who tell the cache apart.

use agentsvc_components::session::message::Usage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::CallError;
use super::failure;
use super::provider::Target;

/// One event of a stream as JSON.
///
/// # Errors
/// `ProviderProtocol`: it is none, or not of this protocol.
pub(super) fn event<'e, T: Deserialize<'e>>(target: &Target, event: &'e str) -> Result<T, CallError> {
    serde_json::from_str(event).map_err(|_| failure::protocol(target, "an event contains malformed JSON"))
}

/// One event of a stream whose last one may say that it is. An empty one says nothing.
#[derive(Debug)]
pub(super) enum Said<T> {
    /// Nothing.
    Nothing,
    /// That it was the last one.
    Done,
    /// This.
    Event(T),
}

/// The same of a protocol whose streams may end in `[DONE]`.
pub(super) fn said<'e, T: Deserialize<'e>>(target: &Target, text: &'e str) -> Result<Said<T>, CallError> {
    match text.trim() {
        "" => Ok(Said::Nothing),
        "[DONE]" => Ok(Said::Done),
        text => event(target, text).map(Said::Event),
    }
}

/// A whole answer; `otherwise` says what it is not.
pub(super) fn whole<'b, T: Deserialize<'b>>(target: &Target, body: &'b [u8], otherwise: &str) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|_| failure::protocol(target, otherwise))
}

/// Counts, or none where they cannot be read: the answer is not lost with them, and its tokens are estimated.
pub(super) fn counts<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Counts of a provider by which what was read from the cache and what was written to it stand beside the rest of the
/// prompt.
pub(super) fn beside_the_cache(
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
) -> Usage {
    let (cached, written) = (cached.unwrap_or(0), written.unwrap_or(0));
    let input = input.unwrap_or(0).saturating_add(cached).saturating_add(written);
    let usage = Usage::of(input, output.unwrap_or(0));
    Usage { cached_input_tokens: cached, cache_write_tokens: written, ..usage }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::DriverKind;
    use crate::model::testing;

    #[test]
    fn an_event_is_nothing_the_end_or_json() {
        let target = testing::target(DriverKind::OpenAi, "http://127.0.0.1");
        let said = |text| said::<Vec<u8>>(&target, text);
        assert!(matches!(said(" \n"), Ok(Said::Nothing)));
        assert!(matches!(said(" [DONE]\r"), Ok(Said::Done)));
        assert!(matches!(said("[1, 2]"), Ok(Said::Event(list)) if list == [1, 2]));
        assert!(said("[1").unwrap_err().message.contains("malformed JSON"));
        let error = whole::<Vec<u8>>(&target, b"{}", "it is no list").unwrap_err();
        assert!(error.message.contains("it is no list"), "{}", error.message);
    }

    #[test]
    fn counts_that_cannot_be_read_are_none() {
        #[derive(Deserialize)]
        struct Counted {
            #[serde(default, deserialize_with = "counts")]
            tokens: Option<u64>,
        }
        let read = |text| serde_json::from_str::<Counted>(text).unwrap().tokens;
        assert_eq!(read("{\"tokens\":7}"), Some(7));
        for text in ["{}", "{\"tokens\":null}", "{\"tokens\":\"7\"}", "{\"tokens\":-7}", "{\"tokens\":{}}"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_cache_is_a_part_of_the_prompt() {
        let usage = beside_the_cache(Some(5), Some(3), None, Some(2));
        assert_eq!(usage, Usage { cached_input_tokens: 3, ..Usage::of(8, 2) });
        assert_eq!(beside_the_cache(None, None, Some(u64::MAX), None).cache_write_tokens, u64::MAX);
    }
}
