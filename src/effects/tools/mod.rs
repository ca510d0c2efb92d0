//! Tools: what agents may do beside talking.
//!
//! To add a tool: one file with a `pub(super) const TOOL: Tool`, and one line in [`TOOLS`].
//!
//! A tool is offered to a model, and runs, only when the agent's manifest grants it: a name or glob in
//! `[capabilities] tools` matches, `tool_allowlist` is empty or matches, and `tool_blocklist` does not. What is
//! wrong with a call comes back to the model as an error result, never as a failure of the turn.

mod grant;
pub(crate) mod run;
mod system_time;

use std::borrow::Cow;
use std::sync::LazyLock;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::prompt::text_tokens;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Every built-in tool.
const TOOLS: &[Tool] = &[system_time::TOOL];

/// [`TOOLS`] as they are offered; all parts are borrowed, so that a copy is cheap.
static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| TOOLS.iter().filter_map(Tool::spec).collect());

/// One built-in tool.
pub(crate) struct Tool {
    /// Its name: lower case, digits and underscores, as all providers accept it.
    name: &'static str,
    /// What it does, for the model.
    description: &'static str,
    /// The JSON schema of its input, an object; checked by a test.
    input_schema: &'static str,
    /// Runs it on its input, JSON text as the model wrote it. `Ok` is the result, `Err` what is wrong; both for the
    /// model.
    run: fn(String) -> BoxFuture<'static, Result<String, String>>,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does.
    pub description: Cow<'static, str>,
    /// The JSON schema of its input.
    pub input_schema: Cow<'static, RawValue>,
}

impl ToolSpec {
    /// The estimate of what offering it costs.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        text_tokens(self.name.len() + self.description.len() + self.input_schema.get().len())
    }
}

impl Tool {
    fn spec(&self) -> Option<ToolSpec> {
        // `None` would be a malformed literal of ours; a test sees to it that there is none.
        let input_schema = serde_json::from_str::<&'static RawValue>(self.input_schema).ok()?;
        Some(ToolSpec {
            name: Cow::Borrowed(self.name),
            description: Cow::Borrowed(self.description),
            input_schema: Cow::Borrowed(input_schema),
        })
    }
}

/// The tools that an agent of this manifest may call.
#[must_use]
pub fn offered(manifest: &Manifest) -> Vec<ToolSpec> {
    // Most agents without tools say so by an empty list; nothing to look up then.
    if manifest.capabilities.tools.is_empty() {
        return Vec::new();
    }
    SPECS.iter().filter(|spec| grant::is_granted(manifest, &spec.name)).cloned().collect()
}

/// Every built-in tool as it is offered to an agent that may call all.
#[must_use]
pub fn offered_to_all() -> Vec<ToolSpec> {
    SPECS.clone()
}

/// Reads a tool's input. An empty text, which some models write for no arguments, is the empty object.
fn input<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    if !text.trim_start().starts_with('{') {
        return Err("The arguments are not a JSON object.".to_owned());
    }
    // In two steps, so that a wrong value is not called malformed JSON.
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("The arguments are not valid JSON: {error}."))?;
    T::deserialize(Value::Object(object)).map_err(|error| format!("The arguments are wrong: {error}."))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{TOOLS, offered_to_all};

    #[test]
    fn every_tool_is_well_described() {
        assert_eq!(offered_to_all().len(), TOOLS.len());
        for tool in TOOLS {
            let schema: Value = serde_json::from_str(tool.input_schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            assert!(
                tool.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{}",
                tool.name
            );
            assert!(tool.name.len() <= 64 && tool.description.len() > 20);
        }
        let mut names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
    }
}
