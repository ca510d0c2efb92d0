//! One call of a hook: schemas, remembered answers, tries, the circuit breaker, and what is noted of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_components::kernel::holder::Holder;
use serde_json::{Value, json};

use super::engine::Around;
use super::fault::Fault;
use super::health::Trace;
use super::hook::Hook;
use super::memo;
use super::plugin::{HookState, Kind, Plugin, now};
use super::process::{Prepare, Ready, Run};
use super::program::ready;
use crate::tool::toolset::InputSchema;

/// For whom a hook runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    /// The id of the agent; empty where there is none.
    pub(crate) agent: String,
    /// Its name.
    pub(crate) name: String,
    /// The message of the turn; may be empty.
    pub(crate) message: String,
    /// Who shares places with the agent, where that is known.
    pub(crate) holder: Option<Holder>,
}

impl Plugin {
    /// Does the hook run for this agent and message?
    pub(super) fn is_for(&self, hook: Hook, who: &Who) -> bool {
        let rules = &self.manifest.rules;
        if !rules.only_for_agents.is_empty()
            && !rules.only_for_agents.iter().any(|one| *one == who.agent || *one == who.name)
        {
            return false;
        }
        if hook != Hook::Ingest {
            return true;
        }
        let has = rules.ingest_filter.as_ref().is_none_or(|part| who.message.contains(part.as_str()));
        has && rules.ingest_regex.as_ref().is_none_or(|pattern| pattern.is_match(&who.message))
    }

    const fn ttl_secs(&self, hook: Hook) -> u64 {
        match hook {
            Hook::Ingest => self.manifest.rules.cache_ttl_secs,
            Hook::Assemble => self.manifest.rules.assemble_cache_ttl_secs,
            Hook::Compact => self.manifest.rules.compact_cache_ttl_secs,
            _ => 0,
        }
    }

    /// Seconds that a run of the hook may take.
    pub(crate) fn timeout_secs(&self, hook: Hook) -> u64 {
        self.manifest.rules.timeout_secs.unwrap_or_else(|| hook.timeout_secs())
    }
}

/// Calls a hook, and notes what came of it. The answer is a JSON object.
///
/// # Errors
/// [`Fault`].
pub(crate) async fn call(
    around: &Arc<Around>,
    plugin: &Arc<Plugin>,
    hook: Hook,
    input: &Value,
    who: &Who,
) -> Result<Value, Fault> {
    let Some(state) = plugin.hooks.get(&hook) else {
        return Err(Fault::NotStarted(format!("the plugin has no hook {}", hook.as_str())));
    };
    let (at, begun) = (now(), Instant::now());
    let ttl_secs = plugin.ttl_secs(hook);
    let asked = (ttl_secs > 0).then(|| memo::asked(input));
    let known = asked.as_ref().and_then(|asked| state.memo.get(asked, begun));
    let is_cached = known.is_some();
    let mut tries = 0;
    let result = match known {
        Some(answer) => Ok(answer),
        None => tried(around, plugin, (hook, state), input, who, &mut tries).await,
    };
    let took = begun.elapsed();
    let error = result.as_ref().err().map(|fault| (fault.code(), fault.to_string()));
    if is_cached {
        state.counts.lock().cached += 1;
    } else {
        state.counts.lock().note(took, error.as_ref().map(|(_, text)| text.as_str()));
    }
    if let (Some(asked), Ok(answer), false) = (asked, &result, is_cached) {
        state.memo.put(asked, answer, Instant::now(), ttl_secs);
    }
    let agent = who.agent.clone();
    plugin.traces.note(Trace { at, hook: hook.as_str(), agent, took, tries, is_cached, error });
    result
}

/// Tries as often as the manifest says.
async fn tried(
    around: &Arc<Around>,
    plugin: &Arc<Plugin>,
    (hook, state): (Hook, &HookState),
    input: &Value,
    who: &Who,
    tries: &mut u32,
) -> Result<Value, Fault> {
    let rules = &plugin.manifest.rules;
    held(state.input.as_ref(), input, plugin.timeout_secs(hook)).await.map_err(Fault::Input)?;
    if let Some(secs) = state.breaker.lock().rests(Instant::now(), rules.breaker) {
        return Err(Fault::CircuitOpen(secs));
    }
    loop {
        *tries += 1;
        let result = once(around, plugin, (hook, state), input, who).await;
        let (is_failure, counts) = (result.is_err(), result.as_ref().err().is_none_or(Fault::counts));
        if counts {
            state.breaker.lock().note(Instant::now(), is_failure, rules.breaker);
        }
        match result {
            Err(fault) if fault.may_pass() && *tries <= rules.max_retries => {
                tracing::debug!(plugin = plugin.name(), hook = hook.as_str(), %fault, "a hook failed; trying again");
                tokio::time::sleep(Duration::from_millis(rules.retry_delay_ms)).await;
            }
            result => return result,
        }
    }
}

