//! `replay`: lives through steps of the world again from the input log, compares, shows and rebuilds (docs/replay.md).

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::Waiting;
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::{Home, private_file};
use crate::kernel::settings::DataDir;
use crate::kernel::store::Store;
use crate::kernel::store::exchange::is_store;
use crate::kernel::store::rows::RowWriter;
use crate::replay::inputs;
use crate::replay::inputs::folder_of;
use crate::replay::report::{DifferingRecord, RecordDifference, Report, Seam, StepDifference, StepShown};
use crate::replay::time_travel::Past;
use crate::replay::{Range, replay};

/// Options of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The first step to compare [default: the first of the newest epoch]
    #[arg(long, value_name = "STEP")]
    from: Option<u64>,
    /// The last step [default: the newest in the log]
    #[arg(long, value_name = "STEP")]
    to: Option<u64>,
    /// Show the inputs and stored records of this step
    #[arg(long, value_name = "STEP")]
    at: Option<u64>,
    /// Write the world as of --to to this rows file; the daemon must be stopped
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with_all = ["from", "at"])]
    out: Option<PathBuf>,
}

impl Run for Replay {
    fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        let configured = context.settings_or_default(&home).get::<DataDir>();
        let data_dir = configured.0.as_deref();
        let folder = folder_of(&home.data_dir(data_dir));
        if let (Some(out), Some(to)) = (&self.out, self.to) {
            return write_past(context, &folder, to, &home.world_dir(data_dir), out);
        }
        let kept = closed_store(&home, data_dir);
        // A step that is only to be shown is the last one that has to run.
        let to = self.to.or(self.at.filter(|_| self.from.is_none()));
        let range = Range { from: self.from.or(self.at.filter(|_| self.to.is_none())), to, at: self.at };
        let (report, _) = {
            let _waiting = Waiting::on("replaying");
            replay(&folder, range, kept.as_ref()).map_err(told)?
        };
        if context.json() {
            output::json(&report)?;
        } else {
            output::print(&render(&report))?;
        }
        if report.equal {
            return Ok(());
        }
        let why = match &report.stopped {
            Some(why) => why.clone(),
            None if report.differing == 0 => lost(&report),
            None => "the replay differs from the log".to_owned(),
        };
        Err(Error::Failed(why))
    }
}

fn told(error: inputs::Error) -> Error {
    match error {
        inputs::Error::NotKept(text) => Error::NotFound(text),
        error => Error::Failed(error.to_string()),
    }
}

/// The store, when no daemon has it open: there are the values that the log keeps only hashes of.
fn closed_store(home: &Home, data_dir: Option<&Path>) -> Option<Store> {
    let path = home.world_dir(data_dir);
    // Opening one that is not there would make it.
    if home.address().is_some() || !is_store(&path) {
        return None;
    }
    Store::open(path).ok()
}

