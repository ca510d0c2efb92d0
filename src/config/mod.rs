//! `{home}/config.toml`: read, checked, shown and written for the first time.
//!
//! One file per table. Each lists its keys once ([`key`]); parsing, the search for the nearest key, `config show`, the
//! commented file that `init` writes, the JSON Schema ([`schema`]) and what the API may change ([`edit`]) come from
//! that list. Every key is optional. Nothing is accepted that has no meaning: an unknown key is a [`Problem`], a table
//! of a later release is a [`Warning`].

mod approval;
mod audit;
mod backup;
mod budget;
mod catalog;
mod change;
mod default_model;
pub mod edit;
mod exec_policy;
mod file;
mod inputs;
mod key;
mod log;
mod problem;
mod providers;
mod queue;
mod reader;
mod reference;
mod reserved;
mod schema;
mod secret;
mod security;
mod snapshots;
mod template;
mod tool_invoke;
mod top;
mod tree;
mod triggers;
mod uploads;
mod usage;
mod view;
mod web;
mod world;

use std::path::{Path, PathBuf};

use toml::de::DeTable;

pub use self::approval::{Approval, SecondFactor};
pub use self::audit::Audit;
pub use self::backup::Backup;
pub use self::budget::{Budget, Price};
pub use self::catalog::Catalog;
pub use self::change::{ChangeError, changed, has_effect, path_of, value_of, writable};
pub use self::default_model::DefaultModel;
pub(crate) use self::exec_policy::TIMEOUT_SECS_MAX;
pub use self::exec_policy::{ExecMode, ExecPolicy};
pub use self::file::{ConfigFile, Error as FileError};
pub use self::inputs::Inputs;
pub use self::log::{Format, Log};
pub use self::problem::{Place, Problem, Problems, Warning};
pub use self::providers::Provider;
pub(crate) use self::providers::provider_url;
pub use self::queue::{Concurrency, Queue};
pub use self::reference::{KeyLine, key_lines, key_table};
pub use self::schema::schema;
pub use self::secret::Secret;
pub use self::security::Security;
pub use self::snapshots::Snapshots;
pub use self::template::template;
pub use self::tool_invoke::ToolInvoke;
pub use self::top::{Config, LogLevel, Mode};
pub use self::triggers::Triggers;
pub use self::uploads::Uploads;
pub use self::usage::Usage;
pub use self::view::{Difference, toml_of};
pub use self::web::{Web, WebFetch, WebSearch};
pub use self::world::World;

use self::key::Table as _;
use self::problem::Found;
use self::reader::{Findings, Reader};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is wrong in one or more places.
    #[error("{0}")]
    Invalid(Problems),
    /// `--listen` asks for what the configuration forbids.
    #[error("{0}")]
    Listen(String),
}

/// A configuration that passed every check, and what was noticed on the way.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The effective configuration.
    pub config: Config,
    /// What is written but has no effect; shown by `/api/health/detail`.
    pub warnings: Vec<Warning>,
}

/// Reads the file at `path`. A missing file is an empty one.
///
/// # Errors
/// [`Error::Read`] when the system refuses, [`Error::Invalid`] with every problem of the text.
pub fn load(path: &Path) -> Result<Loaded, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(source) => return Err(Error::Read { path: path.to_owned(), source }),
    };
    match String::from_utf8(bytes) {
        Ok(text) => parse(&text, path),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            let found = Found { at: valid, key: String::new(), message: "the file is not UTF-8 text".to_owned() };
            Err(Error::Invalid(Problems::locate(path, &text, vec![found])))
        }
    }
}

/// Checks `text` as if it stood in the file `path`, which only names it in messages.
///
/// # Errors
/// [`Error::Invalid`] with every problem found. When the text is not TOML, only that is reported: what
/// follows from a broken line would mislead.
pub fn parse(text: &str, path: &Path) -> Result<Loaded, Error> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        let found = syntax.iter().map(|error| Found {
            at: error.span().map_or(0, |span| span.start),
            key: String::new(),
            message: format!("not TOML: {}", error.message()),
        });
        return Err(Error::Invalid(Problems::locate(path, text, found.collect())));
    }
    let mut findings = Findings::default();
    let config = Config::read(&mut Reader::new(document.get_ref(), String::new(), top::KEYS, &mut findings));
    if findings.problems.is_empty() {
        Ok(Loaded { config, warnings: Warning::locate(text, findings.warnings) })
    } else {
        Err(Error::Invalid(Problems::locate(path, text, findings.problems)))
    }
}

