//! One tool, as its domain writes it: `Tool::new::<Input>("file_read", "Reads ...", run).safe().needs(Need::Files)`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde_json::Value;
use serde_json::value::RawValue;

use super::schema::input_schema;
use super::{Context, Ended, ToolSpec};
use agentsvc_api::http::places::Places;

/// How long most tools may run.
const TIME_MAX: Duration = Duration::from_secs(120);

/// A call under way; `Err` says what is wrong, in sentences for the model.
pub type Running = BoxFuture<'static, Result<Ended, String>>;

/// Runs a tool on its input, JSON text as the model wrote it. The future may be dropped at any point: what it began must
/// end with it.
#[derive(Clone)]
enum Run {
    /// Of a tool that comes with the daemon.
    BuiltIn(fn(Context, String) -> Running),
    /// Of a tool that something else brings.
    UntrustedContent(Arc<dyn Fn(Context, String) -> Running + Send + Sync>),
}

/// Where the schema of a tool's input comes from.
#[derive(Clone)]
enum Schema {
    /// From the type that reads the input.
    Of(fn() -> Value),
    /// From what brings the tool.
    Given(Arc<RawValue>),
}

/// One tool.
#[derive(Clone)]
pub struct Tool {
    /// Its name: lower case, digits and underscores, as all providers accept it.
    pub(crate) name: Cow<'static, str>,
    /// What it does, for the model.
    pub(crate) description: Cow<'static, str>,
    /// The JSON schema of its input, an object.
    schema: Schema,
    /// May it run a second time when nobody knows how the first one ended?
    pub(crate) repeat: Repeat,
    /// Since when it is known to be so: a call that went out before is not repeated on the word of what came later.
    pub(crate) since: Timestamp,
    /// The capability it takes beside its name's grant.
    pub(crate) needs: Need,
    /// The server that has it; its agents must be granted that, too.
    pub(crate) server: Option<Box<str>>,
    /// The skills that bring it; its agents must have one of them.
    pub(crate) skills: Option<OfSkills>,
    /// How long it may run; `None` when something else bounds it.
    time_max: Option<Duration>,
    /// Where a call of it makes sense.
    pub(crate) place: Place,
    /// A call can take megabytes while it runs.
    is_heavy: bool,
    /// Its place among all tools: prompts and lists begin with the lowest.
    pub(crate) order: u8,
    run: Run,
}

/// The skills that bring a tool.
#[derive(Clone, Debug)]
pub(crate) struct OfSkills {
    /// Name and content hash of each.
    pub(crate) list: Arc<[(Box<str>, Box<str>)]>,
    /// An agent that has one of them may call the tool, whatever tools its manifest grants: it shows skills and does nothing. Other
    /// tools must be granted by their names, or the skill named in `skills`.
    pub(crate) shows: bool,
}

/// Calls of heavy tools that run at once. More: they wait, within their time.
static HEAVY: LazyLock<Places> = LazyLock::new(|| Places::new(limit::HEAVY_CALLS_MAX, limit::HEAVY_CALLS_FAMILY_MAX));

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
    /// makes sense for an agent, and stands last.
    pub(crate) const fn new<Input: JsonSchema>(
        name: &'static str,
        description: &'static str,
        run: fn(Context, String) -> Running,
    ) -> Self {
        let (name, description) = (Cow::Borrowed(name), Cow::Borrowed(description));
        Self::of(name, description, Schema::Of(input_schema::<Input>), Run::BuiltIn(run))
    }

    const fn of(name: Cow<'static, str>, description: Cow<'static, str>, schema: Schema, run: Run) -> Self {
        let (repeat, needs, time_max) = (Repeat::Never, Need::Nothing, Some(TIME_MAX));
        Self {
            name,
            description,
            schema,
            repeat,
            since: Timestamp(0),
            needs,
            server: None,
            skills: None,
            time_max,
            place: Place::Agent,
            is_heavy: false,
            order: u8::MAX,
            run,
        }
    }

    /// A tool that something else brings, an MCP server or a plugin; its calls are never repeated.
    pub fn brought(
        name: String,
        description: String,
        schema: Arc<RawValue>,
        run: impl Fn(Context, String) -> Running + Send + Sync + 'static,
    ) -> Self {
        let (schema, run) = (Schema::Given(schema), Run::UntrustedContent(Arc::new(run)));
        Self::of(Cow::Owned(name), Cow::Owned(description), schema, run)
    }

    /// Running it twice is the same as once.
    pub(crate) const fn safe(mut self) -> Self {
        self.repeat = Repeat::Safe;
        self
    }

    /// Running it twice is the same as once, as what brings it has said since then.
    pub(crate) const fn safe_since(mut self, since: Timestamp) -> Self {
        self.since = since;
        self.safe()
    }

    /// It takes a capability beside its name's grant.
    pub(crate) const fn needs(mut self, needs: Need) -> Self {
        self.needs = needs;
        self
    }

    /// A server of this name has it; only agents that are granted the server may call it.
    pub(crate) fn of_server(mut self, server: &str) -> Self {
        self.server = Some(server.into());
        self
    }

    /// Skills bring it; only agents that have one of them may call it.
    pub(crate) fn of_skills(mut self, skills: OfSkills) -> Self {
        self.skills = Some(skills);
        self
    }

    /// Something else bounds its time.
    pub(crate) const fn untimed(mut self) -> Self {
        self.time_max = None;
        self
    }

    /// A call can take megabytes while it runs: few run at once, and half of them at most for one user with a limited role or
    /// one family of agents.
    pub(crate) const fn heavy(mut self) -> Self {
        self.is_heavy = true;
        self
    }

    /// It makes sense without an agent, too.
    pub(crate) const fn anywhere(mut self) -> Self {
        self.place = Place::Anywhere;
        self
    }

    /// It makes sense in a turn alone.
    pub(crate) const fn in_turn(mut self) -> Self {
        self.place = Place::Turn;
        self
    }

    /// Its place among all tools; those of one place stand in the order of the domains that bring them.
    pub(crate) const fn order(mut self, order: u8) -> Self {
        self.order = order;
        self
    }

    /// The JSON schema of its input.
    pub(crate) fn schema(&self) -> Value {
        match &self.schema {
            Schema::Of(schema) => schema(),
            Schema::Given(schema) => serde_json::from_str(schema.get()).unwrap_or_default(),
        }
    }

    /// The tool as it is offered to a model.
    pub(crate) fn spec(&self) -> Option<ToolSpec> {
        let input_schema = match &self.schema {
            // `None` would be a schema that is no JSON; a test sees to it that there is none.
            Schema::Of(schema) => Arc::from(serde_json::value::to_raw_value(&schema()).ok()?),
            Schema::Given(schema) => Arc::clone(schema),
        };
        Some(ToolSpec { name: self.name.clone(), description: self.description.clone(), input_schema, strict: None })
    }

    /// Runs it within its time.
    pub(crate) async fn perform(&self, context: Context, input: String) -> Result<Ended, String> {
        let holder = self.is_heavy.then_some(context.run.holder);
        let running = match &self.run {
            Run::BuiltIn(run) => run(context, input),
            Run::UntrustedContent(run) => run(context, input),
        };
        let running = async {
            let _place = match holder {
                Some(holder) => HEAVY.place(holder).await,
                None => None,
            };
            running.await
        };
        let Some(time_max) = self.time_max else { return running.await };
        let ended = tokio::time::timeout(time_max, running).await;
        ended.unwrap_or_else(|_| {
            Ok(Ended::own_failure(format!("The tool timed out after {} seconds.", time_max.as_secs())))
        })
    }
}
