//! An hour of mixed load, and whether memory grows meanwhile: `AGENTSVC_SOAK_MINUTES=60 cargo bench --bench all -- soak`.
//!
//! A dozen clients, each with agents of its own, do so many things a second in all, whatever the daemon takes for
//! them: reads, messages with and without tools, streams that are read or left, WebSocket chats, agents and sessions
//! that come and go, triggers, schedules, memory. Once a minute a snapshot is taken and deleted. The mix stands in
//! `work.rs`. Every answer is checked; one that is not as it must be fails the run, a 5xx before all.
//!
//! **What must grow is kept from growing**, so that what is left to grow is a leak. Nothing lives for ever: a session
//! is reset after [`agents::MESSAGES_MAX`] messages, an agent killed and another one made in its place after
//! [`agents::RESETS_MAX`] resets, and with it go its sessions, traces, memory, triggers and schedules; a client's
//! triggers and schedules replace each other; memory is written under a few keys again and again. What stays by design
//! is on the disk: the audit trail, usage events, the input log; the size of the store is told and not judged. Bounded
//! memory (caches, log lines of agents, memtables) fills up in the first quarter of the time, which is warm-up and not
//! judged.
//!
//! What is judged is the slope of a line through the samples by least squares, with its 95 % interval
//! (`measure/slope.rs`). It counts as growth when the whole interval lies above zero.
//!
//! `AGENTSVC_SOAK_MINUTES` (60), `AGENTSVC_SOAK_RATE` (60 a second), `AGENTSVC_SOAK_SEED` (1). A line is printed each
//! minute, all samples go to the file that `AGENTSVC_SOAK_SAMPLES` names, as CSV. Ends with 1 when a row is missed.

mod agents;
mod samples;
mod tally;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::rows::Verdict;
use crate::measure::slope::{self, Slope};
use crate::measure::{Row, UNLIMITED, cpu_seconds, default_model, goals, head, size};
use crate::support::daemon::{Daemon, text};
use crate::support::model_server::{ModelServer, Received, Reply};
use samples::{Sample, Samples};
use serde_json::json;
use tally::Tally;
use work::Worker;

/// Clients.
const WORKERS: usize = 12;
/// From one sample to the next.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// From one snapshot to the next.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(60);
/// Of the time, what is warm-up: one part in so many.
const WARM_UP_PART: u32 = 4;
/// From one printed line to the next.
const TELL_EVERY: Duration = Duration::from_secs(60);

pub(crate) fn main() -> ExitCode {
    slope::check();
    // Fewer than six give too few samples for a slope.
    let minutes = size("AGENTSVC_SOAK_MINUTES", 60, 6);
    let rate = size("AGENTSVC_SOAK_RATE", 60, 60);
    let seed = size("AGENTSVC_SOAK_SEED", 1, 1) as u64;
    let time = Duration::from_secs(minutes as u64 * 60);
    let model = ModelServer::forgetful();
    model.respond(answer);
    let daemon = Daemon::with(&format!("{UNLIMITED}{}", default_model(&model.base_url())));
    println!("soak: {minutes} minutes, {rate} a second, seed {seed}, pid {}", daemon.pid());

    let tally = Arc::new(Tally::default());
    let begun = Instant::now();
    let pace = Duration::from_secs(1) * WORKERS as u32 / rate as u32;
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (client, tally) = (daemon.client(), Arc::clone(&tally));
            let (first, until) = (begun + pace * number as u32 / WORKERS as u32, begun + time);
            thread::spawn(move || Worker::new(client, tally, number, seed).run(first, pace, until))
        })
        .collect();
    let samples = watch(&daemon, &tally, begun, time);
    for worker in workers {
        worker.join().expect("no client panics");
    }
    report(&daemon, &tally, &samples, begun, time)
}

/// The model: uses tools when it is asked to, and says a sentence otherwise.
fn answer(request: &Received) -> Reply {
    let last = request.messages().last();
    let is_question = last.is_some_and(|message| message["role"] == "user");
    if is_question && request.last_user().contains(work::TOOLS_PLEASE) {
        let note = json!({ "key": "note", "value": { "seen": request.messages().len() } }).to_string();
        return Reply::calls(&[("call-1", "system_time", "{}"), ("call-2", "memory_store", &note)]);
    }
    Reply::text("It is what it was before, and nothing more was found when everything had been looked at once again.")
}

