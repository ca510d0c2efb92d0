//! Whole homes of each kind, and hostile ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use agentsvc_systems::manifest;

use super::*;

/// A home of files, and a daemon's home to take it over into.
struct Harness {
    theirs: tempfile::TempDir,
    ours: tempfile::TempDir,
}

impl Harness {
    fn new(files: &[(&str, &str)]) -> Self {
        let harness = Self { theirs: tempfile::tempdir().unwrap(), ours: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| harness.write(path, text));
        harness
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.theirs.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn migrator(&self) -> Migrator {
        let home = Home::new(self.ours.path());
        let workspaces = Workspaces::new(home.workspaces_dir());
        Migrator { home, workspaces, user: Some(self.theirs.path().to_owned()) }
    }

    fn opened(&self) -> Box<dyn ForeignHome> {
        self.migrator().open(self.theirs.path().to_str().unwrap()).unwrap()
    }
}

fn refused(harness: &Harness, path: &Path) -> String {
    harness.migrator().open(path.to_str().unwrap()).err().unwrap().to_string()
}

const OPENCLAW: &[(&str, &str)] = &[
    (
        "openclaw.json",
        "{\n  // written by hand\n  meta: { lastTouchedVersion: '2026.1.5' },\n  agents: {\n    defaults: { model: { primary: 'anthropic/claude-opus-4-5', fallbacks: ['openai/gpt-4o'] } },\n    list: [ { id: 'main', tools: { allow: ['group:fs', 'canvas'] } }, { id: 'ops', name: 'Ops', model: 'openai/gpt-4o-mini', workspace: 'workspace-ops' }, ],\n  },\n  channels: { telegram: { botToken: 'not-to-be-read' } },\n}",
    ),
    ("workspace/SOUL.md", "Be kind."),
    ("workspace/AGENTS.md", "Work hard."),
    ("workspace/MEMORY.md", "The cat is called Tom."),
    ("workspace/memory/2026-01-01.md", "a day"),
    (
        "workspace/skills/weather/SKILL.md",
        "---\nname: weather\ndescription: Says the weather\n---\nLook out of the window.\n",
    ),
    ("workspace/skills/weather/scripts/look.sh", "echo sun\n"),
    ("workspace-ops/SOUL.md", "Watch."),
    ("skills/broken/SKILL.md", "---\nname: [\n---\nx"),
    (
        "agents/main/sessions/s1.jsonl",
        "{\"type\":\"session\",\"version\":3,\"id\":\"s1\"}\n{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n",
    ),
];

#[test]
fn an_openclaw_home_is_read() {
    let harness = Harness::new(OPENCLAW);
    let home = harness.opened();
    let names: Vec<(String, bool)> = home.agents().into_iter().map(|item| (item.name, item.convertible)).collect();
    assert_eq!(names, [("main".to_owned(), true), ("Ops".to_owned(), true)]);
    let main = manifest::parse(home.manifest(0).unwrap()).unwrap().manifest;
    assert_eq!((&*main.model.provider, &*main.model.model), ("anthropic", "claude-opus-4-5"));
    assert_eq!(&*main.fallback_models[0].model, "gpt-4o");
    assert_eq!(&*main.system_prompt, "# SOUL.md\n\nBe kind.\n\n# AGENTS.md\n\nWork hard.");
    assert!(main.capabilities.tools.iter().any(|tool| **tool == *"file_read"));
    let ops = manifest::parse(home.manifest(1).unwrap()).unwrap().manifest;
    assert!(ops.system_prompt.contains("Watch."));
    let skills: Vec<(String, bool)> = home.skills().into_iter().map(|item| (item.name, item.convertible)).collect();
    assert_eq!(skills, [("weather".to_owned(), true), ("broken".to_owned(), false)]);
    assert_eq!(home.sessions(), [0]);
    let history = home.history(0).unwrap();
    assert_eq!((history.messages.len(), history.key.as_str()), (1, "openclaw/agents/main/sessions/s1.jsonl"));
    let said = home.warnings().join("\n");
    assert!(said.contains("canvas") && said.contains("channels") && !said.contains("not-to-be-read"), "{said}");
}

#[test]
fn files_and_skills_are_copied_once() {
    let harness = Harness::new(OPENCLAW);
    let home = harness.opened();
    let agent = AgentId(uuid::Uuid::from_u128(7));
    assert_eq!(home.copy_files(0, agent, "main"), Ok(2));
    assert_eq!(home.copy_files(0, agent, "main"), Ok(0));
    assert_eq!(home.install_skill(0), Ok(Taken::Now));
    assert_eq!(home.install_skill(0), Ok(Taken::Before));
    let skill = harness.ours.path().join("skills/weather");
    assert!(skill.join("scripts/look.sh").is_file());
    let written: toml::Table = toml::from_str(&fs::read_to_string(skill.join("skill.toml")).unwrap()).unwrap();
    assert_eq!(written["description"].as_str(), Some("Says the weather"));
    assert_eq!(written["source"]["converted_from"].as_str(), Some("openclaw"));
}

#[test]
fn a_yaml_home_is_read() {
    let harness = Harness::new(&[
        ("config.yaml", "version: '1.4'\n"),
        (
            "agents/coder/agent.yaml",
            "name: coder\ndescription: codes\nmodel: deepseek/deepseek-chat\ntemperature: 0.3\ntools: [exec, read_file]\napi_key: sk-secret\nheartbeat: 30m\nsystem_prompt: |\n  Write code.\n",
        ),
        ("agents/broken/agent.yaml", "a: [\n"),
        ("agents/coder/MEMORY.md", "m"),
        ("agents/coder/sessions/a.jsonl", "{\"role\":\"user\",\"content\":\"hi\"}\n"),
    ]);
    let home = harness.opened();
    let agents = home.agents();
    assert_eq!((agents[0].name.as_str(), agents[0].convertible), ("broken", false));
    let coder = manifest::parse(home.manifest(1).unwrap()).unwrap().manifest;
    assert_eq!((&*coder.model.provider, &*coder.system_prompt), ("deepseek", "Write code."));
    assert_eq!(home.sessions(), [1]);
    let said = format!("{:?} {:?}", home.warnings(), home.agents());
    assert!(said.contains("heartbeat") && said.contains("api_key") && !said.contains("sk-secret"), "{said}");
    let detected = harness.migrator().detect();
    assert!(detected.is_empty(), "the home itself is none of its usual places");
}

#[test]
fn homes_at_their_usual_places_are_found() {
    let harness =
        Harness::new(&[(".openclaw/openclaw.json", "{}"), (".librefang/agents/a/agent.toml", "name = \"a\"\n")]);
    let found: Vec<_> =
        harness.migrator().detect().into_iter().map(|source| (source.kind, source.agents_found)).collect();
    assert_eq!(found, [("openclaw", 1), ("openfang", 1)]);
}

#[test]
fn an_openfang_home_is_read() {
    let harness = Harness::new(&[
        (
            "agents/scout/agent.toml",
            "name = \"scout\"\n[model]\nprovider = \"groq\"\nmodel = \"m\"\nsystem_prompt = \"Scout.\"\n",
        ),
        ("agents/bad/agent.toml", "name = 7\n"),
        (
            "hands/clip/HAND.toml",
            "id = \"clip\"\nname = \"Clip\"\ndescription = \"Cuts\"\ntools = [\"shell_exec\"]\n[agent]\nname = \"clip-hand\"\nprovider = \"default\"\nmodel = \"default\"\nsystem_prompt = \"Cut.\"\n",
        ),
        ("skills/s/skill.toml", "[skill]\nname = \"s\"\n"),
        (
            "workspaces/scout/sessions/1.jsonl",
            "{\"timestamp\":\"2026-01-01T00:00:00Z\",\"role\":\"user\",\"content\":\"x\"}\n",
        ),
    ]);
    let home = harness.opened();
    let agents: Vec<(String, bool)> = home.agents().into_iter().map(|item| (item.name, item.convertible)).collect();
    assert_eq!(agents, [("bad".to_owned(), false), ("scout".to_owned(), true), ("clip".to_owned(), true)]);
    let clip = manifest::parse(home.manifest(2).unwrap()).unwrap().manifest;
    assert_eq!((&*clip.model.provider, &*clip.system_prompt), ("", "Cut."));
    assert_eq!((home.sessions(), home.skills().len()), (vec![1], 1));
}

#[test]
fn what_is_no_home_is_refused() {
    let harness = Harness::new(&[]);
    assert!(refused(&harness, Path::new("relative")).contains("absolute"));
    assert!(refused(&harness, &harness.theirs.path().join("none")).contains("not a directory"));
    assert!(refused(&harness, harness.theirs.path()).contains("no home of a known kind"));
    assert!(refused(&harness, harness.ours.path()).contains("own home"));
    assert!(refused(&harness, Path::new("/")).contains("own home"));
}

#[test]
fn nothing_leaves_the_home() {
    let harness =
        Harness::new(&[("openclaw.json", "{agents: {list: [{id: '../../etc'}, {id: 'b', workspace: '/etc'}]}}")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("SOUL.md"), "secret of another place").unwrap();
    symlink(outside.path(), harness.theirs.path().join("workspace")).unwrap();
    fs::create_dir_all(harness.theirs.path().join("skills/s")).unwrap();
    symlink(outside.path().join("SOUL.md"), harness.theirs.path().join("skills/s/SKILL.md")).unwrap();
    let home = harness.opened();
    let all: String = (0..home.agents().len()).filter_map(|n| home.manifest(n)).collect();
    assert!(!all.contains("secret of another place") && !all.contains(".."), "{all}");
    assert!(home.skills().is_empty());
    assert!(home.warnings().iter().any(|warning| warning.contains("/etc")));
}

#[test]
fn large_files_and_broken_text_are_warnings() {
    let harness = Harness::new(&[("openclaw.json", "{}"), ("agents/main/sessions/s.jsonl", "\u{0}\n{}\nnonsense\n")]);
    harness.write("workspace/SOUL.md", &"x".repeat(usize::try_from(limit::MIGRATION_TEXT_BYTES_MAX).unwrap() + 1));
    fs::write(harness.theirs.path().join("workspace/AGENTS.md"), b"caf\xff").unwrap();
    let home = harness.opened();
    assert!(home.manifest(0).unwrap().contains("caf\u{fffd}"));
    assert!(home.warnings().iter().any(|warning| warning.contains("the limit is")), "{:?}", home.warnings());
    let history = home.history(0).unwrap();
    assert!(!history.says_something() && history.warnings.len() == 1);
}

#[test]
fn where_an_agent_comes_from_is_known_by_place_and_by_text() {
    let files = [("agents/a/agent.toml", "name = \"a\"\n"), ("agents/b/agent.toml", "name = \"b\"\n")];
    let (harness, copy) = (Harness::new(&files), Harness::new(&files));
    let (home, other) = (harness.opened(), copy.opened());
    let a = home.origin(0).unwrap();
    assert_eq!(home.origin(2), None);
    assert_eq!(a, harness.opened().origin(0).unwrap());
    assert_eq!((a.text, a.place == other.origin(0).unwrap().place), (other.origin(0).unwrap().text, false));
    let b = home.origin(1).unwrap();
    assert!(a.place != b.place && a.text != b.text);
    harness.write("agents/a/agent.toml", "name = \"a\"\ndescription = \"d\"\n");
    let changed = harness.opened().origin(0).unwrap();
    assert_eq!((changed.place, changed.text == a.text), (a.place, false));
    harness.write("agents/a/agent.toml", "name = 7\n");
    assert_eq!(harness.opened().origin(0), None, "what cannot be converted comes from nowhere");
}
