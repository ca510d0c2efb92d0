//! The metrics of the present world.

use std::sync::Arc;

use agentsvc_api::http::metrics::{MetricsText, Probe};
use parking_lot::RwLock;

/// The probes of the present world.
#[derive(Default)]
pub(super) struct WorldProbes(pub(super) RwLock<Vec<Arc<dyn Probe>>>);

impl Probe for WorldProbes {
    fn gather(&self, out: &mut MetricsText) {
        self.0.read().iter().for_each(|probe| probe.gather(out));
    }
}
