//! What a start has prepared when the daemon takes over.

use std::path::Path;

use zeroize::Zeroizing;

use crate::config::{Config, Document as _, Warning};
use crate::kernel::home::{self, Home, Lock};
use crate::kernel::logging::Logging;
use crate::template::AgentTypes;

/// Everything the daemon starts with. The home exists and is locked, the configuration is valid, logging runs.
#[derive(Debug)]
pub struct Launch {
    /// The home.
    pub home: Home,
    /// The effective configuration, `--listen` included.
    pub config: Config,
    /// What `--listen` said; holds for later readings of the file, too.
    pub listen: Option<String>,
    /// What is written in the configuration but has no effect (`config_warnings` of `/api/health/detail`).
    pub warnings: Vec<Warning>,
    /// The log writers; dropping it writes out what waits.
    pub logging: Logging,
    /// True when no world was ever stored here: an agent of the type `assistant` is to be created.
    pub first_run: bool,
    /// A person watches, who is told where the daemon is.
    pub greets: bool,
    /// The daemon runs in the background, where nobody watches once it answers.
    pub detached: bool,
    /// Keeps the home to this process; the last field, so that it is dropped last.
    pub lock: Lock,
}

/// Makes everything that `agentsvc init` makes: the layout, the commented file and the agent types. Gives whether there
/// was no file, and how many agent types were written.
pub fn install(home: &Home, data_dir: Option<&Path>) -> Result<(bool, usize), home::Error> {
    home.create(data_dir)?;
    Ok((home.write_config(&Config::template())?, install_agent_types(home)?))
}

/// Writes the agent types that come with the daemon and are not there. Gives how many were written.
pub fn install_agent_types(home: &Home) -> Result<usize, home::Error> {
    let path = home.agent_types_dir();
    let written = AgentTypes::new(path.clone()).install();
    written.map_err(|source| home::Error::Io { what: "write", path, source })
}

/// Variables that hold keys and are named in no configuration.
const OTHER_KEYS: &[&str] = &[crate::kernel::vault::VARIABLE, "BRAVE_API_KEY", "TAVILY_API_KEY"];

/// The secrets that this process knows and no log line may hold.
pub(crate) fn secrets(config: &Config) -> Vec<Zeroizing<String>> {
    let providers = config.models().map(|(providers, _)| providers).unwrap_or_default();
    let variables = providers.key_variables().chain(config.default_model.api_key_env.clone());
    let variables = variables.chain(config.security.manifest_key_envs.iter().cloned());
    let variables = variables.chain(config.a2a.external_keys.iter().map(|key| key.variable.clone()));
    let variables = variables.chain(config.webhook_triggers.token_env.clone()).chain(config.pairing.variables());
    let variables =
        variables.chain(config.web.search.api_key_env.clone()).chain(OTHER_KEYS.iter().map(|name| (*name).into()));
    let keys = variables.filter_map(|name| std::env::var(&*name).ok());
    let own = [&config.api_key, &config.network.shared_secret].map(|secret| secret.expose().to_owned());
    keys.chain(own).map(Zeroizing::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn the_api_key_is_a_secret() {
        let mut config = Config { api_key: Secret::new("hunter2"), ..Config::default() };
        config.network.shared_secret = Secret::new("hunter3");
        for own in ["hunter2", "hunter3"] {
            assert!(secrets(&config).iter().any(|secret| **secret == own));
        }
    }
}
