//! The tools of a request as those protocols offer them that call them functions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::names;
use crate::tool::toolset::ToolSpec;

/// One tool: `{"type": "function", "function": {..}}`.
#[derive(Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> Tool<'a> {
    /// `spec`, of whose schema the provider is to insist when `strict` says so.
    pub(super) fn of(spec: &'a ToolSpec, strict: Option<bool>) -> Self {
        let function = Function {
            name: names::fitting(&spec.name),
            description: &spec.description,
            parameters: &spec.input_schema,
            strict,
        };
        Self { kind: "function", function }
    }
}
