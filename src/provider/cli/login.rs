//! `providers login`: signs in by a device flow and waits for the person.

use std::time::Duration;

use clap::Args;

use super::path;
use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Waiting, field};

/// Seconds between two questions when the daemon does not say.
const PAUSE_SECS_DEFAULT: u64 = 5;

/// Options of `providers login`.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The provider, such as github-copilot
    provider: String,
}

impl Login {
    /// Shows the code, and asks until the sign-in is over.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        context.block_on(async {
            let begun = client.post(&path(&self.provider, "/oauth/start"), None).await?;
            let (place, code) = (field(&begun, "/verification_uri"), field(&begun, "/user_code"));
            output::note(&format!("Open {place} and enter the code {code}"));
            let poll = path(&self.provider, &format!("/oauth/poll/{}", field(&begun, "/poll_id")));
            let waiting = Waiting::on("waiting for the sign-in");
            loop {
                let state = client.get(&poll, &[]).await?;
                match field(&state, "/status").as_str() {
                    "authorized" => {
                        drop(waiting);
                        if context.json() {
                            return output::json(&state);
                        }
                        return output::line(&format!("signed in at {}", output::clean(&self.provider)));
                    }
                    "pending" => {
                        let pause = state["retry_after"].as_u64().unwrap_or(PAUSE_SECS_DEFAULT).max(1);
                        tokio::time::sleep(Duration::from_secs(pause)).await;
                    }
                    other => return Err(Error::Usage(format!("the sign-in ended: {other}"))),
                }
            }
        })
    }
}
