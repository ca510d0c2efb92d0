//! What the text says, what is refused, and that changes keep the rest of the text.

use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{
    Capabilities, Identity, Manifest, ManifestTrigger, MemoryChoice, ModelChoice, SessionMode,
};
use agentsvc_components::usage::Limits;

use super::{Position, hash, object, parse, render, validate, validate_name};

pub(super) const FULL: &str = r#"# The assistant of the fixture.
name = "assistant"          # the directory, too
version = "1.2.0"
description = "Helps"
author = "me"
module = "builtin:chat"
tags = ["a", "b"]
skills = [
    # first of all
    "git",   # versions
    "cargo", # builds
]
mcp_servers = ['files']
tool_allowlist = ["file_*"]
require_approval = ["shell_*"]
session_mode = "new"
max_history_messages = 40
shiny = { unknown = [1, 2.5, 1979-05-27] }

[model]
# who answers
provider = "openai"
model = "gpt-4o"
temperature = 0.7 # warm
max_tokens = 4_096
system_prompt = """
Be kind.\
   And short."""
base_url = "https://example.org/v1"
api_key_env = "MY_KEY"

[[fallback_models]]
provider = "builtin"
model = "offline" # the last resort

[capabilities]
tools = ["*"]
network = ["*.example.org"]
memory_read = ["*"]
memory_write = ["self.*"]
shell = ["ls"]
agent_spawn = false
file_system = true

[identity]
avatar = "🦊"
persona = "dry"

[proactive_memory]
auto_retrieve = false
extraction_model = "openai/gpt-4o-mini"

[[triggers]] # on its own
pattern = "all"
prompt_template = "Look: {{event}}"
"#;

fn boxes(items: &[&str]) -> Vec<Box<str>> {
    items.iter().map(|item| (*item).into()).collect()
}

