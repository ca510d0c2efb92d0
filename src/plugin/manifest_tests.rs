//! What a `plugin.toml` says, in both places.

use super::*;

const WHOLE: &str = r#"
name = "notes"
version = "0.3.0"
description = "Keeps notes"
author = "someone"
requirements = "requirements.txt"
librefang_min_version = "2026.4.0"
plugin_depends = ["base"]

[hooks]
ingest = "hooks/ingest.py"
after_turn = "./hooks/after_turn.py"
runtime = "py"
hook_timeout_secs = 5
on_hook_failure = "abort"
max_retries = 2
retry_delay_ms = 10
priority = -3
ingest_filter = "note"
ingest_regex = "^[a-z]"
only_for_agent_ids = ["scout"]
hook_cache_ttl_secs = 60
assemble_cache_ttl_secs = 61
compact_cache_ttl_secs = 62
persistent_subprocess = true
max_memory_mb = 64
allow_network = true
allow_filesystem = true
enable_shared_state = true
allowed_secrets = ["NOTES_KEY"]
[hooks.env_schema]
"!NOTES_DIR" = "where notes are"
NOTES_LANG = { description = "language", required = false }
[hooks.hook_schemas.ingest]
output = { type = "object", required = ["memories"] }
[hooks.circuit_breaker]
max_failures = 3
reset_secs = 7

[env]
NOTES_DIR = "${HOME}/notes"
NOTES_MAX = 3

[config.limit]
type = "number"
default = 80
description = "How many"

[integrity]
"hooks/ingest.py" = "621B17f2d0afbd6142a49963fb57187a500cfeac057c13cb80961b6222bd03e2"

[[requires]]
binary = "python3"
install_hint = "apt install python3"

[i18n.de]
name = "Notizen"
"#;

#[test]
fn every_key_is_read() {
    let manifest = parse(WHOLE).unwrap();
    let rules = &manifest.rules;
    assert_eq!((&*manifest.name, &*manifest.version, manifest.runtime), ("notes", "0.3.0", Runtime::Python));
    assert_eq!(manifest.hook_names(), ["ingest", "after_turn"]);
    assert_eq!((rules.timeout_secs, rules.on_failure, rules.max_retries), (Some(5), OnFailure::Abort, 2));
    assert_eq!((rules.retry_delay_ms, rules.priority), (10, -3));
    assert_eq!((rules.cache_ttl_secs, rules.assemble_cache_ttl_secs, rules.compact_cache_ttl_secs), (60, 61, 62));
    assert!(rules.is_persistent && rules.allow_network && rules.allow_filesystem && rules.has_shared_state);
    assert_eq!((rules.max_memory_mib, &*rules.only_for_agents[0]), (Some(64), "scout"));
    assert_eq!(rules.breaker, Breaker { failures_max: 3, reset_secs: 7 });
    assert!(rules.ingest_regex.as_ref().unwrap().is_match("abc") && rules.ingest_filter.as_deref() == Some("note"));
    assert_eq!((&*manifest.env["NOTES_DIR"], &*manifest.env["NOTES_MAX"]), ("${HOME}/notes", "3"));
    assert!(manifest.env_schema["NOTES_DIR"].required && !manifest.env_schema["NOTES_LANG"].required);
    assert!(manifest.schemas[&Hook::Ingest].output.is_some() && manifest.schemas[&Hook::Ingest].input.is_none());
    assert_eq!(manifest.config["limit"].default, 80);
    assert!(manifest.integrity["hooks/ingest.py"].starts_with("621b17"));
    assert_eq!((&*manifest.needed[0].binary, &*manifest.depends[0]), ("python3", "base"));
    assert_eq!((&*manifest.display_name("de"), &*manifest.display_name("en")), ("Notizen", "notes"));
    // The only thing that is said of it.
    assert!(manifest.warnings.len() == 1 && manifest.warned("librefang_min_version"), "{:?}", manifest.warnings);
}

