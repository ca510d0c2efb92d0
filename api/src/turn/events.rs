//! The events of a streamed reply, for the OpenAPI document: [`hub`](super::hub) and [`stream`](super::stream) write them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::Value;

/// An event of a streamed reply: its name and its data.
#[derive(JsonSchema)]
#[serde(tag = "name", content = "data", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum ReplyEvent {
    /// A piece of the response.
    Chunk {
        content: String,
        /// Always false.
        done: bool,
    },
    /// The model begins to call a tool.
    ToolUse { tool: String },
    /// The call is complete and runs.
    ToolResult {
        tool: String,
        /// The arguments; `raw` where the model wrote no JSON.
        input: BTreeMap<String, Value>,
    },
    /// A note from the agent to its owner.
    OwnerNotice { text: String },
    /// The turn has ended. The last event.
    Done {
        /// Always true.
        done: bool,
        usage: ReplyUsage,
        /// Whether the turn was stopped.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        stopped: bool,
        /// Whether the agent gives no answer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        silent: bool,
    },
    /// The turn failed. The last event.
    Error {
        error: String,
        /// A stable error code for programs.
        code: String,
    },
    /// The client read too slowly and missed events.
    Lagged {
        /// Their number.
        missed: u64,
    },
}

/// The tokens of a turn.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct ReplyUsage {
    input_tokens: u64,
    output_tokens: u64,
}
