//! Chats are let in.

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatEvent;
use agentsvc_components::channel::pairing::{Pairing, PairingState};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::{ConversationId, PairingId};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::{Instances, Pairings};
use super::list::PairingView;
use super::policy::Verdict;
use super::receive::{Why, no_instance};
use super::{audit_kinds, error_codes, last, limits, talk};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{Removable, Remove, View, change, state};
use crate::kernel::id_generator::{IdGenerator, mint};
use crate::kernel::outbox::Emit;

/// Makes a code for one chat of an instance: the chat that sends `/start <code>` is let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfferPairing {
    /// The name of the instance.
    pub instance: Box<str>,
    /// Seconds that the code holds; `None`: [`PAIRING_SECS`](super::limits::PAIRING_SECS).
    pub valid_secs: Option<u32>,
}

command! {
    write "offer_pairing" OfferPairing => PairingOffer, Root, |it, world| Answer::stored(offer(world, it))
}

/// A code that lets a chat in. It is shown this once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairingOffer {
    /// Names the offer.
    pub id: PairingId,
    /// The code.
    pub code: Box<str>,
    /// When it is void.
    pub expires_at: Timestamp,
}

/// Lets a chat in without a code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PairChat {
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
    /// Who, for people.
    pub name: Box<str>,
}

command! {
    write "pair_chat" PairChat => PairingView, Root, |it, world| Answer::stored(pair(world, it))
}

fn offer(world: &mut World, OfferPairing { instance, valid_secs }: OfferPairing) -> Result<PairingOffer, Refusal> {
    if world.resource::<Instances>().named(&instance).is_none() {
        return Err(no_instance(&instance));
    }
    let secs = valid_secs.unwrap_or(limits::PAIRING_SECS);
    if secs == 0 || secs > limits::PAIRING_SECS_MAX {
        let text = format!("valid_secs must be between 1 and {}", limits::PAIRING_SECS_MAX);
        return Err(Refusal::bad_field("valid_secs", text));
    }
    admit(world)?;
    if world.resource::<Pairings>().offers(&instance).count() >= limits::PAIRING_OFFERS_MAX {
        return Err(Refusal::full("too many codes of this channel are open", error_codes::PAIRINGS_FULL));
    }
    let now = world.resource::<Now>().0;
    let expires_at = now.plus_ms(i64::from(secs) * 1_000);
    let mut chance = world.resource_mut::<IdGenerator>();
    let code: String = (0..limits::PAIRING_CODE_CHARS)
        .map(|_| char::from(LETTERS[chance.below(LETTERS.len() as u64) as usize]))
        .collect();
    let state = PairingState::Offered { code: code.as_str().into(), expires_at };
    let id = keep(world, Pairing { instance: instance.clone(), created_at: now, state });
    world.audit(audit_kinds::CHAT_CODE_MADE, None, json!({ "channel": instance, "pairing": id }));
    Ok(PairingOffer { id, code: code.into(), expires_at })
}

/// The letters and digits of codes: none that look alike.
const LETTERS: &[u8] = b"ABCDEFGHJKMNPQRSTVWXYZ23456789";

fn admit(world: &World) -> Result<(), Refusal> {
    match world.resource::<Pairings>().len() >= limits::PAIRINGS_MAX {
        true => Err(Refusal::full("there are too many pairings", error_codes::PAIRINGS_FULL)),
        false => Ok(()),
    }
}

fn keep(world: &mut World, pairing: Pairing) -> PairingId {
    let id: PairingId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, pairing)).id();
    world.mark(entity);
    id
}

fn pair(world: &mut World, PairChat { instance, chat, name }: PairChat) -> Result<PairingView, Refusal> {
    if world.resource::<Instances>().named(&instance).is_none() {
        return Err(no_instance(&instance));
    }
    let most = limits::CHAT_ID_BYTES_MAX;
    for (field, text) in [("chat", &chat), ("name", &name)] {
        if text.len() > most || text.chars().any(char::is_control) {
            let text = format!("{field} is longer than {most} bytes, or has a control character");
            return Err(Refusal::bad_field(field, text));
        }
    }
    if chat.is_empty() {
        return Err(Refusal::bad_field("chat", "chat must not be empty"));
    }
    if let Some(known) = world.resource::<Pairings>().of_chat(&instance, &chat) {
        return PairingView::seen(world, known);
    }
    admit(world)?;
    let id = let_chat_in(world, None, instance, chat, name);
    PairingView::seen(world, id)
}

