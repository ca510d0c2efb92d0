//! `version`: which agentsvc this is.

use clap::Args;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run, output};

/// Options of `version`.
#[derive(Debug, Args)]
pub(crate) struct Version {}

impl Run for Version {
    fn run(self, context: &Context) -> Result<(), Error> {
        let version = env!("CARGO_PKG_VERSION");
        if context.json() {
            return output::json(&serde_json::json!({ "version": version }));
        }
        output::line(&format!("agentsvc {version}"))
    }
}
