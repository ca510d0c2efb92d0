//! Terminals: shells for administrators, each on a pseudo-terminal and in a sandbox as commands are (spec 3, Remaining routes).

pub mod config;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agentsvc_api::terminal::host::{Opened, Size, Terminal, TerminalPolicy, Terminals};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::config::TerminalSettings;
use crate::kernel::domain::Domain;
use crate::kernel::sandbox::{self, Commands, ServerProgram, TerminalSize};
use crate::kernel::settings::Settings;

/// Shells that are looked for, the best first.
const SHELLS: [&str; 2] = ["bash", "sh"];
/// What programs are told of the terminal.
const TERM: &str = "xterm-256color";

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "terminal",
    open: |opening| {
        opening.provide::<dyn Terminals>(Arc::new(Host {
            settings: opening.settings.clone(),
            commands: opening.commands.clone(),
            directory: opening.home.terminal_dir(),
        }));
        Ok(())
    },
    ..Domain::EMPTY
};

struct Host {
    settings: Settings,
    commands: Commands,
    /// Where shells begin, and what they may change.
    directory: PathBuf,
}

impl Host {
    fn program(&self, settings: &TerminalSettings) -> ServerProgram {
        let has = |shell: &&str| self.commands.has_program(shell);
        let usual = || SHELLS.into_iter().find(has).unwrap_or(SHELLS[1]).to_owned();
        ServerProgram {
            command: settings.shell.as_deref().map_or_else(usual, str::to_owned),
            arguments: Vec::new(),
            directory: self.directory.clone(),
            environment: vec![("TERM".to_owned(), OsString::from(TERM))],
            readable: Vec::new(),
            writable: Vec::new(),
            shown: Vec::new(),
            memory_bytes: None,
            network: settings.network,
        }
    }
}

impl Terminals for Host {
    fn policy(&self) -> TerminalPolicy {
        self.settings.get::<TerminalSettings>().policy()
    }

    fn open(self: Arc<Self>, size: Size) -> BoxFuture<'static, Result<Opened, String>> {
        Box::pin(async move {
            let program = self.program(&self.settings.get::<TerminalSettings>());
            let shell = program.command.clone();
            let terminal = self.commands.terminal(program, sized(size)).await?;
            let pid = terminal.process.id();
            let is_root = rustix::process::geteuid().is_root();
            Ok(Opened { terminal: Box::new(OnScreen(terminal)), shell, pid, is_root })
        })
    }
}

const fn sized(size: Size) -> TerminalSize {
    TerminalSize { columns: size.columns, rows: size.rows }
}

/// A terminal as the API takes it.
struct OnScreen(sandbox::Terminal);

impl Terminal for OnScreen {
    fn resize(&self, size: Size) -> io::Result<()> {
        self.0.screen.resize(sized(size))
    }

    fn ended(&mut self) -> BoxFuture<'_, Option<i32>> {
        Box::pin(self.0.process.exit_code())
    }
}

impl AsyncRead for OnScreen {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.screen).poll_read(cx, into)
    }
}

impl AsyncWrite for OnScreen {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.screen).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.screen).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.screen).poll_shutdown(cx)
    }
}
