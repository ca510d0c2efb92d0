//! The command line: the subcommands of all domains, and those of the process itself.
//!
//! All but `start` are clients: they read the home to find the daemon and then speak HTTP with it.

mod cluster;
mod completions;
pub(crate) mod detach;
mod init;
mod open;
mod service;
mod start;
mod stop;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use agentsvc_api::http::operations::Operation;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::config::{Config, Document as _};
use crate::kernel::cli::context::Global;
use crate::kernel::cli::{Context, Error, Example, Group, Subcommand, help, output, request};
use crate::kernel::home::Home;
use crate::kernel::settings::Settings;
use crate::{DOMAINS, install};

/// What `--help` says about exit codes; [`Exit`] is the truth and a test compares them.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure
  2  usage error
  3  the daemon cannot be reached
  4  not found
  5  refused: the API key is missing, wrong or may not do this
  6  conflict: a name or a home is already in use";

/// What `--help` shows of how it is used.
const EXAMPLES: &str = "\
Examples:
  agentsvc start                                  run the daemon; the page is at http://127.0.0.1:4545/
  agentsvc open                                   open the page in the browser
  agentsvc providers set-key openai               use a real model
  agentsvc chat assistant                         talk to an agent
  agentsvc agent create coder --name my-coder     create an agent
  agentsvc schedule create --agent assistant --cron '0 8 * * MON-FRI' --prompt 'What is new?'
  agentsvc approvals list                         pending approvals
  agentsvc backup                                 make a backup
  agentsvc doctor                                 find problems, and how to fix them
  agentsvc agent list --json | jq .               for programs

Run `agentsvc <command> --help` for the options of a command.";

/// The subcommands that belong to no domain.
const OWN: &[Subcommand] = &[
    Subcommand::new::<init::Init>(0, "init", "Create the home and a commented config.toml; existing files are kept")
        .under(Group::Daemon),
    Subcommand::new::<start::Start>(1, "start", "Run the daemon")
        .examples(&[
            Example::new("start", "In this terminal, until Ctrl-C"),
            Example::new("start --detach", "In the background; `agentsvc stop` stops it"),
            Example::new("start --listen 127.0.0.1:8080", "At another address"),
        ])
        .under(Group::Daemon),
    Subcommand::new::<stop::Stop>(2, "stop", "Stop the daemon and wait until it has stopped").under(Group::Daemon),
    Subcommand::new::<open::Open>(63, "open", "Open the page in the browser").under(Group::Daemon),
    Subcommand::new::<service::Service>(4, "service", "Install or remove the daemon as a service of your user")
        .under(Group::Daemon),
    Subcommand::new::<request::Request>(60, "api", "Call any route of the API, and print its JSON").examples(&[
        Example::new("api GET '/api/agents?limit=3'", "Read"),
        Example::new("api POST /api/goals title='Ship it'", "Write"),
    ]),
    Subcommand::group::<cluster::Cluster>(11, "cluster", "Keep one world on several nodes")
        .examples(&[
            Example::new("cluster status", "Show the nodes, and which one owns the world"),
            Example::new("cluster move b", "Let node b own it"),
            Example::new("cluster drain a", "Before node a is updated"),
        ])
        .under(Group::Operations),
    Subcommand::new::<version::Version>(65, "version", "Print the version"),
    Subcommand::new::<completions::Completions>(19, "completions", "Print a completion script for a shell"),
];

/// Every subcommand, in the order of `--help`.
fn subcommands() -> Vec<Subcommand> {
    let brought = DOMAINS.iter().flat_map(|domain| domain.commands);
    let mut all: Vec<Subcommand> = OWN.iter().chain(brought).copied().collect();
    all.sort_by_key(|subcommand| (subcommand.group, subcommand.order));
    all
}

/// What reads the command line.
/// `whole` says of which subcommands it must know those that are made from routes, which takes a while.
fn parser(whole: impl Fn(&Subcommand) -> bool) -> Command {
    Global::augment_args(Command::new("agentsvc"))
        .version(env!("CARGO_PKG_VERSION"))
        .about("Run and supervise AI agents on your own machine")
        .long_about(None::<&str>)
        .help_template(help::TEMPLATE)
        .before_help(listed())
        .after_help(format!("{EXAMPLES}\n\n{EXIT_CODES}"))
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommands(subcommands().iter().map(|subcommand| subcommand.command(whole(subcommand).then_some(routes))))
}

