//! The turn: from a message to its answer.
//!
//! | from             | what happens                         | to               | leaves behind                          |
//! |------------------|--------------------------------------|------------------|----------------------------------------|
//! | (none)           | message, session busy                | Queued           | user row, turn record                  |
//! | (none)           | message, session idle                | Reserving        | user row, turn record                  |
//! | Queued           | the turn before it ended             | Reserving        | turn record                            |
//! | Reserving        | a slot of its provider and money are free | Calling     | turn and call record, `CallModel`      |
//! | Reserving        | a budget has no room for its call    | failed           | trace, reply, `Error`                  |
//! | Calling          | the call says what it was given of the agent's memory | Calling | turn record      |
//! | Calling          | the model answered with text         | done             | answer row, trace, reply, `Done`       |
//! | Calling          | the model asks for a client's tool   | done             | answer row, trace, reply, `Done`       |
//! | Calling          | the model asks for tools             | WaitingForTools  | answer row, turn record, `RunTool` each |
//! | Calling          | the same, all calls refused (guard)  | Reserving        | answer row, result rows, turn record   |
//! | Calling          | the call failed                      | failed           | trace, reply, `Error`                  |
//! | Calling          | stop                                 | Stopping         | turn record, `Abort`                   |
//! | WaitingForTools  | a tool came back, others are out     | WaitingForTools  | result row, turn record                |
//! | WaitingForTools  | `agent_send` took its message        | WaitingForTools  | turn record, the other agent's turn    |
//! | Calling          | the same, and all of them need a person's approval | WaitingForApproval | the same, an approval each |
//! | WaitingForTools  | the last tool came back, others need approval | WaitingForApproval | result row, turn record |
//! | WaitingForApproval | a call is approved                 | WaitingForTools  | turn record, `RunTool`                 |
//! | WaitingForApproval | the last call is rejected, or expires | Reserving     | result row, turn record                |
//! | WaitingForTools  | the last tool came back              | Reserving        | result row, turn record                |
//! | WaitingForTools  | the same, after a 31st call          | failed           | result row, trace, reply, `Error`      |
//! | WaitingForTools or -Approval | stop                     | stopped          | `Abort`, trace, reply, `Done`          |
//! | Stopping         | the call came back, however it ended | stopped          | partial answer row, trace, reply, `Done` |
//! | Queued/Reserving | stop                                 | stopped          | trace, reply, `Done`                   |
//! | any              | interrupt                            | see [`interrupt`] | turn record, or trace, reply, `Done`  |
//! | any              | its session or agent is removed      | failed           | `Abort` if out, trace, reply, `Error`  |
//! | Calling          | restart                              | Reserving        | (the attempt grows with the next call) |
//! | WaitingForTools  | restart                              | WaitingForTools  | `RunTool`, marked as resumed, for each without a result |
//! | Stopping         | restart                              | stopped          | trace                                  |
//!
//! Done, failed, stopped and interrupted are the ends ([`TurnEnd`](agentsvc_components::turn::TurnEnd)); an ended turn
//! is a trace and its rows. While a streaming call is out its tokens go past the world, straight to the subscribers.
//! A turn of a hidden session takes the session with it when it ends, and is ended instead of resumed by a restart.
//!
//! A turn ends in one commit together with its answer, so that neither is ever seen without the other.
//! Only the first turn of a session's inbox is ever past Queued: one running turn per session.

mod admit;
pub mod audit_kinds;
mod call_result;
mod cascade;
mod conversation;
mod delegate;
mod drain;
mod ended;
mod finish;
mod fired;
mod first_rows;
mod footprint;
mod guard;
mod inbox;
mod index;
mod interrupt;
mod lines;
mod message;
mod metrics;
mod open;
mod owners;
mod profile;
pub(crate) mod query;
mod reading;
mod repeat;
mod resume;
pub(crate) mod rows;
mod settle;
mod share;
#[cfg(test)]
mod share_tests;
mod stop;
mod stopping;
mod tool_audit;
mod tool_lane;
pub mod tool_result;
mod tools;
mod trace;
mod within;

