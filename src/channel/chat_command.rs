//! Commands that people type in chats of channels: those of the daemon's own chat, and those that concern the conversation.

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::chat;
use agentsvc_api::http::principal::acting;
use agentsvc_api::second_factor::factor::SecondFactor;
use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::channel::send::SendContent;
use agentsvc_components::{Actor, AgentId, ApprovalId, Refusal};
use agentsvc_systems::approval::{ApprovalView, Decision};
use agentsvc_systems::channel::{
    ApprovalsInChannel, ChooseAgent, CompleteCommand, DecideInChat, OfferedAgents, PendingCommand, RenewConversation,
    SetThinking, TOO_LONG, exactly, plainly,
};
use tracing::Instrument;

use super::daemon_command;
use super::wire::Content;
use super::wire::content::{ACTION_BYTES_MAX, Button};

/// Commands of conversations, each with what `/help` says of it.
const OWN: &[(&str, &str)] = &[
    ("start", "/start [code] - begin; a code pairs this chat"),
    ("help", "/help - list the commands"),
    ("agents", "/agents - list the agents of this channel"),
    ("agent", "/agent [name] - choose the agent that answers here"),
    ("new", "/new - start a new session"),
    ("reboot", "/reboot - the same"),
    ("btw", "/btw <question> - ask beside the conversation; it is not remembered"),
    ("approvals", "/approvals - list what waits for a decision"),
    ("approve", "/approve <id> [code] - approve, with the first 8 characters of the id"),
    ("reject", "/reject <id> - reject"),
];
/// Commands of the daemon's chat that make sense here.
const SHARED: &[&str] = &["compact", "model", "stop", "usage", "think", "models", "providers"];
/// Those of them that show the daemon's providers, and which of them have a key.
const OF_ADMINS: &[&str] = &["models", "providers"];
/// Commands whose answer replaces the message whose button was pressed.
const REPLACING: &[&str] = &["agents", "agent", "models", "model"];
/// What the actions of buttons of `/models` begin with, and the one that goes back.
const PROVIDER: &str = "prov:";
const MODEL: &str = "model:";
const BACK: &str = "back:providers";
/// Characters of an id that are enough to name an approval.
const ID_CHARS_MIN: usize = 8;
/// Agents and approvals that are shown.
const SHOWN_MAX: usize = 20;

/// Is there a command of this name?
pub(super) fn is_known(name: &str) -> bool {
    OWN.iter().any(|(own, _)| *own == name) || SHARED.contains(&name) || daemon_command::is_known(name)
}

/// The command that the action of a button is, where it is one of `/models`: its name, and what follows it.
pub(super) fn of_button(action: &str) -> Option<(Box<str>, Box<str>)> {
    if action == BACK {
        return Some(("models".into(), Box::default()));
    }
    if let Some(provider) = action.strip_prefix(PROVIDER) {
        return Some(("models".into(), provider.into()));
    }
    let (provider, model) = action.strip_prefix(MODEL)?.split_once('/')?;
    Some(("model".into(), format!("{provider} {model}").into()))
}

/// The answer in place of the message whose button was pressed.
fn replacing(command: &PendingCommand, reply: SendContent) -> SendContent {
    let edits = command.edits.as_deref().filter(|_| REPLACING.contains(&&*command.name));
    let Some(message_id) = edits.map(str::to_owned) else { return reply };
    let given = reply.content.as_deref().and_then(|content| serde_json::from_str::<Content>(content).ok());
    let buttons = match given {
        Some(Content::Interactive { buttons, .. }) => buttons,
        _ => Vec::new(),
    };
    let content = Content::EditInteractive { message_id, text: reply.text.clone(), buttons };
    SendContent { content: serde_json::to_string(&content).ok().map(Into::into), ..reply }
}