#[test]
fn what_concerns_runs_is_read_at_the_top_too() {
    let text = "name = \"a\"\nhook_timeout_secs = 7\npersistent_subprocess = true\nruntime = \"bash\"\n\
        on_hook_failure = \"skip\"\nallowed_secrets = [\"A\"]\n[hooks]\ningest = \"a.sh\"\nhook_timeout_secs = 9\n";
    let manifest = parse(text).unwrap();
    // `[hooks]` comes first.
    assert_eq!((manifest.rules.timeout_secs, manifest.rules.is_persistent), (Some(9), true));
    assert_eq!((manifest.runtime, manifest.rules.on_failure), (Runtime::Bash, OnFailure::Skip));
    assert!(manifest.warnings.is_empty() && manifest.rules.allowed_secrets == ["A"], "{:?}", manifest.warnings);
}

#[test]
fn what_is_odd_is_said_and_what_is_wrong_names_its_key() {
    let odd = parse("name = \"a\"\nx = 1\n[hooks]\nruntime = \"cobol\"\ny = \"z\"\n").unwrap();
    assert!(odd.runtime == Runtime::Python && odd.warned("cobol") && odd.warned("x: unknown") && odd.warned("hooks.y"));
    for (text, key) in [
        ("version = \"1\"\n", "name"),
        ("name = \"../a\"\n", "name"),
        ("name = 3\n", "name"),
        ("name = \"a\"\nhooks = 3\n", "hooks"),
        ("name = \"a\"\n[hooks]\ningest = \"../x.py\"\n", "hooks.ingest"),
        ("name = \"a\"\n[hooks]\ningest = \"/x.py\"\n", "hooks.ingest"),
        ("name = \"a\"\n[hooks]\ningest = 3\n", "hooks.ingest"),
        ("name = \"a\"\non_hook_failure = \"explode\"\n", "on_hook_failure"),
        ("name = \"a\"\nhook_timeout_secs = 601\n", "hook_timeout_secs"),
        ("name = \"a\"\nmax_retries = -1\n", "max_retries"),
        ("name = \"a\"\ningest_regex = \"(\"\n", "ingest_regex"),
        (
            "name = \"a\"\ningest_regex = 'a[ab]{900}[^\\x00-\\x7f]'\n",
            "ingest_regex: the patterns take more than 16384 bytes",
        ),
        ("name = \"a\"\npersistent_subprocess = \"yes\"\n", "persistent_subprocess"),
        ("name = \"a\"\n[integrity]\n\"a.py\" = \"x\"\n", "integrity"),
        ("name = \"a\"\n[env]\n\"A=B\" = \"x\"\n", "env"),
        ("name = \"a\"\n[circuit_breaker]\nspeed = 1\n", "circuit_breaker.speed"),
        ("name = \"a\"\n[hook_schemas.never]\n", "hook_schemas.never"),
        ("name = \"a\"\nrequires = [{ x = 1 }]\n", "requires"),
        ("name = ", "plugin.toml"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(key), "{text}: {error}");
    }
}

/// A folder of plugins as others have published them.
#[test]
fn published_plugins_are_read_whole() {
    let Ok(content) = std::env::var("AGENTSVC_TEST_CONTENT") else { return };
    let plugins = std::path::Path::new(&content).join("plugins");
    let mut found = 0;
    for folder in std::fs::read_dir(plugins).unwrap() {
        let folder = folder.unwrap().path();
        let manifest = parse(&std::fs::read_to_string(folder.join(FILE)).unwrap()).unwrap();
        assert_eq!(manifest.name, folder.file_name().unwrap().to_str().unwrap());
        assert!(!manifest.hooks.is_empty() && !manifest.version.is_empty());
        assert!(manifest.warnings.iter().all(|warning| warning.contains("advice")), "{:?}", manifest.warnings);
        assert_eq!(manifest.rules.is_persistent, manifest.name == "mempalace-indexer");
        found += 1;
    }
    assert!(found > 0);
}
