//! One key is changed, over the API or from the command line.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::{ChangeError, Config, Editable};
use crate::kernel::config::{Kind, Table, Writes, tree};

fn change(text: &str, path: &str, value: Value) -> Result<String, String> {
    let changed = Config::changed(text, &Config::path_of(path).unwrap(), &value, Path::new("c"));
    changed.map(|(text, _)| text).map_err(|error| error.to_string())
}

#[test]
fn what_a_client_may_write_is_a_short_list() {
    let may =
        |path: &str| Config::path_of(path).and_then(|path| Config::writable(&path)).map_err(|error| error.to_string());
    for path in [
        "log_level",
        "default_model.model",
        "default_model.provider",
        "exec_policy.timeout_secs",
        "web.fetch.max_chars",
    ] {
        may(path).unwrap();
    }
    for (path, why) in [
        ("default_model", "is a table"),
        ("providers", "is a table"),
        ("providers.openai", "is a table"),
        ("api_key", "is a credential"),
        ("default_model.api_key_env", "is a credential"),
        ("providers.openai.api_key_env", "is a credential"),
        ("web.search.api_key_env", "is a credential"),
        ("api_listen", "daemon's environment"),
        ("data_dir", "daemon's environment"),
        ("default_model.base_url", "daemon's environment"),
        ("exec_policy.mode", "limits what clients and agents can do"),
        ("approval.second_factor", "limits what clients and agents can do"),
        ("cors_origin", "limits what clients and agents can do"),
        ("queue.concurrency.providers.openai", "more than 3 segments"),
        ("network.shared_secret", "is a credential"),
        ("network_enabled", "limits what clients and agents can do"),
        ("terminal.enabled", "limits what clients and agents can do"),
        ("nothing", "unknown configuration key"),
        ("log_level.x", "unknown configuration key"),
    ] {
        let said = may(path).unwrap_err();
        assert!(said.contains(why), "{path}: {said}");
    }
    assert!(matches!(Config::path_of("a..b"), Err(ChangeError::Path(_))));
}

#[test]
fn no_secret_can_be_written() {
    for (path, key) in tree::leaves(Config::KEYS) {
        let is_secret = matches!(key.kind, Kind::Secret | Kind::Variable | Kind::Url) || path.ends_with("_env");
        assert!(!is_secret || key.writes != Writes::Api, "{path}");
    }
}

#[test]
fn what_is_typed_is_read_as_the_key_wants_it() {
    let read = |path: &str, text: &str| Config::value_of(&Config::path_of(path).unwrap(), text);
    for (path, text, expected) in [
        ("log_level", "debug", json!("debug")),
        ("log_level", "\"debug\"", json!("debug")),
        ("default_model.model", "5", json!("5")),
        ("world.tick_hz", "30", json!(30)),
        ("world.tick_hz", "many", json!("many")),
        ("budget.daily_limit_usd", "1.5", json!(1.5)),
        ("cors_origin", "[\"https://a\"]", json!(["https://a"])),
        ("exec_policy.require_landlock", "true", json!(true)),
    ] {
        assert_eq!(read(path, text), expected, "{path} {text}");
    }
}

#[test]
fn a_value_that_the_key_cannot_have_is_named() {
    assert_eq!(change("", "world.tick_hz", json!(30)).unwrap(), "[world]\ntick_hz = 30\n");
    for (path, value, expected) in [
        ("world.tick_hz", json!(0), "world.tick_hz: must be 1 to 1000"),
        ("world.tick_hz", json!("x"), "world.tick_hz: must be an integer, not a string"),
        ("world.tick_hz", json!(1.5), "world.tick_hz: must be an integer, not a float"),
        ("log_level", json!("loud"), "log_level: must be one of"),
        ("log_level", json!({}), "log_level: must be a string, a number"),
        ("default_model.provider", json!("opnai"), "did you mean `openai`?"),
        ("default_model.provider", json!("ollama"), "needs `model`"),
        ("prices.gpt.input_per_m", json!(1), "must be named"),
        ("default_model.model", json!("x".repeat(2 << 20)), "would make the file larger than 1048576 bytes"),
    ] {
        let said = change("", path, value).unwrap_err();
        assert!(said.contains(expected), "{path}: {said}");
    }
}

#[test]
fn a_file_that_is_wrong_elsewhere_has_to_be_put_right_first() {
    let text = "log_level = \"loud\"\n[world]\ntick_hz = 0\n";
    let error = Config::changed(text, &Config::path_of("mode").unwrap(), &json!("dev"), Path::new("c")).unwrap_err();
    assert!(matches!(&error, ChangeError::Broken(problems) if problems.list.len() == 2), "{error}");
    let one = "[world]\ntick_hz = 0\n";
    assert_eq!(change(one, "world.tick_hz", json!(5)).unwrap(), "[world]\ntick_hz = 5\n");
    assert!(change("nonsense", "world.tick_hz", json!(5)).unwrap_err().contains("not TOML"));
}
