//! Definitions are read, refused and translated.

use super::*;

const HAND: &str = r#"
id = "herald"
name = "Herald"
description = "Writes news"
category = "content"
icon = "lucide:radio"
tools = ["shell_exec", "memory_store"]
future_key = { x = 1 }

[routing]
aliases = ["write news"]

[[requires]]
key = "printer"
requirement_type = "binary"
check_value = "sh"
optional = true
[requires.install]
linux_apt = "sudo apt install printer"
steps = ["one", "two"]

[[settings]]
key = "style"
label = "Style"
setting_type = "select"
default = "short"
[[settings.options]]
value = "short"
label = "Short"
[[settings.options]]
value = 5
label = "Five lines"
provider_env = "NEWS_KEY"

[[settings]]
key = "loud"
setting_type = "toggle"
default = false

[agents.main]
coordinator = true
name = "herald-main"
model = "default"
provider = "default"
system_prompt = "Write."
[agents.helper]
invoke_hint = "Facts"
system_prompt = "Look up."
base = "coder"

[dashboard]
[[dashboard.metrics]]
label = "Stories"
memory_key = "herald_stories"
format = "number"

[metadata]
frequency = "scheduled"

[i18n.zh]
name = "先驱"
[i18n.zh.settings.style]
label = "风格"
[i18n.zh.agents.main]
description = "写"
[i18n.zh-TW]
name = "先驅"
"#;

#[test]
fn all_tables_are_read_in_both_layouts() {
    let hand = parse(HAND).unwrap();
    assert_eq!((&*hand.id, &*hand.version, &*hand.category), ("herald", "0.0.0", "content"));
    assert_eq!(hand.roles.iter().map(|role| &*role.name).collect::<Vec<_>>(), ["helper", "main"]);
    assert_eq!((hand.coordinator(), hand.roles[0].base.as_deref()), (1, Some("coder")));
    assert_eq!(hand.settings[0].options[1].value, "5");
    assert_eq!((&*hand.settings[1].default, hand.settings[1].setting_type), ("false", SettingKind::Toggle));
    assert_eq!((&*hand.requires[0].label, hand.requires[0].wanted()), ("printer", "sh"));
    assert_eq!(hand.metadata["frequency"], "scheduled");
    let under = HAND.replace("\nid = \"herald\"", "\n[hand]\nid = \"herald\"").replace("[[", "[[hand.");
    let under = under.replace("\n[a", "\n[hand.a").replace("\n[r", "\n[hand.r").replace("\n[d", "\n[hand.d");
    let under = under.replace("\n[m", "\n[hand.m").replace("\n[i", "\n[hand.i");
    assert_eq!(parse(&under).unwrap(), hand);
    let one = "[hand]\nid = \"one\"\n[hand.agent]\nsystem_prompt = \"x\"";
    assert_eq!(parse(one).unwrap().roles[0].name, "main");
}

#[test]
fn errors_name_the_key() {
    let agent = "[agent]\nsystem_prompt = 'x'\n";
    for (text, field, expected) in [
        ("id = ".to_owned(), "toml_content", "line 1"),
        (agent.to_owned(), "id", "id: missing"),
        (format!("id = '../x'\n{agent}"), "id", "letters, digits"),
        ("id = 'x'".to_owned(), "agents", "needs [agent]"),
        ("id = 'x'\nagents = 5".to_owned(), "agents", "table"),
        ("id = 'x'\n[agents]\nmain = 5".to_owned(), "agents.main", "table"),
        ("id = 'x'\n[agents.main]\ncoordinator = 'yes'".to_owned(), "agents.main.coordinator", "true or false"),
        (format!("id = 'x'\ntools = 'all'\n{agent}"), "tools", "expected a sequence"),
        (format!("id = 'x'\n{agent}[[settings]]\nlabel = 'y'"), "settings[0].key", "missing"),
        (
            format!("id = 'x'\n{agent}[[settings]]\nkey = 'y'\nsetting_type = 'slider'"),
            "settings[0].setting_type",
            "slider",
        ),
        (
            format!("id = 'x'\n{agent}[[settings]]\nkey = 'y'\nenv_var = 'LD_PRELOAD'"),
            "settings[0].env_var",
            "must not",
        ),
        (
            format!("id = 'x'\n{agent}[[requires]]\nkey = 'y'\nrequirement_type = 'luck'"),
            "requires[0].requirement_type",
            "luck",
        ),
        (format!("id = 'x'\n{agent}[[dashboard.metrics]]\nlabel = 'y'"), "dashboard.metrics[0].memory_key", "missing"),
    ] {
        let refusal = parse(&text).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field), "{text}: {}", refusal.message);
        assert!(refusal.message.contains(expected), "{text}: {}", refusal.message);
    }
}

#[test]
fn the_language_that_a_client_prefers_is_shown() {
    let hand = parse(HAND).unwrap();
    let name = |header: &str| {
        let mut hand = hand.clone();
        if let Some(language) = preferred(header, hand.i18n.keys().map(String::as_str)).map(str::to_owned) {
            hand.translate(&language);
        }
        (hand.name.clone(), hand.settings[0].label.clone())
    };
    for (header, expected) in [
        ("", "Herald"),
        ("zh-TW", "先驅"),
        ("ZH-cn,en;q=0.5", "先驱"),
        ("zh-Hant-TW", "先驱"),
        ("de, zh;q=0.3", "先驱"),
        ("en-GB, zh;q=0.9", "Herald"),
        ("fr;q=x, *", "Herald"),
        ("zh;q=0, de", "Herald"),
    ] {
        assert_eq!(name(header).0, expected, "{header}");
    }
    assert_eq!(name("zh").1, "风格");
    assert_eq!(name("zh-TW").1, "Style", "a language without a text shows the original");
}
