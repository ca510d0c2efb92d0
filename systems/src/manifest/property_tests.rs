//! Whatever a manifest says, its text says it back, and changes lose nothing.

use agentsvc_components::Micros;
use agentsvc_components::manifest::{Capabilities, Identity, Manifest, MemoryChoice, ModelChoice, SessionMode};
use agentsvc_components::usage::Limits;
use proptest::prelude::*;

use super::tests::FULL;
use super::triggers::tests::any_trigger;
use super::{parse, render, validate, validate_name};

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

fn memory() -> impl Strategy<Value = MemoryChoice> {
    let flags = (any::<Option<bool>>(), any::<Option<bool>>(), any::<Option<bool>>());
    let model = prop::option::of(prop_oneof![Just("".to_owned()), "[a-z]{1,4}/[a-z/]{1,4}"]);
    (flags, model).prop_map(|((enabled, auto_memorize, auto_retrieve), model)| MemoryChoice {
        enabled,
        auto_memorize,
        auto_retrieve,
        extraction_model: model.map(Into::into),
    })
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
    let rest = (models, capabilities(), mode, any::<Option<u32>>(), limits, (memory(), triggers));
    (texts, lists, rest).prop_map(|(texts, lists, rest)| {
        let (version, description, author, module, system_prompt, avatar, persona) = texts;
        let (tags, skills, mcp_servers, tool_allowlist, tool_blocklist, require_approval) = lists;
        let (
            (model, fallback_models),
            capabilities,
            session_mode,
            max_history_messages,
            limits,
            (proactive_memory, triggers),
        ) = rest;
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
            proactive_memory,
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
