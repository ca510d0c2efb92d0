//! Chats: messages of people on other platforms become turns, and what agents answer is sent there (spec 3, Channels).
//!
//! | a message            | by                                        | goes to    |
//! |----------------------|-------------------------------------------|------------|
//! |                      | it comes, and the rules let it through    | waiting, or answering |
//! |                      | it is a command                           | command    |
//! | waiting              | no other of its sender came for a while, so many were joined, or there is room | answering |
//! | waiting              | there was no room for too long            | answered   |
//! | waiting              | it is of a group, and a model says first whether it deserves an answer | checking |
//! | checking             | the model says so, or nothing             | answering  |
//! | checking             | the model says that it needs none         | gone       |
//! | answering            | its turn ended                            | answered   |
//! | command              | it was carried out                        | answered   |
//!
//! | rule | why |
//! |---|---|
//! | a message is stored before anything is shown, and known by its id when it comes again | none is lost or answered twice |
//! | the answer becomes a send with its job in the step in which the turn ends, and the message is gone | a kill leaves one or the other |
//! | a send that may have been written is never sent again by itself | nothing is said twice |
//! | each conversation has a session of its own with each agent | no chat reads another |
//! | the reply token of a message goes back as it came with the answer to it | platforms need it to answer at all |
//! | who is no administrator writes untrusted content | a chat may be anyone's |
//! | a chat that nothing lets in is told how to be let in, once in a while | a bot is public |
//! | an approval is seen and decided only in channels in which its agent answers | no adapter and no chat decides for others |
//! | strangers' conversations are bounded apart, the oldest go first | they take no room of others |
//! | sessions that strangers began go with their conversations, and have a share of the store of their own | likewise |

mod approve;
mod aside;
mod attach;
pub mod audit_kinds;
mod begin;
mod check;
mod check_event;
mod choose;
mod command;
mod deliver;
mod end;
pub mod error_codes;
mod fit;
mod gateway;
mod index;
mod instances;
mod last;
pub mod limits;
mod list;
mod metrics;
mod pair;
mod policy;
mod post;
mod precheck;
mod receive;
mod relay;
mod route;
mod rules;
mod send;
mod strangers;
mod talk;
#[cfg(test)]
mod tests;
mod time;

use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::message::ChatMessage;
use agentsvc_components::channel::pairing::Pairing;
use agentsvc_components::channel::rules::ChannelInstance;
use agentsvc_components::channel::send::Send;
use agentsvc_components::channel::{ChannelId, ChatMessageId, ConversationId, PairingId, SendId};
use agentsvc_components::turn::Origin;

pub use approve::{ApprovalsInChannel, DecideInChat, TOO_LONG, exactly, plainly};
pub use attach::AttachFiles;
pub use choose::{ChooseAgent, OfferedAgents, RenewConversation, SetThinking};
pub use command::{CompleteCommand, PendingCommands};
pub use deliver::DeliverToChat;
pub(crate) use deliver::deliver;
pub use end::is_silent;
pub use gateway::AnswersGateway;
pub use instances::SetInstances;
pub(crate) use last::{last_chat, named, of_type};
pub use list::{
    ChatMessageView, ConversationFilter, ConversationView, InstanceView, PairingView, SendFilter, SendView,
};
pub use metrics::Counts;
pub use pair::{OfferPairing, PairChat, PairingOffer};
pub(crate) use post::{Kept, KeyedSendEnded};
pub(crate) use receive::receive;
pub use receive::{PendingCommand, ReceiveMessage, Received, Why};
pub use rules::may_send_to;
pub use send::{SEND, SendBy, SendTo, SendToChat};
pub(crate) use talk::forget_message;

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::{self, Remove};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::turn::FiredTurnEnded;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "approval", "audit", "config", "injection", "manifest", "people", "session", "turn"],
    kinds: &[
        Kind::component::<ChannelInstance>(),
        Kind::component::<Conversation>(),
        Kind::component::<ChatMessage>(),
        Kind::component::<Send>(),
        Kind::component::<Pairing>(),
    ],
    restore: &[
        (Phase::Owned, restore_components::<ChannelInstance>),
        (Phase::Owned, restore_components::<Conversation>),
        (Phase::Owned, restore_components::<ChatMessage>),
        (Phase::Owned, restore_components::<Send>),
        (Phase::Owned, restore_components::<Pairing>),
        (Phase::Joined, time::restored),
    ],
    install: |world| {
        entities::install::<ChannelInstance>(world);
        entities::install::<Conversation>(world);
        entities::install::<ChatMessage>(world);
        entities::install::<Send>(world);
        entities::install::<Pairing>(world);
        world.init_resource::<metrics::ChannelCounts>();
        world.init_resource::<rules::Patterns>();
        world.init_resource::<time::Lost>();
        on(world, approve::asked);
        on(world, |world, event: &FiredTurnEnded| {
            if let Origin::Channel { message } = event.origin {
                end::turn_ended(world, message, &event.ended);
            }
        });
    },
    measures: &[
        Measure::of::<ChannelId>("channels", |world, at| of(world, at, ChannelInstance::bytes), entries(32, 1)),
        Measure::of::<ConversationId>("conversations", |world, at| of(world, at, Conversation::bytes), entries(64, 4)),
        Measure::of::<ChatMessageId>("chat_messages", |world, at| of(world, at, ChatMessage::bytes), entries(32, 3)),
        Measure::of::<SendId>("chat_sends", |world, at| of(world, at, Send::bytes), entries(32, 5)),
        Measure::of::<PairingId>("pairings", |world, at| of(world, at, Pairing::bytes), entries(32, 2)),
    ],
    systems: &[
        System { stage: Stage::Time, name: "channel_beat", run: time::beat },
        System { stage: Stage::Decide, name: "channel_settle_lost", run: time::settle_lost },
    ],
    has_work: time::has_work,
    next_due: time::next_due,
    clock_set_back: time::clock_set_back,
    check: check::check,
    jobs: &[post::JOB],
    commands: &[
        CommandDef::of::<AttachFiles>(),
        CommandDef::of::<ChooseAgent>(),
        CommandDef::of::<CompleteCommand>(),
        CommandDef::of::<DecideInChat>(),
        CommandDef::of::<DeliverToChat>(),
        CommandDef::of::<OfferPairing>(),
        CommandDef::of::<PairChat>(),
        CommandDef::of::<ReceiveMessage>(),
        CommandDef::of::<RenewConversation>(),
        CommandDef::of::<SendToChat>(),
        CommandDef::of::<SetInstances>(),
        CommandDef::of::<SetThinking>(),
        CommandDef::of::<Remove<Pairing>>(),
    ],
    totals: &[Totals::of::<Counts>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("channel")
};
