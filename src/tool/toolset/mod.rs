//! Tools: what agents may do beside talking. Domains bring tools; here is how they are described, granted and run.
//!
//! To add a tool: one file in its domain with a `pub(crate) const TOOL: Tool`, and one line in the domain's `DOMAIN`.
//!
//! A tool is offered to a model, and runs, only when the agent's manifest grants it: a name or glob in
//! `[capabilities] tools` matches, `tool_allowlist` is empty or matches, and `tool_blocklist` does not. What is
//! wrong with a call comes back to the model as an error result, never as a failure of the turn.

mod checked_part;
mod context;
pub(crate) mod grant;
mod parts;
mod schema;
mod set;
mod tool;
mod validate;

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::prompt::text_tokens;
use agentsvc_systems::taint::addresses_in;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use context::Context;
pub use parts::{ToolParts, ToolStores};
pub(crate) use schema::raw_schema;
pub(crate) use set::Entry;
pub use set::ToolSet;
pub(crate) use set::{Tools, built_in, install};
pub(crate) use tool::{Need, OfSkills, Place, Repeat};
pub use tool::{Running, Tool};
pub(crate) use validate::{Fault, InputSchema};

/// How a tool ended.
pub enum Ended {
    /// With a result for the model.
    Text(String),
    /// With a result for the model and a note for the owner.
    Notice {
        /// For the model.
        text: String,
        /// For the owner.
        notice: String,
    },
    /// With a result for the model, made of what others wrote or a tainted turn left. A tool of stored texts
    /// (`Reads::Labelled`) ends with nothing else: its [`Text`](Self::Text) counts as untrusted.
    Read {
        /// For the model.
        text: String,
        /// Untrusted content that it holds.
        taint: Taint,
    },
    /// With a result for the model that holds what was read outside.
    Web {
        /// For the model.
        text: String,
        /// The addresses that were read: the session may fetch them.
        addresses: Vec<u64>,
    },
    /// It failed, and the text that says why is made of what others wrote or a tainted turn left.
    Failure {
        /// For the model.
        text: String,
        /// Untrusted content that it holds.
        taint: Taint,
    },
    /// It may or may not have taken effect, and is not repeated.
    Unknown(String),
    /// Not yet: the world settles the call when the turn that it began has ended.
    Adopted,
}

impl Ended {
    /// It failed, and the sentence that says why is the tool's own: it holds nothing that was stored.
    pub(crate) fn own_failure(text: impl Into<String>) -> Self {
        Self::Failure { text: text.into(), taint: Taint::NONE }
    }

    /// A result that holds `read`, which comes from outside as it is: no sentence of the tool, and nothing of its input.
    pub(crate) fn web(text: String, read: &str) -> Self {
        Self::Web { text, addresses: addresses_in(read) }
    }
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
    pub fn tokens(&self) -> u64 {
        text_tokens(self.name.len() + self.description.len() + self.input_schema.get().len())
    }
}

/// How errors begin that are about the arguments of a call, and hold nothing else.
const ARGUMENTS: &str = "The arguments are not";

/// Is an error of a tool about the arguments alone that it was given?
pub(crate) fn is_of_arguments(error: &str) -> bool {
    error.starts_with(ARGUMENTS)
}

/// Reads a tool's input. An empty text, which some models write for no arguments, is the empty object.
pub(crate) fn input<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    if !text.trim_start().starts_with('{') {
        return Err(format!("{ARGUMENTS} a JSON object."));
    }
    // In two steps, so that a wrong value is not called malformed JSON.
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("{ARGUMENTS} valid JSON: {error}."))?;
    T::deserialize(Value::Object(object)).map_err(|error| format!("{ARGUMENTS} valid: {error}."))
}

/// Runs a tool on the input that `text` is.
pub(crate) fn on_input<T, F>(context: Context, text: String, run: fn(Context, T) -> F) -> Running
where
    T: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<Ended, String>> + Send + 'static,
{
    Box::pin(async move { run(context, input(&text)?).await })
}
