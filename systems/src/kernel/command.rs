//! The one door of the world. HTTP, tools, triggers and the CLI all send the same typed commands.

use bevy_ecs::prelude::World;

use agentsvc_components::Refusal;
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::slot::Slot;
use uuid::Uuid;

/// Asks for a change or a read. Plain values only, so that the inputs of a world can be recorded.
pub trait Command: Sized + Send + 'static {
    /// What the asker gets when the command is carried out.
    type Reply: Send + 'static;
    /// The label in metrics and logs.
    const NAME: &'static str;
    /// Does it change state? A write is refused while the store is behind; a read never is.
    const WRITES: bool;
    /// Which share of a world that is spread over several machines it is for. Nothing routes by it yet.
    const PLACE: Place<Self>;
    /// Does it read one thing and no more? Then it may be carried out on the asker's thread while the world rests
    /// between two steps, which saves the way to the world's thread and back. Nothing is recorded of it there, so one
    /// that writes cannot be quick:
    ///
    /// ```compile_fail
    /// # use agentsvc_components::Actor;
    /// # use agentsvc_systems::{Answer, Engine, Place};
    /// struct Both;
    /// impl agentsvc_systems::Command for Both {
    ///     type Reply = ();
    ///     const NAME: &'static str = "both";
    ///     const QUICK: bool = true;
    ///     const WRITES: bool = true;
    ///     const PLACE: Place<Self> = Place::Any;
    ///     fn run(self, _: &mut bevy_ecs::world::World) -> Answer<()> {
    ///         Answer::read(())
    ///     }
    /// }
    /// let _read: fn(&mut Engine, Actor, Both) -> _ = Engine::read::<Both>;
    /// ```
    ///
    /// One that only reads can:
    ///
    /// ```
    /// # use agentsvc_components::Actor;
    /// # use agentsvc_systems::{Answer, Engine, Place};
    /// struct Glance;
    /// impl agentsvc_systems::Command for Glance {
    ///     type Reply = ();
    ///     const NAME: &'static str = "glance";
    ///     const QUICK: bool = true;
    ///     const WRITES: bool = false;
    ///     const PLACE: Place<Self> = Place::Any;
    ///     fn run(self, _: &mut bevy_ecs::world::World) -> Answer<()> {
    ///         Answer::read(())
    ///     }
    /// }
    /// let _read: fn(&mut Engine, Actor, Glance) -> _ = Engine::read::<Glance>;
    /// ```
    const QUICK: bool = false;
    /// The room on the disk without which it is refused.
    const ROOM: Room = Room::Changes;

    /// Carries the command out. It either changes the world and answers, or refuses and changes nothing.
    fn run(self, world: &mut World) -> Answer<Self::Reply>;
}

/// Room on a disk that is full, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// None: for what stores nothing.
    None,
    /// The last of it: for what must be on record.
    Last,
    /// Enough for changes.
    Changes,
}

/// Which slots a command is for, and so whose world carries it out.
#[derive(Clone, Copy, Debug)]
pub enum Place<C> {
    /// The root slot: it is about what belongs to no agent.
    Root,
    /// The slot of this id.
    Id(fn(&C) -> Uuid),
    /// The slot of this id; without one, the root slot.
    IdOrRoot(fn(&C) -> Option<Uuid>),
    /// The slot of this id; without one, every slot.
    IdOrAll(fn(&C) -> Option<Uuid>),
    /// The slot of agents that are created with this name.
    Name(fn(&C) -> &str),
    /// Every slot: each has a share of the work, and their replies are joined.
    All,
    /// Any one: all would answer the same.
    Any,
}

impl<C> Place<C> {
    /// The one slot that `command` is for; `None` when that is every one, or any. Ids are those of a home whose ids have
    /// slots since `born`.
    pub fn slot(&self, command: &C, born: Timestamp) -> Option<Slot> {
        let of_id = |id| Slot::of_id(id, born);
        match self {
            Self::Root => Some(Slot::ROOT),
            Self::Id(id) => Some(of_id(id(command))),
            Self::IdOrRoot(id) => Some(id(command).map_or(Slot::ROOT, of_id)),
            Self::IdOrAll(id) => id(command).map(of_id),
            Self::Name(name) => Some(Slot::of_name(name(command))),
            Self::All | Self::Any => None,
        }
    }
}

/// Makes a type a [`Command`]: whether it writes, writes with the last room on the disk, reads, or is a quick read; its name, its type and its reply; its
/// [`Place`]; and what it answers, given itself and the world.
macro_rules! command {
    (
        $(#[$about:meta])* $kind:ident $name:literal $type:ty => $reply:ty, $place:ident $(($of:expr))?,
        |$this:pat_param, $world:ident| $answer:expr
    ) => {
        impl $crate::kernel::command::Command for $type {
            $(#[$about])*
            type Reply = $reply;
            const NAME: &'static str = $name;
            const PLACE: $crate::kernel::command::Place<Self> = $crate::kernel::command::Place::$place $(($of))?;
            $crate::kernel::command::command!(@ $kind);

            fn run(self, $world: &mut bevy_ecs::prelude::World) -> $crate::kernel::command::Answer<$reply> {
                let $this = self;
                $answer
            }
        }
    };
    (@ write) => {
        const WRITES: bool = true;
    };
    // What takes rights away, or stops something, must be possible on a full disk.
    (@ last_write) => {
        const WRITES: bool = true;
        const ROOM: $crate::kernel::command::Room = $crate::kernel::command::Room::Last;
    };
    (@ read) => {
        const WRITES: bool = false;
    };
    (@ quick) => {
        const WRITES: bool = false;
        const QUICK: bool = true;
    };
}

pub(crate) use command;

/// What parks a reply until the thing the command started has ended.
pub type Park<R> = Box<dyn FnOnce(&mut World, ReplySlot<R>) + Send>;

/// When, and with what, a command is answered.
pub enum Answer<R> {
    /// At once: a read, or a refusal.
    Now(Result<R, Refusal>),
    /// When this step is on disk.
    Stored(R),
    /// When what it started has ended; the closure takes the slot and keeps it in the world.
    Later(Park<R>),
}

impl<R> Answer<R> {
    /// A read's answer, released at once.
    pub const fn read(reply: R) -> Self {
        Self::Now(Ok(reply))
    }

    /// A write's answer: released when durable, or at once when refused.
    pub fn stored(result: Result<R, Refusal>) -> Self {
        match result {
            Ok(reply) => Self::Stored(reply),
            Err(refusal) => Self::Now(Err(refusal)),
        }
    }
}

/// The asker's end of a reply: used once, from any thread. Dropping it unsent tells the asker that the world
/// is gone.
pub struct ReplySlot<R>(Box<dyn FnOnce(Result<R, Refusal>) + Send>);

impl<R> ReplySlot<R> {
    /// A slot that hands the reply to `deliver`, which must not block.
    pub fn new(deliver: impl FnOnce(Result<R, Refusal>) + Send + 'static) -> Self {
        Self(Box::new(deliver))
    }

    /// Answers. An asker that has gone away is no error.
    pub fn send(self, reply: Result<R, Refusal>) {
        (self.0)(reply);
    }
}
