//! Tools of plain HTTP, from the form in which they are written to the one in which they are called.

use super::wire::{CompatMethod, CompatTool, RequestMode, ResponseMode};

/// The tool as it is called.
pub(super) fn compat_tool(tool: agentsvc_systems::mcp::CompatTool) -> CompatTool {
    use agentsvc_systems::mcp as given;
    CompatTool {
        name: tool.name,
        description: tool.description,
        path: tool.path,
        method: match tool.method {
            given::CompatMethod::Get => CompatMethod::Get,
            given::CompatMethod::Post => CompatMethod::Post,
            given::CompatMethod::Put => CompatMethod::Put,
            given::CompatMethod::Patch => CompatMethod::Patch,
            given::CompatMethod::Delete => CompatMethod::Delete,
        },
        request_mode: match tool.request_mode {
            given::RequestMode::JsonBody => RequestMode::JsonBody,
            given::RequestMode::Query => RequestMode::Query,
            given::RequestMode::None => RequestMode::None,
        },
        response_mode: match tool.response_mode {
            given::ResponseMode::Json => ResponseMode::Json,
            given::ResponseMode::Text => ResponseMode::Text,
        },
        input_schema: tool.input_schema,
    }
}
