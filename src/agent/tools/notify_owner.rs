//! `notify_owner`: a private note to the owner of the agent (spec 1, Owner notice).

use agentsvc_components::kernel::limit::NOTICE_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the note leaves with the result of the call, in one step.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "notify_owner",
    "Sends a private note to your owner: something they must know that does not belong in the answer. They receive \
     it when this turn ends.",
    |context, text| on_input(context, text, run),
)
.safe()
.in_turn()
.order(4);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The note, in plain text.
    message: String,
}

async fn run(_context: Context, Input { message }: Input) -> Result<Ended, String> {
    let notice = message.trim();
    if notice.is_empty() {
        return Err("The note is empty.".to_owned());
    }
    if notice.len() > NOTICE_BYTES_MAX {
        return Err(format!("The note is {} bytes long; the limit is {NOTICE_BYTES_MAX}.", notice.len()));
    }
    Ok(Ended::Notice { text: "Noted.".to_owned(), notice: notice.to_owned() })
}
