//! The variables that commands of agents get because they are part of a hand.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use agentsvc_components::hand::HandVariable;
use agentsvc_systems::hand::HandEnvironment;

use super::files::SEALED_AS;
use crate::kernel::sandbox::{AgentVariables, Variables};
use crate::kernel::vault::Vault;

/// Asks the world, and opens what is sealed.
pub(super) fn variables(vault: Vault) -> AgentVariables {
    AgentVariables::new(move |bridge, agent| {
        let vault = vault.clone();
        Box::pin(async move {
            let asked = bridge.ask(HandEnvironment(agent)).await;
            let named = asked.map_err(|refusal| format!("Refused: {}.", refusal.message))?;
            if named.is_empty() {
                return Ok(Vec::new());
            }
            let opened = tokio::task::spawn_blocking(move || opened(&vault, named)).await;
            opened.map_err(|_| "The settings of the hand could not be read.".to_owned())?
        })
    })
}

/// The values of these variables; those that the daemon does not have are left out.
fn opened(vault: &Vault, named: Vec<HandVariable>) -> Variables {
    let mut variables = Vec::with_capacity(named.len());
    for HandVariable { name, sealed } in named {
        let value = match sealed {
            Some(sealed) => {
                let value = vault.unseal(SEALED_AS, &sealed);
                let wrong = |_| format!("The value of {name} cannot be decrypted; the user must set it again.");
                Some(OsString::from_vec(value.map_err(wrong)?.to_vec()))
            }
            None => std::env::var_os(&*name),
        };
        variables.extend(value.map(|value| (name.to_string(), value)));
    }
    Ok(variables)
}
