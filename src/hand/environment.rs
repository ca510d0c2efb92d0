//! The variables that commands of agents get because they are part of a hand: the values of its settings, and what the daemon
//! has of that name. A hand chooses the names, so keys of the daemon do not pass unless the operator lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use agentsvc_components::hand::HandVariable;
use agentsvc_systems::hand::HandEnvironment;
use agentsvc_systems::kernel::glob;

use super::config::Hands;
use super::files::SEALED_AS;
use crate::kernel::sandbox::{AgentVariables, Commands, Variables};
use crate::kernel::settings::Settings;
use crate::kernel::vault::Vault;
use crate::skill::config::SkillSettings;

/// Asks the world, and opens what is sealed.
pub(super) fn variables(vault: Vault, settings: Settings, commands: Commands) -> AgentVariables {
    AgentVariables::new(move |bridge, agent| {
        let (vault, settings, commands) = (vault.clone(), settings.clone(), commands.clone());
        Box::pin(async move {
            let asked = bridge.ask(HandEnvironment(agent)).await;
            let named = asked.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
            if named.is_empty() {
                return Ok(Vec::new());
            }
            let open = move || {
                let (hands, skills) = (settings.get::<Hands>(), settings.get::<SkillSettings>());
                let value = |name: &str| {
                    let passes = passes(name, &hands, &skills, |name| commands.is_secret(name));
                    passes.then(|| std::env::var_os(name)).flatten()
                };
                opened(&vault, named, value)
            };
            let opened = tokio::task::spawn_blocking(open).await;
            opened.map_err(|_| "The settings of the hand could not be read.".to_owned())?
        })
    })
}

/// May the daemon's variable of this name go to a hand? `is_secret` knows the keys of the daemon.
fn passes(name: &str, hands: &Hands, skills: &SkillSettings, is_secret: impl Fn(&str) -> bool) -> bool {
    if hands.env_allowed.iter().any(|allowed| **allowed == *name) {
        return true;
    }
    let upper = name.to_ascii_uppercase();
    let mut denied = skills.env_passthrough_denied_patterns.iter().map(|pattern| pattern.to_ascii_uppercase());
    !is_secret(name) && !denied.any(|pattern| glob::matches(&pattern, &upper))
}

/// The values of these variables; `value` is the daemon's of a name. Those that have none are left out.
fn opened(vault: &Vault, named: Vec<HandVariable>, value: impl Fn(&str) -> Option<OsString>) -> Variables {
    let mut variables = Vec::with_capacity(named.len());
    for HandVariable { name, sealed } in named {
        let value = match sealed {
            Some(sealed) => {
                let value = vault.unseal(SEALED_AS, &sealed);
                let wrong = |_| format!("The value of {name} cannot be decrypted; the user must set it again.");
                Some(OsString::from_vec(value.map_err(wrong)?.to_vec()))
            }
            None => value(&name),
        };
        variables.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    #[test]
    fn keys_of_the_daemon_pass_only_when_the_operator_lists_them() {
        let passed = |config: &str| {
            let hands = read_table::<Hands>("hands", config).unwrap().config;
            let names = ["NEWS_REGION", "OPENAI_X", "ANTHROPIC_API_KEY", "aws_secret", "NEWS_TOKEN"];
            let skills = SkillSettings::default();
            names
                .into_iter()
                .filter(|name| passes(name, &hands, &skills, |name| name == "OPENAI_X"))
                .collect::<Vec<_>>()
        };
        assert_eq!(passed(""), ["NEWS_REGION"]);
        let listed = passed("[hands]\nenv_allowed = [\"OPENAI_X\", \"NEWS_TOKEN\"]\n");
        assert_eq!(listed, ["NEWS_REGION", "OPENAI_X", "NEWS_TOKEN"]);
    }
}
