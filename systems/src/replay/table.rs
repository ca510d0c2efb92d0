//! Every command that writes, by name: how each is written down and carried out again.

use std::any::Any;

use agentsvc_components::audit::Actor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::wire::Malformed;
use crate::kernel::command::{Command, ReplySlot};
use crate::kernel::engine::Engine;
use crate::turn::{ForCall, Telling};

/// How a command arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// By itself.
    Plain,
    /// As [`ForCall`].
    ForCall,
}

/// A [`ForCall`] as it is written: its words for the model stand behind it, for they come from outside.
#[derive(Serialize)]
struct CallWritten<'a, C> {
    attempt: agentsvc_components::kernel::attempt::Attempt,
    index: u32,
    command: &'a C,
}

/// The same as it is read.
#[derive(Deserialize)]
struct CallRead<C> {
    attempt: agentsvc_components::kernel::attempt::Attempt,
    index: u32,
    command: C,
}

/// Adds `value` with named fields.
pub(crate) fn encode_into<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
    value.serialize(&mut serializer).expect("writing plain values to memory cannot fail");
}

/// Reads what [`encode_into`] wrote; `what` is only for the error's text.
pub(crate) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Malformed> {
    rmp_serde::from_slice(bytes).map_err(|error| Malformed::Part { what: what.to_owned(), reason: error.to_string() })
}

fn write<T: Command + Serialize>(command: &dyn Any, out: &mut Vec<u8>) -> Option<Form> {
    if let Some(command) = command.downcast_ref::<T>() {
        encode_into(command, out);
        return Some(Form::Plain);
    }
    let ForCall { attempt, index, command, .. } = command.downcast_ref::<ForCall<T>>()?;
    encode_into(&CallWritten { attempt: *attempt, index: *index, command }, out);
    Some(Form::ForCall)
}

fn carry_out_as<T: Command + DeserializeOwned>(engine: &mut Engine, written: &Written<'_>) -> Result<(), Malformed> {
    let name = T::NAME;
    match written.form {
        Form::Plain => {
            let command: T = decode(name, written.bytes)?;
            engine.command(written.actor, command, ReplySlot::new(drop));
        }
        Form::ForCall => {
            let CallRead { attempt, index, command } = decode::<CallRead<T>>(name, written.bytes)?;
            let told = Telling::As(written.told.unwrap_or_default().to_owned());
            engine.command(written.actor, ForCall { attempt, index, command, told }, ReplySlot::new(drop));
        }
    }
    Ok(())
}

fn shown_as<T: DeserializeOwned + std::fmt::Debug>(written: &Written<'_>) -> Result<String, Malformed> {
    match written.form {
        Form::Plain => Ok(format!("{:?}", decode::<T>("a command", written.bytes)?)),
        Form::ForCall => {
            let CallRead { attempt, index, command } = decode::<CallRead<T>>("a command", written.bytes)?;
            Ok(format!("for the tool call {index} of {attempt:?}: {command:?}"))
        }
    }
}

/// A command as it stands in the log.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Who sent it.
    pub actor: Actor,
    /// Its [`Command::NAME`].
    pub name: &'a str,
    /// What the tool call was told that it was carried out for, once it was.
    pub told: Option<&'a str>,
    pub(super) form: Form,
    pub(super) bytes: &'a [u8],
}

macro_rules! commands {
    ($($command:path,)*) => {
        /// The names of all commands that write.
        pub const NAMES: &[&str] = &[$(<$command as Command>::NAME,)*];

        /// Writes a command down. `None` when it is not in the table.
        pub(crate) fn record<C: Command>(command: &C, out: &mut Vec<u8>) -> Option<Form> {
            let name = C::NAME;
            $(if name == <$command as Command>::NAME {
                return write::<$command>(command, out);
            })*
            let _ = (command, out);
            None
        }

        impl Written<'_> {
            /// Carries the command out in another world; nobody hears its reply.
            ///
            /// # Errors
            /// [`Malformed`]: there is no such command in this release, or it cannot be read.
            pub(super) fn carry_out(&self, engine: &mut Engine) -> Result<(), Malformed> {
                match self.name {
                    $(name if name == <$command as Command>::NAME => carry_out_as::<$command>(engine, self),)*
                    name => Err(unknown(name)),
                }
            }

            /// The command for people.
            ///
            /// # Errors
            /// [`Malformed`]: there is no such command in this release, or it cannot be read.
            pub fn shown(&self) -> Result<String, Malformed> {
                match self.name {
                    $(name if name == <$command as Command>::NAME => shown_as::<$command>(self),)*
                    name => Err(unknown(name)),
                }
            }
        }
    };
}

fn unknown(name: &str) -> Malformed {
    Malformed::Part { what: format!("the command {name}"), reason: "this release has none of that name".to_owned() }
}

commands! {
    crate::agent::CloneAgent,
    crate::agent::ImportAgent,
    crate::agent::KillDescendant,
    crate::agent::RemoveAgents,
    crate::agent::SetMode,
    crate::agent::SpawnAgent,
    crate::agent::SpawnAgents,
    crate::agent::SpawnChild,
    crate::agent::StartAgents,
    crate::agent::StopAgents,
    crate::agent::UpdateAgent,
    crate::approval::DecideApprovals,
    crate::approval::InvokeTool,
    crate::approval::RequestApproval,
    crate::approval::WithdrawInvocation,
    crate::audit::NoteAction,
    crate::audit::TrimAudit,
    crate::budget::ReserveProbe,
    crate::budget::SetBudget,
    crate::compaction::CompactSession,
    crate::event::PublishEvent,
    crate::goal::CreateGoal,
    crate::goal::RemoveGoal,
    crate::goal::UpdateGoal,
    crate::memory::DeleteMemory,
    crate::memory::PutMemory,
    crate::schedule::CreateSchedule,
    crate::schedule::RemoveSchedule,
    crate::schedule::RunSchedule,
    crate::schedule::UpdateSchedule,
    crate::session::CleanupSessions,
    crate::session::ClearHistory,
    crate::session::CreateSession,
    crate::session::ImportSession,
    crate::session::RemoveSession,
    crate::session::ResetSession,
    crate::session::SetLabel,
    crate::session::SwitchSession,
    crate::config::Reconfigure,
    crate::task::ClaimNextTask,
    crate::task::ClaimTask,
    crate::task::EndTask,
    crate::task::PostTask,
    crate::task::RemoveTask,
    crate::task::RetryTask,
    crate::trigger::CreateTrigger,
    crate::trigger::DeleteTrigger,
    crate::trigger::TellEvents,
    crate::trigger::UpdateTrigger,
    crate::turn::InterruptSession,
    crate::turn::PostConversation,
    crate::turn::PostMessage,
    crate::turn::SendConversation,
    crate::turn::SendMessage,
    crate::turn::SendToAgent,
    crate::turn::StopConversation,
    crate::turn::StopTurns,
    crate::usage::NoteModelCall,
    crate::workflow::CancelRun,
    crate::workflow::CreateWorkflow,
    crate::workflow::RemoveWorkflow,
    crate::workflow::RunWorkflow,
    crate::workflow::StartRun,
    crate::workflow::UpdateWorkflow,
}
