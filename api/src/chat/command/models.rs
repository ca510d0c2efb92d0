//! `/models`: which models are known.

use super::{Chat, Command, Outcome};
use crate::http::error::Error;
use crate::model::catalog::Models;
use crate::provider::catalog::providers;

pub(super) const COMMAND: Command = Command {
    name: "models",
    argument: "[provider]",
    summary: "list the models of all providers or of one",
    is_slow: false,
    run: |chat, words| Box::pin(async move { models(&chat, &words) }),
};

fn models(chat: &Chat, words: &str) -> Result<Outcome, Error> {
    let providers = providers(&chat.api);
    let is_meant = |name: &str| words.is_empty() || name == words;
    let meant: Vec<_> = providers.iter().filter(|provider| is_meant(&provider.name)).collect();
    if meant.is_empty() && !words.is_empty() {
        return Err(Error::bad_request("usage: /models [provider]; /providers lists the providers"));
    }
    let lines: Vec<String> = meant
        .iter()
        .flat_map(|provider| provider.models.iter().map(|model| format!("{} {model}", provider.name)))
        .collect();
    if lines.is_empty() {
        return Ok("No models found.".to_owned().into());
    }
    let aliases = chat.api.services.get::<dyn Models>().map(|models| models.aliases()).unwrap_or_default();
    let shown = |alias: &str| {
        let provider =
            chat.api.services.get::<dyn Models>().and_then(|models| models.alias(alias)).map(|(provider, _)| provider);
        provider.is_some_and(|provider| meant.iter().any(|line| line.name == provider))
    };
    let names: Vec<String> =
        aliases.iter().filter(|(alias, _)| shown(alias)).map(|(alias, model)| format!("{alias} = {model}")).collect();
    let mut text =
        format!("Provider and model. You can also use any other model of the provider.\n{}", lines.join("\n"));
    if !names.is_empty() {
        text.push_str(&format!("\nAliases: {}", names.join(", ")));
    }
    Ok(text.into())
}
