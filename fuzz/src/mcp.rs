//! Answers of MCP servers over a whole conversation: it ends, and what is offered of them is bounded.

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// It stays until the process ends.
    static RUNTIME: &'static Runtime = {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        Box::leak(Box::new(runtime))
    };
}

/// `input` has an answer in each line, the first one to `initialize`. Ids of requests are counted from 1.
pub fn run(input: &[u8]) {
    RUNTIME.with(|runtime| runtime.block_on(agentsvc::fuzzing::mcp_server(input)));
}
