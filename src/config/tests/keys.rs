//! What is made of the keys: the tree, the first file and the documentation.

use std::path::Path;

use crate::config::{Config, Document};
use crate::kernel::config::tree::{Place, find, leaves, sections};
use crate::kernel::config::{Kind, Table};

#[test]
fn paths_lead_to_keys_tables_or_nothing() {
    let at = |path: &str| match find(Config::KEYS, &path.split('.').collect::<Vec<_>>()) {
        Place::Leaf(key) => key.name,
        Place::Table => "a table",
        Place::Nothing => "nothing",
    };
    for (path, expected) in [
        ("log_level", "log_level"),
        ("log_level.x", "nothing"),
        ("default_model", "a table"),
        ("default_model.model", "model"),
        ("default_model.modle", "nothing"),
        ("providers", "a table"),
        ("providers.mine", "a table"),
        ("providers.mine.base_url", "base_url"),
        ("queue.concurrency", "a table"),
        ("queue.concurrency.providers", "a table"),
        ("queue.concurrency.providers.openai", "providers"),
        ("queue.concurrency.providers.openai.x", "nothing"),
        ("memory", "a table"),
        ("compaction", "nothing"),
        ("", "nothing"),
    ] {
        assert_eq!(at(path), expected, "{path}");
    }
    assert!(leaves(Config::KEYS).iter().any(|(path, _)| path == "providers.<name>.base_url"));
}

#[test]
fn sections_stand_in_the_order_of_the_file() {
    let names: Vec<_> = sections(Config::KEYS).into_iter().map(|section| section.name).collect();
    assert_eq!(names[..3], ["", "default_model", "providers.openai"]);
    assert!(names.iter().any(|name| name == "queue.concurrency") && !names.iter().any(|name| name == "web"));
}

#[test]
fn as_written_it_is_the_default() {
    let loaded = Config::parse(&Config::template(), Path::new("c")).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.warnings.is_empty());
}

#[test]
fn every_key_can_be_uncommented() {
    let lines = Config::template();
    let lines: Vec<_> =
        lines.lines().map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line)).collect();
    let loaded = Config::parse(&lines.join("\n"), Path::new("c")).unwrap();
    let default = Config::default();
    assert_eq!(loaded.config.api_listen, default.api_listen);
    assert_eq!(loaded.config.world, default.world);
    assert_eq!(loaded.config.rate_limit_per_second, default.rate_limit_per_second);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn the_documentation_is_what_the_keys_say() {
    let page = include_str!("../../../docs/configuration.md");
    assert!(
        page.contains(&Config::key_table()),
        "docs/configuration.md must hold this table:\n{}",
        Config::key_table()
    );
    assert!(
        page.contains(&Config::template()),
        "docs/configuration.md must hold the first file:\n{}",
        Config::template()
    );
}

#[test]
fn a_range_that_a_text_names_is_the_real_one() {
    let mut checked = 0;
    for (path, key) in leaves(Config::KEYS) {
        let Kind::Integer { min, max } = key.kind else { continue };
        let words: Vec<_> = key.about.split(' ').map(|word| word.trim_end_matches([',', ';', '.'])).collect();
        for range in words.windows(3).filter(|words| words[1] == "to") {
            let (Ok(first), Ok(last)) = (range[0].parse::<u64>(), range[2].parse::<u64>()) else { continue };
            assert_eq!((first, last), (min, max), "{path}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}
