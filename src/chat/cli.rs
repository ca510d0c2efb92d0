//! `chat`: a conversation in the terminal.

use std::io::{self, IsTerminal};

use clap::Args;
use rustyline::Editor;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::chat::line::{Command, Commands, help};
use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::{Context, runtime};
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Answer, field};
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::private_file;
use crate::turn::client as turn;
use crate::turn::client::Said;

/// Lines of the history that are kept.
const HISTORY_LINES_MAX: usize = 2_000;

/// Options of `chat`.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The agent's name or id
    #[arg(default_value = "assistant")]
    agent: String,
    /// The session to continue: its label, first line, id or the beginning of that; or the whole id of a new one [default: the agent's
    /// current session]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

/// What one turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The next line may come.
    Turn,
    /// The user wants to leave.
    Chat,
}

impl Run for Chat {
    fn run(self, context: &Context) -> Result<(), Error> {
        let talk = Talk { client: context.client()?, runtime: runtime()?, session: None, agent: String::new() };
        let (agent, session) = talk.runtime.block_on(async {
            let id = talk.client.agent_id(&self.agent).await?;
            let session = turn::session(&talk.client, &id, self.session.as_deref()).await?;
            Ok::<_, Error>((talk.client.get(&format!("/api/agents/{id}"), &[]).await?, session))
        })?;
        let (name, id) = (field(&agent, "/name"), field(&agent, "/id"));
        if io::stdin().is_terminal() {
            let model = format!("{}/{}", field(&agent, "/model/provider"), field(&agent, "/model/model"));
            output::note(&format!("{name} ({model}). /help lists commands, Ctrl-C stops a response, Ctrl-D leaves."));
        }
        Talk { agent: id, session, ..talk }.go_on(context, &name)
    }
}

/// A conversation with one agent.
struct Talk {
    client: Client,
    runtime: Runtime,
    session: Option<Uuid>,
    /// The agent's id.
    agent: String,
}

impl Talk {
    fn go_on(mut self, context: &Context, name: &str) -> Result<(), Error> {
        let mut lines = Editor::<Commands, DefaultHistory>::new().map_err(terminal)?;
        lines.set_helper(Some(Commands));
        // A history that cannot be kept is no reason not to talk.
        let _ = lines.set_max_history_size(HISTORY_LINES_MAX);
        let history = context.home()?.history_file();
        let _ = lines.load_history(&history);
        let prompt = format!("{}> ", output::clean(name));
        let mut interrupted = false;
        loop {
            match lines.readline(&prompt) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => {
                    if io::stdin().is_terminal() {
                        let _ = lines.add_history_entry(line.as_str());
                        // Created here so that only its owner may read it; the editor appends to it.
                        let _ = private_file().append(true).create(true).open(&history);
                        let _ = lines.append_history(&history);
                    }
                    if self.line(&line)? == Ended::Chat {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(ReadlineError::Interrupted) if interrupted => return Ok(()),
                Err(ReadlineError::Interrupted) => {
                    output::note("press Ctrl-C again or Ctrl-D to leave");
                    interrupted = true;
                    continue;
                }
                Err(error) => return Err(terminal(error)),
            }
            interrupted = false;
        }
    }

    /// A command of the chat, or a message.
    fn line(&mut self, line: &str) -> Result<Ended, Error> {
        match Command::of(line) {
            Some(Command::Exit) => return Ok(Ended::Chat),
            Some(Command::Help) => output::note(&help()),
            Some(Command::New) => {
                let path = format!("/api/agents/{}/sessions", self.agent);
                let made = self.runtime.block_on(self.client.post(&path, Some(&serde_json::json!({}))))?;
                self.session = field(&made, "/session_id").parse().ok();
                output::note("This is a new session.");
            }
            None => return self.turn(line),
        }
        Ok(Ended::Turn)
    }

    /// One message and its answer. What the daemon refuses is said and the conversation goes on.
    fn turn(&self, line: &str) -> Result<Ended, Error> {
        match self.runtime.block_on(self.exchange(line)) {
            Err(error @ (Error::Failed(_) | Error::Protocol(_) | Error::Answer { .. })) => {
                output::complain(&error.to_string());
                Ok(Ended::Turn)
            }
            other => other,
        }
    }

    async fn exchange(&self, line: &str) -> Result<Ended, Error> {
        // Read from a pipe, Ctrl-C keeps its usual meaning: it would otherwise be lost between two turns.
        let listens = io::stdin().is_terminal();
        let mut events = turn::send(&self.client, &self.agent, line, self.session).await?;
        let mut stopped = false;
        let mut answer = Answer::default();
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                Ok(()) = tokio::signal::ctrl_c(), if listens => {
                    if stopped {
                        output::note("");
                        return Ok(Ended::Chat);
                    }
                    stopped = true;
                    self.stop().await?;
                    continue;
                }
            };
            let Some(event) = event else { return answer.end().and(Err(turn::ended_early())) };
            match Said::of(&event) {
                Said::Chunk(content) => answer.add(&content)?,
                Said::Tool(tool) => output::note(&format!("[{tool}]")),
                Said::Notice(text) => output::note(&format!("notice: {text}")),
                Said::Lagged(missed) => output::note(&format!("[{missed} stream events were missed]")),
                Said::Done(..) => return answer.end().map(|()| Ended::Turn),
                Said::Failed(_) if stopped => {
                    answer.end()?;
                    output::note("[stopped]");
                    return Ok(Ended::Turn);
                }
                Said::Failed(error) => return answer.end().and(Err(turn::failed(&error))),
                Said::Other => {}
            }
        }
    }

    async fn stop(&self) -> Result<(), Error> {
        let body = self.session.map(|session| serde_json::json!({ "session_id": session }));
        self.client.post(&format!("/api/agents/{}/stop", self.agent), body.as_ref()).await.map(drop)
    }
}

fn terminal(error: ReadlineError) -> Error {
    match error {
        ReadlineError::Io(source) => Error::io("the terminal failed")(source),
        other => Error::Protocol(format!("the terminal failed: {other}")),
    }
}