#[cfg(test)]
mod mistakes_tests;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::{Error, Loaded, Problem, parse};

    fn ok(text: &str) -> Loaded {
        parse(text, Path::new("config.toml")).unwrap()
    }

    fn problems(text: &str) -> Vec<Problem> {
        match parse(text, Path::new("config.toml")) {
            Err(Error::Invalid(problems)) => problems.list,
            other => panic!("expected problems, got {other:?}"),
        }
    }

    #[test]
    fn an_empty_file_is_the_default() {
        let loaded = ok("");
        assert_eq!(loaded.config, super::Config::default());
        assert_eq!(loaded.config.api_listen.to_string(), "127.0.0.1:4545");
        assert_eq!(loaded.config.rate_limit_per_second.get(), 1000);
        assert_eq!(loaded.config.world.tick_hz, 20);
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn an_unknown_key_names_its_place_and_the_nearest_key() {
        let found = &problems("\n  api_lisen = \"127.0.0.1:1\"\n")[0];
        assert_eq!((found.place.line, found.place.column), (2, 3));
        assert_eq!(found.key, "api_lisen");
        assert_eq!(found.message, "unknown key; did you mean `api_listen`?");
    }

    #[test]
    fn a_key_of_another_table_is_pointed_to() {
        let found = problems("[world]\ncors_origin = []\n");
        assert_eq!(found[0].key, "world.cors_origin");
        assert!(found[0].message.contains("did you mean `cors_origin` at top level?"), "{}", found[0].message);
        assert!(problems("tick_hz = 3")[0].message.contains("did you mean `tick_hz` in `[world]`?"));
    }

    #[test]
    fn every_problem_is_reported_in_the_order_of_the_file() {
        let found = problems(
            "rate_limit_per_second = \"many\"\nlog_level = \"loud\"\n[world]\ntick_hz = 1001\n[wrld]\nx = 1\n[queue.concurrency]\nprovider_calls = -1\n",
        );
        let lines: Vec<_> = found.iter().map(|problem| (problem.place.line, problem.key.as_str())).collect();
        let expected = [
            (1, "rate_limit_per_second"),
            (2, "log_level"),
            (4, "world.tick_hz"),
            (5, "wrld"),
            (8, "queue.concurrency.provider_calls"),
        ];
        assert_eq!(lines, expected);
        assert_eq!(found[0].message, "must be an integer, not a string");
        assert_eq!(found[2].message, "must be 1 to 1000");
    }

    #[test]
    fn broken_toml_is_located() {
        let found = problems("api_key = \"a\"\nlog_level = = 1\n");
        assert_eq!(found[0].place.line, 2);
        assert!(found[0].message.starts_with("not TOML: "), "{}", found[0].message);
    }

    #[test]
    fn the_display_of_an_error_is_one_line_per_problem() {
        let error = parse("a = 1\nb = 2\n", Path::new("/x/config.toml")).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 2);
        assert!(error.starts_with("/x/config.toml:1:1: a: unknown key"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_utf8_is_a_problem_with_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, b"api_key = \"a\"\n# \xff\n").unwrap();
        let error = super::load(&path).unwrap_err().to_string();
        assert!(error.contains("config.toml:2:3: the file is not UTF-8 text"), "{error}");
        assert!(super::load(&dir.path().join("none.toml")).is_ok());
    }

    #[test]
    fn errors_never_show_a_secret() {
        let found = problems("api_key = [\"sk-secret\"]\n[default_model]\napi_key_env = \"sk-secret-value\"\n");
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|problem| !problem.message.contains("secret")), "{found:?}");
    }

    #[test]
    fn deep_nesting_is_a_problem_and_not_a_crash() {
        assert!(!problems(&format!("api_listen = {}", "[".repeat(100_000))).is_empty());
        assert!(!problems(&format!("{} = 1", vec!["a"; 100_000].join("."))).is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in ".{0,200}") {
            let _ = parse(&text, Path::new("config.toml"));
        }

        #[test]
        fn text_that_is_nearly_a_config_never_panics(
            lines in proptest::collection::vec(
                "(\\[{0,2}(world|log|providers|providers\\.x|queue\\.concurrency|memory|default_model)\\]{0,2}|\
                 (api_listen|api_key|cors_origin|tick_hz|format|max_bytes|base_url|mcp_servers|é) ?= ?\
                 (\"[^\"\\n]{0,12}\"|-?[0-9_]{1,25}|\\[[\"a, ]{0,6}\\]|true|\\{.{0,6}\\}|1979-05-27))",
                0..12,
            )
        ) {
            let _ = parse(&lines.join("\n"), Path::new("config.toml"));
        }
    }
}
