//! One file with every kind of mistake, and a precise message for each.

use std::path::Path;

use crate::config::{Config, Document, Error};

/// Each line of the file beside the messages that it gives, as `column: key: message`.
const FILE: &[(&str, &[&str])] = &[
    ("api_lisen = \"127.0.0.1:1\"", &["1: api_lisen: unknown key; did you mean `api_listen`?"]),
    ("api_key = \"two words\"", &["11: api_key: must be printable ASCII without spaces"]),
    ("cors_origin = \"https://a\"", &["15: cors_origin: must be a list of strings, not a string"]),
    (
        "log_level = \"wran\"",
        &["13: log_level: must be one of `off`, `error`, `warn`, `info`, `debug`, `trace`; did you mean \
         `warn`?"],
    ),
    ("mode = 3", &["8: mode: must be a string, not an integer"]),
    ("data_dir = \"relative\"", &["12: data_dir: must be an absolute path"]),
    ("rate_limit_per_second = 0", &["25: rate_limit_per_second: must be 1 to 10000000"]),
    ("network_enabled = \"yes\"", &["19: network_enabled: must be true or false, not a string"]),
    (
        "zzzzzzzzzzzz = 1",
        &["1: zzzzzzzzzzzz: unknown key; expected one of `api_listen`, `api_key`, `cors_origin`, \
         `log_level`, `mode`, `data_dir`, `rate_limit_per_second`, `network_enabled`, `default_model`, \
         `providers`, `server`, `world`, `queue`, `triggers`, `web`, `exec_policy`, `workspaces`, `sessions`, `approval`, \
         `tool_invoke`, `mcp_server`, `mcp_servers`, `extensions`, `a2a`, `webhook_triggers`, `inbox`, `network`, `proactive_memory`, `auto_dream`, `prompt_intelligence`, `browser`, `media`, `hands`, `memory`, `checkpoints`, `skills`, `context_engine`, `clawhub`, `clawhub_cn`, `registry`, `skill_sources`, `sidecar_channels`, `web_chats`, `bindings`, `broadcast`, `channel_role_mapping`, `users`, `people`, `external_auth`, `pairing`, `terminal`, `channels`, `auto_reply`, `uploads`, `budget`, `prices`, `catalog`, `usage`, `history`, `audit`, `backup`, `snapshots`, \
         `security`, `inputs`, `cluster`, `log`"],
    ),
    ("tick_hz = 20", &["1: tick_hz: unknown key; did you mean `tick_hz` in `[world]`?"]),
    ("memory = 3", &["10: memory: must be a table, not an integer"]),
    ("audit = \"all\"", &["9: audit: must be a table, not a string"]),
    (
        "api_listen = \"0.0.0.0:4545\"",
        &["14: api_listen: 0.0.0.0:4545 accepts connections from other machines and needs an `api_key`; run \
         `agentsvc init --key`, or listen on 127.0.0.1"],
    ),
    ("[default_model]", &[]),
    ("provider = \"\"", &["12: default_model.provider: must not be empty"]),
    ("model = 1.5", &["9: default_model.model: must be a string, not a float"]),
    (
        "api_key_env = \"sk-123\"",
        &["15: default_model.api_key_env: must be the name of an environment variable, not the key itself"],
    ),
    (
        "base_url = \"localhost:80\"",
        &["12: default_model.base_url: must be an http or https URL, such as \"https://api.openai.com/v1\""],
    ),
    ("[providers.mine]", &[]),
    (
        "base_url = \"https://u:p@h/v1\"",
        &["12: providers.mine.base_url: must be without a user, a password or a query; keys belong in \
         `api_key_env`"],
    ),
    ("context_tokens = 100", &["18: providers.mine.context_tokens: must be 512 to 100000000"]),
    ("[providers.other]", &["1: providers.other: unknown provider other without a base_url"]),
    ("[world]", &[]),
    ("tick_hz = 1001", &["11: world.tick_hz: must be 1 to 1000"]),
    ("cors_origin = []", &["1: world.cors_origin: unknown key; did you mean the top-level key `cors_origin`?"]),
    ("[queue]", &[]),
    ("claim_timeout_secs = -1", &["22: queue.claim_timeout_secs: must be 1 to 2678400"]),
    ("[queue.concurrency]", &[]),
    ("provider_calls = 1e3", &["18: queue.concurrency.provider_calls: must be an integer, not a float"]),
    (
        "providers = { openai = 0, mine = \"x\" }",
        &[
            "24: queue.concurrency.providers.openai: must be an integer from 1 to 65536",
            "34: queue.concurrency.providers.mine: must be an integer from 1 to 65536",
        ],
    ),
    ("[triggers]", &[]),
    ("max_depth = true", &["13: triggers.max_depth: must be an integer, not a boolean"]),
    ("[web]", &[]),
    ("fecth = {}", &["1: web.fecth: unknown key; did you mean `fetch`?"]),
    ("[web.fetch]", &[]),
    (
        "ssrf_allowed_hosts = [\"wiki.corp\", \"http://x\"]",
        &["36: web.fetch.ssrf_allowed_hosts: must be host names, addresses or blocks, such as \
         \"wiki.corp\", \"*.corp\", \"10.0.0.7:8080\" or \"10.0.0.0/8\""],
    ),
    ("timeout_secs = 99999999999999999999", &["16: web.fetch.timeout_secs: must be 1 to 110"]),
    ("[web.search]", &[]),
    (
        "provider = \"brve\"",
        &["12: web.search.provider: must be one of `searxng`, `brave`, `tavily`, `duckduckgo`; did you \
         mean `brave`?"],
    ),
    (
        "base_url = \"https://h/?key=1\"",
        &["12: web.search.base_url: must be without a user, a password or a query; keys belong in \
         `api_key_env`"],
    ),
    ("[exec_policy]", &[]),
    ("mode = \"allow\"", &["8: exec_policy.mode: must be one of `deny`, `allowlist`, `full`"]),
    (
        "allowed_commands = [\"/bin/ls\"]",
        &["21: exec_policy.allowed_commands: must be the name of a program or a glob for names, without a \
         path or arguments"],
    ),
    (
        "env_passthrough = [\"A=B\", \"PATH\", 7]",
        &[
            "20: exec_policy.env_passthrough: must be the name of an environment variable",
            "27: exec_policy.env_passthrough: must not be PATH; the daemon sets this variable",
            "35: exec_policy.env_passthrough: must be a list of strings, not an integer",
        ],
    ),
    ("path = [\"bin\"]", &["9: exec_policy.path: must be absolute paths without a colon"]),
    ("[approval]", &[]),
    (
        "require_approval = [\"\"]",
        &["21: approval.require_approval: must name a tool or be a glob such as \"shell_*\""],
    ),
    ("timeout_secs = 1979-05-27", &["16: approval.timeout_secs: must be an integer, not a datetime"]),
    ("[uploads]", &[]),
    ("max_bytes = 0x1_0000_0000", &["13: uploads.max_bytes: must be 1 to 67108864"]),
    ("[budget]", &[]),
    ("daily_limit_usd = -1", &["19: budget.daily_limit_usd: must be 0 to 1000000000000"]),
    ("monthly_limit_usd = nan", &["21: budget.monthly_limit_usd: must be 0 to 1000000000000"]),
    ("unknown_price_per_m = \"cheap\"", &["23: budget.unknown_price_per_m: must be a number, not a string"]),
    (
        "[prices.gpt]",
        &["1: prices.gpt: must be named \"<provider>/<model>\", such as \"openai/gpt-4o\" or \"openai/*\""],
    ),
    ("[log]", &[]),
    ("format = \"xml\" # not one of ours", &["10: log.format: must be one of `human`, `json`"]),
    ("max_bytes = 65535", &["13: log.max_bytes: must be 65536 to 1099511627776"]),
];

