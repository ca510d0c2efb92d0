//! Which of the granted tools stand in a prompt. A few are simply all there; with many, those that come first in the
//! table stand there up to a budget, and `tool_search` and `tool_load` bring in the others when they are needed.

use agentsvc_components::manifest::Manifest;
use agentsvc_components::session::message_record::MessageRecord;

use super::{tool_load, tool_search};
use crate::tool::toolset::{ToolSpec, Tools};

/// Estimated tokens up to which all granted tools stand in every prompt.
const ALL_TOKENS_MAX: u64 = 8_000;
/// Estimated tokens of those that stand there anyway when there are more; loaded ones come on top.
const SOME_TOKENS_MAX: u64 = 4_000;

/// The tools that stand in the prompt of a conversation with a model of so large a context.
pub(crate) fn offered(
    tools: &Tools,
    manifest: &Manifest,
    conversation: &[MessageRecord],
    context_tokens: u32,
) -> Vec<ToolSpec> {
    let granted = tools.granted(manifest);
    if granted.is_empty() { granted } else { choose(granted, context_tokens, || tool_load::loaded(conversation)) }
}

fn choose(granted: Vec<ToolSpec>, context_tokens: u32, loaded: impl Fn() -> Vec<String>) -> Vec<ToolSpec> {
    let context = u64::from(context_tokens);
    let is_finder = |tool: &ToolSpec| tool.name == tool_search::NAME || tool.name == tool_load::NAME;
    let total: u64 = granted.iter().filter(|tool| !is_finder(tool)).map(ToolSpec::tokens).sum();
    let can_load = granted.iter().any(|tool| tool.name == tool_load::NAME);
    if total <= ALL_TOKENS_MAX.min(context / 2) || !can_load {
        // Nothing to find: the finders would only cost.
        return granted.into_iter().filter(|tool| !is_finder(tool)).collect();
    }
    let loaded = loaded();
    let mut left = SOME_TOKENS_MAX.min(context / 4);
    let (mut first, mut behind) = (Vec::new(), Vec::new());
    for tool in granted {
        if is_finder(&tool) {
            first.push(tool);
        } else if let Some(rest) = left.checked_sub(tool.tokens()) {
            left = rest;
            first.push(tool);
        } else if loaded.iter().any(|name| *name == tool.name) {
            behind.push(tool);
        }
    }
    // Loaded ones stand last, in the order in which they were loaded, so that the beginning stays as it was.
    behind.sort_by_key(|tool| loaded.iter().position(|name| *name == tool.name));
    // Of more than there is room for the last ones count.
    let mut room = context / 4;
    let fits = |tool: &&ToolSpec| room.checked_sub(tool.tokens()).map(|rest| room = rest).is_some();
    let kept = behind.iter().rev().take_while(fits).count();
    first.extend(behind.split_off(behind.len() - kept));
    first
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::sync::Arc;

    use super::*;

    const CONTEXT: u32 = 100_000;

    fn tool(name: String, bytes: usize) -> ToolSpec {
        let input_schema = serde_json::value::to_raw_value(&serde_json::json!({ "type": "object" })).unwrap();
        ToolSpec {
            name: Cow::Owned(name),
            description: Cow::Owned("d".repeat(bytes)),
            input_schema: Arc::from(input_schema),
            strict: None,
        }
    }

    fn many(count: usize) -> Vec<ToolSpec> {
        let finders = [tool_search::NAME, tool_load::NAME].map(|name| tool(name.to_owned(), 100));
        finders.into_iter().chain((0..count).map(|at| tool(format!("tool_{at}"), 400))).collect()
    }

    fn names(tools: &[ToolSpec]) -> Vec<&str> {
        tools.iter().map(|tool| &*tool.name).collect()
    }

    #[test]
    fn a_few_tools_all_stand_in_the_prompt_without_the_finders() {
        let all = choose(many(20), CONTEXT, Vec::new);
        assert_eq!(all.len(), 20);
        assert!(!names(&all).contains(&"tool_search"));
    }

    #[test]
    fn a_hundred_tools_do_not_fill_the_prompt_and_can_be_loaded() {
        let some = choose(many(100), CONTEXT, Vec::new);
        assert!(some.iter().map(ToolSpec::tokens).sum::<u64>() <= SOME_TOKENS_MAX + 200);
        assert_eq!(names(&some)[..3], ["tool_search", "tool_load", "tool_0"]);
        let loaded = choose(many(100), CONTEXT, || vec!["tool_99".into(), "tool_80".into(), "nothing".into()]);
        let (before, after) = loaded.split_at(some.len());
        assert_eq!((names(before), names(after)), (names(&some), vec!["tool_99", "tool_80"]));
    }

    #[test]
    fn tools_leave_half_of_a_small_context() {
        let loaded = || (0..100).map(|at| format!("tool_{at}")).collect();
        let some = choose(many(40), 8_000, loaded);
        let tokens: u64 = some.iter().map(ToolSpec::tokens).sum();
        assert!((3_500..=4_200).contains(&tokens), "{tokens}");
        assert_eq!(some.last().map(|tool| &*tool.name), Some("tool_39"));
    }

    #[test]
    fn without_the_grant_to_load_all_stand_there() {
        let tools: Vec<ToolSpec> = many(100).split_off(2);
        assert_eq!(choose(tools, CONTEXT, Vec::new).len(), 100);
    }
}
