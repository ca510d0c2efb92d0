//! The wait for a person.

use agentsvc_systems::approval::WithdrawInvocation;
use uuid::Uuid;

use crate::http::bridge::Bridge;
use crate::http::response_headers::new_id;

/// Something that waits for a person. When it goes away meanwhile, the approval goes with it.
pub struct Waiting {
    bridge: Option<Bridge>,
    id: Uuid,
}

impl Waiting {
    /// A wait with an id of its own.
    #[must_use]
    pub fn new(bridge: &Bridge) -> Self {
        Self { bridge: Some(bridge.clone()), id: new_id() }
    }

    /// The id of the call or question that waits.
    #[must_use]
    pub const fn id(&self) -> Uuid {
        self.id
    }

    /// The wait has ended by itself.
    pub fn over(mut self) {
        self.bridge = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (Some(bridge), Ok(runtime)) = (self.bridge.take(), tokio::runtime::Handle::try_current()) else { return };
        let id = self.id;
        runtime.spawn(async move {
            if let Err(refusal) = bridge.ask(WithdrawInvocation { id }).await {
                tracing::warn!(%refusal, "an abandoned approval could not be withdrawn");
            }
        });
    }
}
