//! Lives through a range of steps again and compares each with what the log says it did.
//!
//! | part | what it does |
//! |------|--------------|
//! | this | lives through a range of steps and compares |
//! | [`report`] | what that tells |
//! | [`travel`] | the rows of the world at a step, for a restore or a fork |

pub(crate) mod cli;
pub mod inputs;
pub mod report;
#[cfg(test)]
mod tests;
pub mod time_travel;

use std::path::Path;

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::kernel::timings::{BoxedSystem, Override};
use agentsvc_systems::replay::{
    Arrival, Change, Entry, Malformed, Mark, Played, Player, Rows, compared, quick_hash, shown, world_hash,
};
use serde_json::Value;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::store::Store;
use crate::replay::inputs::Error;
use crate::replay::inputs::folder::{EpochFolder, epochs};
use crate::replay::inputs::read::{End, Entries, newest};
use crate::replay::report::{
    DifferingRecord, EpochReport, RecordDifference, RecordShown, Report, Seam, StepDifference, StepShown,
};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "replay",
    uses: &["snapshot", "agent", "audit", "session", "turn", "proactive_memory", "history"],
    commands: &[Subcommand::new::<cli::Replay>(
        17,
        "replay",
        "Re-run recorded steps and compare the results; works while the daemon runs",
    )
    .examples(&[
        Example::new("replay", "Re-run the newest recorded steps and compare"),
        Example::new("replay --from 100 --to 200", "Only these steps"),
    ])
    .under(Group::Operations)],
    ..Domain::EMPTY
};

/// What to live through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    /// The first step to compare; `None` is the first of the newest epoch. Those before it in its epoch run too.
    pub from: Option<u64>,
    /// The last step; `None` is the newest that was written.
    pub to: Option<u64>,
    /// The step to show.
    pub at: Option<u64>,
}

/// Where values of the log may still be found, which keeps only their hashes.
pub type Kept<'a> = Option<&'a Store>;

/// Lives through `range` and compares. `kept` is the store when nobody else has it open.
///
/// # Errors
/// The inputs cannot be read, or there are none of the range.
pub fn replay(inputs: &Path, range: Range, kept: Kept<'_>) -> Result<(Report, Player), Error> {
    replay_cast(inputs, range, kept, &mut |_, system: BoxedSystem| system)
}

/// The same with the systems that `replace` chooses: what would have been different if one of them were another?
pub fn replay_cast(
    inputs: &Path,
    range: Range,
    kept: Kept<'_>,
    replace: &mut Override<'_>,
) -> Result<(Report, Player), Error> {
    let all = epochs(inputs)?;
    let first = beginning(&all, range.from.or(range.at).or(range.to.filter(|_| range.from.is_none())))?;
    let mut run = Run { range, kept, report: Report::default(), differing: Vec::new() };
    run.report.from = range.from.unwrap_or(all[first].after + 1);
    let mut player: Option<Player> = None;
    for folder in &all[first..] {
        if player.is_some() && range.to.is_some_and(|to| run.report.to >= to) {
            break;
        }
        let (epoch, release) = folder.epoch()?;
        if !folder.has_base() {
            let name = folder.name();
            let text = format!("the first rows of epoch {name} were not written: the process died too early");
            match player {
                None => return Err(Error::NotKept(text)),
                Some(_) => run.report.stopped = Some(text),
            }
            break;
        }
        let rows = folder.base()?;
        let name = folder.name();
        let seam = player.as_ref().and_then(|before| seam(before, run.report.to, folder.after, &rows));
        let continues = player.as_ref().map(|_| seam.is_none());
        if let Some(Seam::Lost { from, to }) = seam {
            run.report.lost_steps += (to + 1).saturating_sub(from.max(run.report.from));
            if range.to.is_some_and(|last| last <= to) {
                run.report.stopped = Some(format!("steps {from} to {to} are not in the log"));
                break;
            }
        }
        let restored = Player::with_systems(&epoch, rows, replace);
        let mut next = restored.map_err(|source| Error::Restore { epoch: name.clone(), source })?;
        run.report.to = folder.after;
        run.report.at = epoch.after.at;
        let after = folder.after;
        run.report.epochs.push(EpochReport { name, release, after, end: None, continues, seam, begun_by: None });
        let end = run.epoch(folder, &mut next);
        player = Some(next);
        if let Some(report) = run.report.epochs.last_mut() {
            report.end = match end? {
                End::Clean => None,
                End::Torn => Some("torn".to_owned()),
                End::Gap(why) => Some(why),
            };
        }
        if run.report.stopped.is_some() {
            break;
        }
    }
    let player = player.ok_or_else(|| Error::NotKept("no inputs are recorded for this range".to_owned()))?;
    Ok((run.finish(&player), player))
}

