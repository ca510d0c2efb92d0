//! The command line. One file per subcommand, one line in [`Command`] and one in its `run`.
//!
//! All but `start` are clients: they read the home to find the daemon and then speak HTTP with it.

mod completions;
mod config;
mod init;
mod start;
mod stop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use self::start::Daemon;
pub(crate) use self::start::secrets;
pub use crate::kernel::cli::error::{Error, Exit};

use crate::kernel::cli::context::{Context, Global};

/// What `--help` says about exit codes; [`Exit`] is the truth and a test compares them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it failed
  2  wrong usage
  3  the daemon cannot be reached
  4  not found
  5  refused: the key is missing or wrong
  6  conflict with what is there";

/// A daemon that hosts LLM-driven agents.
#[derive(Debug, Parser)]
#[command(name = "agentsvc", version, about, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create the home and a commented config.toml; what exists is kept.
    Init(init::Init),
    /// Run the daemon in the foreground.
    Start(start::Start),
    /// Stop the daemon and wait for its end.
    Stop(stop::Stop),
    /// Show whether the daemon runs, and how it is.
    Status(crate::world::cli::Status),
    /// Create, list, show and kill agents.
    #[command(subcommand)]
    Agent(crate::agent::cli::Agent),
    /// Talk with an agent.
    Chat(crate::chat::cli::Chat),
    /// Send one message and print the answer.
    Message(crate::turn::message::Message),
    /// List the models of the catalog: what they cost and can do.
    Models(crate::model::cli::Models),
    /// Print the log, or follow it.
    Logs(crate::log::cli::Logs),
    /// Show, check or change the configuration.
    #[command(subcommand)]
    Config(config::Config),
    /// Take, list, delete and restore snapshots of the whole world.
    #[command(subcommand)]
    Snapshot(crate::snapshot::cli::Snapshot),
    /// Make, list and delete backups: the whole home in one file.
    Backup(crate::backup::cli::Backup),
    /// Restore a backup into the running daemon, or into a home that no daemon has.
    Restore(crate::backup::cli::restore::Restore),
    /// Take over agents, skills and conversations of other programs.
    #[command(subcommand)]
    Migrate(crate::migration::cli::Migrate),
    /// Look for what is wrong with the home, the machine and the providers, and say what mends it.
    Doctor(crate::doctor::cli::Doctor),
    /// List, test and sign in at model providers, and set their keys.
    #[command(subcommand)]
    Providers(crate::provider::cli::Providers),
    /// Run a copy of the world ahead: what will fire, overlap, run out of budget, and what it will cost.
    Rehearse(crate::rehearsal::cli::Rehearse),
    /// Live through steps of the world again and compare; the daemon may run.
    Replay(crate::replay::cli::Replay),
    /// Ask the running world for entities and figures over them.
    Query(crate::query::cli::Query),
    /// Print a completion script for a shell.
    Completions(completions::Completions),
    /// Write the text of a PDF on stdin to stdout; the daemon starts it for attachments.
    #[command(hide = true)]
    PdfText(crate::upload::cli::PdfText),
}

impl Command {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Init(command) => command.run(context),
            Self::Start(command) => command.run(context),
            Self::Stop(command) => command.run(context),
            Self::Status(command) => command.run(context),
            Self::Agent(command) => command.run(context),
            Self::Chat(command) => command.run(context),
            Self::Message(command) => command.run(context),
            Self::Models(command) => command.run(context),
            Self::Logs(command) => command.run(context),
            Self::Config(command) => command.run(context),
            Self::Snapshot(command) => command.run(context),
            Self::Backup(command) => command.run(context),
            Self::Restore(command) => command.run(context),
            Self::Migrate(command) => command.run(context),
            Self::Doctor(command) => command.run(context),
            Self::Providers(command) => command.run(context),
            Self::Rehearse(command) => command.run(context),
            Self::Replay(command) => command.run(context),
            Self::Query(command) => command.run(context),
            Self::Completions(command) => command.run(context),
            Self::PdfText(command) => command.run(context),
        }
    }
}

/// The configuration of a home; that of one without a file is the default.
pub(crate) fn config_of(home: &crate::kernel::home::Home) -> Result<crate::config::Config, Error> {
    Ok(crate::config::load(&home.config_file())?.config)
}

/// Runs the command line of this process; `daemon` is what `start` hands over to.
#[must_use]
pub fn main(daemon: Daemon) -> ExitCode {
    // Wrong usage ends here, with the code of `Exit::Usage`.
    let Cli { global, command } = Cli::parse();
    match command.run(&Context::new(global, daemon)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has left; it has what it wanted.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            crate::kernel::cli::output::complain(&error.to_string());
            ExitCode::from(error.exit() as u8)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Command, EXIT_CODES, Exit};

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for exit in [Exit::Failure, Exit::Usage, Exit::Unreachable, Exit::NotFound, Exit::Refused, Exit::Conflict] {
            assert!(EXIT_CODES.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
        assert_eq!(parse("agentsvc nonsense").unwrap_err().exit_code(), i32::from(Exit::Usage as u8));
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        let before = parse("agentsvc --json --home /x status").unwrap();
        let after = parse("agentsvc status --json --home /x").unwrap();
        assert!(before.global.json && after.global.json);
        assert_eq!(before.global.home, after.global.home);
    }

    #[test]
    fn every_subcommand_parses() {
        for line in [
            "init",
            "start --listen 127.0.0.1:0 --log-format json",
            "stop",
            "status",
            "agent new a.toml",
            "agent new --name a --model m --provider p --prompt x",
            "agent list --limit 3",
            "agent show a",
            "agent kill a b",
            "chat",
            "chat a --session 01890000-0000-7000-8000-000000000000",
            "message a - --stream",
            "logs -f -n 5",
            "config show",
            "config check",
            "backup",
            "backup create",
            "backup list --json",
            "backup delete agentsvc-1.tar.zst",
            "restore agentsvc-1.tar.zst --dry-run --keep-config --components agents,skills",
            "migrate detect",
            "snapshot create --label x",
            "snapshot list",
            "snapshot delete 01890000-0000-7000-8000-000000000000",
            "snapshot restore 01890000-0000-7000-8000-000000000000 --apply",
            "migrate run /x --agents --apply",
            "doctor --offline --json",
            "providers list --usable",
            "providers set-key openai",
            "providers remove-key openai",
            "providers test openai --model m",
            "providers login github-copilot",
            "config get log_level",
            "config set log_level debug",
            "config set log_level --unset",
            "config reload",
            "config schema",
            "config keys",
            "rehearse --for 7d --model recorded --seed 3 --csv /x",
            "rehearse --until 2026-12-01T00:00:00Z --json",
            "replay",
            "replay --from 3 --to 9 --at 4 --json",
            "replay --to 9 --out world.rows.zst",
            "query agents --csv",
            "query agents --watch --every 5s --json",
            "completions bash",
            "pdf-text",
        ] {
            assert!(parse(&format!("agentsvc {line}")).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "providers set-key openai sk-1",
            "agent new",
            "agent kill",
            "rehearse",
            "rehearse --for 7d --until 2026-12-01T00:00:00Z",
            "backup delete",
            "restore",
            "message a",
            "chat a --session x",
            "query",
            "query agents --csv --watch",
            "query agents --every 5s",
            "start --log-format xml",
            "logs -n x",
            "replay --out x",
            "replay --to x",
        ] {
            assert!(parse(&format!("agentsvc {line}")).is_err(), "{line}");
        }
        assert!(matches!(parse("agentsvc chat").unwrap().command, Command::Chat(_)));
    }
}
