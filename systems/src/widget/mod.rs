//! Web chats: the conversations of visitors as their pages show them. Turns, policies and sends are those of `channel`.
//!
//! | rule | why |
//! |---|---|
//! | a visitor's message is kept in the step that takes it, and an answer in the step that sends it | a kill leaves both or none, and a page shows each once |
//! | a message of the same id is the same message | a page sends it again until it is stored |
//! | each site and each visitor has room of its own, the oldest messages go first | no visitor takes that of another site |

mod index;
pub mod limits;
mod list;
mod post;
#[cfg(test)]
mod tests;

use agentsvc_components::widget::{WebMessage, WebMessageId};

pub use list::{ListWebMessages, WebMessageView};
pub use post::{PostWebMessage, WebPost};

use crate::channel::Kept;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["channel"],
    kinds: &[Kind::component::<WebMessage>()],
    restore: &[(Phase::Owned, restore_components::<WebMessage>)],
    install: |world| {
        entities::install::<WebMessage>(world);
        on(world, |world, kept: &Kept| post::keep_answer(world, kept));
    },
    measures: &[Measure::of::<WebMessageId>(
        "web_messages",
        |world, at| of(world, at, WebMessage::bytes),
        entries(32, 3),
    )],
    check: |world, faults| entities::check::<WebMessage>(world, faults, |_, _, _, _| {}),
    commands: &[CommandDef::of::<PostWebMessage>()],
    limits: limits::ALL,
    ..Domain::named("widget")
};