pub(crate) use admit::admit;
pub use conversation::{Conversation, ConversationTarget, PostConversation, SendConversation, StopConversation};
pub(crate) use delegate::Children;
pub use delegate::{SendToAgent, SendWithinCall, SentToAgent};
pub use drain::DrainCalls;
pub(crate) use ended::{Ended, FiredTurnEnded, tell};
pub(crate) use finish::TurnClosed;
pub use finish::refused_tokens;
pub(crate) use fired::{Fired, Place, Said, begin_fired, stop_turn};
pub use guard::loop_guard_holds;
pub use interrupt::InterruptSession;
pub use message::{MessageTaken, NewMessage, PostMessage, ResolveSession, SendMessage, TurnReply};
pub(crate) use message::{take, take_hidden};
pub use metrics::TurnTotals;
pub use open::{ListOpenTurns, OpenTurn};
pub use reading::{Reply, SCAN_REPLY};
pub use repeat::Repeated;
pub use stop::StopTurns;
pub(crate) use stop::is_going;
pub(crate) use tool_lane::ToolLane;
pub(crate) use tools::send;
pub use within::ReadWithinCall;

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;

use crate::agent::{AgentStarted, AgentStopped};
use crate::approval::CallDecided;
use crate::event::told::inherits;
use crate::kernel::check::Faults;
use crate::kernel::command::ReplySlot;
use crate::kernel::counters::{PerStep, Totals};
use crate::kernel::domain::{Domain, Ends, Phase, System};
use crate::kernel::fires::HoldWork;
use crate::kernel::footprint::{Measure, entries};
use crate::kernel::index::{Index, turn as find};
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::outbox::Exclusive;
use crate::kernel::reaction::{Removed, on, rule};
use crate::kernel::record::{Kind, is_record};
use crate::kernel::stage::Stage;
use crate::session::TurnsEnding;
use crate::taint::{self, TrustingFiles};
use agentsvc_components::turn::outcome::{ModelOutcome, ToolOutcome};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::turn::{Origin, Turn};
use agentsvc_components::{AgentId, TurnId};
use ended::EndedTurns;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[
        "agent",
        "approval",
        "audit",
        "budget",
        "compaction",
        "config",
        "event",
        "goal",
        "injection",
        "manifest",
        "model",
        "people",
        "proactive_memory",
        "prompt",
        "rehearsal",
        "session",
        "taint",
        "usage",
    ],
    content: &[(b'y', is_record::<TraceRecord>)],
    kinds: &[Kind::record::<TurnRecord>()
        .with_entities::<Turn>(rows::row)
        .elsewhere(|world, turn| world.get::<Turn>(turn).is_some_and(|turn| turn.burst.is_some()))],
    restore: &[(Phase::Turns, rows::restore)],
    install,
    measures: &[Measure::of::<TurnId>("turns", footprint::heap, entries(24, 1) + entries(16, 1))],
    // What came back ends turns, and what fired them hears of that in the same round; slots are given out before places
    // for tool calls.
    systems: &[
        System { stage: Stage::Intake, name: "turn_tell", run: tell },
        System { stage: Stage::Decide, name: "turn_admit", run: admit },
        System { stage: Stage::Decide, name: "turn_send", run: send },
    ],
    ends: &[Ends { waits: stopping::has_work, go_on: stopping::go_on }],
    has_work,
    rounds_ran_out: tell,
    is_quiet,
    check,
    jobs: &[reading::JOB],
    per_step: &[PerStep::of::<reading::ScannedHere>()],
    outcomes: &[OutcomeDef::of::<ModelOutcome>(), OutcomeDef::of::<ToolOutcome>()],
    commands: &[
        CommandDef::of::<DrainCalls>(),
        CommandDef::of::<HoldWork>(),
        CommandDef::of::<InterruptSession>(),
        CommandDef::of::<PostConversation>(),
        CommandDef::of::<PostMessage>(),
        CommandDef::of::<SendConversation>(),
        CommandDef::of::<SendMessage>(),
        CommandDef::of::<SendToAgent>(),
        CommandDef::of::<SendWithinCall>(),
        CommandDef::of::<ReadWithinCall>(),
        CommandDef::of::<StopConversation>(),
        CommandDef::of::<StopTurns>(),
    ],
    error_codes: agentsvc_components::turn::error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::TurnTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("turn")
};

