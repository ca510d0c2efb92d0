//! The fence of work for the outside: which try of what an outcome belongs to.

use serde::{Deserialize, Serialize};

use super::id::JobId;

/// Which try of which job an effect or outcome belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job: a turn, a compaction, a probe or any other work, by its id.
    #[serde(alias = "turn")]
    pub job: JobId,
    /// The try; grows whenever the job asks the outside for something.
    pub number: u32,
}

impl Attempt {
    /// The try `number` of a job.
    pub fn of(job: impl Into<JobId>, number: u32) -> Self {
        Self { job: job.into(), number }
    }
}