/// Carries out a command and answers it.
pub(super) async fn carry_out(api: Arc<Api>, command: PendingCommand) {
    let message = command.message;
    let span = tracing::debug_span!("chat_command", channel = &*command.instance, name = &*command.name);
    let reply = async { answer(&api, &command).await.unwrap_or_else(|why| text(format!("Not done: {why}"))) };
    let reply = replacing(&command, acting(Actor::Chat, reply.instrument(span)).await);
    // One that was completed meanwhile was answered.
    if let Err(refusal) = api.bridge.ask(CompleteCommand { message, reply: Some(reply) }).await {
        tracing::warn!(%refusal, "a command of a chat was not answered");
    }
}

fn text(text: impl Into<String>) -> SendContent {
    SendContent { text: text.into(), content: None }
}

fn with_buttons(text: String, buttons: Vec<Vec<Button>>) -> SendContent {
    let content = Content::Interactive { text: text.clone(), buttons };
    SendContent { text, content: serde_json::to_string(&content).ok().map(Into::into) }
}

fn button(label: &str, action: String, style: Option<&str>) -> Option<Button> {
    let fits = action.len() <= ACTION_BYTES_MAX;
    fits.then(|| Button { label: label.to_owned(), action, style: style.map(str::to_owned), url: None })
}

fn why(refusal: Refusal) -> String {
    refusal.message.to_string()
}

async fn answer(api: &Arc<Api>, command: &PendingCommand) -> Result<SendContent, String> {
    let args = command.args.trim();
    if let Some(told) = daemon_command::answer(api, command).await? {
        return Ok(text(told));
    }
    match &*command.name {
        "start" => Ok(text("Hello. Write a message, or /help for the commands.")),
        "help" => Ok(text(help(daemon_command::may(command)))),
        "agents" => agents(api, command).await,
        "agent" => agent(api, command, args).await,
        "new" | "reboot" => {
            api.bridge.ask(RenewConversation(command.conversation)).await.map_err(why)?;
            Ok(text("A new session begins with your next message."))
        }
        "approvals" => approvals(api, command).await,
        "approve" => decide(api, command, Decision::Approve).await,
        "reject" => decide(api, command, Decision::Reject).await,
        "btw" => Err("write /btw and the question".to_owned()),
        name if OF_ADMINS.contains(&name) && !(daemon_command::may(command) || command.may_approve) => {
            Err("only an administrator may give this command".to_owned())
        }
        "models" => models(api, command, args).await,
        "think" => think(api, command, args).await,
        "model" if !args.is_empty() && !command.may_approve => {
            Err("only an administrator may change the model".to_owned())
        }
        name => {
            let Some(agent) = command.agent else { return Err("no agent answers in this chat yet".to_owned()) };
            if command.session.is_none() && matches!(name, "stop" | "compact" | "usage") {
                return Err("this chat has no session yet".to_owned());
            }
            let typed = format!("/{name} {args}");
            chat::run_command(api, agent, command.session, typed.trim()).await.map(text)
        }
    }
}

/// The commands, for administrators with those that only they may give.
fn help(may_all: bool) -> String {
    let own = OWN.iter().map(|(_, line)| (*line).to_owned());
    let is_shared = |name: &str| SHARED.contains(&name) && (may_all || !OF_ADMINS.contains(&name));
    let shared = chat::command_lines().filter(|(name, _)| is_shared(name)).map(|(_, line)| line);
    let daemon = daemon_command::COMMANDS.iter().filter(|_| may_all).map(|(_, line)| (*line).to_owned());
    own.chain(shared).chain(daemon).collect::<Vec<_>>().join("\n")
}

async fn offered(api: &Api, command: &PendingCommand) -> Result<Vec<(AgentId, Box<str>)>, String> {
    let offered = api.bridge.ask(OfferedAgents { instance: command.instance.clone() }).await;
    offered.map_err(why)
}

async fn agents(api: &Api, command: &PendingCommand) -> Result<SendContent, String> {
    let offered = offered(api, command).await?;
    if offered.is_empty() {
        return Ok(text("No agent is offered in this channel."));
    }
    let mark = |agent: &AgentId| if Some(*agent) == command.agent { " (answers here)" } else { "" };
    let lines: Vec<String> = offered.iter().map(|(id, name)| format!("- {name}{}", mark(id))).collect();
    let rows = offered.iter().take(SHOWN_MAX);
    let buttons = rows.filter_map(|(_, name)| Some(vec![button(name, format!("/agent {name}"), None)?])).collect();
    Ok(with_buttons(format!("Agents of this channel:\n{}", lines.join("\n")), buttons))
}

