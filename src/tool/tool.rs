//! One tool as a line of the table: `Tool::new::<Input>("file_read", "Reads ...", run).safe().needs(Need::Files)`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde_json::Value;

use super::schema::input_schema;
use super::{Context, Ended, ToolSpec};

/// How long most tools may run.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Runs a tool on its input, JSON text as the model wrote it. `Err` says what is wrong, in sentences for the model. The
/// future may be dropped at any point: what it began must end with it.
pub(crate) type Run = fn(Context, String) -> BoxFuture<'static, Result<Ended, String>>;

/// One built-in tool.
pub(crate) struct Tool {
    /// Its name: lower case, digits and underscores, as all providers accept it.
    pub(crate) name: &'static str,
    /// What it does, for the model.
    pub(crate) description: &'static str,
    /// The JSON schema of its input, an object.
    pub(crate) schema: fn() -> Value,
    /// May it run a second time when nobody knows how the first one ended?
    pub(crate) repeat: Repeat,
    /// The capability it takes beside its name's grant.
    pub(crate) needs: Need,
    /// How long it may run; `None` when something else bounds it.
    pub(crate) time_max: Option<Duration>,
    /// Where a call of it makes sense.
    pub(crate) place: Place,
    /// Runs it.
    pub(crate) run: Run,
}

/// May a call run again when the daemon died while it ran?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Running it twice is the same as once.
    Safe,
    /// Not: the call becomes `unknown`, which the model and the operator see.
    Never,
}

/// What a tool takes beside the grant of its name (spec 1, Agent manifest, `[capabilities]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// `file_system` is not false.
    Files,
    /// `shell` is not empty.
    Shell,
    /// `network` is not empty.
    Network,
    /// `agent_spawn` is true.
    Spawn,
    /// `memory_read` is not empty.
    MemoryRead,
    /// `memory_write` is not empty.
    MemoryWrite,
}

/// Where a call makes sense (spec 2, Direct tool invocation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Everywhere, also without an agent.
    Anywhere,
    /// For an agent, in a turn or without one: it works on what is the agent's.
    Agent,
    /// In a turn alone: it works on the conversation.
    Turn,
}

impl Tool {
    /// A tool whose input is an `Input`; unless said otherwise it is never repeated, needs nothing, may run two minutes,
    /// and makes sense for an agent.
    pub(crate) const fn new<Input: JsonSchema>(name: &'static str, description: &'static str, run: Run) -> Self {
        Self {
            name,
            description,
            schema: input_schema::<Input>,
            repeat: Repeat::Never,
            needs: Need::Nothing,
            time_max: Some(TIME_MAX),
            place: Place::Agent,
            run,
        }
    }

    /// Running it twice is the same as once.
    pub(crate) const fn safe(self) -> Self {
        Self { repeat: Repeat::Safe, ..self }
    }

    /// It takes a capability beside its name's grant.
    pub(crate) const fn needs(self, needs: Need) -> Self {
        Self { needs, ..self }
    }

    /// Something else bounds its time.
    pub(crate) const fn untimed(self) -> Self {
        Self { time_max: None, ..self }
    }

    /// It makes sense without an agent, too.
    pub(crate) const fn anywhere(self) -> Self {
        Self { place: Place::Anywhere, ..self }
    }

    /// It makes sense in a turn alone.
    pub(crate) const fn in_turn(self) -> Self {
        Self { place: Place::Turn, ..self }
    }

    /// The tool as it is offered to a model.
    pub(crate) fn spec(&self) -> Option<ToolSpec> {
        // `None` would be a schema that is no JSON; a test sees to it that there is none.
        let input_schema = serde_json::value::to_raw_value(&(self.schema)()).ok()?;
        Some(ToolSpec {
            name: Cow::Borrowed(self.name),
            description: Cow::Borrowed(self.description),
            input_schema: Arc::from(input_schema),
            strict: None,
        })
    }

    /// Runs it within its time.
    pub(crate) async fn perform(&self, context: Context, input: String) -> Result<Ended, String> {
        let running = (self.run)(context, input);
        let Some(time_max) = self.time_max else { return running.await };
        let ended = tokio::time::timeout(time_max, running).await;
        ended.unwrap_or_else(|_| Err(format!("The tool took more than {} seconds.", time_max.as_secs())))
    }
}
