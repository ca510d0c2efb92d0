//! `message`: one message, one answer.

use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kernel::cli::client::{Client, Event};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Answer, Waiting, field, read_stdin};
use crate::kernel::cli::{Error, Run};
use crate::turn::client as turn;
use crate::turn::client::Said;

/// Options of `message`.
#[derive(Debug, Args)]
pub(crate) struct Message {
    /// The agent's name or id
    agent: String,
    /// The message; `-` reads it from standard input
    text: String,
    /// The session to continue: its label, first line, id or the beginning of that; or the whole id of a new one
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Stream the response
    #[arg(long)]
    stream: bool,
}

impl Run for Message {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let text = if self.text == "-" { read_stdin()? } else { self.text.clone() };
        context.block_on(async {
            let agent = client.agent_id(&self.agent).await?;
            let session = turn::session(&client, &agent, self.session.as_deref()).await?;
            if self.stream {
                stream(context, &client, &agent, &text, session).await
            } else {
                ask(context, &client, &agent, &text, session).await
            }
        })
    }
}

async fn ask(context: &Context, client: &Client, agent: &str, text: &str, session: Option<Uuid>) -> Result<(), Error> {
    let waiting = Waiting::on("waiting for the response");
    let path = format!("/api/agents/{agent}/message");
    let answer = client.post(&path, Some(&turn::body(text, session))).await;
    drop(waiting);
    let answer = answer?;
    if context.json() {
        return output::json(&answer);
    }
    let notice = field(&answer, "/owner_notice");
    if !notice.is_empty() {
        output::note(&format!("notice: {notice}"));
    }
    let mut text = Answer::default();
    text.add(&field(&answer, "/response"))?;
    text.end()
}

async fn stream(
    context: &Context,
    client: &Client,
    agent: &str,
    text: &str,
    session: Option<Uuid>,
) -> Result<(), Error> {
    let mut events = turn::send(client, agent, text, session).await?;
    let mut answer = Answer::default();
    while let Some(event) = events.next().await? {
        let said = Said::of(&event);
        if context.json() {
            output::line(&as_json(&event).to_string())?;
        }
        match said {
            Said::Failed(error) => return answer.end().and(Err(turn::failed(&error))),
            Said::Done(..) => return answer.end(),
            _ if context.json() => {}
            Said::Chunk(content) => answer.add(&content)?,
            Said::Notice(text) => output::note(&format!("notice: {text}")),
            Said::Lagged(missed) => output::note(&format!("{missed} stream events were missed")),
            Said::Tool(_) | Said::Other => {}
        }
    }
    answer.end().and(Err(turn::ended_early()))
}

/// An event as one line of JSON: its name under `event`, then its data.
fn as_json(event: &Event) -> Value {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_else(|_| json!({ "data": event.data }));
    let mut line = json!({ "event": event.name });
    match (line.as_object_mut(), data) {
        (Some(line), Value::Object(data)) => line.extend(data),
        (Some(line), data) => drop(line.insert("data".to_owned(), data)),
        (None, _) => {}
    }
    line
}

#[cfg(test)]
mod tests {
    use super::as_json;
    use crate::kernel::cli::client::Event;

    #[test]
    fn events_become_lines() {
        let line = |data: &str| as_json(&Event { name: "e".to_owned(), data: data.to_owned() }).to_string();
        assert_eq!(line(r#"{"content":"a"}"#), r#"{"content":"a","event":"e"}"#);
        assert_eq!(line("plain"), r#"{"data":"plain","event":"e"}"#);
        assert_eq!(line("[1]"), r#"{"data":[1],"event":"e"}"#);
    }
}
