//! `web_search`: what a search engine finds.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};
use crate::web::search::{Hit, SearchSettings};

/// Bytes of a query. Longer ones are refused; search engines cut or refuse them too.
const QUERY_BYTES_MAX: usize = 1_000;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "web_search",
    "Searches the web and returns titles, URLs and snippets of the best results. Read a result with web_fetch.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(11);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What to search for.
    query: String,
    /// Maximum number of results.
    max_results: Option<usize>,
}

async fn run(context: Context, asked: Input) -> Result<Ended, String> {
    let query = asked.query.trim();
    if query.is_empty() || query.len() > QUERY_BYTES_MAX {
        return Err(format!("The query must have 1 to {QUERY_BYTES_MAX} bytes."));
    }
    let settings = context.parts.settings.get::<SearchSettings>();
    let count_max = settings.max_results;
    let count = asked.max_results.unwrap_or(count_max).clamp(1, count_max.max(1));
    let by = (context.run.holder, &*context.run.manifest.manifest.capabilities.network);
    let hits = settings.search(&context.parts.web, query, count, by).await?;
    // Titles and snippets of an engine may repeat the query.
    let read: Vec<&str> = hits.iter().map(|hit| &*hit.url).collect();
    Ok(Ended::web(show(query, &hits), &read.join(" ")))
}

fn show(query: &str, hits: &[Hit]) -> String {
    if hits.is_empty() {
        return format!("No results for {query:?}.");
    }
    let shown = hits.iter().enumerate().map(|(at, hit)| {
        let snippet = if hit.snippet.is_empty() { String::new() } else { format!("\n   {}", hit.snippet) };
        format!("{}. {}\n   {}{snippet}", at + 1, hit.title, hit.url)
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Hit, show};

    #[test]
    fn results_are_a_numbered_list() {
        let hit = |title: &str, snippet: &str| Hit {
            title: title.to_owned(),
            url: "https://x/".to_owned(),
            snippet: snippet.to_owned(),
        };
        assert_eq!(show("q", &[hit("A", "says"), hit("B", "")]), "1. A\n   https://x/\n   says\n2. B\n   https://x/");
        assert_eq!(show("q", &[]), "No results for \"q\".");
    }
}
