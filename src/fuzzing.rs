//! Ways in for fuzz targets (`fuzz/`): what reads bytes of others here and has no other door. Nobody else uses them.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::turn::outcome::ModelAnswer;

use crate::model::draft::Draft;
use crate::model::error::CallError;
use crate::model::provider::{DriverKind, Target};
use crate::model::{Drivers, ModelSettings};
use crate::tool;

/// What the driver of `kind` makes of an answer to a call that asked for a stream or not.
pub async fn model_answer(
    kind: DriverKind,
    streaming: bool,
    response: reqwest::Response,
) -> Result<ModelAnswer, CallError> {
    let target = Target { driver: kind, provider: "p".into(), model: "m".into(), ..Target::default() };
    let mut draft = Draft::default();
    Drivers::new(&ModelSettings::default()).read(&target, response, streaming, &mut draft).await?;
    Ok(draft.into_answer(Attempt { job: JobId(uuid::Uuid::nil()), number: 1 }, 5, &target))
}

/// The texts that become of `file` by each change of a file in `patch`, one after the other.
pub fn patched(file: &str, patch: &str) -> Result<String, String> {
    tool::patched(file, patch)
}
