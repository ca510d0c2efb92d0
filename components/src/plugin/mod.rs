//! Plugins of the context engine, as far as the world hears of them.

use serde::{Deserialize, Serialize};

use crate::kernel::attempt::Attempt;
use crate::kernel::domain::Domain;
use crate::kernel::outcome::Outcome;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "plugin", uses: &[] };

/// A plugin has changed what the model of a turn is asked. Comes before the outcome of the model call of this attempt, and is
/// dropped when the attempt is stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptChanged {
    /// The call.
    pub attempt: Attempt,
    /// The name of the plugin.
    pub plugin: Box<str>,
}

impl Outcome for PromptChanged {
    const NAME: &'static str = "PromptChanged";
}
