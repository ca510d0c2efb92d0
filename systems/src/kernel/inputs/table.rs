//! Commands by name: how each that writes is written down and carried out again.

use std::any::Any;
use std::sync::LazyLock;

use agentsvc_components::audit::Actor;
use hashbrown::HashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::wire::Malformed;
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
    Malformed::Part { what: format!("the command {name}"), reason: "this release has none of that name".to_owned() }
}