/// Why the epoch that begins with `rows` behind step `after` does not continue the one that ended as `before` with step
/// `to`; `None` when it does.
fn seam(before: &Player, to: u64, after: u64, rows: &Rows) -> Option<Seam> {
    if to < after {
        return Some(Seam::Lost { from: to + 1, to: after });
    }
    if after < to {
        return Some(Seam::Renumbered { after });
    }
    let began = world_hash(rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())));
    (before.hash() != began).then_some(Seam::OtherWorld)
}

/// The newest epoch that has `step`; the newest of all when none is asked for.
fn beginning(all: &[EpochFolder], step: Option<u64>) -> Result<usize, Error> {
    let nothing = || Error::NotKept("the input log is empty".to_owned());
    let newest_of_all = all.len().checked_sub(1).ok_or_else(nothing)?;
    let Some(step) = step else { return Ok(newest_of_all) };
    for (at, folder) in all.iter().enumerate().rev() {
        if folder.after < step && step <= newest(folder)? {
            return Ok(at);
        }
    }
    let (oldest, last) = (all[0].after + 1, newest(&all[newest_of_all])?);
    Err(Error::NotKept(format!("no inputs are recorded for step {step}; steps {oldest} to {last} are available")))
}

/// A replay under way.
struct Run<'a> {
    range: Range,
    kept: Kept<'a>,
    report: Report,
    /// The keys of [`Report::differing_records`], with whether they are content.
    differing: Vec<(bool, Vec<u8>)>,
}

impl Run<'_> {
    /// Feeds the entries of one epoch, up to the end of the range.
    fn epoch(&mut self, folder: &EpochFolder, player: &mut Player) -> Result<End, Error> {
        let mut entries = Entries::of(folder)?;
        while self.range.to.is_none_or(|to| self.report.to < to) {
            let Some(entry) = entries.next_entry()? else { break };
            match player.feed(&entry) {
                Ok(played) => self.note(&entry, &played),
                Err(error) => {
                    self.report.stopped = Some(format!("the step behind {}: {error}", self.report.to));
                    break;
                }
            }
        }
        Ok(entries.end().cloned().unwrap_or(End::Clean))
    }

    fn note(&mut self, entry: &Entry<'_>, played: &Played) {
        let (step, report) = (&entry.step, &mut self.report);
        report.to = step.number;
        report.at = step.now;
        if let Some(epoch) = report.epochs.last_mut().filter(|epoch| epoch.seam.is_some() && epoch.begun_by.is_none()) {
            epoch.begun_by = inputs_of(entry).into_iter().find(|input| input != BEAT);
        }
        if self.range.at == Some(step.number) && step.stored {
            report.shown = Some(step_shown(entry, played));
        }
        // The step that the range begins with is in the first epoch.
        if report.epochs.len() == 1 && step.number + u64::from(!step.stored) < report.from {
            return;
        }
        report.steps += 1;
        report.numbered += u64::from(step.stored);
        report.beats += entry.quiet.len() as u64 + u64::from(step.beat);
        for arrival in &step.arrivals {
            match arrival {
                Arrival::Command(_) => report.commands += 1,
                Arrival::Outcome(_) => report.outcomes += 1,
                Arrival::Beat => report.beats += 1,
                Arrival::Time(_) => {}
            }
        }
        if !played.is_equal() {
            report.differing += 1;
            if report.first_difference.is_none() {
                report.first_difference = Some(difference(entry, played, self.kept));
            }
            self.count_records(entry.step.number, played);
        }
    }

    /// Counts the records that a step left otherwise.
    fn count_records(&mut self, step: u64, played: &Played) {
        let mut keys: Vec<_> =
            played.missing.iter().chain(&played.surplus).map(|mark| (mark.is_content, &mark.key)).collect();
        keys.sort_unstable();
        keys.dedup();
        for (is_content, key) in keys {
            let known = self.differing.iter().position(|(content, other)| *content == is_content && other == key);
            match known {
                Some(at) => self.report.differing_records[at].steps += 1,
                None if self.differing.len() < limit::REPLAY_RECORDS_MAX => {
                    self.differing.push((is_content, key.clone()));
                    let (kind, id) = kind_and_id(key);
                    let space = space_of(is_content);
                    let record = DifferingRecord { space, kind, id, first: step, steps: 1, fields: None };
                    self.report.differing_records.push(record);
                }
                None => {}
            }
        }
    }

    /// Compares the records that differed with what is stored, when that is as new as what was lived through.
    fn compare_with_store(&mut self, player: &Player) {
        let Some(view) = self.kept.map(Store::view) else { return };
        if !view.step().is_ok_and(|step| step.number == self.report.to) {
            return;
        }
        for ((is_content, key), record) in self.differing.iter().zip(&mut self.report.differing_records) {
            let (space, now) = if *is_content {
                let Some(now) = player.content().get(key) else { continue };
                (Space::Content, now.as_deref())
            } else {
                (Space::World, player.world().get(key).map(Vec::as_slice))
            };
            record.fields = view.get(space, key).ok().map(|then| compared(then.as_deref(), now));
        }
    }

    fn finish(mut self, player: &Player) -> Report {
        self.compare_with_store(player);
        let report = &mut self.report;
        report.world_hash = hex(&player.hash());
        report.records = player.world().len() as u64;
        if let Some(to) = self.range.to
            && report.to < to
            && report.stopped.is_none()
        {
            report.stopped = Some(format!("the newest step that was written is {}", report.to));
        }
        report.equal = report.differing == 0 && report.lost_steps == 0 && report.stopped.is_none();
        self.report
    }
}

