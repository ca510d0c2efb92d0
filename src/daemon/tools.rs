//! What tools get of the daemon.

use std::path::PathBuf;
use std::thread;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::world::installation::{Sandbox, TriedSandbox};

use crate::config::Config;
use crate::daemon::launch::Launch;
use crate::kernel::egress::Web;
use crate::kernel::home::Home;
use crate::kernel::sandbox::config::ExecMode;
use crate::kernel::sandbox::{Commands, Report, Resolver, Workspaces, divide_cgroup};
use crate::kernel::settings::Settings;
use crate::model::provider::Providers;
use crate::tool::toolset::{ToolParts, ToolSet};

/// The keys of search providers, unless `[web.search]` names another variable.
const SEARCH_KEYS: &[&str] = &["BRAVE_API_KEY", "TAVILY_API_KEY"];

/// The parts of tools, from the configuration.
pub(crate) fn tool_parts(
    launch: &Launch,
    (bridge, workspaces, settings): (Bridge, Workspaces, Settings),
    providers: &Providers,
) -> ToolParts {
    let (home, config) = (&launch.home, &launch.config);
    let (policy, variables) = (config.exec_policy.clone(), hidden_variables(config, providers));
    let commands = Commands::new(policy, hidden_paths(home, config), variables);
    commands.keep_from_servers(config.cluster.ports(), config.cluster.allow_open_server);
    let injection = config.security.prompt_injection;
    let (set, web) = (ToolSet::built_in(), Web::new(config.web.settings()));
    ToolParts { set, bridge, workspaces, web, commands, settings, injection }
}

/// What no command reads: the home, and what the configuration puts elsewhere.
pub(crate) fn hidden_paths(home: &Home, config: &Config) -> Vec<PathBuf> {
    let elsewhere = [home.data_dir(config.data_dir.as_deref()), home.backups_dir(config.backup.directory.as_deref())];
    std::iter::once(home.root().to_owned())
        .chain(elsewhere)
        .chain(config.audit.heads_file.clone())
        .chain(config.cluster.credentials.clone())
        .collect()
}

/// The variables that no command gets: the keys of the daemon, also when the configuration asks for it.
pub(crate) fn hidden_variables(config: &Config, providers: &Providers) -> Vec<Box<str>> {
    let keys = providers.key_variables();
    let searches = SEARCH_KEYS.iter().map(|name| Box::from(*name)).chain(config.web.search.api_key_env.clone());
    let keys = keys.chain(config.default_model.api_key_env.clone()).chain(searches);
    let keys = keys.chain(config.security.manifest_key_envs.iter().cloned());
    let clients = config.mcp_servers.values().filter_map(|server| server.oauth.as_ref()?.client_secret_env.clone());
    let keys = keys.chain(clients.map(Into::into));
    let keys = keys.chain(config.a2a.external_keys.iter().map(|key| key.variable.clone()));
    let keys = keys.chain(config.webhook_triggers.token_env.clone()).chain(config.pairing.variables());
    keys.chain([crate::kernel::vault::VARIABLE.into()]).collect()
}

/// What commands may run, in a word.
fn mode_of(config: &Config) -> &'static str {
    match config.exec_policy.mode {
        ExecMode::Deny => "deny",
        ExecMode::Allowlist => "allowlist",
        ExecMode::Full => "full",
    }
}

/// Finds out what of the sandbox is in force, for `/api/health/detail`, and says it in the log; on a thread of its own, for
/// where commands may run a process is started to try it.
pub(crate) fn sandbox_in_force(config: &Config) -> TriedSandbox {
    if config.exec_policy.runs_commands() || !config.mcp_servers.is_empty() || config.terminal.enabled {
        divide_cgroup();
    }
    let (policy, commands) = (config.exec_policy.clone(), mode_of(config));
    Report::protect_memory(&policy);
    let tried = TriedSandbox::new(move || {
        let report = Report::of(Resolver::probe(), &policy);
        report.announce();
        Sandbox {
            files: if report.resolver == Resolver::Openat2 { "openat2" } else { "openat" },
            landlock_abi: report.landlock,
            namespaces: report.parts.map(|parts| parts.namespaces),
            seccomp: report.parts.map(|parts| parts.seccomp),
            memory: report.parts.map(|parts| parts.memory.as_str()),
            processes: report.parts.map(|parts| parts.processes.as_str()),
            commands,
        }
    });
    if config.exec_policy.runs_commands() {
        let trial = tried.clone();
        // Without a thread, the first that asks waits for the trial.
        drop(thread::Builder::new().name("sandbox-trial".into()).spawn(move || trial.get()));
    } else {
        tried.get();
    }
    tried
}