/// A chat is let in, by the offer whose code it sent or without one.
fn let_chat_in(
    world: &mut World,
    offer: Option<PairingId>,
    instance: Box<str>,
    chat: Box<str>,
    name: Box<str>,
) -> PairingId {
    let now = world.resource::<Now>().0;
    let details = json!({ "channel": instance, "chat": chat, "by_code": offer.is_some() });
    let (of_instance, of_chat) = (instance.clone(), chat.clone());
    let state = PairingState::Paired { chat, name, at: now };
    let id = match offer.and_then(|id| Some((id, world.resource::<Pairings>().get(id)?))) {
        Some((id, entity)) => {
            change(world, entity, |pairing: &mut Pairing| pairing.state = state);
            id
        }
        None => keep(world, Pairing { instance, created_at: now, state }),
    };
    world.audit(audit_kinds::CHAT_PAIRED, None, details);
    last::mark(world, &of_instance, &of_chat);
    id
}

/// A chat that is not known sends a code.
pub(super) fn try_code(
    world: &mut World,
    of: &InstanceRules,
    conversation: &Conversation,
    id: ConversationId,
    event: &ChatEvent,
    code: &str,
) -> Verdict {
    let now = world.resource::<Now>().0;
    // A time that is further away is from before the clock was set back.
    let holds = |until| now < until && until <= now.plus_ms(limits::PAIRING_TRIES_MS);
    let wrong = conversation.wrong_codes.filter(|(_, until)| holds(*until)).map_or(0, |(count, _)| count);
    if wrong >= limits::PAIRING_TRIES_MAX {
        return Verdict::Silent(Why::WrongCode);
    }
    let is_it = |id: &PairingId| match state::<Pairing>(world, *id).map(|it| &it.state) {
        Some(PairingState::Offered { code: its, expires_at }) => now < *expires_at && its.eq_ignore_ascii_case(code),
        Some(PairingState::Paired { .. }) | None => false,
    };
    let found = world.resource::<Pairings>().offers(&of.name).find(is_it);
    let Some(offer) = found else {
        talk::update(world, id, |its| its.wrong_codes = Some((wrong + 1, now.plus_ms(limits::PAIRING_TRIES_MS))));
        return Verdict::Answer("This code is not valid.".to_owned());
    };
    let name = event.title.clone().unwrap_or_else(|| event.sender.name.clone());
    let_chat_in(world, Some(offer), of.name.clone(), conversation.chat.clone(), name);
    talk::update(world, id, |its| its.wrong_codes = None);
    talk::let_in(world, id, &of.name, false);
    Verdict::Answer("This chat is paired now.".to_owned())
}

impl Removable for Pairing {
    const REMOVE: &'static str = "remove_pairing";
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    fn removed(self, world: &mut World, id: PairingId) {
        world.audit(audit_kinds::CHAT_UNPAIRED, None, json!({ "channel": self.instance, "pairing": id }));
        if let PairingState::Paired { chat, .. } = &self.state {
            last::mark(world, &self.instance, chat);
        }
    }
}

/// Offers that are void go; a bounded number.
pub(super) fn sweep(world: &mut World) {
    let now = world.resource::<Now>().0;
    for _ in 0..limits::CHAT_BEAT_MAX {
        let pairings = world.resource::<Pairings>();
        let void = pairings.first_void().filter(|(at, _)| *at <= now).and_then(|(_, id)| pairings.get(id));
        let Some(entity) = void else { return };
        world.despawn(entity);
    }
}

/// The clock was set back: no code holds longer than it would have.
// &mut World: changes pairings by their ids, which moves them in the index.
pub(super) fn clock_set_back(world: &mut World) {
    let last = world.resource::<Now>().0.plus_ms(i64::from(limits::PAIRING_SECS_MAX) * 1_000);
    let pairings = world.resource::<Pairings>();
    let ahead: Vec<PairingId> = pairings.last_void().take_while(|(at, _)| *at > last).map(|(_, id)| id).collect();
    for id in ahead {
        let Some(entity) = world.resource::<Pairings>().get(id) else { continue };
        change(world, entity, |pairing: &mut Pairing| {
            if let PairingState::Offered { expires_at, .. } = &mut pairing.state {
                *expires_at = last;
            }
        });
    }
}

/// Since when a chat is let in.
pub(super) fn paired_at(world: &World, instance: &str, chat: &str) -> Option<Timestamp> {
    let id = world.resource::<Pairings>().of_chat(instance, chat)?;
    match &state::<Pairing>(world, id)?.state {
        PairingState::Paired { at, .. } => Some(*at),
        PairingState::Offered { .. } => None,
    }
}
