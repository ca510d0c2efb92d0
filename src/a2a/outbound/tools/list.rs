//! `a2a_list`: the external agents that there are.

use agentsvc_systems::a2a::outbound::A2aAgentView;
use agentsvc_systems::kernel::entities::List;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_granted, described};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Characters of the list.
const CHARS_MAX: usize = 20_000;

/// The table row.
pub(super) const TOOL: Tool = Tool::new::<Input>(
    "a2a_list",
    "Lists the external agents that you can send messages to with a2a_send, and what they say they can do.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(37);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {}

async fn run(context: Context, _: Input) -> Result<Ended, String> {
    let page = context.ask(List::<A2aAgentView> { filter: (), after: None, limit: usize::MAX }).await?;
    let its = page.items.into_iter().filter(|view| check_granted(&context, &view.agent.card.endpoint).is_ok());
    let texts: Vec<String> = its
        .map(|A2aAgentView { agent, .. }| format!("{}: {}\n{}", agent.name, agent.url, described(&agent.card)))
        .collect();
    if texts.is_empty() {
        return Ok(Ended::Text("There are no external agents that you can send to.".to_owned()));
    }
    let mut text = texts.join("\n\n");
    if text.len() > CHARS_MAX {
        text.truncate(text.floor_char_boundary(CHARS_MAX));
        text += "\n[... truncated ...]";
    }
    Ok(Ended::Text(text))
}