/// A message came: a turn begins.
pub(crate) struct MessageCame(pub(crate) Origin);

/// A tool call has its result, or it is not known whether it has one.
pub(crate) struct ToolCallEnded {
    /// There is no good result: it failed, was refused, or nobody knows.
    pub(crate) is_error: bool,
}

/// Who waits for which turn. An entry lives as long as its turn.
#[derive(Resource, Default)]
pub(crate) struct Waiting(Exclusive<HashMap<Entity, ReplySlot<TurnReply>>>);

impl Waiting {
    /// The turns that somebody waits for.
    pub(crate) fn turns(&mut self) -> Vec<Entity> {
        self.0.get().keys().copied().collect()
    }
}

/// Prepares a new world for turns.
pub(crate) fn install(world: &mut World) {
    index::install(world);
    world.init_resource::<EndedTurns>();
    world.init_resource::<stopping::Stopping>();
    world.insert_resource(call_result::SETTLEMENT);
    world.init_resource::<Waiting>();
    world.init_resource::<ToolLane>();
    world.init_resource::<Children>();
    world.init_resource::<cascade::Cascades>();
    on(world, |world, gone: &Removed<AgentId>| cascade::agent_removed(world, gone.id));
    rule(world, |world, of: &TrustingFiles| {
        let is_open = world.resource::<ToolLane>().may_taint_files(of.agent);
        if is_open { Err(taint::may_be_written()) } else { Ok(()) }
    });
    on(world, |world, of: &TurnsEnding| stop::end_some(world, of.session, &of.why, (of.most, of.upto)));
    on(world, |world, of: &AgentStopped| {
        stop::stop_running(world, of.agent);
    });
    on(world, |world, of: &AgentStarted| {
        stopping::keep(world, of.agent);
        resume::restart(world, of.agent);
    });
    on(world, |world, decided: &CallDecided| match &decided.refusal {
        None => tools::open_gate(world, decided.turn, decided.index),
        Some(text) => tools::refuse_gated(world, decided.turn, decided.index, text.clone()),
    });
    inherits(world, |world, event, turn, inherited| {
        let turn = turn.or_else(|| find(world, event.turn()?));
        if let Some(entity) = turn
            && let Some(turn) = world.get::<Turn>(entity)
        {
            inherited.depth = turn.depth;
            inherited.taint = inherited.taint.with(taint::tracked(world, taint::of(world, entity)));
            inherited.began_in = taint::began_in(world, entity);
        }
    });
}

/// Says what lacks its owner, and what waits where nothing serves it.
fn check(world: &mut World, faults: &mut Faults) {
    index::check(world, faults);
    share::check(world, faults);
    owners::check(world, faults);
    lines::check(world, faults);
}

/// Is no turn open, and no call of one out?
fn is_quiet(world: &mut World) -> bool {
    world.resource::<Index>().turn_count() + world.resource::<ToolLane>().out() == 0 && stopping::is_quiet(world)
}

/// Is there anything a further round would move?
pub(crate) fn has_work(world: &World) -> bool {
    !world.resource::<EndedTurns>().is_empty() || tools::can_send(world) || stopping::has_work(world)
}

#[cfg(test)]
mod conversation_tests;
#[cfg(test)]
mod for_call_tests;
#[cfg(test)]
mod full_tests;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;
