//! What the text says, what is refused, and that changes keep the rest of the text.

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Capabilities, Identity, Manifest, ManifestTrigger, ModelChoice, SessionMode};
use agentsvc_components::usage::Limits;
use agentsvc_components::{Micros, Refusal};
use proptest::prelude::*;

use super::triggers::tests::any_trigger;
use super::{Position, hash, parse, render, validate, validate_name};

const FULL: &str = r#"# The assistant of the fixture.
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
        ("tags = [\n'a',\n3]", "line 4: `tags[1]`: expected a string, found a whole number"),
        ("capabilities.shell = true", "line 2: `capabilities.shell`: expected a list, found true or false"),
        (
            "capabilities = {agent_spawn = 'no'}",
            "line 2: `capabilities.agent_spawn`: expected true or false, found a string",
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
    assert!(error(&format!("#{}", "x".repeat(limit::MANIFEST_BYTES_MAX))).starts_with("the manifest is 262145 bytes"));
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

fn word() -> impl Strategy<Value = Box<str>> {
    prop_oneof![Just(String::new()), "[a-z*.]{1,4}", "\\PC{0,6}", any::<String>()].prop_map(String::into_boxed_str)
}

fn words() -> impl Strategy<Value = Vec<Box<str>>> {
    prop::collection::vec(prop_oneof!["[ab]".prop_map(String::into_boxed_str), word()], 0..4)
}

fn choice() -> impl Strategy<Value = ModelChoice> {
    let temperature = prop_oneof![Just(0.7_f32), 0.0_f32..=2.0, (0_u32..=2.0_f32.to_bits()).prop_map(f32::from_bits)];
    let base_url = "https?://[a-z]{1,5}(:[0-9]{2})?(/[a-z\"'\\\\]{0,3})?".prop_map(String::into_boxed_str);
    let api_key_env = "[A-Z_][A-Z0-9_]{0,5}".prop_map(String::into_boxed_str);
    let options = (
        prop::option::of(temperature),
        prop::option::of(1_u32..),
        prop::option::of(base_url),
        prop::option::of(api_key_env),
    );
    (word(), word(), options).prop_map(|(provider, model, (temperature, max_tokens, base_url, api_key_env))| {
        ModelChoice { provider, model, temperature, max_tokens, base_url, api_key_env }
    })
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    let flags = (any::<Option<bool>>(), any::<Option<bool>>());
    (words(), words(), words(), words(), words(), flags).prop_map(
        |(tools, network, memory_read, memory_write, shell, (agent_spawn, file_system))| Capabilities {
            tools,
            network,
            memory_read,
            memory_write,
            shell,
            agent_spawn,
            file_system,
        },
    )
}

fn manifests() -> impl Strategy<Value = Manifest> {
    let mode = prop::option::of(prop_oneof![Just(SessionMode::Persistent), Just(SessionMode::New)]);
    let texts = (word(), word(), word(), word(), word(), word(), word());
    let lists = (words(), words(), words(), words(), words(), words());
    let money = || prop::option::of(0..=9_000_000_000_u64).prop_map(|micros| micros.map(Micros));
    let tokens = any::<Option<u32>>().prop_map(|tokens| tokens.map(u64::from));
    let limits = (money(), money(), tokens);
    let limits = limits.prop_map(|(daily, monthly, hourly_tokens)| Limits { daily, monthly, hourly_tokens });
    let triggers = prop::collection::vec(any_trigger(), 0..3);
    let models = (choice(), prop::collection::vec(choice(), 0..3));
    let rest = (models, capabilities(), mode, any::<Option<u32>>(), limits, triggers);
    (texts, lists, rest).prop_map(|(texts, lists, rest)| {
        let (version, description, author, module, system_prompt, avatar, persona) = texts;
        let (tags, skills, mcp_servers, tool_allowlist, tool_blocklist, require_approval) = lists;
        let ((model, fallback_models), capabilities, session_mode, max_history_messages, limits, triggers) = rest;
        Manifest {
            version,
            description,
            author,
            module,
            tags,
            model,
            fallback_models,
            system_prompt,
            capabilities,
            skills,
            mcp_servers,
            tool_allowlist,
            tool_blocklist,
            require_approval,
            session_mode,
            max_history_messages,
            identity: Identity { avatar, persona },
            limits,
            triggers,
            ..Manifest::default()
        }
    })
}

/// Texts that write the same things in other ways.
fn originals() -> impl Strategy<Value = String> {
    let texts = [
        FULL,
        "name='x'",
        "name = 'x' # c\n\n# the end",
        "# c\nname = 'x'\nmodel = {provider = 'p', temperature = 1, extra = 1}\nfallback_models = ['a/b', {model = 'c'}]\n",
        "model.temperature = 0.5 # c\nmodel.model = 'm'\nname = 'x'\ncapabilities.shell = ['a'] # d\n",
        "name = 'x'\nsystem_prompt = 's'\ntools = ['a', # c\n 'b'\n # d\n]\n[model.more]\na = 1\n[capabilities.more]\nb = 1\n",
        "name = 'x'\nfallback_models = []\n[model]\nsystem_prompt = 'm'\n[identity]\n[other]\n# end",
        "name = 'x'\n[[fallback_models]]\nmodel = 'a'\n[[fallback_models]]\nmodel = 'b'\n[fallback_models.more]\na = 1\n[z]\n",
        "name = 'x'\n[z.y]\na = 1\n[model]\n# only\ntemperature = 1 # one\n[z.w]\nb = 1\n",
        "\"na\\u006De\" = 'x'\n'tags' = [ 'a' , 'b' , ]\nsystem_prompt = '''\na\n\nb'''\n",
        "]",
    ];
    let with_line_ends = |(text, crlf): (&str, bool)| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    (prop::sample::select(texts.to_vec()), any::<bool>()).prop_map(with_line_ends)
}

/// Comments of a text, to see that none is lost.
fn comments(text: &str) -> usize {
    text.matches("# ").count()
}

proptest! {
    #[test]
    fn parse_never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn parse_never_panics_on_toml_like_text(
        parts in prop::collection::vec(prop::sample::select(vec![
            "name", "model", "fallback_models", "tools", "a", ".", " = ", "[", "]", "[[", "]]", "{", "}", ",", "\n",
            "\r\n", "'x'", "\"", "\"\"\"", "'''", "\\", "# c", "1", "-0.5", "1e9999", "99999999999999999999", "0xFF",
            "true", "1979-05-27", "nan", "\u{0}", "ä", "\u{feff}",
        ]), 0..60),
    ) {
        let text = parts.concat();
        if let Ok(parsed) = parse(&text) {
            prop_assert_eq!(render(&text, &parsed.name, &parsed.manifest), text);
        }
    }

    #[test]
    fn rendered_texts_say_what_was_asked(
        original in originals(),
        name in "[a-zA-Zäß\"'.][a-z \"']{0,5}[a-z]",
        manifest in manifests(),
        keep in any::<[bool; 12]>(),
    ) {
        // Keep some of the original's values, so that partial changes are tried too.
        let mut manifest = manifest;
        if let Ok(was) = parse(&original) {
            let was = was.manifest;
            if keep[0] { manifest.model = was.model }
            if keep[1] { manifest.capabilities = was.capabilities }
            if keep[2] { manifest.system_prompt = was.system_prompt }
            if keep[3] { manifest.fallback_models = was.fallback_models }
            if keep[4] { manifest.tags = was.tags }
            if keep[5] { manifest.identity = was.identity }
            if keep[6] { manifest.skills = was.skills }
            if keep[7] { manifest.session_mode = was.session_mode }
            if keep[8] { manifest.max_history_messages = was.max_history_messages }
        }
        prop_assume!(validate_name(&name).is_ok() && validate(&manifest).is_ok());
        let rendered = render(&original, &name, &manifest);
        let parsed = parse(&rendered);
        prop_assert!(parsed.is_ok(), "{:?}\n{}", parsed, rendered);
        let parsed = parsed.unwrap();
        prop_assert_eq!(&*parsed.name, name.as_str());
        prop_assert_eq!(parsed.manifest, manifest);
    }

    #[test]
    fn added_values_lose_no_comment(original in originals(), description in "[a-z]{1,9}", tags in words()) {
        if let Ok(mut was) = parse(&original) {
            was.manifest.description = description.into();
            was.manifest.tags = tags.iter().map(|tag| tag.replace('#', "").into()).collect();
            was.manifest.max_history_messages = None;
            let rendered = render(&original, &was.name, &was.manifest);
            prop_assert_eq!(comments(&rendered), comments(&original), "{}", rendered);
        }
    }
}