fn error(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

/// `extra` under a good name.
fn named(extra: &str) -> String {
    format!("name = \"x\"\n{extra}")
}

#[test]
fn every_key_is_read() {
    let parsed = parse(FULL).unwrap();
    assert_eq!(&*parsed.name, "assistant");
    let manifest = Manifest {
        version: "1.2.0".into(),
        description: "Helps".into(),
        author: "me".into(),
        module: "builtin:chat".into(),
        tags: boxes(&["a", "b"]),
        model: ModelChoice {
            provider: "openai".into(),
            model: "gpt-4o".into(),
            temperature: Some(0.7),
            max_tokens: Some(4096),
            base_url: Some("https://example.org/v1".into()),
            api_key_env: Some("MY_KEY".into()),
        },
        fallback_models: vec![ModelChoice {
            provider: "builtin".into(),
            model: "offline".into(),
            ..ModelChoice::default()
        }],
        system_prompt: "Be kind.And short.".into(),
        capabilities: Capabilities {
            tools: boxes(&["*"]),
            network: boxes(&["*.example.org"]),
            memory_read: boxes(&["*"]),
            memory_write: boxes(&["self.*"]),
            shell: boxes(&["ls"]),
            agent_spawn: Some(false),
            file_system: Some(true),
        },
        skills: boxes(&["git", "cargo"]),
        mcp_servers: boxes(&["files"]),
        tool_allowlist: boxes(&["file_*"]),
        require_approval: boxes(&["shell_*"]),
        session_mode: Some(SessionMode::New),
        max_history_messages: Some(40),
        identity: Identity { avatar: "🦊".into(), persona: "dry".into() },
        limits: Limits::default(),
        proactive_memory: MemoryChoice {
            auto_retrieve: Some(false),
            extraction_model: Some("openai/gpt-4o-mini".into()),
            ..MemoryChoice::default()
        },
        triggers: vec![ManifestTrigger {
            pattern: r#"{"all":{}}"#.into(),
            prompt_template: "Look: {{event}}".into(),
            enabled: true,
            max_fires: 0,
            cooldown_secs: None,
            session_mode: None,
            target_agent_id: None,
        }],
        ..Manifest::default()
    };
    assert_eq!(parsed.manifest, manifest);
    assert!(validate(&manifest).is_ok());
}

#[test]
fn a_name_is_enough() {
    let parsed = parse("name = 'x'").unwrap();
    assert_eq!((&*parsed.name, parsed.manifest), ("x", Manifest::default()));
}

#[test]
fn top_level_wins_over_tables() {
    let text = named("system_prompt = ''\ntools = ['a']\n[model]\nsystem_prompt = 'm'\n[capabilities]\ntools = ['b']");
    let manifest = parse(&text).unwrap().manifest;
    assert_eq!(&*manifest.system_prompt, "");
    assert_eq!(manifest.capabilities.tools, boxes(&["a"]));
}

#[test]
fn fallbacks_may_be_strings() {
    let text = named("fallback_models = ['openrouter/a/b', 'mini', {provider = 'p', temperature = 1, more = 2}]");
    let fallbacks = parse(&text).unwrap().manifest.fallback_models;
    let of = |provider: &str, model: &str, temperature| ModelChoice {
        provider: provider.into(),
        model: model.into(),
        temperature,
        ..ModelChoice::default()
    };
    assert_eq!(fallbacks, [of("openrouter", "a/b", None), of("", "mini", None), of("p", "", Some(1.0))]);
}

#[test]
fn errors_name_line_and_key() {
    let cases = [
        ("[model]\ntemperature = 'hot'", "line 3: `model.temperature`: expected a number, found a string"),
        ("[model]\ntemperature = 2.5", "line 3: `model.temperature`: expected a number from 0 to 2, found 2.5"),
        ("[model]\ntemperature = nan", "line 3: `model.temperature`: expected a number from 0 to 2, found NaN"),
        ("[model]\nmax_tokens = 0", "line 3: `model.max_tokens`: expected a whole number of at least 1, found 0"),
        ("[model]\nmax_tokens = -1", "line 3: `model.max_tokens`: expected a whole number from 0 to 4294967295"),
        ("[model]\nmax_tokens = 1.5", "line 3: `model.max_tokens`: expected a whole number, found a number"),
        ("[model]\nbase_url = 'ftp://x'", "line 3: `model.base_url`: expected an `http://` or `https://` URL"),
        (
            "[model]\napi_key_env = 'A-B'",
            "line 3: `model.api_key_env`: expected the name of an environment variable (letters, digits and `_`)",
        ),
        ("model = 'gpt'", "line 2: `model`: expected a table, found a string"),
        ("[tags]\na = 1", "line 2: `tags`: expected a list, found a table"),
        ("[metadata.routing]\naliases = 'x'", "line 3: `metadata.routing.aliases`: expected a list, found a string"),
        ("tags = [\n'a',\n3]", "line 4: `tags[1]`: expected a string, found a whole number"),
        ("capabilities.shell = true", "line 2: `capabilities.shell`: expected a list, found true or false"),
        (
            "capabilities = {agent_spawn = 'no'}",
            "line 2: `capabilities.agent_spawn`: expected true or false, found a string",
        ),
        (
            "proactive_memory.extraction_model = 'gpt'",
            "line 2: `proactive_memory.extraction_model`: must be provider/model, such as \"openai/gpt-4o-mini\"",
        ),
        (
            "[proactive_memory]\nenabled = 1",
            "line 3: `proactive_memory.enabled`: expected true or false, found a whole number",
        ),
        ("session_mode = 'old'", "line 2: `session_mode`: expected `persistent` or `new`"),
        ("fallback_models = ['a/']", "line 2: `fallback_models[0]`: expected `model` or `provider/model`"),
        ("fallback_models = [1]", "line 2: `fallback_models[0]`: expected a table or a string, found a whole number"),
        (
            "[[fallback_models]]\n[[fallback_models]]\nmodel = 1979-05-27",
            "line 4: `fallback_models[1].model`: expected a string, found a date or time",
        ),
    ];
    for (extra, expected) in cases {
        assert_eq!(error(&named(extra)), expected);
    }
    assert_eq!(error("version = '1'"), "`name`: missing; this key is required");
    assert_eq!(error("\nname = 1"), "line 2: `name`: expected a string, found a whole number");
    assert_eq!(error("name = 'a/b'"), "line 1: `name`: the name must not contain `/` (character 2)");
}

#[test]
fn bad_toml_names_the_place() {
    let fault = parse("name = 'ä'\nfoo = 'ä' 'x'\n").unwrap_err();
    assert_eq!((fault.position, fault.key.as_deref()), (Some(Position { line: 2, column: 11 }), None));
    assert!(error("name = 'a'\nname = 'b'").starts_with("line 2, column 1: duplicate key"), "{}", error("a=1\na=1"));
    assert!(!error("=").contains('\n'));
    let refusal = Refusal::from(parse("name = 7").unwrap_err());
    assert_eq!(refusal.field.as_deref(), Some("manifest_toml"));
    assert_eq!(refusal.message, "line 1: `name`: expected a string, found a whole number");
}

#[test]
fn names_are_safe_as_directories() {
    for name in ["a", "Ünï côde", "a.b", "...", "a b", "-x", &"n".repeat(limit::NAME_BYTES_MAX)] {
        assert_eq!(validate_name(name), Ok(()), "{name}");
    }
    let long = "n".repeat(limit::NAME_BYTES_MAX + 1);
    let bad =
        ["", ".", "..", "a/b", "a\\b", "\0", "a\nb", "\u{7f}", "\u{85}", " a", "a ", "\u{a0}a", "a\u{202e}b", &long];
    for name in bad {
        assert!(validate_name(name).is_err(), "{name:?}");
    }
}

#[test]
fn long_and_deep_texts_are_refused() {
    let long = format!("#{}", "x".repeat(limit::MANIFEST_BYTES_MAX));
    assert!(error(&long).starts_with("the manifest is 262145 bytes"));
    assert!(object(&long).unwrap_err().to_string().starts_with("the manifest is 262145 bytes"));
    let deep = [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(80_000)),
        format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{}b = 1", "a.".repeat(100_000)),
        format!("[{}b]", "a.".repeat(100_000)),
        format!("[[{}b]]", "a.".repeat(100_000)),
        format!("a = {}1{}", format!("{{{}b = ", "a.".repeat(70)).repeat(70), "}".repeat(70)),
    ];
    // A small stack, so that a recursion as deep as the text cannot go unnoticed.
    let parse_all = move || deep.iter().map(|text| error(text)).collect::<Vec<_>>();
    let errors = std::thread::Builder::new().stack_size(256 << 10).spawn(parse_all).unwrap().join().unwrap();
    for message in errors {
        assert!(message.contains("nested too deeply"), "{message}");
    }
}