async fn once(
    around: &Arc<Around>,
    plugin: &Arc<Plugin>,
    (hook, state): (Hook, &HookState),
    input: &Value,
    who: &Who,
) -> Result<Value, Fault> {
    let is_sidecar = plugin.kind != Kind::Files;
    let wrapped = is_sidecar.then(|| json!({ "id": around.next(), "method": hook.as_str(), "params": input }));
    let input = wrapped.as_ref().unwrap_or(input);
    let is_persistent = is_sidecar || plugin.manifest.rules.is_persistent;
    let prepare = preparing(around, plugin, &state.file, Some(who));
    let run = Run { input, timeout_secs: plugin.timeout_secs(hook), is_persistent, holder: who.holder };
    let answer = state.pool.run(&around.commands, &*prepare, &run).await?;
    let answer = if is_sidecar { unwrapped(answer)? } else { answer };
    if !answer.is_object() {
        return Err(Fault::Wrong("it must be a JSON object".to_owned()));
    }
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return Err(Fault::Wrong(format!("it reports: {}", text.chars().take(200).collect::<String>())));
    }
    held(state.output.as_ref(), &answer, plugin.timeout_secs(hook)).await.map_err(Fault::Wrong)?;
    if let Some(kind) = answer["type"].as_str().filter(|kind| *kind != hook.answer_type() && *kind != "ok") {
        tracing::warn!(plugin = plugin.name(), hook = hook.as_str(), kind, "an answer of a hook has another `type`");
    }
    Ok(answer)
}

/// Holds a value against a schema of the hook, on a thread that may take its time, for no longer than the hook may run. Gives what
/// is wrong.
async fn held(schema: Option<&Arc<InputSchema>>, value: &Value, timeout_secs: u64) -> Result<(), String> {
    let Some(schema) = schema.cloned() else { return Ok(()) };
    let value = value.clone();
    let check = tokio::task::spawn_blocking(move || schema.check(&value));
    match tokio::time::timeout(Duration::from_secs(timeout_secs), check).await {
        Ok(Ok(checked)) => checked.map_err(|fault| said(&fault.field, &fault.message)),
        Ok(Err(_)) => Err("it could not be checked against its schema".to_owned()),
        Err(_) => Err(format!("the check against its schema took longer than {timeout_secs} s")),
    }
}

/// Makes what is to be started, on a thread that may wait for the disk.
pub(super) fn preparing<'a>(
    around: &'a Arc<Around>,
    plugin: &'a Arc<Plugin>,
    file: &'a str,
    who: Option<&'a Who>,
) -> Box<Prepare<'a>> {
    Box::new(move |stays| {
        let (around, plugin, file) = (Arc::clone(around), Arc::clone(plugin), file.to_owned());
        // One that stays runs for others, too.
        let who = who.filter(|_| !stays).cloned();
        Box::pin(async move {
            let made = tokio::task::spawn_blocking(move || ready(&around, &plugin, &file, who.as_ref())).await;
            made.unwrap_or_else(|_| Err::<Ready, _>(Fault::NotStarted("it could not be prepared".to_owned())))
        })
    })
}

/// What a sidecar answers: `ok` is the answer, null is none.
fn unwrapped(mut answer: Value) -> Result<Value, Fault> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return Err(Fault::Wrong(format!("it reports: {}", text.chars().take(200).collect::<String>())));
    }
    let ok = answer["ok"].take();
    Ok(if ok.is_object() { ok } else { json!({}) })
}

fn said(field: &str, message: &str) -> String {
    if field.is_empty() { message.to_owned() } else { format!("{field}: {message}") }
}

#[cfg(test)]
mod tests {
    use super::super::manifest::parse;
    use super::super::plugin;
    use super::*;

    #[tokio::test]
    async fn of_the_schemas_of_hooks_the_part_is_checked_that_costs_little() {
        // Each means the one before twice: all of it would take 2^64 looks.
        let definitions: String = (1..64)
            .map(|n| {
                format!(
                    "a{n} = {{ allOf = [{{ \"$ref\" = \"#/$defs/a{0}\" }}, {{ \"$ref\" = \"#/$defs/a{0}\" }}] }}\n",
                    n - 1
                )
            })
            .collect();
        let text = format!(
            "name = \"a\"\n[hooks]\ningest = \"i.py\"\n[hook_schemas.ingest.input]\n\"$ref\" = \"#/$defs/a63\"\nrequired = \
             [\"message\"]\n[hook_schemas.ingest.input.\"$defs\"]\na0 = {{ type = \"object\" }}\n{definitions}\
             [hook_schemas.ingest.output]\nproperties = {{ n = {{ maximum = 3, pattern = \"^(a+)+$\" }} }}\n"
        );
        let plugin = Plugin::new(parse(&text).unwrap(), plugin::Around::default()).unwrap();
        let state = &plugin.hooks[&Hook::Ingest];
        assert_eq!(held(state.input.as_ref(), &json!({ "message": "m" }), 30).await, Ok(()));
        assert_eq!(held(state.input.as_ref(), &json!({}), 30).await, Err("message: is required".to_owned()));
        assert_eq!(held(state.output.as_ref(), &json!({ "n": "b" }), 30).await, Ok(()));
        assert_eq!(held(state.output.as_ref(), &json!({ "n": 4 }), 30).await, Err("n: must be at most 3".to_owned()));
        assert_eq!(held(None, &json!({}), 30).await, Ok(()));
    }
}
