//! Turns on the command line: one message, and the answer as it is written.

pub(crate) mod client;
pub(crate) mod message;
mod rows;
pub mod stream;

use std::sync::Arc;

use agentsvc_api::turn::store::TraceStore;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};
use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::stream::StreamItem;
use agentsvc_components::turn::trace::TrimTraces;
use agentsvc_systems::kernel::record::trace_prefix;
use stream::Streams;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "turn",
    uses: &[],
    commands: &[Subcommand::new::<message::Message>(6, "message", "Send one message and print the response")
        .examples(&[
            Example::new("message assistant 'What can you do?'", "Ask once"),
            Example::new("message assistant - --stream < question.txt", "Read the message from a file"),
        ])
        .under(Group::Agents)],
    performers,
    open: |opening| {
        opening.provide::<dyn TraceStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    ..Domain::EMPTY
};

/// Tells subscribers what turns do, and erases old traces.
fn performers(performers: &mut Performers) {
    let (streams, sweep) = (performers.part::<Streams>(), performers.part::<Sweep>());
    performers.on(move |item: Box<StreamItem>| (streams.publish)(*item));
    performers.on(move |of: Box<TrimTraces>| sweep(swept(of.0)));
}

/// All traces of an agent but the newest [`limit::TRACES_MAX`].
pub(crate) fn swept(agent: AgentId) -> Sweeping {
    Sweeping::of(Rows::AllButLast(trace_prefix(agent), limit::TRACES_MAX))
}
