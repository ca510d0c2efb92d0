//! One key changes and the rest of the file stays.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::config::edit::{joined, segments, set};
use crate::config::{Config, Document};
use crate::kernel::config::{Table, tree};

#[track_caller]
fn edited(text: &str, path: &str, value: Value) -> String {
    set(text, &segments(path).unwrap(), &value).unwrap()
}

#[test]
fn paths_are_read_with_quotes() {
    let read = |path: &str| segments(path).map(|path| path.join("|"));
    assert_eq!(read("default_model.model").unwrap(), "default_model|model");
    assert_eq!(read("prices.\"openai/gpt-4.1\".input_per_m").unwrap(), "prices|openai/gpt-4.1|input_per_m");
    assert_eq!(read("prices.openai/gpt.input_per_m").unwrap(), "prices|openai/gpt|input_per_m");
    for wrong in ["", ".", "a.", ".a", "a..b", "\"a", "\"a\"b", "\"\"", "a\n"] {
        assert!(segments(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(joined(&["prices", "a/b.c", "x"]), "prices.\"a/b.c\".x");
}

#[test]
fn a_value_changes_in_its_place_and_nothing_else() {
    let text = "# mine\napi_key = 'k' # keep\n\n[default_model] # who\nmodel   =  \"a\"   # why\nprovider = 'x'\n";
    assert_eq!(
        edited(text, "default_model.model", json!("b")),
        "# mine\napi_key = 'k' # keep\n\n[default_model] # who\nmodel   =  \"b\"   # why\nprovider = 'x'\n"
    );
    assert_eq!(edited("world = { tick_hz = 20 } # x\n", "world.tick_hz", json!(30)), "world = { tick_hz = 30 } # x\n");
    assert_eq!(edited("world.tick_hz = 20\n", "world.tick_hz", json!(30)), "world.tick_hz = 30\n");
    assert_eq!(edited("cors_origin = [\n  \"a\", # one\n]\n", "cors_origin", json!(["b"])), "cors_origin = [\"b\"]\n");
}

#[test]
fn line_ends_stay_as_they_are() {
    let text = "# top\r\nlog_level = \"info\" # keep\r\n\r\n[world]\r\ntick_hz = 20\r\n";
    assert_eq!(edited(text, "world.tick_hz", json!(30)), text.replace("20", "30"));
    assert_eq!(edited(text, "usage.retention_days", json!(7)), format!("{text}\r\n[usage]\r\nretention_days = 7\r\n"));
    let windows = Config::template().replace('\n', "\r\n");
    let expected = windows.replace("#log_level = \"info\"", "log_level = \"warn\"");
    assert_eq!(edited(&windows, "log_level", json!("warn")), expected);
}

#[test]
fn what_changes_nothing_leaves_the_text_as_it_is() {
    let text = "[world]\r\ntick_hz = 2_0 # odd\r\n";
    assert_eq!(edited(text, "world.tick_hz", json!(20)), text);
    assert_eq!(edited(text, "log_level", Value::Null), text);
    assert_eq!(edited(text, "web.fetch.max_bytes", Value::Null), text);
}

#[test]
fn a_new_key_goes_to_its_table_or_makes_one() {
    let text = "log_level = \"info\"\n\n[world]\ntick_hz = 20\n\n# the log\n[log]\n";
    assert_eq!(
        edited(text, "log.format", json!("json")),
        "log_level = \"info\"\n\n[world]\ntick_hz = 20\n\n# the log\n[log]\nformat = \"json\"\n"
    );
    assert_eq!(
        edited(text, "mode", json!("dev")),
        "log_level = \"info\"\nmode = \"dev\"\n\n[world]\ntick_hz = 20\n\n# the log\n[log]\n"
    );
    assert_eq!(edited(text, "usage.retention_days", json!(7)), format!("{text}\n[usage]\nretention_days = 7\n"));
    assert_eq!(edited("", "log_level", json!("warn")), "log_level = \"warn\"\n");
    let named = edited("", "prices.\"openai/gpt-4.1\".input_per_m", json!(1.5));
    assert_eq!(named, "[prices.\"openai/gpt-4.1\"]\ninput_per_m = 1.5\n");
    let inner = edited("[queue.concurrency]\nprovider_calls = 3\n", "queue.claim_timeout_secs", json!(5));
    let queue = Config::parse(&inner, Path::new("c")).unwrap().config.queue;
    assert_eq!((queue.claim_timeout_secs, queue.concurrency.provider_calls), (5, 3), "{inner}");
}

#[test]
fn in_the_first_file_the_commented_line_is_used() {
    let text = edited(&Config::template(), "log_level", json!("warn"));
    assert_eq!(text, Config::template().replace("#log_level = \"info\"", "log_level = \"warn\""));
    let text = edited(&text, "world.tick_hz", json!(30));
    assert!(text.contains("\n[world]\n\n# Ticks per second, 1 to 1000.\ntick_hz = 30\n"), "{text}");
    // A key at the end of the file belongs to the top level as long as no table is open before it.
    let mine = format!("{}mode = \"default\"\n", Config::template());
    let text = edited(&mine, "world.tick_hz", json!(30));
    assert!(text.ends_with("mode = \"default\"\n\n[world]\ntick_hz = 30\n"), "{text}");
}

#[test]
fn every_key_of_the_first_file_can_be_set() {
    for (path, key) in tree::leaves(Config::KEYS) {
        let value: toml::Table = format!("value = {}", key.value()).parse().unwrap();
        let path = path.replace("providers.<name>", "providers.openai").replace("<name>", "a/b");
        let value = serde_json::to_value(&value["value"]).unwrap();
        let is_of_tables = value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
        if value.is_object() || is_of_tables {
            continue;
        }
        let text = edited(&Config::template(), &path, value.clone());
        let loaded: toml::Table = text.parse().unwrap();
        let found = path.split('.').try_fold(&toml::Value::Table(loaded.clone()), |at, name| at.get(name)).cloned();
        assert_eq!(serde_json::to_value(found.unwrap()).unwrap(), value, "{path}");
        assert_eq!(loaded.len(), 1, "{path}: nothing else is set");
    }
}

#[test]
fn a_key_that_is_taken_out_leaves_the_comments() {
    let text = "# level\nlog_level = \"warn\" # loud\n[world]\n# beats\ntick_hz = 30\n";
    assert_eq!(edited(text, "world.tick_hz", Value::Null), "# level\nlog_level = \"warn\" # loud\n[world]\n# beats\n");
    assert_eq!(edited(text, "log_level", Value::Null), "# level\n[world]\n# beats\ntick_hz = 30\n");
    assert_eq!(
        edited("web = { fetch = { max_bytes = 2048, timeout_secs = 3 } }\n", "web.fetch.max_bytes", Value::Null)
            .parse::<toml::Table>()
            .unwrap(),
        "web = { fetch = { timeout_secs = 3 } }\n".parse::<toml::Table>().unwrap()
    );
}

#[test]
fn what_has_no_form_in_the_file_is_refused() {
    let refused = |text: &str, path: &str, value: Value| set(text, &segments(path).unwrap(), &value).unwrap_err();
    assert!(refused("", "log_level", json!({ "a": 1 })).contains("must be a string"));
    assert!(refused("", "log_level", json!([null])).contains("must be a string"));
    assert!(refused("", "world.tick_hz", json!(u64::MAX)).contains("too large"));
    assert!(refused("= 1", "log_level", json!("info")).contains("not valid TOML"));
    assert!(refused("world = 1", "world.tick_hz", json!(1)).contains("not a table"));
}

proptest! {
    #[test]
    fn whatever_is_set_is_read_again_and_comments_stay(
        text in "([a-z \"\\\\]|\\PC){0,20}", number in 1_u32..1000, fresh in any::<bool>()
    ) {
        let base = if fresh { Config::template() } else { "# top\n\n[world] # w\n# beats\ntick_hz = 1 # t\n".to_owned() };
        let one = edited(&base, "default_model.model", json!(text));
        let two = edited(&one, "world.tick_hz", json!(number));
        let table: toml::Table = two.parse().unwrap();
        prop_assert_eq!(table["default_model"]["model"].as_str(), Some(text.as_str()));
        prop_assert_eq!(table["world"]["tick_hz"].as_integer(), Some(i64::from(number)));
        let comments = |text: &str| text.lines().filter(|line| line.starts_with("# ")).count();
        prop_assert_eq!(comments(&two), comments(&base));
    }
}
