//! The world's share of the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_systems::kernel::metric::Sample;
use agentsvc_systems::kernel::timings::{TIMING_BOUNDS_NS, Timing};

use crate::kernel::world_loop::LoopStats;

impl Probe for LoopStats {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.counter("agentsvc_world_steps_total", "Steps of the world.", load(&self.steps));
        out.counter("agentsvc_world_commands_total", "Commands run or refused.", load(&self.commands));
        out.counter("agentsvc_world_outcomes_total", "Outcomes received.", load(&self.outcomes));
        let help = "Writes refused because the store backlog was full.";
        out.counter("agentsvc_world_writes_refused_total", help, load(&self.writes_refused));
        let help = "What waits until the store has caught up: 0 nothing, 1 triggers, schedules and workflows, 2 calls as well.";
        out.gauge("agentsvc_world_work_held", help, load(&self.held));
        out.counter("agentsvc_world_beats_total", "Ticks run.", load(&self.beats));
        out.counter("agentsvc_world_beats_missed_total", "Ticks skipped under load.", load(&self.beats_missed));
        self.step_time.gather("agentsvc_world_step_duration_seconds", "Duration of a step.", out);
        self.beat_time.gather("agentsvc_world_beat_duration_seconds", "Duration of the systems of a tick.", out);
        systems(&self.timings.lock(), out);
        out.counter("agentsvc_events_total", "Durable events.", load(&self.events));
        let mut before = "";
        // Copied, so that the world does not wait for the text.
        let samples = self.metrics.lock().all().to_vec();
        for Sample { metric, labels, value } in samples {
            if metric.name != before {
                out.family(metric.name, metric.help, metric.kind);
                before = metric.name;
            }
            let labels = labels.iter().filter(|(name, _)| !name.is_empty());
            let labels: Vec<_> = labels.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
            out.sample(metric.name, &labels.join(","), value);
        }
    }
}

/// Each system, with the stage that it runs in.
fn systems(timings: &[Timing], out: &mut MetricsText) {
    let name = "agentsvc_system_seconds";
    out.family(name, "Duration of one run of a system.", "histogram");
    let seconds = |ns: u64| ns as f64 / 1e9;
    for timing in timings {
        let labels = format!("system=\"{}\",stage=\"{}\"", timing.name, timing.stage);
        let mut seen = 0;
        for (bound, count) in TIMING_BOUNDS_NS.iter().zip(&timing.buckets) {
            seen += count;
            out.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{}\"", seconds(*bound)), seen);
        }
        out.sample(&format!("{name}_bucket"), &format!("{labels},le=\"+Inf\""), timing.runs);
        out.sample(&format!("{name}_sum"), &labels, seconds(timing.total_ns));
        out.sample(&format!("{name}_count"), &labels, timing.runs);
    }
}
