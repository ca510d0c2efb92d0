//! Messages of adapters on their way to the world.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use agentsvc_api::http::cpu::{self, Asker};
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, Refusal, RefusalKind};
use agentsvc_systems::channel::{PendingCommands, ReceiveMessage, Received, SetInstances, Why};
use agentsvc_systems::injection::InjectionPolicy;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep};

use super::instance::Instance;
use super::registry::Registry;
use super::wire::content::Media;
use super::wire::event::Message;
use super::{chat_command, convert, media, rules};

/// Chats of one channel whose messages are on their way to the world at once.
const UNDER_WAY_MAX: usize = 64;
/// Messages of one channel whose files are fetched at once.
const FETCHES_MAX: usize = 16;
/// Messages of one channel that are on their way or wait behind one of their chat. More: the adapter waits.
const WAITING_MAX: usize = 4_096;
/// Bytes of their lines. More: the adapter waits.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Messages of one chat among them. More: given up, so that a flood that the world does not take leaves room for other chats.
const CHAT_WAITING_MAX: usize = 1_024;
/// Pause before a message is offered again that the world had no room for, where it says nothing else.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Longest such pause.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);
/// How long a message is offered until it is given up.
const OFFERED_MAX: Duration = Duration::from_secs(120);
/// How often the rules are offered again to a world that is not there yet.
const RULES_TRIES: u32 = 300;

/// A message of an adapter.
pub(super) struct Incoming {
    pub(super) message: Box<Message>,
    /// Bytes of its line.
    pub(super) bytes: usize,
    /// The place of a large one among those of its channel, until its file is kept.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Messages of chats behind one that is on its way: a chat's messages go one after the other.
#[derive(Default)]
struct Waiting {
    chats: HashMap<Box<str>, VecDeque<Incoming>>,
    count: usize,
    bytes: usize,
    /// The channel, which hears how many are left when it ends.
    of: Option<Arc<Instance>>,
}

impl Waiting {
    /// None yet, of this channel.
    fn of(channel: Arc<Instance>) -> Self {
        Self { chats: HashMap::new(), count: 0, bytes: 0, of: Some(channel) }
    }

    /// The message if it can go now, or `Err` of it if there is no room for it.
    fn add(&mut self, chat: &str, incoming: Incoming) -> Result<Option<Incoming>, Incoming> {
        let bytes = incoming.bytes;
        let first = match self.chats.get_mut(chat) {
            None => {
                self.chats.insert(chat.into(), VecDeque::new());
                Some(incoming)
            }
            Some(behind) if behind.len() + 1 >= CHAT_WAITING_MAX => return Err(incoming),
            Some(behind) => {
                behind.push_back(incoming);
                None
            }
        };
        self.count += 1;
        self.bytes += bytes;
        Ok(first)
    }

    /// Is there room for one more?
    fn has_room(&self) -> bool {
        self.count < WAITING_MAX && self.bytes < WAITING_BYTES_MAX
    }

