//! What tools get of the house.

use std::path::PathBuf;

use agentsvc_api::settings::Sandbox;

use super::Front;
use crate::config::ExecMode;
use crate::effects::model::provider::Providers;
use crate::effects::sandbox::{Commands, Report, Resolver};
use crate::effects::tools::ToolParts;
use crate::effects::web::Web;
use crate::launch::Launch;

/// The keys of search providers, unless `[web.search]` names another variable.
const SEARCH_KEYS: &[&str] = &["BRAVE_API_KEY", "TAVILY_API_KEY"];

/// The parts of tools, from the configuration.
pub(super) fn tool_parts(launch: &Launch, front: &Front, providers: &Providers) -> ToolParts {
    let (home, config) = (&launch.home, &launch.config);
    let hidden: Vec<PathBuf> = vec![home.root().to_owned(), home.data_dir(config.data_dir.as_deref())];
    // The keys of the daemon never reach a command, also when the configuration asks for it.
    let keys = providers.key_variables();
    let searches = SEARCH_KEYS.iter().map(|name| Box::from(*name)).chain(config.web.search.api_key_env.clone());
    let keys = keys.chain(config.default_model.api_key_env.clone()).chain(searches);
    let keys = keys.chain([crate::vault::VARIABLE.into()]).collect();
    ToolParts {
        bridge: front.api.bridge.clone(),
        workspaces: front.files.workspaces().clone(),
        web: Web::new(config.web.settings()),
        commands: Commands::new(config.exec_policy.clone(), hidden, keys),
        injection: config.security.prompt_injection,
    }
}

/// Says what of the sandbox is in force, in the log and for `/api/health/detail`.
pub(super) fn sandbox_in_force(launch: &Launch) -> Sandbox {
    let report = Report::of(Resolver::probe(), launch.config.exec_policy.mode);
    report.announce();
    Sandbox {
        files: if report.resolver == Resolver::Openat2 { "openat2" } else { "openat" },
        landlock_abi: report.landlock,
        commands: match report.exec_mode {
            ExecMode::Deny => "deny",
            ExecMode::Allowlist => "allowlist",
            ExecMode::Full => "full",
        },
    }
}
