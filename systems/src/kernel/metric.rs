//! Metrics of the world. A domain lists its metrics in its `DOMAIN`; on each beat all of them are read, for
//! `/api/metrics` and the reference.

use bevy_ecs::prelude::World;

use super::domain;

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name; that of a counter ends in `_total`.
    pub name: &'static str,
    /// What it tells, in one sentence.
    pub help: &'static str,
    /// `counter` or `gauge`.
    pub kind: &'static str,
    /// Reads its samples. Costs the same however large the world is.
    read: fn(&World, &mut Samples),
}

impl Metric {
    /// A value that only grows.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, read: fn(&World, &mut Samples)) -> Self {
        Self { name, help, kind: "counter", read }
    }

    /// A value that goes up and down.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, read: fn(&World, &mut Samples)) -> Self {
        Self { name, help, kind: "gauge", read }
    }
}

/// A label: its name and its value, which needs no escapes.
pub type Label = (&'static str, &'static str);

/// One sample of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Of which metric. All samples of a metric stand together.
    pub metric: &'static Metric,
    /// What tells it from others of the metric; labels without a name mean nothing.
    pub labels: [Label; 2],
    /// Its value.
    pub value: f64,
}

/// Samples, in the order of the domains.
#[derive(Debug, Default)]
pub struct Samples {
    all: Vec<Sample>,
    of: Option<&'static Metric>,
}

impl Samples {
    /// Reads all metrics of the domains in the place of what was read before.
    pub(crate) fn read(&mut self, world: &World) {
        self.all.clear();
        for metric in domain::all().iter().flat_map(|domain| domain.metrics) {
            self.of = Some(metric);
            (metric.read)(world, self);
        }
    }

    /// What was read.
    #[must_use]
    pub fn all(&self) -> &[Sample] {
        &self.all
    }

    /// The one sample of a metric.
    pub(crate) fn value(&mut self, value: impl Number) {
        self.push([("", ""); 2], value);
    }

    /// A sample with a label.
    pub(crate) fn labelled(&mut self, label: Label, value: impl Number) {
        self.push([label, ("", "")], value);
    }

    /// A sample with these labels.
    pub(crate) fn push(&mut self, labels: [Label; 2], value: impl Number) {
        if let Some(metric) = self.of {
            self.all.push(Sample { metric, labels, value: value.to_f64() });
        }
    }
}

/// What a sample can be made of.
pub(crate) trait Number {
    /// As a sample has it.
    fn to_f64(self) -> f64;
}

impl Number for u64 {
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Number for usize {
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
}
