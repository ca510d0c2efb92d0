//! Counts of the HTTP server, and `/api/metrics` in the Prometheus text format. The rest of the daemon adds its own
//! through [`Probe`].

use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::route::Route;
use crate::http::table::Table;

/// Upper ends of the latency buckets, in microseconds; the last bucket has no end.
const BUCKETS_US: [u64; 11] =
    [100, 250, 1_000, 2_500, 10_000, 25_000, 100_000, 250_000, 1_000_000, 10_000_000, 60_000_000];

/// Adds what it knows to `/api/metrics`. Must not block.
pub trait Probe: Send + Sync + 'static {
    /// Writes the current values.
    fn gather(&self, out: &mut MetricsText);
}

/// The counts of the HTTP server, and the probes.
pub struct Metrics {
    table: &'static Table,
    /// One per route of the table, and one more for requests that match none.
    routes: Box<[RouteCounts]>,
    /// Requests whose answer has not been sent whole.
    pub(crate) in_flight: AtomicU64,
    /// Open connections.
    pub(crate) connections: AtomicU64,
    /// Connections taken since the start.
    pub(crate) accepted: AtomicU64,
    /// Connections sent away since the start because too many were open.
    pub(crate) turned_away: AtomicU64,
    /// Answers that were given up since the start because their clients did not read them.
    pub(crate) unread: Unread,
    probes: RwLock<Vec<Arc<dyn Probe>>>,
}

/// Answers that were given up because their clients did not read them, by what became of them.
#[derive(Default)]
pub(crate) struct Unread {
    /// HTTP/2 streams that were reset.
    pub(crate) streams: AtomicU64,
    /// Connections that were closed.
    pub(crate) connections: AtomicU64,
    /// WebSockets that were closed, or did not answer a ping.
    pub(crate) sockets: AtomicU64,
}

