//! One server: started, held, and started again when it ends.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::call::{self, Caller};
use super::config::McpClient;
use super::connection::{Connection, Failure};
use super::session::{self, Described};
use super::stderr::Tail;
use super::wire::{self, Means, Opened, Transport};
use crate::kernel::sandbox::ServerProgram;

/// Time until a server that ended is started again; twice as long each time.
const RESTART_AFTER: Duration = Duration::from_secs(5);
/// The longest such time.
const RESTART_AFTER_MAX: Duration = Duration::from_secs(300);
/// A server that was there this long begins with the shortest time again.
const SETTLED_AFTER: Duration = Duration::from_secs(60);
/// Time between two lists of the tools of a server that says that they change.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// Time that a program may take to end after its output did.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// A server.
pub(super) struct Server {
    name: Box<str>,
    transport: Transport,
    call_time_max: Duration,
    state: Mutex<State>,
    /// The tools as it described them last; they stay while it is restarted.
    described: ArcSwap<Vec<Described>>,
}

enum State {
    Up(Connection),
    /// Not there: why.
    Down(String),
}

impl Server {
    /// The server of this name; its directory lies in `directories`.
    pub(super) fn new(name: &str, config: &McpClient, directories: &Path) -> Self {
        let value_of = |variable: &super::config::Variable| match &variable.value {
            Some(value) => Some(OsString::from(value.expose())),
            None => std::env::var_os(&*variable.name),
        };
        let environment =
            config.env.iter().filter_map(|variable| Some((variable.name.to_string(), value_of(variable)?)));
        let program = ServerProgram {
            command: config.command.to_string(),
            arguments: config.args.iter().map(ToString::to_string).collect(),
            directory: directories.join(name),
            environment: environment.collect(),
            readable: config.readable_paths.clone(),
            writable: config.writable_paths.clone(),
            network: config.network,
        };
        Self {
            name: name.into(),
            transport: Transport::Stdio(program),
            call_time_max: Duration::from_secs(config.timeout_secs),
            state: Mutex::new(State::Down("it has not started yet".to_owned())),
            described: ArcSwap::default(),
        }
    }

    /// Its name in the configuration.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Is it a program of this machine?
    pub(super) const fn is_program(&self) -> bool {
        matches!(self.transport, Transport::Stdio(_))
    }

    /// Its tools.
    pub(super) fn described(&self) -> Arc<Vec<Described>> {
        self.described.load_full()
    }

    /// Takes its tools. Gives whether they are others than before.
    pub(super) fn describe(&self, tools: Vec<Described>) -> bool {
        let is_new = **self.described.load() != tools;
        if is_new {
            self.described.store(Arc::new(tools));
        }
        is_new
    }

    /// Calls something that it has: once, whatever comes of it.
    pub(super) async fn call(
        &self,
        called: &Described,
        arguments: Map<String, Value>,
        caller: Caller,
    ) -> Result<Value, Failure> {
        let connection = match &*self.state.lock() {
            State::Up(connection) => connection.clone(),
            State::Down(why) => return Err(Failure::Unanswered(format!("it is not connected, because {why}"))),
        };
        call::call(&connection, called, arguments, caller, self.call_time_max).await
    }

    /// Keeps it running, for ever. `offer` is told when its tools are others.
    pub(super) async fn keep(&self, means: Means, offer: impl Fn()) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            let (why, said) = self.run(&means, &offer).await;
            failures = if began.elapsed() >= SETTLED_AFTER { 0 } else { failures };
            let rest = rest(failures);
            tracing::warn!(server = self.name(), %why, stderr = said, restart_secs = rest.as_secs(), "an MCP server ended");
            *self.state.lock() = State::Down(why);
            tokio::time::sleep(rest).await;
            failures += 1;
        }
    }

    /// Runs it once. Gives why it ended, and the end of what it wrote to its stderr.
    async fn run(&self, means: &Means, offer: &impl Fn()) -> (String, String) {
        let opened = wire::open(self.name(), self.transport.clone(), means).await;
        let Opened { connection, mut carry, program } = match opened {
            Ok(opened) => opened,
            Err(why) => return (why.trim_end_matches('.').to_owned(), String::new()),
        };
        let (mut tail, mut is_over) = (Tail::default(), program.is_none());
        let (stderr, process) = program.map_or((None, None), |program| (Some(program.stderr), Some(program.process)));
        let why = {
            let fill = async {
                if let Some(stderr) = stderr {
                    tail.fill(stderr).await;
                }
            };
            let converse = self.converse(&connection, offer);
            tokio::pin!(fill, converse);
            loop {
                tokio::select! {
                    () = &mut fill, if !is_over => is_over = true,
                    why = &mut carry => break why,
                    why = &mut converse => break why,
                }
            }
        };
        connection.close();
        let why = match process {
            Some(mut process) => {
                let exit = tokio::time::timeout(END_TIME_MAX, process.ended()).await;
                exit.map_or_else(|_| why.clone(), |exit| format!("{why}: {exit}"))
            }
            None => why,
        };
        (why, tail.into_text())
    }

    /// Talks with it until something is wrong with it.
    async fn converse(&self, connection: &Connection, offer: &impl Fn()) -> String {
        let features = match session::initialize(connection).await {
            Ok(features) => features,
            Err(failure) => return self.reason("initialize", failure),
        };
        let follow = async {
            loop {
                match session::describe(connection, features).await {
                    Ok(tools) => {
                        if self.describe(tools) {
                            offer();
                        }
                    }
                    Err(failure) => return self.reason("tools/list", failure),
                }
                *self.state.lock() = State::Up(connection.clone());
                tracing::info!(server = self.name(), tools = self.described().len(), "an MCP server is connected");
                connection.tools_changed().await;
                tokio::time::sleep(LIST_EVERY).await;
            }
        };
        tokio::pin!(follow);
        tokio::select! {
            why = &mut follow => why,
            () = session::subscribe(connection) => follow.await,
        }
    }

    /// A failure in our words: agents read them.
    fn reason(&self, method: &str, failure: Failure) -> String {
        match failure {
            Failure::Unanswered(why) => why,
            Failure::Refused(said) => {
                tracing::warn!(server = self.name(), method, said, "an MCP server refused a request");
                format!("it refused `{method}`")
            }
        }
    }
}

/// How long a server that failed so often rests.
fn rest(failures: u32) -> Duration {
    RESTART_AFTER.saturating_mul(2_u32.saturating_pow(failures)).min(RESTART_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use super::rest;

    #[test]
    fn rests_grow_to_a_bound() {
        let rests = [0, 1, 2, 5, 6, 99].map(|failures| rest(failures).as_secs());
        assert_eq!(rests, [5, 10, 20, 160, 300, 300]);
    }
}