async fn agent(api: &Api, command: &PendingCommand, name: &str) -> Result<SendContent, String> {
    if name.is_empty() {
        return agents(api, command).await;
    }
    let choose = ChooseAgent { conversation: command.conversation, agent: Some(name.into()) };
    api.bridge.ask(choose).await.map_err(why)?;
    Ok(text(format!("{name} answers here from now on.")))
}

/// The providers, or the models of one, with buttons to choose.
async fn models(api: &Arc<Api>, command: &PendingCommand, provider: &str) -> Result<SendContent, String> {
    let all = chat::provider_models(api);
    if provider.is_empty() {
        let with_models: Vec<_> = all.iter().filter(|(_, models)| !models.is_empty()).collect();
        let lines: Vec<String> =
            with_models.iter().map(|(name, models)| format!("- {name} ({})", models.len())).collect();
        if lines.is_empty() {
            return Ok(text("No models found."));
        }
        let shown = with_models.iter().take(SHOWN_MAX);
        let buttons =
            shown.filter_map(|(name, _)| Some(vec![button(name, format!("{PROVIDER}{name}"), None)?])).collect();
        let told =
            format!("Providers and how many models they have:\n{}\n/models <provider> lists them.", lines.join("\n"));
        return Ok(with_buttons(told, buttons));
    }
    let Some((name, models)) = all.into_iter().find(|(name, _)| name == provider) else {
        return Err("there is no such provider, or it has no key; /models lists those that can be used".to_owned());
    };
    let lines: Vec<String> = models.iter().map(|model| format!("- {model}")).collect();
    // Only those who may change the model choose one.
    let shown = models.iter().filter(|_| command.may_approve && command.agent.is_some()).take(SHOWN_MAX);
    let buttons = shown.filter_map(|model| Some(vec![button(model, format!("{MODEL}{name}/{model}"), None)?]));
    let back = button("Back", BACK.to_owned(), None).map(|back| vec![back]);
    Ok(with_buttons(format!("Models of {name}:\n{}", lines.join("\n")), buttons.chain(back).collect()))
}

/// Turns extended thinking of the chat's messages on or off.
async fn think(api: &Arc<Api>, command: &PendingCommand, word: &str) -> Result<SendContent, String> {
    let thinking = match word.to_ascii_lowercase().as_str() {
        "" => !command.thinking,
        "on" => true,
        "off" => false,
        _ => return Err("write /think on or /think off; /think alone turns it over".to_owned()),
    };
    api.bridge.ask(SetThinking { conversation: command.conversation, thinking }).await.map_err(why)?;
    Ok(text(format!("Extended thinking is {} for this chat.", if thinking { "on" } else { "off" })))
}

/// The approvals that wait, of agents that answer in this channel.
async fn pending(api: &Api, command: &PendingCommand) -> Result<Vec<ApprovalView>, String> {
    api.bridge.ask(ApprovalsInChannel { instance: command.instance.clone() }).await.map_err(why)
}

async fn approvals(api: &Api, command: &PendingCommand) -> Result<SendContent, String> {
    may(command)?;
    let pending = pending(api, command).await?;
    if pending.is_empty() {
        return Ok(text("Nothing waits for a decision."));
    }
    let shown = || pending.iter().take(SHOWN_MAX).map(|view| (short(view.id), view));
    let lines: Vec<String> = shown()
        .map(|(id, view)| {
            let Approval { action, description, .. } = &view.approval;
            let exactly = exactly(&view.approval).unwrap_or_else(|| format!("\n{TOO_LONG}"));
            format!("- {id} {}: {}{exactly}", plainly(action), plainly(description))
        })
        .collect();
    let row = |id: &str, view: &ApprovalView| {
        let approve =
            exactly(&view.approval).and_then(|_| button("Approve", format!("/approve {id}"), Some("primary")));
        approve.into_iter().chain(button("Reject", format!("/reject {id}"), Some("danger"))).collect()
    };
    Ok(with_buttons(
        format!("Waiting for a decision:\n{}", lines.join("\n")),
        shown().map(|(id, view)| row(&id, view)).collect(),
    ))
}