/// The subcommands by their groups.
fn listed() -> String {
    let shown: Vec<Subcommand> = subcommands().into_iter().filter(|subcommand| !subcommand.is_hidden).collect();
    let rows = |group: &Group| {
        let of = shown.iter().filter(|subcommand| subcommand.group == *group);
        (group.as_str(), of.map(|subcommand| (subcommand.name.to_owned(), subcommand.about.to_owned())).collect())
    };
    help::listing(&Group::ALL.iter().map(rows).collect::<Vec<_>>())
}

/// The routes of the API at and under a path.
pub(crate) fn routes(path: &str) -> Vec<Operation> {
    agentsvc_api::DOMAINS.operations(path)
}

/// Reads what the configuration of `home` says to domains.
pub(crate) fn read(home: &Home, settings: &Settings) -> Result<(), Error> {
    let loaded = Config::load(&home.config_file());
    let (config, broken) = match loaded {
        Ok(loaded) => (loaded.config, Ok(())),
        Err(error) => (Config::default(), Err(error.into())),
    };
    config.put_in_force(settings);
    broken
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    install();
    // Wrong usage ends here, with the code of `Exit::Usage`.
    let given = singular(std::env::args_os().collect());
    if given.len() == 1 {
        // What a person types first is no mistake.
        return match output::print(&parser(|_| false).render_help().to_string()) {
            Err(error) if !error.is_broken_pipe() => ExitCode::from(error.exit() as u8),
            _ => ExitCode::SUCCESS,
        };
    }
    let words: Vec<&str> = given.iter().filter_map(|given| given.to_str()).collect();
    let is_meant = |subcommand: &Subcommand| words.iter().any(|it| subcommand.is_called(it) || is_about_all(it));
    let typed = parser(is_meant).get_matches_from(&given);
    match run(&typed) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has left; it has what it wanted.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::from(error.exit() as u8)
        }
    }
}

/// What was typed, with the noun in the singular: `agents list` is `agent list`. No help and no suggestion names the plurals.
fn singular(mut given: Vec<OsString>) -> Vec<OsString> {
    let takes_value =
        |given: &OsString| given.to_str().is_some_and(|it| ["--home", "--url", "--api-key"].contains(&it));
    let is_option = |given: &OsString| given.to_string_lossy().starts_with('-');
    let noun = (1..given.len()).find(|at| !is_option(&given[*at]) && !takes_value(&given[*at - 1]));
    let Some((noun, typed)) = noun.and_then(|noun| Some((noun, given[noun].to_str()?))) else { return given };
    let all = subcommands();
    let single = typed.strip_suffix('s').filter(|_| !all.iter().any(|subcommand| subcommand.is_called(typed)));
    if let Some(single) = single
        && let Some(meant) = all.iter().find(|subcommand| subcommand.is_noun() && subcommand.is_called(single))
    {
        given[noun] = meant.name.into();
    }
    given
}

/// True for words with which all subcommands are printed.
fn is_about_all(given: &str) -> bool {
    matches!(given, "help" | "completions")
}

