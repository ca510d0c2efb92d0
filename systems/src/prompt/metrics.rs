//! Metrics of prompt versions and experiments.

use super::index::{Experiments, Impressions, Versions};
use crate::kernel::metric::Metric;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_prompt_versions", "Versions of system prompts.", |world, out| {
        out.value(world.resource::<Versions>().len());
    }),
    Metric::gauge("agentsvc_prompt_experiments", "Prompt experiments.", |world, out| {
        out.value(world.resource::<Experiments>().len());
    }),
    Metric::gauge("agentsvc_prompt_experiments_running", "Prompt experiments that are running.", |world, out| {
        out.value(world.resource::<Experiments>().running_count());
    }),
    Metric::gauge(
        "agentsvc_prompt_impressions_kept",
        "Turns of prompt experiments that take feedback.",
        |world, out| {
            out.value(world.resource::<Impressions>().len());
        },
    ),
];
