//! Makes memory entries of turns that have ended (spec 2, Memory).
//!
//! | part | what it does |
//! |---|---|
//! | [`job`] | a try of the job of a turn: reads what was said, finds facts by rules or a model, and writes them |
//! | [`prompt`] | what the model is asked |
//! | [`ask`] | the call of the model: reserved, metered, bounded |
//! | [`answer`] | what of its answer is used |

mod answer;
mod ask;
mod job;
mod prompt;

use std::sync::Arc;

use agentsvc_systems::proactive_memory::{MEMORIZE, MEMORIZE_BY_MODEL};

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use job::Memorizer;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "memorize",
    uses: &["agent", "budget", "knowledge", "model", "proactive_memory", "prompt", "session", "tool", "turn", "usage"],
    performers,
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { bridge, settings, .. } = performers.part();
    let (models, entries, knowledge) = (performers.part(), performers.part(), performers.part());
    let memorizer = Arc::new(Memorizer { models, entries, knowledge, bridge, settings });
    for kind in [MEMORIZE, MEMORIZE_BY_MODEL] {
        let memorizer = Arc::clone(&memorizer);
        performers.on_job(kind, move |job| {
            let memorizer = Arc::clone(&memorizer);
            async move { memorizer.run(job).await }
        });
    }
}
