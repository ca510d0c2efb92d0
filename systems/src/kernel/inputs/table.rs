//! Commands and outcomes by name: how each that changes the world is written down and carried out again.

use std::any::{Any, TypeId};
use std::sync::LazyLock;

use agentsvc_components::Actor;
use agentsvc_components::kernel::outcome::AnyOutcome;
use bevy_ecs::prelude::World;
use hashbrown::HashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::wire::Malformed;
use crate::kernel::arrivals::Settle;
use crate::kernel::command::{Command, ReplySlot};
use crate::kernel::engine::Engine;
use crate::kernel::for_call::{ForCall, Formatter};

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
            let told = Formatter::As(written.told.unwrap_or_default().to_owned());
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
    pub(crate) form: Form,
    pub(crate) bytes: &'a [u8],
}

/// How a command that writes is written down and carried out again.
#[derive(Clone, Copy)]
pub struct CommandDef {
    /// Its [`Command::NAME`].
    pub name: &'static str,
    write: fn(&dyn Any, &mut Vec<u8>) -> Option<Form>,
    carry_out: fn(&mut Engine, &Written<'_>) -> Result<(), Malformed>,
    shown: fn(&Written<'_>) -> Result<String, Malformed>,
}

impl CommandDef {
    /// That of `C`.
    #[must_use]
    pub const fn of<C: Command + Serialize + DeserializeOwned + std::fmt::Debug>() -> Self {
        Self { name: C::NAME, write: write::<C>, carry_out: carry_out_as::<C>, shown: shown_as::<C> }
    }
}

/// The commands of all domains by name.
static TABLE: LazyLock<HashMap<&'static str, &'static CommandDef>> = LazyLock::new(|| {
    crate::kernel::domain::all().iter().flat_map(|domain| domain.commands).map(|def| (def.name, def)).collect()
});

/// The names of all commands that write, in the order of the domains.
pub fn names() -> impl Iterator<Item = &'static str> {
    crate::kernel::domain::all().iter().flat_map(|domain| domain.commands).map(|def| def.name)
}

/// Writes a command down. `None` when no domain lists it.
pub(crate) fn record<C: Command>(command: &C, out: &mut Vec<u8>) -> Option<Form> {
    TABLE.get(C::NAME).and_then(|def| (def.write)(command, out))
}

impl Written<'_> {
    /// Carries the command out in another world; its reply is dropped.
    ///
    /// # Errors
    /// [`Malformed`]: there is no such command in this release, or it cannot be read.
    pub(crate) fn carry_out(&self, engine: &mut Engine) -> Result<(), Malformed> {
        (self.def()?.carry_out)(engine, self)
    }

    /// The command for people.
    ///
    /// # Errors
    /// [`Malformed`]: there is no such command in this release, or it cannot be read.
    pub fn shown(&self) -> Result<String, Malformed> {
        (self.def()?.shown)(self)
    }

    fn def(&self) -> Result<&'static CommandDef, Malformed> {
        TABLE.get(self.name).copied().ok_or_else(|| unknown(self.name))
    }
}

fn unknown(name: &str) -> Malformed {
    Malformed::Part {
        what: format!("the command {name}"),
        reason: "this release has no command with that name".to_owned(),
    }
}

/// How an outcome is written down and settled.
#[derive(Clone, Copy)]
pub struct OutcomeDef {
    /// Its name.
    name: &'static str,
    kind: TypeId,
    write: fn(&AnyOutcome, &mut Vec<u8>),
    read: fn(&[u8]) -> Result<AnyOutcome, Malformed>,
    settle: fn(&mut World, AnyOutcome),
}

impl OutcomeDef {
    /// That of `O`.
    #[must_use]
    pub const fn of<O: Settle>() -> Self {
        assert!(O::NAME.len() < 32, "the name of an outcome is short");
        Self {
            name: O::NAME,
            kind: TypeId::of::<O>(),
            write: |outcome, out| {
                if let Some(outcome) = outcome.get::<O>() {
                    encode_into(outcome, out);
                }
            },
            read: |bytes| decode::<O>(O::NAME, bytes).map(AnyOutcome::from),
            settle: |world, outcome| {
                if let Ok(outcome) = outcome.take::<O>() {
                    outcome.settle(world);
                }
            },
        }
    }
}