    /// One of the chat, of so many bytes, has gone: the next one, if there is any.
    fn next(&mut self, chat: &str, bytes: usize) -> Option<Incoming> {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        let next = self.chats.get_mut(chat).and_then(VecDeque::pop_front);
        if next.is_none() {
            self.chats.remove(chat);
        }
        next
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(of) = self.of.as_ref().filter(|_| self.count > 0) {
            of.note_left(self.count);
        }
    }
}

/// Brings the messages of a channel to the world, those of each chat in their order. Once `closing` ends, what has come already
/// is still brought.
pub(super) async fn pump(
    of: Weak<Registry>,
    instance: Arc<Instance>,
    mut messages: mpsc::Receiver<Incoming>,
    mut closing: oneshot::Receiver<()>,
) {
    let mut waiting = Waiting::of(Arc::clone(&instance));
    let (places, fetches) = (Arc::new(Semaphore::new(UNDER_WAY_MAX)), Arc::new(Semaphore::new(FETCHES_MAX)));
    let (mut is_closing, mut is_empty) = (false, false);
    let mut going: FuturesUnordered<BoxFuture<'static, (Box<str>, usize)>> = FuturesUnordered::new();
    while !is_empty || !going.is_empty() {
        let (chat, incoming) = tokio::select! {
            _ = &mut closing, if !is_closing => {
                is_closing = true;
                messages.close();
                continue;
            }
            incoming = messages.recv(), if waiting.has_room() && !is_empty => {
                let Some(incoming) = incoming else {
                    is_empty = true;
                    continue;
                };
                let chat: Box<str> = incoming.message.conversation().into();
                match waiting.add(&chat, incoming) {
                    Ok(first) => (chat, first),
                    Err(_full) => {
                        instance.note_dropped("its chat sends too many");
                        continue;
                    }
                }
            }
            Some((chat, bytes)) = going.next(), if !going.is_empty() => {
                let next = waiting.next(&chat, bytes);
                (chat, next)
            }
        };
        if let Some(incoming) = incoming {
            let Some(registry) = of.upgrade() else { return };
            let (instance, places, bytes) = (Arc::clone(&instance), Arc::clone(&places), incoming.bytes);
            let fetches = Arc::clone(&fetches);
            let work = async move {
                // Never closed, so that an error cannot be.
                let _place = places.acquire_owned().await;
                bring(registry, instance, incoming, fetches).await;
                (chat, bytes)
            };
            going.push(work.boxed());
        }
    }
}

/// The message as the world takes it, or why it is left out. Of a long one the scan takes long, too.
async fn converted(
    instance: Arc<Instance>,
    message: Box<Message>,
    bytes: usize,
    injection: InjectionPolicy,
) -> Result<(Box<Message>, Result<(ChatEvent, Vec<Media>), String>), JoinError> {
    let account = instance.status.lock().ready.account_id.clone();
    let convert = move || {
        let masked = |text| instance.masked(text);
        let converted = convert::event(&message, instance.name(), account.as_deref(), injection, masked);
        (message, converted)
    };
    if bytes <= limit::SCAN_INLINE_BYTES_MAX {
        Ok(convert())
    } else {
        cpu::run(Asker::daemon("channel"), convert).await
    }
}

/// Brings one message. Its files are fetched behind it: a slow one keeps neither its chat nor others waiting.
async fn bring(registry: Arc<Registry>, instance: Arc<Instance>, incoming: Incoming, fetches: Arc<Semaphore>) {
    let Incoming { message, place, bytes, .. } = incoming;
    let injection = *registry.api.services.state::<InjectionPolicy>();
    let (mut message, converted) = match converted(Arc::clone(&instance), message, bytes, injection).await {
        Ok(converted) => converted,
        Err(error) => {
            tracing::error!(channel = instance.name(), %error, "a message of a channel could not be read");
            return;
        }
    };
    let (event, files) = match converted {
        Ok(converted) => converted,
        Err(why) => {
            tracing::warn!(channel = instance.name(), %why, "a message of a channel was left out");
            return;
        }
    };
    let (brings_files, is_passed_on) = (event.files.is_some(), event.deliver_to.is_some());
    match receive(&registry, &instance, event).await {
        Ok(Received::Command(command)) => {
            drop(tokio::spawn(chat_command::carry_out(Arc::clone(&registry.api), command)));
        }
        // Only what is taken has its files fetched and kept.
        Ok(Received::Waiting(id)) if brings_files => {
            drop(tokio::spawn(async move {
                let _turn = fetches.acquire_owned().await;
                media::attach(&registry, &instance, (&mut message, files), id, injection).await;
                drop(place);
            }));
        }
        Ok(Received::Ignored(Why::Denied)) if is_passed_on => {
            tracing::info!(
                channel = instance.name(),
                "a message was not passed on: allow_send_to does not list its chat"
            );
        }
        Ok(_) => {}
        Err(refusal) if is_busy(&refusal) => instance.note_dropped(&refusal.message),
        Err(refusal) => {
            tracing::warn!(channel = instance.name(), why = %refusal, "a message of a channel was refused");
        }
    }
}

/// Has the world no room now, so that it may have some later?
pub(super) fn is_busy(refusal: &Refusal) -> bool {
    matches!(refusal.kind, RefusalKind::Busy | RefusalKind::TooMany)
}

/// How long to wait until a busy world is asked again.
pub(super) fn pause(refusal: &Refusal) -> Duration {
    let wanted = refusal.retry_after_secs.map(|secs| Duration::from_secs(secs.into()));
    wanted.unwrap_or(AGAIN_AFTER).clamp(AGAIN_AFTER, AGAIN_AFTER_MAX)
}

/// Offers the message to the world until it takes or refuses it, or has had no room for long.
async fn receive(registry: &Registry, instance: &Instance, event: ChatEvent) -> Result<Received, Refusal> {
    let begun = Instant::now();
    loop {
        let command = ReceiveMessage { instance: instance.name().into(), event: event.clone() };
        match registry.api.bridge.acting_as(Actor::Chat).ask(command).await {
            Err(refusal) if is_busy(&refusal) && begun.elapsed() < OFFERED_MAX => sleep(pause(&refusal)).await,
            answer => return answer,
        }
    }
}

impl Registry {
    /// Tells the world what the configuration says of channels, and carries out the commands of chats that are left.
    pub(super) async fn tell_world(&self) {
        let rules = rules::of(self);
        for _ in 0..RULES_TRIES {
            match self.api.bridge.ask(SetInstances(rules.clone())).await {
                Ok(()) => break,
                Err(refusal) if matches!(refusal.kind, RefusalKind::Busy) => sleep(AGAIN_AFTER).await,
                Err(refusal) => {
                    tracing::error!(%refusal, "the rules of channels are not in force");
                    return;
                }
            }
        }
    }