/// Samples, snapshots and a line each minute, until the time is over.
fn watch(daemon: &Daemon, tally: &Tally, begun: Instant, time: Duration) -> Samples {
    let mut samples = Samples::new();
    let (mut snapshot, mut line) = (SNAPSHOT_EVERY, Duration::ZERO);
    println!("{}", Sample::HEAD);
    while begun.elapsed() < time {
        let now = begun.elapsed();
        if now >= snapshot {
            snapshot += SNAPSHOT_EVERY;
            take_snapshot(daemon, tally);
        }
        let sample = Sample::of(daemon, now, tally);
        samples.add(sample);
        if now >= line {
            line += TELL_EVERY;
            println!("{}", sample.line());
        }
        thread::sleep(SAMPLE_EVERY.saturating_sub(begun.elapsed() - now));
    }
    samples
}

/// Takes a snapshot and deletes it.
fn take_snapshot(daemon: &Daemon, tally: &Tally) {
    let taken = daemon.post("/api/world/snapshots", &json!({}));
    tally.count("snapshot", &taken, &[201]);
    if taken.status == 201 {
        let path = format!("/api/world/snapshots/{}", text(&taken.expect(201)["id"]));
        tally.count("snapshot", &daemon.delete(&path), &[200]);
    }
}

fn report(daemon: &Daemon, tally: &Tally, samples: &Samples, begun: Instant, time: Duration) -> ExitCode {
    head("soak");
    let mut rows = Vec::new();
    let done = tally.done();
    let cpu = cpu_seconds(daemon.pid()) / begun.elapsed().as_secs_f64() * 100.0;
    let result = format!("{done} calls, {:.0}/s, {cpu:.1} % of a core", done as f64 / begun.elapsed().as_secs_f64());
    rows.push(Row::new("the load", result).beside(tally.kinds()));
    let late = tally.late();
    rows.push(Row::new("calls that began more than a second late", late.to_string()));
    rows.push(Row::new("answers with 5xx", tally.failures().to_string()).bound("none", tally.failures() == 0));
    let strange = tally.strange();
    rows.push(Row::new("other answers that must not be", strange.to_string()).bound("none", strange == 0));
    let from = time / WARM_UP_PART;
    let resident = growth(samples, from, |sample| sample.resident);
    let what = format!("resident memory over {} minutes behind {} of warm-up", minutes(time - from), minutes(from));
    rows.push(mebibytes(what, resident, |row, is_met| row.goal(&goals::SOAK, is_met)));
    let anonymous = growth(samples, from, |sample| sample.anonymous);
    let what = "of it memory without a file behind it".to_owned();
    rows.push(mebibytes(what, anonymous, |row, is_met| row.bound("0 within its noise", is_met)));
    let counts = [("open files", (|s| s.files) as fn(&Sample) -> f64), ("threads", |s| s.threads)];
    for (what, of) in counts {
        let line = growth(samples, from, of);
        let result = line.map_or_else(
            || "too short".to_owned(),
            |line| format!("mean {:.1}, {:+.2} +- {:.2} an hour", line.mean, line.slope, line.noise),
        );
        rows.push(Row::new(what, result).bound("0 within its noise", line.is_some_and(|line| line.is_flat())));
    }
    let store = growth(samples, from, |sample| sample.store);
    rows.push(mebibytes("the home on the disk".to_owned(), store, |row, _| row));
    rows.push(Row::new("what lives: behind the warm-up, at the end", samples.lives(from)));
    let is_good = rows.iter().all(|row| row.verdict != Verdict::Missed);
    rows.into_iter().for_each(Row::print);
    tally.examples().iter().for_each(|example| println!("{example}"));
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn minutes(time: Duration) -> u64 {
    time.as_secs() / 60
}

/// The line through what `of` gives, behind the warm-up; its time is in hours.
fn growth(samples: &Samples, from: Duration, of: impl Fn(&Sample) -> f64) -> Option<Slope> {
    let points: Vec<_> = samples.since(from).map(|sample| (sample.at.as_secs_f64() / 3_600.0, of(sample))).collect();
    Slope::of(&points)
}

fn mebibytes(what: String, line: Option<Slope>, judged: impl Fn(Row, bool) -> Row) -> Row {
    let Some(line) = line else { return judged(Row::new(what, "too short"), false) };
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let (mean, slope, noise) = (mib(line.mean), mib(line.slope), mib(line.noise));
    judged(Row::new(what, format!("mean {mean:.1} MiB, {slope:+.2} +- {noise:.2} MiB an hour")), line.is_flat())
}