#[test]
fn the_hash_is_of_the_values() {
    let parsed = parse(FULL).unwrap();
    assert_eq!(hash(&parsed.manifest), hash(&parse(&FULL.replace("# warm", "")).unwrap().manifest));
    assert_eq!(hash(&parsed.manifest), hash(&parse(&FULL.replace("\"assistant\"", "'other'")).unwrap().manifest));
    assert_ne!(hash(&parsed.manifest), hash(&parse(&FULL.replace("Helps", "helps")).unwrap().manifest));
    let zero = |text: &str| hash(&parse(&named(&format!("model.temperature = {text}"))).unwrap().manifest);
    assert_eq!(zero("0"), zero("-0.0"));
}

#[test]
fn rendering_touches_only_what_differs() {
    let mut parsed = parse(FULL).unwrap();
    parsed.manifest.description = "Helps more".into();
    parsed.manifest.model.model = "gpt-5".into();
    parsed.manifest.model.temperature = None;
    parsed.manifest.skills = boxes(&["git", "npm", "make"]);
    parsed.manifest.tags = boxes(&["z", "a", "b"]);
    parsed.manifest.fallback_models[0].model = "tiny".into();
    let expected = FULL
        .replace("\"Helps\"", "\"Helps more\"")
        .replace("\"gpt-4o\"", "\"gpt-5\"")
        .replace("temperature = 0.7 # warm\n", "# warm\n")
        .replace("[\"a\", \"b\"]", "[\"z\", \"a\", \"b\"]")
        .replace("\"offline\" #", "\"tiny\" #")
        .replace("    \"cargo\", # builds\n", "    \"npm\",\n    \"make\", # builds\n");
    let rendered = render(FULL, "assistant", &parsed.manifest);
    assert_eq!(rendered, expected);
    assert_eq!(parse(&rendered).unwrap(), parsed);
}

#[test]
fn rendering_the_same_gives_the_text() {
    for text in [FULL, "name='x'", "name = \"x\"\r\n[model]\r\n", "\u{feff}name = 'x'\n"] {
        let parsed = parse(text).unwrap();
        assert_eq!(render(text, &parsed.name, &parsed.manifest), text);
    }
}

#[test]
fn a_broken_original_is_replaced() {
    let manifest = Manifest { description: "d".into(), ..Manifest::default() };
    assert_eq!(render("]", "x", &manifest), "name = \"x\"\ndescription = \"d\"\n");
}

#[test]
fn an_hourly_limit_of_tokens_can_stand_under_resources() {
    let limit = |text: &str| parse(&format!("name = \"x\"\n{text}")).map(|parsed| parsed.manifest.limits.hourly_tokens);
    assert_eq!(limit("[resources]\nmax_llm_tokens_per_hour = 50000"), Ok(Some(50_000)));
    assert_eq!(limit("[resources]\nmax_llm_tokens_per_hour = 0"), Ok(None));
    assert_eq!(limit("[resources]\nmax_memory_bytes = 1"), Ok(None));
    let both = "[limits]\nhourly_token_limit = 7\n[resources]\nmax_llm_tokens_per_hour = 50000";
    assert_eq!(limit(both), Ok(Some(7)));
    let wrong = limit("[resources]\nmax_llm_tokens_per_hour = \"many\"").unwrap_err().to_string();
    assert!(wrong.contains("resources.max_llm_tokens_per_hour"), "{wrong}");
    // A change is written where this daemon writes it, and the other key does not undo it.
    let text = "name = \"x\"\n[resources]\nmax_llm_tokens_per_hour = 50000\nmax_memory_bytes = 1 # kept\n";
    for hourly_tokens in [None, Some(9)] {
        let mut manifest = parse(text).unwrap().manifest;
        manifest.limits.hourly_tokens = hourly_tokens;
        let changed = render(text, "x", &manifest);
        assert_eq!(parse(&changed).unwrap().manifest, manifest, "{changed}");
        assert!(changed.contains("# kept"), "{changed}");
    }
}