    /// Carries out the commands of chats that a stop left.
    pub(super) async fn carry_out_pending(&self) {
        let pending = self.api.bridge.ask(PendingCommands::default()).await.unwrap_or_default();
        for command in pending {
            drop(tokio::spawn(chat_command::carry_out(Arc::clone(&self.api), command)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::definition::{Definition, Sources};
    use crate::channel::secrets::Secrets;
    use crate::channel::status;

    fn message(text: &str) -> Incoming {
        let (text_bytes, text) = (text.len(), Some(text.to_owned()));
        Incoming { message: Box::new(Message { text, ..Message::default() }), bytes: text_bytes, place: None }
    }

    #[test]
    fn a_chat_goes_in_order_and_leaves_room_for_others() {
        let mut waiting = Waiting::default();
        assert!(waiting.add("a", message("0")).is_ok_and(|first| first.is_some()));
        for at in 1..CHAT_WAITING_MAX {
            assert!(waiting.add("a", message(&at.to_string())).is_ok_and(|first| first.is_none()));
        }
        assert!(waiting.add("a", message("more")).is_err());
        assert!(waiting.add("b", message("0")).is_ok_and(|first| first.is_some()), "another chat goes at once");
        assert_eq!(waiting.count, CHAT_WAITING_MAX + 1);
        for at in 1..CHAT_WAITING_MAX {
            assert_eq!(waiting.next("a", 1).and_then(|it| it.message.text), Some(at.to_string()));
        }
        assert!(waiting.next("a", 1).is_none() && waiting.next("b", 1).is_none());
        assert!(waiting.chats.is_empty() && waiting.count == 0);
    }

    #[test]
    fn what_still_waits_when_its_channel_ends_is_counted() {
        let none = |_: &str| None;
        let secrets = Secrets::default();
        let sources = Sources { home: "/h".as_ref(), secrets: &secrets, variable: &none, is_daemons: &|_| false };
        let definition = Definition::new("bot", &Arc::default(), &sources);
        let (instance, _messages) = Instance::new(definition, Arc::default());
        let mut waiting = Waiting::of(instance);
        for (chat, text) in [("a", "0"), ("a", "1"), ("b", "0")] {
            assert!(waiting.add(chat, message(text)).is_ok());
        }
        waiting.next("b", 1);
        let before = status::left();
        drop(waiting);
        assert_eq!(status::left() - before, 2);
    }

    #[test]
    fn what_has_no_room_is_offered_again_as_the_world_asks() {
        let of = |kind, secs| Refusal { retry_after_secs: secs, ..Refusal::new(kind, "full") };
        assert!(is_busy(&of(RefusalKind::Busy, None)) && is_busy(&of(RefusalKind::TooMany, Some(5))));
        assert_eq!(pause(&of(RefusalKind::TooMany, Some(3))), Duration::from_secs(3));
        assert_eq!(
            (pause(&of(RefusalKind::Busy, None)), pause(&of(RefusalKind::Busy, Some(999)))),
            (AGAIN_AFTER, AGAIN_AFTER_MAX)
        );
    }
}