/// The id as `/approve` takes it. Ids of one moment begin alike: the end tells them apart.
fn short(id: ApprovalId) -> String {
    id.0.simple().to_string()
}

fn may(command: &PendingCommand) -> Result<(), String> {
    if command.may_approve {
        Ok(())
    } else {
        Err("only an administrator or a configured recipient may decide approvals".to_owned())
    }
}

async fn decide(api: &Api, command: &PendingCommand, decision: Decision) -> Result<SendContent, String> {
    may(command)?;
    let (id, code) = command.args.trim().split_once(char::is_whitespace).unwrap_or((command.args.trim(), ""));
    let view = the_one(id, pending(api, command).await?)?;
    if decision == Decision::Approve {
        if view.approval.answer_schema.is_some() {
            return Err("it has a form to fill in; decide it on the page".to_owned());
        }
        let factor = api.services.get::<dyn SecondFactor>().ok_or("the second factor cannot be asked")?;
        let code = Some(code.trim().to_owned()).filter(|code| !code.is_empty());
        let who = format!("chat {}", command.conversation.0);
        let by = format!("{who} {}", command.sender);
        let allowed = tokio::task::spawn_blocking(move || factor.allow(&by, &who, code.as_deref())).await;
        allowed.map_err(|_| "the second factor failed".to_owned())?.map_err(|error| error.to_string())?;
    }
    let decide = DecideInChat { message: command.message, approval: view.id, decision };
    api.bridge.ask(decide).await.map_err(why)?;
    Ok(text(match decision {
        Decision::Approve => "Approved.",
        Decision::Reject => "Rejected.",
    }))
}

/// The approval whose id begins like this: exactly one.
fn the_one(given: &str, pending: Vec<ApprovalView>) -> Result<ApprovalView, String> {
    let start: String = given.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect();
    if start.chars().count() < ID_CHARS_MIN {
        return Err(format!("give at least the first {ID_CHARS_MIN} characters of the id; /approvals lists them"));
    }
    let waits = |view: &ApprovalView| view.approval.state == ApprovalState::Pending;
    let mut found = pending.into_iter().filter(|view| waits(view) && short(view.id).starts_with(&start));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("no approval with this id waits; /approvals lists those that do".to_owned()),
        (Some(_), Some(_)) => Err("several approvals begin like this; give more of the id".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_and_helped() {
        assert!(is_known("new") && is_known("model") && is_known("approve") && is_known("think"));
        assert!(!is_known("rm"));
        let help = help(false);
        assert!(!help.contains("/schedule add") && super::help(true).contains("/schedule add"));
        for name in OWN.iter().map(|(name, _)| *name).chain(SHARED.iter().copied()) {
            let is_told = !OF_ADMINS.contains(&name);
            assert_eq!(help.contains(&format!("/{name} ")), is_told, "{name}");
            assert!(super::help(true).contains(&format!("/{name} ")), "{name}");
        }
    }

    #[test]
    fn buttons_of_models_are_commands() {
        let of = |action: &str| of_button(action).map(|(name, args)| format!("{name} {args}"));
        assert_eq!(of("prov:openai").as_deref(), Some("models openai"));
        assert_eq!(of("model:openai/a/b").as_deref(), Some("model openai a/b"));
        assert_eq!(of("back:providers").as_deref(), Some("models "));
        for other in ["/new", "yes", "model:x", "back:"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn short_ids_name_nothing() {
        for id in ["", "a", "1234567", "12-34-567"] {
            assert!(the_one(id, Vec::new()).unwrap_err().contains("at least the first 8"), "{id}");
        }
        assert!(the_one("12345678", Vec::new()).unwrap_err().contains("no approval"));
    }
}
