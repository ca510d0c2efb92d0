//! What a run reads of the memory. A run has place for some pages only; the next one goes on behind them, so that each entry is
//! seen over several runs.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::auto_dream::{Dream, DreamId, DreamOutcome, DreamRun};
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::{AgentId, Refusal, TurnId};

use super::begin::change_dream;
use super::{error_codes, limits};
use crate::config::Settings;
use crate::config::auto_dream::AutoDreamSettings;
use crate::kernel::command::{Answer, Command, Place, command};
use crate::kernel::entities::state;

/// Calls of a run for each page: one reads it, others change what it shows.
const CALLS_PER_PAGE: u32 = 3;

/// Reads where the run of an agent began to read.
#[derive(Clone, Copy, Debug)]
pub struct GetDreamPlace {
    /// The agent.
    pub agent: AgentId,
    /// The turn that asks.
    pub turn: TurnId,
}

/// Where a run began to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DreamPlace {
    /// Behind this entry; `None` for the first one.
    pub from: Option<MemoryEntryId>,
}

impl Command for GetDreamPlace {
    /// `None` when the turn is no run.
    type Reply = Option<DreamPlace>;
    const NAME: &'static str = "get_dream_place";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::Id(|it| it.agent.0);

    fn run(self, world: &mut World) -> Answer<Self::Reply> {
        Answer::read(run_of(world, self.agent, self.turn).map(|run| DreamPlace { from: run.from }))
    }
}

fn run_of(world: &World, agent: AgentId, turn: TurnId) -> Option<&DreamRun> {
    state::<Dream>(world, DreamId::from(agent))?.run.as_ref().filter(|run| run.turn == turn)
}

/// A run reads a page. Says whether it may read the next one; the same page read again changes nothing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NoteDreamPage {
    /// The agent.
    pub agent: AgentId,
    /// The turn of the run.
    pub turn: TurnId,
    /// Behind which entry the page begins.
    pub after: Option<MemoryEntryId>,
    /// Behind which entry the next one begins; `None` where there is none.
    pub next: Option<MemoryEntryId>,
}

command! {
    write "note_dream_page" NoteDreamPage => bool, Id(|it| it.agent.0), |it, world|
        Answer::stored(note(world, it))
}

fn note(world: &mut World, NoteDreamPage { agent, turn, after, next }: NoteDreamPage) -> Result<bool, Refusal> {
    let run = run_of(world, agent, turn).ok_or_else(|| {
        let text = "the agent does not consolidate its memory in this turn";
        Refusal::of(error_codes::DREAM_NOT_RUNNING, text.to_owned())
    })?;
    let mut read = run.read;
    // What was read before is read again: a second time with untrusted entries, or after a crash.
    let is_new = !read.is_whole && (read.pages == 0 || next.is_none() || next > read.next);
    if is_new {
        (read.pages, read.last, read.next, read.is_whole) = (read.pages + 1, after, next, next.is_none());
        change_dream(world, DreamId::from(agent), |dream| {
            if let Some(run) = &mut dream.run {
                run.read = read;
            }
        });
    }
    let has_place = read.pages < pages_max(&world.resource::<Settings>().auto_dream);
    Ok(next.is_some() && (has_place || read.is_whole || next < read.next))
}

/// Pages that a run may read: each is sent again with every later call, so the tokens grow with the square of the pages.
fn pages_max(settings: &AutoDreamSettings) -> u32 {
    let by_calls = Some(settings.max_calls_per_run).filter(|calls| *calls > 0).map(|calls| calls / CALLS_PER_PAGE);
    let by_tokens = Some(settings.max_tokens_per_run).filter(|tokens| *tokens > 0);
    let by_tokens =
        by_tokens.map(|tokens| u32::try_from((tokens / limits::DREAM_PAGE_TOKENS).isqrt()).unwrap_or(u32::MAX));
    by_calls.into_iter().chain(by_tokens).fold(limits::DREAM_PAGES_MAX, u32::min).max(1)
}

/// Behind which entry the next run begins, when a run that began behind `before` has ended like this.
pub(super) fn next_from(run: &DreamRun, outcome: DreamOutcome) -> Option<MemoryEntryId> {
    let read = &run.read;
    let behind = if read.is_whole { None } else { read.next };
    match outcome {
        _ if read.pages == 0 => run.from,
        DreamOutcome::Completed => behind,
        // What it read last was perhaps not worked on. But no page is read for ever.
        _ if read.last > run.from => read.last,
        _ => behind,
    }
}