fn write_past(context: &Context, folder: &Path, step: u64, world: &Path, out: &Path) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::Failed(format!("{}: {error}", out.display()));
    if !is_store(world) {
        return Err(Error::NotFound(format!("no store at {}", world.display())));
    }
    let store = Store::open(world).map_err(|error| match error {
        crate::kernel::store::Error::InUse { .. } => {
            let text = format!(
                "the daemon is using the store; create a snapshot of step {step} instead: POST /api/world/snapshots \
                 {{\"step\": {step}}}"
            );
            Error::Conflict(text)
        }
        error => Error::Failed(error.to_string()),
    })?;
    let mut past = Past::at(folder, step, &store.view()).map_err(told)?;
    let file = private_file().write(true).create_new(true).open(out).map_err(failed)?;
    let written: Result<_, Error> = (|| {
        let encoder = zstd::Encoder::new(std::io::BufWriter::new(file), 3).map_err(failed)?;
        let mut writer = RowWriter::new(encoder).map_err(failed)?;
        for row in &mut past {
            let row = row.map_err(|error| Error::Failed(error.to_string()))?;
            writer.push(row.space, &row.key, &row.value).map_err(failed)?;
        }
        let (encoder, totals) = writer.finish().map_err(failed)?;
        let mut file = encoder.finish().map_err(failed)?;
        file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed)?;
        Ok(totals)
    })();
    if written.is_err() {
        let _removed = std::fs::remove_file(out);
    }
    let totals = written?;
    let lost = past.lost();
    if context.json() {
        return output::json(&serde_json::json!({
            "step": past.step.number,
            "at": past.step.at.to_string(),
            "world_hash": past.report.world_hash,
            "rows": totals.world + totals.content,
            "lost": lost,
        }));
    }
    output::print(&format!(
        "the world at step {} of {} is in {}: {} records and {} rows of content\nworld hash {}\n\
         no longer available: {} erased conversations, {} overwritten texts\n",
        past.step.number,
        past.step.at,
        out.display(),
        totals.world,
        totals.content,
        past.report.world_hash,
        lost.logs,
        lost.overwritten
    ))
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    for epoch in &report.epochs {
        if let Some(seam) = epoch.seam {
            text += &render_seam(seam, epoch.begun_by.as_deref());
        }
        let end = epoch.end.as_deref().map_or(String::new(), |end| format!(", ends: {end}"));
        text += &format!("epoch {} behind step {} (release {}){end}\n", epoch.name, epoch.after, epoch.release);
    }
    text += &format!(
        "steps {} to {}: {} compared ({} commands, {} outcomes, {} beats)\n",
        report.from, report.to, report.steps, report.commands, report.outcomes, report.beats
    );
    text += &format!("world at {}: {} records, hash {}\n", report.at, report.records, report.world_hash);
    if let Some(shown) = &report.shown {
        text += &render_step(shown);
    }
    if let Some(first) = &report.first_difference {
        text += &render_difference(first);
        text += &format!("{} steps differ, in {} records\n", report.differing, report.differing_records.len());
        for record in &report.differing_records {
            text += &render_record(record);
        }
    }
    match &report.stopped {
        Some(why) => text + &format!("incomplete: {why}\n"),
        None if report.lost_steps > 0 => text + &format!("incomplete: {}\n", lost(report)),
        None if report.equal => text + "equal\n",
        None => text + "NOT equal\n",
    }
}

fn lost(report: &Report) -> String {
    format!("{} steps are not in the log", report.lost_steps)
}

/// A line between two epochs that do not continue each other.
fn render_seam(seam: Seam, begun_by: Option<&str>) -> String {
    let what = match seam {
        Seam::OtherWorld => "the world was replaced by a restore".to_owned(),
        Seam::Lost { from, to } => format!("steps {from} to {to} are not in the log"),
        Seam::Renumbered { after } => format!("another store; step numbers continue after {after}"),
    };
    let begun_by = begun_by.map_or(String::new(), |input| format!("; what follows began with {input}"));
    format!("--- {what}{begun_by}\n")
}

/// A record that differs, and how it does in the end.
fn render_record(record: &DifferingRecord) -> String {
    let DifferingRecord { space, kind, id, first, steps, fields } = record;
    let mut text = format!("  {space} {kind} {id}: in {steps} steps, the first is {first}\n");
    for field in fields.iter().flatten() {
        text += &format!("    {} (stored -> replayed): {} -> {}\n", named(&field.field), field.before, field.after);
    }
    text
}

fn render_step(shown: &StepShown) -> String {
    let mut text = format!("step {} at {}\n", shown.step, shown.at);
    for input in &shown.inputs {
        text += &format!("  took in  {input}\n");
    }
    for record in &shown.records {
        let what = match (record.before.is_null(), record.after.is_null()) {
            (_, true) => "removed",
            (true, false) => "stored",
            (false, false) => "changed",
        };
        text += &format!("  {what}  {} {} {}\n", record.space, record.kind, record.id);
        for field in &record.fields {
            text += &format!("    {}: {} -> {}\n", named(&field.field), field.before, field.after);
        }
    }
    text
}

fn render_difference(first: &StepDifference) -> String {
    let mut text = format!("step {} at {} differs\n", first.step, first.at);
    for input in &first.inputs {
        text += &format!("  took in  {input}\n");
    }
    if let Some(number) = first.number_now {
        text += &format!("  its number is {number} now\n");
    }
    for RecordDifference { space, kind, id, difference, fields, against_log } in &first.records {
        text += &format!("  {difference}  {space} {kind} {id}\n");
        let sides = if *against_log { "then -> now" } else { "before the step -> now" };
        for field in fields {
            text += &format!("    {} ({sides}): {} -> {}\n", named(&field.field), field.before, field.after);
        }
    }
    text
}

fn named(field: &str) -> &str {
    if field.is_empty() { "all of it" } else { field }
}
