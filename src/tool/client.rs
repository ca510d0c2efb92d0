//! Tools that the client of a request runs itself: offered beside the agent's own, never run here.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_components::turn::{ClientTool, TurnRequest};
use serde_json::value::RawValue;

use crate::tool::toolset::ToolSpec;

/// `offered` and the tools of the client. Of two with one name the client's is meant.
pub(crate) fn with_client_tools(mut offered: Vec<ToolSpec>, asked: Option<&TurnRequest>) -> Vec<ToolSpec> {
    let Some(asked) = asked.filter(|asked| !asked.tools.is_empty()) else { return offered };
    offered.retain(|own| asked.tools.iter().all(|tool| *tool.name != *own.name));
    offered.extend(asked.tools.iter().filter_map(spec));
    offered
}

fn spec(tool: &ClientTool) -> Option<ToolSpec> {
    // It was JSON when it came in.
    let schema = RawValue::from_string(tool.input_schema.to_string()).ok()?;
    Some(ToolSpec {
        name: Cow::Owned(tool.name.to_string()),
        description: Cow::Owned(tool.description.to_string()),
        input_schema: Arc::from(schema),
        strict: tool.strict,
    })
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::{ClientTool, TurnRequest};

    use super::with_client_tools;
    use crate::tool::toolset::built_in;

    #[test]
    fn a_clients_tool_takes_the_place_of_one_of_its_name() {
        let tool =
            |name: &str| ClientTool { name: name.into(), input_schema: "{\"x\":1}".into(), ..Default::default() };
        let asked = TurnRequest { tools: vec![tool("system_time"), tool("look")], ..Default::default() };
        let all = built_in().offered_to_all();
        let merged = with_client_tools(all.clone(), Some(&asked));
        assert_eq!(merged.len(), all.len() + 1);
        let theirs = merged.iter().find(|spec| spec.name == "system_time").unwrap();
        assert_eq!(theirs.input_schema.get(), "{\"x\":1}");
        assert_eq!(with_client_tools(all.clone(), None).len(), all.len());
    }
}