fn run(typed: &ArgMatches) -> Result<(), Error> {
    let usage = |error: clap::Error| Error::Usage(error.to_string());
    let context = Context::new(Global::from_arg_matches(typed).map_err(usage)?, read, routes);
    let Some((name, options)) = typed.subcommand() else { return Err(Error::Usage(EXIT_CODES.to_owned())) };
    let found = subcommands().into_iter().find(|subcommand| subcommand.name == name);
    let unknown = || Error::Usage(format!("unknown subcommand {name}"));
    found.ok_or_else(unknown)?.run(options, &context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cli::Exit;

    fn parse(line: &str) -> Result<ArgMatches, clap::Error> {
        parser(|_| true).try_get_matches_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_is_sound() {
        parser(|_| true).debug_assert();
    }

    #[test]
    fn every_exit_code_is_in_the_help() {
        for exit in [Exit::Failure, Exit::Usage, Exit::Unreachable, Exit::NotFound, Exit::Refused, Exit::Conflict] {
            assert!(EXIT_CODES.contains(&format!("\n  {}  ", exit as u8)), "{exit:?}");
        }
        assert_eq!(parse("agentsvc nonsense").unwrap_err().exit_code(), i32::from(Exit::Usage as u8));
    }

    #[test]
    fn the_help_lists_each_command_once() {
        let help = parser(|_| false).render_help().to_string();
        for listed in ["\n  init  ", "\n  workflow  ", "\n  version  ", "--home <DIR>", "--json  "] {
            assert_eq!(help.matches(listed).count(), 1, "{listed}: {help}");
        }
    }

    /// The words of an example. Quotes keep spaces, and what follows `<` or `|` is for the shell.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for character in line.split(['<', '|']).next().unwrap_or_default().trim().chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut().unwrap().push(character),
            }
        }
        words
    }

    #[test]
    fn examples_are_understood() {
        let shown = subcommands();
        let lines = shown.iter().flat_map(|subcommand| subcommand.shown_examples()).map(|example| example.line);
        let of_all = EXAMPLES.lines().filter_map(|line| line.trim().strip_prefix("agentsvc "));
        // What it does stands behind two spaces.
        let of_all = of_all.map(|line| line.split("  ").next().unwrap());
        let lines: Vec<&str> = lines.chain(of_all).collect();
        assert!(lines.len() > 20);
        for line in lines {
            let parsed = parser(|_| true).try_get_matches_from(words(&format!("agentsvc {line}")));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn long_lists_have_headings() {
        for subcommand in subcommands() {
            let command = subcommand.command(Some(routes));
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let headed: Vec<&str> = subcommand.headings().iter().flat_map(|(_, names)| *names).copied().collect();
            assert!(names.len() <= 12 || !headed.is_empty(), "{}: {} in one list", subcommand.name, names.len());
            let missing: Vec<&&str> = headed.iter().filter(|name| !names.contains(name)).collect();
            assert!(missing.is_empty(), "{}: {missing:?} are under a heading only", subcommand.name);
            let bare: Vec<&&str> = names.iter().filter(|name| !headed.contains(name)).collect();
            assert!(headed.is_empty() || bare.is_empty(), "{}: {bare:?} are under no heading", subcommand.name);
        }
        let help = parser(|_| true).try_get_matches_from(["agentsvc", "agent", "--help"]).unwrap_err().to_string();
        let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
        assert!(place("\nAgents:\n  create ") < place("\nTalk:\n") && place("\nTalk:\n") < place("\nOptions:\n"));
        assert!(place("Examples:\n  # ") < place("Run `agentsvc agent <command> --help`"));
        assert_eq!(help.matches("\n  sessions-switch ").count(), 1);
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        let before = parse("agentsvc --json --home /x status").unwrap();
        let after = parse("agentsvc status --json --home /x").unwrap();
        let global = |typed| Global::from_arg_matches(&typed).unwrap();
        let (before, after) = (global(before), global(after));
        assert!(before.json && after.json);
        assert_eq!(before.home, after.home);
    }

    #[test]
    fn a_noun_is_understood_in_the_plural() {
        let of = |line: &str| {
            let words = singular(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("agentsvc agents list"), "agentsvc agent list");
        assert_eq!(of("agentsvc --home agents --json goals show keys"), "agentsvc --home agents --json goal show keys");
        for line in ["agentsvc", "agentsvc --json", "agentsvc models list", "agentsvc backups", "agentsvc nonsense"] {
            assert_eq!(of(line), line);
        }
    }

    #[test]
    fn every_subcommand_parses() {
        for line in [
            "init",
            "start --listen 127.0.0.1:0 --log-format json",
            "start --detach",
            "stop",
            "service install --print",
            "service uninstall",
            "open --print",
            "version",
            "models list",
            "event create --event-type deployed",
            "audit list --limit 3",
            "audit ls",
            "approval show 01890000-0000-7000-8000-000000000000",
            "history --step day",
            "budget list",
            "status",
            "agent create a.toml",
            "agent new --name a --model m --provider p --prompt x",
            "agent delete a",
            "event list -n 5 --kind turn_failed",
            "agent list --limit 3",
            "agent show a",
            "agent kill a b",
            "chat",
            "chat a --session 01890000-0000-7000-8000-000000000000",
            "chat a --session work",
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
        assert_eq!(parse("agentsvc chat").unwrap().subcommand_name(), Some("chat"));
    }
}
