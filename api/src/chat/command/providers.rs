//! `/providers`: who can be asked, and whether there is a key for it.

use super::Command;
use crate::provider::catalog::providers;

pub(super) const COMMAND: Command = Command {
    name: "providers",
    argument: "",
    summary: "list the providers and the status of their keys",
    is_slow: false,
    run: |chat, _| {
        let providers = providers(&chat.api);
        let lines: Vec<String> =
            providers.iter().map(|provider| format!("{}: {}", provider.name, provider.key.as_str())).collect();
        let text = if lines.is_empty() { "No providers found.".to_owned() } else { lines.join("\n") };
        Box::pin(async move { Ok(text.into()) })
    },
};
