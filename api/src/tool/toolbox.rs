//! The tools of this daemon as this room sees them: what there is, and one called by a client without a turn (spec 2,
//! Direct tool invocation). Implemented where tools run.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::approval::Invoker;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Scope of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everywhere, also without an agent.
    Anywhere,
    /// On behalf of an agent, in a turn or without one.
    Agent,
    /// In a turn alone.
    Turn,
}

/// A tool.
#[derive(Clone, Debug)]
pub struct ToolDetail {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Description given to models.
    pub description: Cow<'static, str>,
    /// The JSON schema of its input.
    pub input_schema: Arc<RawValue>,
    /// Running it twice is the same as once: it runs again when the daemon died meanwhile.
    pub is_repeatable: bool,
    /// The key of `[capabilities]` that it takes beside the grant of its name, such as `network`.
    pub needs: Option<&'static str>,
    /// Where a call of it makes sense.
    pub scope: Scope,
    /// The configuration has a person approve each call, whichever agent makes it.
    pub requires_approval: bool,
}

/// Why no client may call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// `[tool_invoke] enabled` is not true.
    Disabled,
    /// The tool's exact name is not in `[tool_invoke] allowlist`.
    NotListed,
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFault {
    /// Where, such as `names[2]`; empty for the input as a whole.
    pub field: String,
    /// What, such as `must be a string`.
    pub message: String,
}

/// A call that may run.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The tool.
    pub tool: String,
    /// Its input, JSON text that passed the check.
    pub input: String,
    /// On whose behalf; `None` is on nobody's.
    pub invoker: Option<Invoker>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoked {
    /// What the tool gave, or what it found wrong.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Bytes that were cut off the end of `content`.
    pub cut_bytes: usize,
}

/// Why a call did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// There is no such tool, or the agent may not call it any more.
    NotGranted,
    /// So many calls of clients run as may.
    Full,
}

/// Knows the tools and runs them for clients.
pub trait Toolbox: Send + Sync + 'static {
    /// The names of all tools, in a fixed order.
    fn names(&self) -> Vec<Cow<'static, str>>;

    /// The tool of this name.
    fn tool(&self, name: &str) -> Option<ToolDetail>;

    /// May clients call it at all? Fail-closed: what the configuration does not allow is denied.
    ///
    /// # Errors
    /// [`Denied`].
    fn permit(&self, name: &str) -> Result<(), Denied>;

    /// Holds an input against the tool's schema.
    ///
    /// # Errors
    /// [`InputFault`], the first one.
    fn check(&self, name: &str, input: &Value) -> Result<(), InputFault>;

    /// Does the manifest let its agent call the tool: by its name and by the capability that it needs?
    fn grants(&self, manifest: &Manifest, name: &str) -> bool;

    /// Runs a tool as a turn's call would: the same sandbox, policies and time. Dropped, it ends what it began.
    fn invoke(&self, invocation: Invocation) -> BoxFuture<'static, Result<Invoked, NotRun>>;
}
