//! `providers set-key` and `providers remove-key`. A key is never an argument: those stand in the shell's history and in the
//! list of processes.

use std::io::{self, BufRead, IsTerminal};
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;
use zeroize::Zeroizing;

use super::path;
use crate::kernel::cli::Error;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;

/// Options of `providers set-key`.
#[derive(Debug, Args)]
pub(crate) struct SetKey {
    /// The provider, such as openai
    provider: String,
}

impl SetKey {
    /// Reads the first line of standard input and keeps it as the key.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let key = read()?;
        if key.trim().is_empty() {
            return Err(Error::Usage("no key on standard input".to_owned()));
        }
        let body = json!({ "api_key": key.trim() });
        let answer = context.block_on(client.post(&path(&self.provider, "/key"), Some(&body)))?;
        context.print(&answer, |_| format!("stored the key of {}\n", self.provider))
    }
}

/// Options of `providers remove-key`.
#[derive(Debug, Args)]
pub(crate) struct RemoveKey {
    /// The provider
    provider: String,
}

impl RemoveKey {
    /// Forgets the key.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let answer = context.block_on(client.delete(&path(&self.provider, "/key")))?;
        context.print(&answer, |_| format!("deleted the key of {}\n", self.provider))
    }
}

/// One line of standard input; a terminal does not show it.
fn read() -> Result<Zeroizing<String>, Error> {
    let _silent = io::stdin().is_terminal().then(|| {
        output::note("Paste the key and press Enter. The key is not displayed.");
        Silent::begin()
    });
    let mut line = Zeroizing::new(String::new());
    io::stdin().lock().read_line(&mut line).map_err(Error::io("cannot read standard input"))?;
    Ok(line)
}

/// While it lives, the terminal does not show what is typed; where `stty` is missing it does.
struct Silent;

impl Silent {
    fn begin() -> Self {
        stty("-echo");
        Self
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        stty("echo");
    }
}

fn stty(mode: &str) {
    let _shown_then = Command::new("stty").arg(mode).stdin(Stdio::inherit()).stderr(Stdio::null()).status();
}
