//! Tools: what agents may do beside talking.
//!
//! To add a tool: one file with a `pub(crate) const TOOL: Tool`, and one line in [`TOOLS`].
//!
//! A tool is offered to a model, and runs, only when the agent's manifest grants it: a name or glob in
//! `[capabilities] tools` matches, `tool_allowlist` is empty or matches, and `tool_blocklist` does not. What is
//! wrong with a call comes back to the model as an error result, never as a failure of the turn.

mod apply_patch;
mod brought;
mod client;
mod context;
mod direct;
mod file_delete;
mod file_list;
mod file_read;
mod file_write;
mod files;
mod grant;
mod offer;
mod parts;
mod patch;
mod result_read;
pub(crate) mod run;
mod schema;
mod shell_exec;
mod system_time;
mod tool;
mod tool_load;
mod tool_search;
mod validate;
pub(crate) mod wiring;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

pub(crate) use client::with_client_tools;
pub(crate) use context::Context;
pub use direct::DirectTools;
pub(crate) use offer::granted;
pub use offer::offered;
pub use parts::ToolParts;
pub(crate) use patch::patched;
pub(crate) use tool::{Need, Place, Repeat, Tool};

use agentsvc_components::taint::Taint;
use agentsvc_systems::kernel::glob;
use agentsvc_systems::prompt::text_tokens;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Every built-in tool.
pub(crate) const TOOLS: &[Tool] = &[
    tool_search::TOOL,
    tool_load::TOOL,
    result_read::TOOL,
    system_time::TOOL,
    crate::agent::tools::notify_owner::TOOL,
    crate::agent::tools::send::TOOL,
    crate::agent::tools::list::TOOL,
    crate::agent::tools::find::TOOL,
    crate::agent::tools::spawn::TOOL,
    crate::agent::tools::kill::TOOL,
    crate::web::tools::fetch::TOOL,
    crate::web::tools::search::TOOL,
    file_read::TOOL,
    file_write::TOOL,
    file_list::TOOL,
    file_delete::TOOL,
    apply_patch::TOOL,
    shell_exec::TOOL,
    crate::memory::store::TOOL,
    crate::memory::recall::TOOL,
    crate::memory::list::TOOL,
    crate::session::search::TOOL,
    crate::schedule::cron_cancel::TOOL,
    crate::schedule::cron_create::TOOL,
    crate::schedule::cron_list::TOOL,
    crate::event::publish::TOOL,
    crate::goal::update::TOOL,
    crate::schedule::create::TOOL,
    crate::schedule::delete::TOOL,
    crate::schedule::list::TOOL,
    crate::task::claim::TOOL,
    crate::task::complete::TOOL,
    crate::task::list::TOOL,
    crate::task::post::TOOL,
    crate::task::status::TOOL,
    crate::workflow::run::TOOL,
];

/// [`TOOLS`] as they are offered; all parts are shared, so that a copy is cheap.
pub(crate) static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| TOOLS.iter().filter_map(Tool::spec).collect());

/// How a tool ended well.
pub(crate) enum Ended {
    /// With a result for the model.
    Text(String),
    /// With a result for the model and a note for the owner.
    Notice {
        /// For the model.
        text: String,
        /// For the owner.
        notice: String,
    },
    /// With a result for the model, made of what others wrote or a tainted turn left.
    Read {
        /// For the model.
        text: String,
        /// Untrusted content that it holds.
        taint: Taint,
    },
    /// Not yet: the world settles the call when the turn that it began has ended.
    Adopted,
}

impl From<String> for Ended {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What it does.
    pub description: Cow<'static, str>,
    /// The JSON schema of its input.
    pub input_schema: Arc<RawValue>,
    /// Whether the model must keep to the schema, where that was asked for.
    pub strict: Option<bool>,
}

impl ToolSpec {
    /// The estimate of what offering it costs.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        text_tokens(self.name.len() + self.description.len() + self.input_schema.get().len())
    }
}

/// Every built-in tool as it is offered to an agent that may call all.
#[must_use]
pub fn offered_to_all() -> Vec<ToolSpec> {
    SPECS.clone()
}

/// Every built-in tool that an agent of this manifest may call.
#[cfg(test)]
pub(crate) fn offered_to_granted(manifest: &agentsvc_components::manifest::Manifest) -> Vec<ToolSpec> {
    granted(manifest)
}

/// Does `pattern`, a name or glob, match a built-in tool?
pub(crate) fn is_called(pattern: &str) -> bool {
    TOOLS.iter().any(|tool| glob::matches(pattern, tool.name))
}

/// Is there a built-in tool of exactly this name?
pub(crate) fn is_tool(name: &str) -> bool {
    find(name).is_some()
}

/// The built-in tool of this name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Reads a tool's input. An empty text, which some models write for no arguments, is the empty object.
pub(crate) fn input<T: DeserializeOwned>(text: &str) -> Result<T, String> {
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
            let schema: Value = (tool.schema)();
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
