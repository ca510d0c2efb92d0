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
                if let Some(ended) = ended(&self.name, &begun, &answer) {
                    break ended.map(|()| answer)?;
                }
                if Instant::now() >= end {
                    return Err(Error::Failed("the sign-in was not completed in time; start it again".to_owned()));
                }
                sleep(ASK_EVERY).await;
            };
            drop(waiting);
            context.print(&answer, |_| format!("signed in at {}\n", self.name))
        })
    }
}

/// How the sign-in ended that `begun` describes; `None` while it may go on. The state says nothing of it alone: a sign-in from
/// before may still work, and another one may be pending.
fn ended(name: &str, begun: &Value, answer: &Value) -> Option<Result<(), Error>> {
    let (auth, last) = (&answer["auth"], &answer["auth"]["last_sign_in"]);
    let failed = |why: &str| Some(Err(Error::Failed(format!("not signed in at {name}: {why}"))));
    if last.is_object() && last["id"] == begun["sign_in_id"] {
        return last["error"].as_str().map_or(Some(Ok(())), failed);
    }
    if auth["state"] == "pending_auth" {
        return None;
    }
    // Another one that succeeds ends all that are pending.
    if *last != begun["auth"]["last_sign_in"] && last["error"].is_null() && auth["state"] == "authorized" {
        return Some(Ok(()));
    }
    failed("the sign-in was not completed; start it again")
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
    fn the_end_of_this_sign_in_is_told_whatever_became_of_others() {
        let before = json!({ "id": "old", "error": null });
        let begun = json!({ "sign_in_id": "own", "auth": { "state": "pending_auth", "last_sign_in": before } });
        let ended = |state: &str, last: &Value| {
            let answer = json!({ "auth": { "state": state, "last_sign_in": last } });
            ended("s", &begun, &answer).map(|ended| ended.map_err(|error| error.to_string()))
        };
        assert_eq!(ended("pending_auth", &before), None);
        assert_eq!(ended("authorized", &json!({ "id": "own", "error": null })), Some(Ok(())));
        let declined = json!({ "id": "own", "error": "the sign-in was declined: access_denied" });
        // The sign-in from before still works, or another one is pending.
        for state in ["authorized", "pending_auth", "error"] {
            let why = ended(state, &declined).unwrap().unwrap_err();
            assert_eq!(why, "not signed in at s: the sign-in was declined: access_denied");
        }
        assert!(ended("authorized", &before).unwrap().unwrap_err().contains("not completed"), "its time is over");
        assert_eq!(ended("authorized", &json!({ "id": "other", "error": null })), Some(Ok(())));
        assert!(ended("authorized", &json!({ "id": "other", "error": "x" })).unwrap().is_err());
    }
}
