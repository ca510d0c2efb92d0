//! Calls of the tools that skills bring.

mod environment;
mod frozen;
mod process;
mod template;
mod wasm;

use std::sync::Arc;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::taint::NoteFiles;
use agentsvc_systems::turn::ReadWithinCall;
use serde_json::{Map, Value, json};

use super::config::SkillSettings;
use super::skill::{Runtime, Skill};
use crate::tool::toolset::{Context, Ended};

/// One call.
pub(super) struct Call {
    /// Whose tool.
    pub(super) skill: Arc<Skill>,
    /// The tool, as declared.
    pub(super) tool: Box<str>,
    /// Its input: an object that fits the tool's schema.
    pub(super) input: Map<String, Value>,
    /// Who calls, and what there is to run it with.
    pub(super) context: Context,
}

impl Call {
    /// What a program reads on its stdin.
    fn envelope(&self) -> Value {
        let run = &self.context.run;
        let mut envelope = json!({
            "tool": self.tool,
            "input": self.input,
            "agent_id": run.agent,
            "agent_name": run.agent_name,
        });
        let config = self.config();
        if !config.is_empty() {
            envelope["config"] = config.into();
        }
        envelope
    }

    /// `[config]` of the skill, and the values of its settings.
    fn config(&self) -> Map<String, Value> {
        let settings = self.context.parts.settings.get::<SkillSettings>();
        let mut config = self.skill.config.clone();
        for variable in &self.skill.config_vars {
            let default = || variable.default.as_deref().map(Value::from);
            if let Some(value) = settings.value_for(&self.skill.name, &variable.key).cloned().or_else(default) {
                config.insert(variable.key.to_string(), value);
            }
        }
        config
    }
}

/// Can tools of this runtime be called here? Those of `Builtin` are the daemon's own.
pub(super) const fn is_run(runtime: Runtime) -> bool {
    !matches!(runtime, Runtime::Builtin)
}

/// Carries out a call. The one place that knows what each runtime takes.
///
/// # Errors
/// A sentence of the daemon for the model. What a program itself says is a [`Failure`](Ended::Failure).
pub(super) async fn run(call: Call) -> Result<Ended, String> {
    if call.skill.has_code() && call.context.run.manifest.manifest.frozen_skills.is_some() {
        let skill = Arc::clone(&call.skill);
        let checked = tokio::task::spawn_blocking(move || frozen::check(&skill)).await;
        checked.map_err(|_| "The files of the skill could not be checked.".to_owned())??;
    }
    note(&call).await?;
    match call.skill.runtime {
        Runtime::Python | Runtime::Node | Runtime::Shell => process::run(call).await,
        Runtime::PromptOnly => Ok(Ended::Text(template::filled(&call))),
        Runtime::Wasm => wasm::run(call).await,
        Runtime::Builtin => {
            let runtime = call.skill.runtime.as_str();
            Err(format!("Skills of the runtime {runtime} have no tools of their own here."))
        }
    }
}

/// What a program of a skill writes is untrusted from its start on: others may read it before it has ended, and it may be stopped.
/// A module says itself what it reads, but where no turn is told.
async fn note(call: &Call) -> Result<(), String> {
    let context = &call.context;
    let Some(agent) = context.agent().filter(|_| call.skill.has_code()) else { return Ok(()) };
    if context.direct {
        return context.ask(NoteFiles { agent, taint: Taint::TOOL }).await;
    }
    if call.skill.runtime != Runtime::Wasm {
        let (from, index, tool) = (context.run.attempt, context.run.index, context.run.call.name.clone());
        let _read = context.ask(ReadWithinCall { from, index, taint: Taint::TOOL, tool }).await??;
    }
    Ok(())
}
