//! Messages on their way out: the performer of sends.

use std::sync::Arc;

use agentsvc_api::widget::hub::{Sign, WebHub};
use agentsvc_components::channel::send::{SendOrder, SendReport, SendState};
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use serde_json::json;

use super::instance::Instance;
use super::ledger::Handled;
use super::registry::Registry;
use super::takes::Takes;
use super::wire::command::{Buttons, Send, User};
use super::wire::content::with_labels;
use super::wire::{Command, Content};
use super::{embed, file_out};

/// Tries a send once.
pub(super) async fn deliver(registry: Option<Arc<Registry>>, job: RunJob) -> TryEnd {
    let Ok(order) = serde_json::from_str::<SendOrder>(&job.input) else {
        return TryEnd::Failed("the message cannot be read".to_owned());
    };
    let Some(registry) = registry else {
        return TryEnd::Retry { after_ms: None, reason: "channels are not started yet".to_owned() };
    };
    if registry.sites.has(&order.instance) {
        // It was stored with the send.
        registry.api.services.state::<WebHub>().tell(&order.instance, &order.chat, Sign::Stored);
        return end(Handled::Sent);
    }
    let Some(instance) = registry.instance(&order.instance) else {
        return TryEnd::Retry { after_ms: None, reason: format!("channel {} is not running", order.instance) };
    };
    let handled = send(&registry, &instance, &order).await;
    if !matches!(handled, Handled::Unwritten(_)) {
        file_out::forget(&registry, order.what.content.as_deref()).await;
    }
    end(handled)
}

async fn send(registry: &Registry, instance: &Arc<Instance>, order: &SendOrder) -> Handled {
    if let Some((_, turn)) = order.turn
        && let Some(handled) = registry.shown.confirm(turn, instance).await
    {
        return handled;
    }
    let (given, _places) = match file_out::load(registry, instance, order).await {
        Ok(Some((file, place))) => ((Some(file), order.what.text.to_string()), (Some(place), None)),
        Ok(None) => match embed::content(registry, instance, order).await {
            Ok(embed::Outgoing { content, text, places }) => ((content, text), (None, places)),
            Err(handled) => return handled,
        },
        Err(handled) => return handled,
    };
    let is_reported = Takes::of(&instance.definition).reports(given.0.as_ref());
    match instance.send(|| command(instance, order, given)).await {
        Handled::Sent if !is_reported => {
            Handled::Unknown("the adapter does not report whether the platform accepted it".to_owned())
        }
        handled => handled,
    }
}

/// The command that carries a message. What the adapter cannot do is left out or said otherwise.
fn command(instance: &Instance, order: &SendOrder, (given, text): (Option<Content>, String)) -> Command {
    let can = |what: &str| instance.status.lock().can(what);
    let content = match given {
        Some(Content::Interactive { text, buttons }) if can("interactive") => {
            return Command::Interactive { channel_id: order.chat.to_string(), message: Buttons { text, buttons } };
        }
        Some(Content::EditInteractive { text, buttons, .. }) if !can("interactive") => {
            Content::Text(with_labels(&text, &buttons))
        }
        Some(Content::Interactive { text, buttons }) => Content::Text(with_labels(&text, &buttons)),
        Some(content) => content,
        None => Content::Text(order.what.text.clone()),
    };
    Command::Send(Box::new(Send {
        channel_id: order.chat.to_string(),
        text: if let Content::Text(text) = &content { text.clone() } else { text },
        content: Some(content),
        thread_id: order.thread.as_deref().filter(|_| can("thread")).map(str::to_owned),
        user: User {
            platform_id: order.chat.to_string(),
            display_name: order.name.to_string(),
            librefang_user: order.reply_token.as_deref().map(str::to_owned),
        },
        id: None,
    }))
}

fn end(handled: Handled) -> TryEnd {
    let report = |state, reason: Option<String>, message_id: Option<String>| {
        let report = SendReport { state, reason: reason.map(Into::into), message_id: message_id.map(Into::into) };
        TryEnd::Done(json!(report).to_string())
    };
    match handled {
        Handled::Sent => report(SendState::Sent, None, None),
        Handled::Acknowledged(message_id) => report(SendState::Acknowledged, None, message_id),
        Handled::Refused(why) => report(SendState::Refused, Some(why), None),
        Handled::Unknown(why) => report(SendState::Unknown, Some(why), None),
        Handled::Unwritten(reason) => TryEnd::Retry { after_ms: None, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_written_is_tried_again() {
        assert!(matches!(end(Handled::Unwritten("down".to_owned())), TryEnd::Retry { .. }));
        let state = |handled| match end(handled) {
            TryEnd::Done(report) => serde_json::from_str::<SendReport>(&report).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(state(Handled::Sent).state, SendState::Sent);
        let refused = state(Handled::Refused("403".to_owned()));
        assert_eq!((refused.state, refused.reason.as_deref()), (SendState::Refused, Some("403")));
        assert_eq!(state(Handled::Unknown(String::new())).state, SendState::Unknown);
        assert_eq!(state(Handled::Acknowledged(Some("7".to_owned()))).message_id.as_deref(), Some("7"));
    }
}
