//! What a run reads of the memory: first what is trusted, then all. It has place for some pages only, half of them for each
//! reading; the next run goes on behind them, so that each entry is seen over several runs.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::auto_dream::{Dream, DreamId, DreamOutcome, DreamPass, DreamRead, DreamRun};
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

/// Reads where the reading of the run of an agent begins: the first one, or the second one once the first has ended.
#[derive(Clone, Copy, Debug)]
pub struct GetDreamPlace {
    /// The agent.
    pub agent: AgentId,
    /// The turn that asks.
    pub turn: TurnId,
}

/// Where a reading begins.
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
        let (Self { agent, turn }, world) = (self, &*world);
        let place = |run: &DreamRun| DreamPlace {
            from: if run.read.has_ended { again_from(world, agent, &run.read) } else { run.from },
        };
        Answer::read(run_of(world, agent, turn).map(place))
    }
}

/// Where the second reading of a run begins: behind what that of an earlier run has read.
fn again_from(world: &World, agent: AgentId, read: &DreamRead) -> Option<MemoryEntryId> {
    if read.again.pages > 0 {
        return read.again.from;
    }
    let dream = state::<Dream>(world, DreamId::from(agent))?;
    begins(&dream.again, dream.last.as_ref().map_or(DreamOutcome::Completed, |end| end.outcome))
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
    let (mut read, most) = (run.read, pages_max(&world.resource::<Settings>().auto_dream));
    let page = (after, next);
    let goes_on = if read.has_ended {
        let from = again_from(world, agent, &read);
        read_again(&mut read.again, page, from, most.saturating_sub(read.pages).max(1))
    } else {
        read_first(&mut read, page, most.div_ceil(2))
    };
    if read != run.read {
        change_dream(world, DreamId::from(agent), |dream| {
            if let Some(run) = &mut dream.run {
                run.read = read;
            }
            if read.again.pages > 0 {
                dream.again = read.again;
            }
        });
    }
    Ok(goes_on)
}

/// Behind which entry a page begins, and behind which the next one; `None` where there is none.
type Page = (Option<MemoryEntryId>, Option<MemoryEntryId>);

/// A page of the first reading, of at most so many. Says whether it goes on.
fn read_first(read: &mut DreamRead, (after, next): Page, most: u32) -> bool {
    // What was read before is read again after a crash.
    if !read.is_whole && (read.pages == 0 || next.is_none() || next > read.next) {
        (read.pages, read.last, read.next, read.is_whole) = (read.pages + 1, after, next, next.is_none());
    }
    let goes_on = next.is_some() && (read.pages < most || next < read.next);
    read.has_ended = !goes_on;
    goes_on
}

/// The same of the second reading, which begins behind `from`.
fn read_again(read: &mut DreamPass, (after, next): Page, from: Option<MemoryEntryId>, most: u32) -> bool {
    if read.pages == 0 && after != from {
        // A page of the first reading, read again.
        return false;
    }
    if !read.is_whole && (read.pages == 0 || next.is_none() || next > read.next) {
        *read = DreamPass { pages: read.pages + 1, from, last: after, next, is_whole: next.is_none() };
    }
    next.is_some() && (read.pages < most || next < read.next)
}

/// Pages that a run may read: each is sent again with every later call, so the tokens grow with the square of the pages.
fn pages_max(settings: &AutoDreamSettings) -> u32 {
    let by_calls = Some(settings.max_calls_per_run).filter(|calls| *calls > 0).map(|calls| calls / CALLS_PER_PAGE);
    let by_tokens = Some(settings.max_tokens_per_run).filter(|tokens| *tokens > 0);
    let by_tokens =
        by_tokens.map(|tokens| u32::try_from((tokens / limits::DREAM_PAGE_TOKENS).isqrt()).unwrap_or(u32::MAX));
    by_calls.into_iter().chain(by_tokens).fold(limits::DREAM_PAGES_MAX, u32::min).max(1)
}

/// Behind which entry the next run begins, when this one has ended like this.
pub(super) fn next_from(run: &DreamRun, outcome: DreamOutcome) -> Option<MemoryEntryId> {
    let DreamRead { pages, last, next, is_whole, .. } = run.read;
    begins(&DreamPass { pages, from: run.from, last, next, is_whole }, outcome)
}

/// Behind which entry the next reading begins, when the run of this one has ended like this.
fn begins(read: &DreamPass, outcome: DreamOutcome) -> Option<MemoryEntryId> {
    let behind = if read.is_whole { None } else { read.next };
    match outcome {
        _ if read.pages == 0 => read.from,
        DreamOutcome::Completed => behind,
        // What it read last was perhaps not worked on. But no page is read for ever.
        _ if read.last > read.from => read.last,
        _ => behind,
    }
}