/// The outcomes of all domains: few, so that a look at each costs less than a hash.
static OUTCOMES: LazyLock<Vec<&'static OutcomeDef>> =
    LazyLock::new(|| crate::kernel::domain::all().iter().flat_map(|domain| domain.outcomes).collect());

fn outcome_def(outcome: &AnyOutcome) -> Option<&'static OutcomeDef> {
    let kind = outcome.kind();
    OUTCOMES.iter().copied().find(|def| def.kind == kind)
}

/// MessagePack of a map of one pair, and of a short text: an outcome is written as its name and itself.
const MAP_OF_ONE: u8 = 0x81;
const SHORT_TEXT: u8 = 0xa0;

/// Writes an outcome down. False when no domain lists it.
pub(crate) fn write_outcome(outcome: &AnyOutcome, out: &mut Vec<u8>) -> bool {
    let Some(def) = outcome_def(outcome) else { return false };
    out.extend([MAP_OF_ONE, SHORT_TEXT | def.name.len() as u8]);
    out.extend(def.name.as_bytes());
    (def.write)(outcome, out);
    true
}

/// Reads what [`write_outcome`] wrote.
pub(crate) fn read_outcome(bytes: &[u8]) -> Result<AnyOutcome, Malformed> {
    let [MAP_OF_ONE, length, rest @ ..] = bytes else { return Err(Malformed::Short) };
    let (name, bytes) = rest.split_at_checked(usize::from(length ^ SHORT_TEXT)).ok_or(Malformed::Short)?;
    let name = String::from_utf8_lossy(name);
    let unknown = || Malformed::Part {
        what: format!("the outcome {name}"),
        reason: "this release has no command with that name".to_owned(),
    };
    let def = OUTCOMES.iter().find(|def| def.name == name).ok_or_else(unknown)?;
    (def.read)(bytes)
}

/// Settles an outcome.
///
/// # Panics
/// No domain lists it: what waits for it would wait for ever.
pub(crate) fn settle(world: &mut World, outcome: AnyOutcome) {
    let def = outcome_def(&outcome).expect("a domain lists each outcome");
    (def.settle)(world, outcome);
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};
    use std::collections::BTreeSet;

    use agentsvc_components::kernel::attempt::Attempt;
    use agentsvc_components::session::sweep::LogSwept;
    use agentsvc_components::{LogId, TurnId};
    use uuid::Uuid;

    use super::*;

    /// Attempts and outcomes as releases before this form wrote them.
    #[derive(Serialize)]
    struct OldAttempt {
        turn: TurnId,
        number: u32,
    }

    #[derive(Serialize)]
    enum Old {
        Model(OldAttempt, ModelEnd),
        Swept(LogId),
    }

    #[test]
    fn outcomes_of_older_releases_read() {
        let turn = TurnId(Uuid::from_u128(7));
        let failure = ModelFailure { code: FailureCode::Internal, message: "no".to_owned(), spent: Vec::new() };
        let end = ModelEnd::Failed(failure);
        let mut bytes = Vec::new();
        encode_into(&Old::Model(OldAttempt { turn, number: 3 }, end.clone()), &mut bytes);
        let outcome = ModelOutcome(Attempt::of(turn, 3), end);
        assert_eq!(read_outcome(&bytes).unwrap().get(), Some(&outcome));
        bytes.clear();
        encode_into(&Old::Swept(LogId(5)), &mut bytes);
        let mut written = Vec::new();
        assert!(write_outcome(&LogSwept(LogId(5)).into(), &mut written));
        assert_eq!(written, bytes);
        written.clear();
        assert!(write_outcome(&outcome.clone().into(), &mut written));
        assert_eq!(read_outcome(&written).unwrap().get(), Some(&outcome));
    }

    #[test]
    fn outcomes_have_names_of_their_own_and_unknown_ones_are_refused() {
        let names: BTreeSet<_> = OUTCOMES.iter().map(|def| def.name).collect();
        assert_eq!(names.len(), OUTCOMES.len());
        assert!(
            read_outcome(b"\x81\xa3Odd\xc0").is_err() && read_outcome(b"\x81").is_err() && read_outcome(b"").is_err()
        );
    }
}
