//! `open`: the page of the daemon in the browser of the desktop.

use std::process::{Command, Stdio};

use clap::Args;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::{Error, Run, output};

/// Options of `open`.
#[derive(Debug, Args)]
pub(crate) struct Open {
    /// Only print the address
    #[arg(long)]
    print: bool,
}

impl Run for Open {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        // A page that does not answer helps nobody: this says that the daemon cannot be reached.
        context.block_on(client.get("/api/health", &[]))?;
        let url = format!("{}/", client.base().trim_end_matches('/'));
        if context.json() {
            output::json(&serde_json::json!({ "url": url }))?;
        } else {
            output::line(&url)?;
        }
        if !self.print && !starts(&url) {
            output::note("no browser was found; open the address yourself");
        }
        Ok(())
    }
}

/// Hands `url` to the desktop; false if it has no program for it.
fn starts(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
