//! `approvals`: what waits for a person, and the decision.

use std::time::Duration;

use clap::Subcommand;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, clean, field, items, moment};
use crate::kernel::cli::screen::Screen;
use crate::kernel::cli::{Error, Run};

/// Subcommands of `approvals`.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List pending approvals with their input and the forms to fill in
    List {
        /// Wait until there is one
        #[arg(long)]
        wait: bool,
        /// Print the ids only
        #[arg(short, long)]
        quiet: bool,
    },
    /// Approve a request: its action runs
    Approve {
        /// Its id, or the first 18 characters of it
        id: String,
        /// The filled in form, as a JSON object, if it has one
        #[arg(long, value_name = "JSON", value_parser = answer)]
        answer: Option<Map<String, Value>>,
        /// Shown with the approval
        #[arg(long)]
        reason: Option<String>,
        /// Code of the second factor
        #[arg(long, value_name = "CODE")]
        totp_code: Option<String>,
    },
    /// Reject a request: its action does not run
    Reject {
        /// Its id, or the first 18 characters of it
        id: String,
        /// Shown with the approval and to the model
        #[arg(long)]
        reason: Option<String>,
    },
}

fn answer(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("must be a JSON object: {error}"))
}

/// Time between two questions of `list --wait`.
const PAUSE: Duration = Duration::from_millis(500);

/// Characters of an id that name it: ids of one minute begin with the same eight.
const ID_START_MIN: usize = 18;

/// The id of the only waiting approval whose id begins like this.
async fn id_of(client: &Client, typed: &str) -> Result<String, Error> {
    if let Ok(id) = typed.parse::<Uuid>() {
        return Ok(id.to_string());
    }
    if typed.len() < ID_START_MIN {
        return Err(Error::Usage(format!(
            "pass at least {ID_START_MIN} characters of the id, such as 01a2285f-683a-7000"
        )));
    }
    let waiting = client.get("/api/approvals", &[("status", "pending")]).await?;
    let begins = |id: &String| id.starts_with(&typed.to_ascii_lowercase());
    let found: Vec<String> = items(&waiting, "approvals").map(|item| field(item, "/id")).filter(begins).collect();
    match found.as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(Error::NotFound(format!(
            "no approval with an id that begins with {} is waiting; list them with `agentsvc approvals list`",
            clean(typed)
        ))),
        more => Err(Error::Usage(format!("several approvals begin with {}: {}", clean(typed), more.join(", ")))),
    }
}

impl Run for Approvals {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (id, how, given) = match self {
            Self::List { wait, quiet } => {
                let answer = context.block_on(client.shown_answer(context.json(), pending(&client, wait)))?;
                return context.print(&answer, if quiet { ids } else { listed });
            }
            Self::Approve { id, answer, reason, totp_code } => {
                (id, "approve", json!({ "answer": answer, "reason": reason, "totp_code": totp_code }))
            }
            Self::Reject { id, reason } => (id, "reject", json!({ "reason": reason })),
        };
        let answer = context.block_on(async {
            let id = id_of(&client, &id).await?;
            client.post(&format!("/api/approvals/{id}/{how}"), Some(&given)).await
        })?;
        context.print(&answer, decided)
    }
}

/// The pending approvals. With `wait`, the answer has at least one.
async fn pending(client: &Client, wait: bool) -> Result<Value, Error> {
    loop {
        let answer = client.get("/api/approvals", &[("status", "pending")]).await?;
        if !wait || items(&answer, "approvals").next().is_some() {
            return Ok(answer);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The ids, one in a line.
fn ids(answer: &Value) -> Shown {
    items(answer, "approvals").map(|approval| format!("{}\n", field(approval, "/id"))).collect::<String>().into()
}

fn listed(answer: &Value) -> Shown {
    let mut text = String::new();
    let now = Screen::of_stdout().now;
    for approval in items(answer, "approvals") {
        let of = |key: &str| field(approval, key);
        let action = clean(&of("/action").replace('\n', " ")).into_owned();
        let (id, expires) = (of("/id"), moment(of("/expires_at"), now));
        text.push_str(&format!("{id}  {action}  agent {}  expires {expires}\n", clean(&of("/agent"))));
        let form = approval["answer_schema"].get("properties").map(Value::to_string);
        let lines =
            [Some(of("/description")), Some(approval["payload"].to_string()), form.map(|form| format!("form: {form}"))];
        for line in lines.into_iter().flatten().filter(|line| !line.is_empty()) {
            // Others wrote it: it must not look like a line of ours.
            text.push_str(&format!("    {}\n", clean(&line.replace('\n', " "))));
        }
    }
    // The sentence of an empty list, by its one writer.
    if text.is_empty() { Table::list("pending approvals", &[]).into() } else { text.into() }
}

fn decided(answer: &Value) -> String {
    format!("{} is {}\n", field(answer, "/id"), field(answer, "/status"))
}
