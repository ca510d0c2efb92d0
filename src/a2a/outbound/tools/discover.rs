//! `a2a_discover`: reads the card of an external agent.

use std::sync::LazyLock;

use agentsvc_systems::a2a::limits::{A2A_DISCOVERIES_FAMILY_MAX, A2A_DISCOVERIES_MAX, A2A_DISCOVERIES_OF_CLIENTS};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{check_granted, described};
use crate::a2a::outbound::Client;
use crate::a2a::outbound::host::{fetch, spelled};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};
use agentsvc_api::http::places::Places;

/// The table row. It reads and changes nothing; only the operator adds external agents.
pub(super) const TOOL: Tool = Tool::new::<Input>(
    "a2a_discover",
    "Reads the A2A agent card at a URL: what an external agent says it can do. It does not add the agent; a2a_list lists \
     those that you can send to.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(36);

/// Cards that agents fetch at once; the other places are for clients. A user with a limited role,
/// or a family of agents, has few, however slow the hosts are that they ask.
static OF_AGENTS: LazyLock<Places> =
    LazyLock::new(|| Places::new(A2A_DISCOVERIES_MAX - A2A_DISCOVERIES_OF_CLIENTS, A2A_DISCOVERIES_FAMILY_MAX));

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The URL of the agent, with http:// or https://.
    url: String,
}

async fn run(context: Context, Input { url }: Input) -> Result<Ended, String> {
    let url = spelled(&url).map_err(|why| format!("The URL is refused: {why}"))?;
    check_granted(&context, &url)?;
    // Without the keys of agents that are known: whoever calls may not have been given them.
    let client = Client::keyless(context.parts.web.clone(), context.parts.settings.clone());
    let _place = OF_AGENTS.place(context.run.holder).await;
    let card = fetch(&client, &url, None).await.map_err(|failure| failure.to_string())?;
    Ok(Ended::Text(format!("URL: {url}\nName: {}\n{}", card.name, described(&card))))
}