#[test]
fn forty_kinds_of_mistakes_give_forty_precise_messages() {
    let text: String = FILE.iter().map(|(line, _)| format!("{line}\n")).collect();
    let expected: Vec<String> = FILE
        .iter()
        .enumerate()
        .flat_map(|(at, (_, said))| said.iter().map(move |said| format!("/x/config.toml:{}:{said}", at + 1)))
        .collect();
    let found = match Config::parse(&text, Path::new("/x/config.toml")) {
        Err(Error::Invalid(problems)) => problems.to_string(),
        other => panic!("expected problems, got {other:?}"),
    };
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found, expected);
    assert!(found.len() >= 40, "{}", found.len());
    // Each kind has its own words: a text that came twice would be one kind.
    let messages: std::collections::BTreeSet<_> =
        found.iter().map(|line| line.splitn(5, ": ").collect::<Vec<_>>()[1..].concat()).collect();
    assert_eq!(messages.len(), found.len());
}

#[test]
fn what_is_not_toml_is_said_alone_with_its_place() {
    for (text, expected) in [
        ("a = 1\nlog_level = = 1\n", "c:2:13: not TOML"),
        ("log_level = \"info\"\nlog_level = \"warn\"\n", "c:2:1: not TOML"),
        ("[world]\n[world]\n", "c:2:2: not TOML"),
        ("api_key = \"a\n", "c:1:"),
        ("[world\n", "c:1:"),
    ] {
        let said = Config::parse(text, Path::new("c")).unwrap_err().to_string();
        assert!(said.starts_with(expected) && said.contains("not TOML: "), "{text}: {said}");
    }
}