/// The counts of one route.
#[derive(Default)]
struct RouteCounts {
    /// Answers by class of status: 1xx to 5xx.
    statuses: [AtomicU64; 5],
    /// Answers by latency, not cumulative.
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Metrics {
    /// Counts of the routes of `table`, all zero.
    pub(crate) fn new(table: &'static Table) -> Self {
        Self {
            table,
            routes: std::iter::repeat_with(RouteCounts::default).take(table.routes().len() + 1).collect(),
            in_flight: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            unread: Unread::default(),
            probes: RwLock::default(),
        }
    }

    pub(crate) fn add_probe(&self, probe: Arc<dyn Probe>) {
        self.probes.write().push(probe);
    }

    /// Counts one answer of the route at `index`; `None` when no route matched. The time is that to the answer's
    /// first byte.
    pub(crate) fn count(&self, index: Option<usize>, status: StatusCode, took: Duration) {
        let Some(counts) = self.routes.get(index.unwrap_or(self.routes.len() - 1)) else { return };
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        counts.statuses[class].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|end| *end < us);
        counts.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        counts.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Writes the server's counts and what the probes know.
    pub(crate) fn render(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        out.gauge("agentsvc_http_requests_in_flight", "Requests in progress.", load(&self.in_flight));
        out.gauge("agentsvc_http_connections", "Open connections.", load(&self.connections));
        out.counter("agentsvc_http_connections_accepted_total", "Connections accepted.", load(&self.accepted));
        out.counter(
            "agentsvc_http_connections_refused_total",
            "Connections refused, or closed without having shown the API key, because too many were open.",
            load(&self.turned_away),
        );
        let name = "agentsvc_http_unread_total";
        out.family(name, "Answers given up because clients did not read them, by what was done.", "counter");
        let Unread { streams, connections, sockets } = &self.unread;
        for (what, count) in
            [("stream_reset", streams), ("connection_closed", connections), ("websocket_closed", sockets)]
        {
            out.sample(name, &format!("outcome=\"{what}\""), load(count));
        }
        out.family("agentsvc_http_requests_total", "Responses by route and status class.", "counter");
        self.each_route(|labels, counts| {
            for (class, count) in counts.statuses.iter().enumerate().filter(|(_, count)| load(count) > 0) {
                let labels = format!("{labels},status=\"{}xx\"", class + 1);
                out.sample("agentsvc_http_requests_total", &labels, load(count));
            }
        });
        let name = "agentsvc_http_request_duration_seconds";
        out.family(name, "Time to the first byte of the response.", "histogram");
        self.each_route(|labels, counts| {
            let mut total = 0;
            for (at, count) in counts.buckets.iter().enumerate() {
                total += load(count);
                let end = BUCKETS_US.get(at).map_or_else(|| "+Inf".to_owned(), |us| seconds(*us).to_string());
                out.sample(&format!("{name}_bucket"), &format!("{labels},le=\"{end}\""), total);
            }
            out.sample(&format!("{name}_sum"), labels, seconds(load(&counts.sum_us)));
            out.sample(&format!("{name}_count"), labels, total);
        });
        for probe in self.probes.read().iter() {
            probe.gather(out);
        }
    }

    /// Routes that have been called, with their labels.
    fn each_route(&self, mut visit: impl FnMut(&str, &RouteCounts)) {
        let labels = |route: &Route| format!("method=\"{}\",route=\"{}\"", route.verb.as_str(), route.path);
        let labels = self.table.routes().iter().map(labels).chain(["method=\"\",route=\"\"".to_owned()]);
        for (labels, counts) in labels.zip(&self.routes) {
            if counts.statuses.iter().any(|count| count.load(Ordering::Relaxed) > 0) {
                visit(&labels, counts);
            }
        }
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// Get metrics in the Prometheus text format, as far as they are written.
#[derive(Default)]
pub struct MetricsText {
    text: String,
}

impl MetricsText {
    /// A value that only grows; the name ends in `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "counter");
        self.sample(name, "", value);
    }

    /// A value that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, help, "gauge");
        self.sample(name, "", value);
    }

    /// Begins a family of samples of the type `kind`: `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// One sample; `labels` such as `state="Running",mode="Stable"`, or empty. Values of labels go through
    /// [`label_value`] unless they are constants of the program.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = match labels {
            "" => writeln!(self.text, "{name} {value}"),
            labels => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// What is written so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

/// `value` with what a label's value may not hold escaped.
#[must_use]
pub fn label_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Durations of the last minute in microseconds. Percentiles are accurate to 4 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Exact maximum.
    pub max_us: u64,
    /// Number of measurements; if 0, all values are 0.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DOMAINS;

    struct One;

    impl Probe for One {
        fn gather(&self, out: &mut MetricsText) {
            out.family("agents", "Agents.", "gauge");
            out.sample("agents", &format!("state=\"{}\"", label_value("a\"b")), 1);
        }
    }

    #[test]
    fn renders_counts_histograms_and_probes() {
        let metrics = Metrics::new(DOMAINS.table());
        metrics.add_probe(Arc::new(One));
        metrics.count(None, StatusCode::NOT_FOUND, Duration::from_micros(100));
        metrics.count(None, StatusCode::NOT_FOUND, Duration::from_micros(101));
        metrics.count(Some(0), StatusCode::OK, Duration::from_secs(100));
        let mut out = MetricsText::default();
        metrics.render(&mut out);
        let text = out.into_string();
        let route = DOMAINS.table().routes()[0];
        let first = format!("method=\"{}\",route=\"{}\"", route.verb.as_str(), route.path);
        for line in [
            "agentsvc_http_requests_total{method=\"\",route=\"\",status=\"4xx\"} 2".to_owned(),
            format!("agentsvc_http_requests_total{{{first},status=\"2xx\"}} 1"),
            "agentsvc_http_request_duration_seconds_bucket{method=\"\",route=\"\",le=\"0.0001\"} 1".to_owned(),
            "agentsvc_http_request_duration_seconds_bucket{method=\"\",route=\"\",le=\"0.00025\"} 2".to_owned(),
            format!("agentsvc_http_request_duration_seconds_bucket{{{first},le=\"60\"}} 0"),
            format!("agentsvc_http_request_duration_seconds_bucket{{{first},le=\"+Inf\"}} 1"),
            format!("agentsvc_http_request_duration_seconds_sum{{{first}}} 100"),
            "# TYPE agents gauge".to_owned(),
            "agents{state=\"a\\\"b\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
