//! `tool_search`: finds tools that are granted but not in the prompt.

use agentsvc_components::kernel::taint::Taint;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Tool, ToolSpec, on_input};

/// Words of a query that count; the first ones.
const WORDS_MAX: usize = 32;
/// Bytes of a query that count.
const QUERY_BYTES_MAX: usize = 4 << 10;
/// Tools of one answer at most.
const FOUND_MAX: usize = 20;

/// The tool's name.
pub(super) const NAME: &str = "tool_search";

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    NAME,
    "Searches all tools available to you, including those not listed. Load a tool with tool_load before you call it.",
    |context, text| on_input(context, text, run),
)
.safe()
.in_turn()
.order(0);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Words that describe what the tool should do.
    query: String,
}

async fn run(context: Context, Input { query }: Input) -> Result<Ended, String> {
    let tools = context.parts.set.get();
    let (text, named) = search(&tools.granted(&context.run.manifest.manifest), &query);
    // What a server says of its tools is content from outside.
    let is_of_server = |name: &String| tools.find(name).is_some_and(|tool| tool.server.is_some());
    let taint = if named.iter().any(is_of_server) { Taint::TOOL } else { Taint::NONE };
    Ok(Ended::Read { text, taint })
}

/// The tools in the order of how many of the words they hold; a word in the name counts more. Gives the answer, and the tools
/// that it names.
fn search(tools: &[ToolSpec], query: &str) -> (String, Vec<String>) {
    let query = query[..query.floor_char_boundary(QUERY_BYTES_MAX)].to_lowercase();
    let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    let words: Vec<&str> = words.take(WORDS_MAX).collect();
    let score = |tool: &ToolSpec| -> usize {
        let description = tool.description.to_lowercase();
        let of = |word: &str| 3 * usize::from(says(&tool.name, word)) + usize::from(says(&description, word));
        words.iter().map(|word| of(word)).sum()
    };
    let mut found: Vec<(usize, &ToolSpec)> =
        tools.iter().map(|tool| (score(tool), tool)).filter(|(score, _)| *score > 0).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    if found.is_empty() {
        let names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
        return (format!("No tool matches. All tools: {}.", names.join(", ")), names);
    }
    found.truncate(FOUND_MAX);
    let lines: Vec<String> = found.iter().map(|(_, tool)| format!("{}: {}", tool.name, tool.description)).collect();
    (lines.join("\n"), found.iter().map(|(_, tool)| tool.name.to_string()).collect())
}

/// Whole words, so that "is" does not find every list; longer ones also by their beginning.
fn says(text: &str, word: &str) -> bool {
    let is_word = |part: &str| part == word || (word.len() > 3 && part.starts_with(word));
    text.split(|c: char| !c.is_alphanumeric()).any(is_word)
}

#[cfg(test)]
mod tests {
    use super::{WORDS_MAX, search};
    use crate::tool::toolset::built_in;

    #[test]
    fn the_best_match_comes_first() {
        let search = |query: &str| search(&built_in().offered_to_all(), query);
        let (found, named) = search("what TIME is it");
        assert!(found.starts_with("system_time: ") && named[0] == "system_time", "{found}");
        let late = format!("{} time", "zzz ".repeat(WORDS_MAX));
        assert!(search(&late).0.starts_with("No tool matches"), "the first words count");
        assert!(search("zzz").0.starts_with("No tool matches. All tools: "));
    }
}
