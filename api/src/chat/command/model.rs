//! `/model`: which model answers.

use agentsvc_systems::agent::{GetAgent, UpdateAgent};

use super::{Chat, Command, Outcome};
use crate::agent::change::model_patch;
use crate::http::error::Error;

pub(super) const COMMAND: Command = Command {
    name: "model",
    argument: "[[provider] name]",
    summary: "switch the model, or show the current one",
    is_slow: false,
    run: |chat, words| Box::pin(model(chat, words)),
};

async fn model(chat: Chat, words: String) -> Result<Outcome, Error> {
    let agent = chat.agent;
    let mut words = words.split_whitespace().map(str::to_owned);
    let (provider, model) = match (words.next(), words.next(), words.next()) {
        (None, ..) => {
            let view = chat.api.bridge.ask(GetAgent(agent)).await?;
            return Ok(format!("The model is {} of provider {}.", view.model, view.provider).into());
        }
        (Some(model), None, _) => (None, model),
        (Some(provider), Some(model), None) => (Some(provider), model),
        _ => return Err(Error::bad_request("usage: /model [provider] <model>")),
    };
    if !chat.may_write {
        return Err(Error::forbidden("this key may not change the model, which needs the scope write"));
    }
    let patch = model_patch(model, provider)?;
    let view = chat.api.bridge.ask(UpdateAgent { agent, patch }).await?;
    Ok(format!("The model is now {} of provider {}.", view.model, view.provider).into())
}