/// How a beat is shown among inputs.
const BEAT: &str = "beat";

fn inputs_of(entry: &Entry<'_>) -> Vec<String> {
    let step = &entry.step;
    let cut = |text: String| match text.char_indices().nth(limit::REPLAY_SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    let mut inputs = Vec::new();
    if let Some(before) = step.set_back_from {
        inputs.push(format!("the clock is set back from {before}"));
    }
    if step.beat {
        inputs.push(BEAT.to_owned());
    }
    inputs.extend(step.arrivals.iter().map(|arrival| match arrival {
        Arrival::Command(command) => {
            let words = command.shown().unwrap_or_else(|error: Malformed| error.to_string());
            cut(format!("{} from {}: {words}", command.name, command.actor))
        }
        Arrival::Outcome(outcome) => cut(format!("outcome: {outcome:?}")),
        Arrival::Time(now) => format!("time passes to {now}"),
        Arrival::Beat => BEAT.to_owned(),
    }));
    inputs
}

const fn space_of(is_content: bool) -> &'static str {
    if is_content { "content" } else { "world" }
}

fn kind_and_id(key: &[u8]) -> (char, String) {
    let (kind, id) = key.split_first().map_or((0, key), |(kind, id)| (*kind, id));
    let known = uuid::Uuid::from_slice(id).map(|id| id.to_string());
    (char::from(kind), known.unwrap_or_else(|_| hex(id)))
}

fn step_shown(entry: &Entry<'_>, played: &Played) -> StepShown {
    let value = |bytes: &Option<Vec<u8>>| bytes.as_deref().map_or(Value::Null, shown);
    let records = played.changes.iter().map(|change| {
        let (kind, id) = kind_and_id(&change.key);
        RecordShown {
            space: space_of(change.space == Space::Content),
            kind,
            id,
            before: value(&change.before),
            after: value(&change.after),
            fields: compared(change.before.as_deref(), change.after.as_deref()),
        }
    });
    StepShown {
        step: entry.step.number,
        at: entry.step.now,
        inputs: inputs_of(entry),
        quiet_beats: entry.quiet.len(),
        records: records.collect(),
    }
}

fn difference(entry: &Entry<'_>, played: &Played, kept: Kept<'_>) -> StepDifference {
    let same = |a: &Mark, b: &Mark| a.key == b.key && a.is_content == b.is_content;
    let change_of = |mark: &Mark| {
        let is_it = |change: &&Change| change.key == mark.key && (change.space == Space::Content) == mark.is_content;
        played.changes.iter().find(is_it)
    };
    let in_log = played.missing.iter().map(|mark| {
        let other = played.surplus.iter().any(|surplus| same(mark, surplus));
        (mark, if other { "changed" } else { "missing" })
    });
    let only_now = played.surplus.iter().filter(|mark| !played.missing.iter().any(|missing| same(mark, missing)));
    let records = in_log.chain(only_now.map(|mark| (mark, "surplus"))).map(|(mark, difference)| {
        let (kind, id) = kind_and_id(&mark.key);
        let change = change_of(mark);
        let now = change.and_then(|change| change.after.as_deref());
        let then = value_of_then(mark, kept);
        let fields = match (&then, change) {
            (Some(then), _) => compared(Some(then), now),
            (None, Some(change)) => compared(change.before.as_deref(), now),
            (None, None) => Vec::new(),
        };
        RecordDifference { space: space_of(mark.is_content), kind, id, difference, fields, against_log: then.is_some() }
    });
    StepDifference {
        step: entry.step.number,
        number_now: played.number,
        at: entry.step.now,
        inputs: inputs_of(entry),
        records: records.collect(),
    }
}

/// The value that the log has the hash of, when the store still has it.
fn value_of_then(mark: &Mark, kept: Kept<'_>) -> Option<Vec<u8>> {
    let space = if mark.is_content { Space::Content } else { Space::World };
    let value = kept?.view().get(space, &mark.key).ok().flatten()?;
    (Some(quick_hash(&value)) == mark.hash).then_some(value)
}
