//! Plugins as routes show them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use agentsvc_api::plugin::plugins::{
    ExpectedVariable, HookHealth, HookTrace, PluginDetail, PluginEnv, PluginHealth, PluginRow, PluginTraces,
};
use serde_json::json;

use super::config::ContextEngine;
use super::engine::Around;
use super::health::Trace;
use super::library::size_of;
use super::plugin::Plugin;
use super::program::declared;

/// Parts of names whose values are not shown.
const SECRET: &[&str] = &["KEY", "SECRET", "PASSWORD", "TOKEN"];

pub(super) fn row(plugin: &Plugin, is_active: bool) -> PluginRow {
    let manifest = &plugin.manifest;
    PluginRow {
        name: manifest.name.clone(),
        display_name: manifest.display_name("en"),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        author: manifest.author.clone(),
        hooks: manifest.hook_names().into_iter().map(str::to_owned).collect(),
        hooks_valid: plugin.are_hooks_valid(),
        enabled: plugin.is_enabled,
        active: is_active,
        size_bytes: size_of(&plugin.folder),
        path: plugin.folder.display().to_string(),
    }
}

pub(super) fn detail(plugin: &Plugin, is_active: bool) -> PluginDetail {
    let manifest = &plugin.manifest;
    let files = manifest.hooks.iter().map(|(hook, file)| (hook.as_str().to_owned(), file.clone()));
    let settings = manifest.config.iter().map(|(key, setting)| {
        let shown = json!({ "type": setting.kind, "default": setting.default, "description": setting.description });
        (key.clone(), shown)
    });
    PluginDetail {
        row: row(plugin, is_active),
        runtime: manifest.runtime.as_str(),
        hook_files: files.collect(),
        source: plugin.source.clone(),
        installed_at: plugin.installed_at.clone(),
        signed: plugin.is_signed,
        wants_network: manifest.rules.allow_network,
        network: plugin.network,
        plugin_depends: manifest.depends.clone(),
        languages: manifest.languages(),
        config: settings.collect(),
        warnings: manifest.warnings.clone(),
    }
}

pub(super) fn health(plugin: &Plugin) -> PluginHealth {
    let hooks = plugin.hooks.iter().map(|(hook, state)| {
        let counts = state.counts.lock().clone();
        let shown = HookHealth {
            calls: counts.calls,
            errors: counts.errors,
            error_rate_pct: counts.error_rate_pct(),
            avg_elapsed_ms: counts.avg_elapsed_ms(),
            cached: counts.cached,
            circuit_open: state.breaker.lock().is_open(Instant::now()),
            last_error: counts.last_error,
        };
        (hook.as_str().to_owned(), shown)
    });
    PluginHealth { plugin: plugin.name().to_owned(), hooks: hooks.collect() }
}

pub(super) fn traces(plugin: &Plugin) -> PluginTraces {
    let shown = |Trace { at, hook, agent, took, tries, is_cached, error }: Trace| {
        let (code, error) = error.map_or((None, None), |(code, text)| (Some(code), Some(text)));
        let elapsed_ms = milliseconds(took);
        HookTrace { at: at.to_string(), hook, agent_id: agent, elapsed_ms, tries, cached: is_cached, error, code }
    };
    PluginTraces { plugin: plugin.name().to_owned(), traces: plugin.traces.list().into_iter().map(shown).collect() }
}

/// With two digits behind the point.
pub(super) fn milliseconds(took: std::time::Duration) -> f64 {
    (took.as_secs_f64() * 100_000.0).round() / 100.0
}

pub(super) fn env(around: &Arc<Around>, plugin: &Plugin) -> PluginEnv {
    let settings = around.settings.get::<ContextEngine>();
    let set: BTreeMap<String, String> = declared(around, &settings, plugin).into_iter().collect();
    let is_allowed = |name: &String| settings.allows(plugin.name(), name);
    let expected = plugin.manifest.env_schema.iter().map(|(name, variable)| {
        let present = set.get(name).is_some_and(|value| !value.is_empty());
        let (description, required) = (variable.description.clone(), variable.required);
        (name.clone(), ExpectedVariable { description, required, present })
    });
    let secrets = plugin.manifest.rules.allowed_secrets.iter();
    let allowed_secrets = secrets.map(|name| (name.clone(), is_allowed(name))).collect();
    let env_schema = expected.collect();
    // As written, but for its home: what other variables of the daemon hold is not shown to clients that may only read.
    let home = plugin.home.to_string_lossy();
    let written = plugin.manifest.env.iter().map(|(name, text)| (name.clone(), text.replace("${HOME}", &home)));
    let env = written.map(|(name, value)| {
        let upper = name.to_ascii_uppercase();
        let is_secret = SECRET.iter().any(|part| upper.contains(part));
        (name, if is_secret { "***".to_owned() } else { value })
    });
    PluginEnv { plugin: plugin.name().to_owned(), env: env.collect(), env_schema, allowed_secrets }
}
