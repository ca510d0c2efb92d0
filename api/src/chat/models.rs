//! `/models`: which models are known.

use super::Command;

pub(super) const COMMAND: Command = Command {
    name: "models",
    argument: "",
    summary: "list the models",
    is_slow: false,
    run: |chat, _| {
        let lines: Vec<String> = chat
            .api
            .providers()
            .iter()
            .flat_map(|provider| provider.models.iter().map(|model| format!("{} {model}", provider.name)))
            .collect();
        let text = if lines.is_empty() {
            "No models are known.".to_owned()
        } else {
            format!("Provider and model; any other model that the provider has may be named too.\n{}", lines.join("\n"))
        };
        Box::pin(async move { Ok(text.into()) })
    },
};
