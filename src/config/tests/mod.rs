//! The whole file: what is read, what is refused and with which words, and what is made of the keys.

mod changes;
mod edits;
mod keys;
mod merged;
mod mistakes;
mod models;
mod schemas;
mod shown;

use std::path::Path;

use proptest::prelude::*;

use super::{Config, Document, Error, Loaded, Problem, origin};

fn parse(text: &str, path: &Path) -> Result<Loaded, Error> {
    Config::parse(text, path)
}

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
    assert_eq!(loaded.config, Config::default());
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
    assert!(found[0].message.contains("did you mean the top-level key `cors_origin`?"), "{}", found[0].message);
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
    let error = Config::load(&path).unwrap_err().to_string();
    assert!(error.contains("config.toml:2:3: the file is not UTF-8 text"), "{error}");
    assert!(Config::load(&dir.path().join("none.toml")).is_ok());
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

fn read(text: &str) -> Result<Loaded, String> {
    parse(text, Path::new("c")).map_err(|error| error.to_string())
}

#[test]
fn an_open_address_beyond_loopback_is_refused() {
    let error = read("api_listen = \"0.0.0.0:4545\"\n").unwrap_err();
    assert!(error.starts_with("c:1:14: api_listen: 0.0.0.0:4545 accepts connections from other machines"), "{error}");
    let keyed = |bytes: usize| read(&format!("api_listen = \"0.0.0.0:4545\"\napi_key = \"{}\"\n", "k".repeat(bytes)));
    let error = keyed(31).unwrap_err();
    assert!(error.contains("an `api_key` of at least 32 characters, not 31; run `agentsvc init --key`"), "{error}");
    assert!(keyed(32).unwrap().warnings.is_empty());
    let local = read("api_key = \"k\"\n").unwrap().warnings;
    assert!(local.len() == 1 && local[0].to_string().contains("`api_key` has fewer than 32 characters"), "{local:?}");
    assert!(read("api_listen = \"[::1]:0\"\n").is_ok());
    assert!(read("api_listen = \"[::ffff:127.0.0.1]:0\"\n").is_ok());
    assert!(read("api_listen = \"localhost:80\"\n").is_ok());
    assert!(Config::default().with_listen("0.0.0.0:1").is_err());
    assert!(Config::default().with_listen("nonsense").is_err());
    assert_eq!(Config::default().with_listen("127.0.0.1:0").unwrap().api_listen.port(), 0);
}

#[test]
fn origins_are_exact() {
    assert_eq!(origin("https://Chat.example.org").unwrap().as_ref(), "https://chat.example.org");
    assert_eq!(origin("http://localhost:3000/").unwrap().as_ref(), "http://localhost:3000");
    assert!(["*", "chat.example.org", "https://x/path", "ftp://x"].into_iter().all(|text| origin(text).is_err()));
    assert!(read("cors_origin = [\"https://a\", 3]\n").unwrap_err().contains("must be a list of strings"));
}

#[test]
fn what_has_no_effect_is_said() {
    let warnings = read("mode = \"stable\"\nnetwork_enabled = true\n").unwrap().warnings;
    assert_eq!(warnings.len(), 2, "the mode, and a network without a secret");
    assert!(read("mode = \"default\"\n").unwrap().warnings.is_empty());
    assert!(read("mode = \"stabel\"\n").unwrap_err().contains("did you mean `stable`?"));
}

#[test]
fn secrets_are_never_shown() {
    let config = read("api_key = \"hunter2\"\n").unwrap().config;
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(!toml::to_string(&config).unwrap().contains("hunter2"));
    assert!(toml::to_string(&config).unwrap().contains("api_key = \"***\""));
}

#[test]
fn reserved_tables_warn_and_do_not_stop() {
    let text = "[compaction.agent]\nx = 1\n[[compaction.more]]\nname = \"a\"\n";
    let loaded = parse(text, Path::new("config.toml")).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    let expected = ["line 1: table [compaction] has no effect in this release"];
    assert_eq!(warnings, expected);
}

#[test]
fn a_reserved_name_must_still_be_a_table() {
    let error = parse("compaction = 3\n", Path::new("config.toml")).unwrap_err().to_string();
    assert_eq!(error, "config.toml:1:14: compaction: must be a table, not an integer");
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
