//! `mcp login` and `mcp logout`: the sign-in at an MCP server that asks for it.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::servers::path;
use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Waiting, field};

/// Time between two looks whether the user has signed in.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Options of `mcp login`.
#[derive(Debug, Args)]
pub(super) struct Login {
    /// Name of the MCP server
    name: String,
    /// Where your browser reaches the daemon, if not at the URL of this command
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Print where to sign in, and do not wait until you have
    #[arg(long)]
    no_wait: bool,
}

impl Login {
    /// Shows where to sign in, and asks until the sign-in is over.
    pub(super) fn run(self, context: &Context) -> Result<(), Error> {
        context.block_on(async {
            let client = context.client()?;
            let base = self.base_url.as_deref().unwrap_or(client.base());
            let body = json!({ "base_url": base });
            let begun = client.post(&path(&self.name, "/auth/start"), Some(&body)).await?;
            if context.json() && self.no_wait {
                return output::json(&begun);
            }
            let url = field(&begun, "/auth_url");
            if context.json() {
                output::note(&format!("open {url}"));
            } else {
                output::line(&format!("Open this URL in your browser and sign in:\n\n{}\n", output::clean(&url)))?;
            }
            if self.no_wait {
                return Ok(());
            }
            let end = Instant::now() + Duration::from_secs(begun["expires_in"].as_u64().unwrap_or_default());
            let waiting = Waiting::on("waiting for the sign-in");
            let answer = loop {
                let answer = client.get(&path(&self.name, "/auth/status"), &[]).await?;
                if answer["auth"]["state"] != "pending_auth" {
                    break answer;
                }
                if Instant::now() >= end {
                    return Err(Error::Failed("the sign-in was not completed in time; start it again".to_owned()));
                }
                sleep(ASK_EVERY).await;
            };
            drop(waiting);
            finished(&self.name, &answer)?;
            if context.json() {
                return output::json(&answer);
            }
            output::line(&format!("signed in at {}", output::clean(&self.name)))
        })
    }
}

/// How a sign-in ended that is no longer pending.
fn finished(name: &str, answer: &Value) -> Result<(), Error> {
    let auth = &answer["auth"];
    match (auth["state"].as_str(), auth["message"].as_str()) {
        (Some("authorized"), _) => Ok(()),
        (_, Some(why)) => Err(Error::Failed(format!("not signed in at {name}: {why}"))),
        (_, None) => Err(Error::Failed(format!("not signed in at {name}; start the sign-in again"))),
    }
}

/// Signs out.
pub(super) fn logout(context: &Context, name: &str) -> Result<(), Error> {
    let answer = context.block_on(async { context.client()?.delete(&path(name, "/auth/revoke")).await })?;
    if context.json() {
        return output::json(&answer);
    }
    let text = if answer["revoked"] == true { "signed out at" } else { "there was no sign-in at" };
    output::line(&format!("{text} {}", output::clean(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_sign_in_is_told() {
        let ended = |auth: Value| finished("s", &json!({ "auth": auth })).map_err(|error| error.to_string());
        assert_eq!(ended(json!({ "state": "authorized" })), Ok(()));
        let declined = ended(json!({ "state": "error", "message": "the sign-in was declined: access_denied" }));
        assert_eq!(declined.unwrap_err(), "not signed in at s: the sign-in was declined: access_denied");
        assert!(ended(json!({ "state": "needs_auth" })).unwrap_err().contains("start the sign-in again"));
    }
}
