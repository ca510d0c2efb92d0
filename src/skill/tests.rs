//! Reading whole folders: look-alikes of what others publish, and their own where it is at hand.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A folder with content of others: `skills/` and `agent-skills/` in it must all load. Not set: nothing to do.
const CONTENT: &str = "AGENTSVC_TEST_CONTENT";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (path, text) in files {
        let path = dir.path().join("it").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    dir
}

fn read_it(files: &[(&str, &str)]) -> Result<Skill, ReadError> {
    let dir = folder(files);
    read(&dir.path().join("it"))
}

#[test]
fn content_of_others_loads_with_its_own_version_and_author() {
    let Some(content) = std::env::var_os(CONTENT).map(PathBuf::from) else { return };
    let mut count = 0;
    for kind in ["skills", "agent-skills"] {
        for entry in fs::read_dir(content.join(kind)).unwrap() {
            let path = entry.unwrap().path();
            let before = modified(&path);
            let skill = read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(*skill.name, *path.file_name().unwrap().to_string_lossy(), "{:?}", skill.warnings);
            assert!(!skill.description.is_empty() && !skill.prompt_context.is_empty(), "{}", path.display());
            if kind == "skills" {
                let text = fs::read_to_string(path.join("SKILL.md")).unwrap();
                assert!(text.contains(&format!("version: {}", skill.version)), "{}", path.display());
                assert!(!skill.author.is_empty() && !skill.tags.is_empty(), "{}", path.display());
            }
            assert_eq!(before, modified(&path), "a load writes nothing");
            count += 1;
        }
    }
    assert!(count > 0);
}

fn modified(path: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).expect("a folder").flatten() {
        let found = entry.metadata().expect("it is there").modified().expect("a time");
        all.push((entry.path(), found));
    }
    all.sort();
    all
}

#[test]
fn a_manifest_comes_before_the_text_beside_it() {
    let text = "---\nname: word-counter\ndescription: Count words.\nauthor: me\n---\n# Word Counter\n";
    let manifest = "[skill]\nname = \"word-counter\"\nversion = \"1.2.3\"\n[runtime]\ntype = \"python\"\nentry = \"main.py\"\n\
        [input]\ntext = { type = \"string\", required = true }\n";
    let skill =
        read_it(&[("SKILL.md", text), ("skill.toml", manifest), ("main.py", "def run(input): return ''")]).unwrap();
    assert_eq!((&*skill.version, &*skill.description, &*skill.author), ("1.2.3", "Count words.", "me"));
    assert_eq!((skill.runtime, &*skill.prompt_context), (Runtime::Python, "# Word Counter\n"));
    assert_eq!((skill.tools.len(), &*skill.tools[0].name), (1, "word_counter"));
    let skill =
        read_it(&[("SKILL.md", text), ("skill.toml", manifest), ("main.py", ""), ("prompt_context.md", "Beside.")]);
    assert_eq!(&*skill.unwrap().prompt_context, "Beside.");
}

#[test]
fn what_is_no_skill_says_why() {
    let why = |files: &[(&str, &str)]| read_it(files).unwrap_err().to_string();
    assert!(why(&[("README.md", "x")]).contains("no SKILL.md"));
    assert!(why(&[("SKILL.md", "---\nname: x\n---\nbody")]).contains("description is missing"));
    assert!(why(&[("SKILL.md", "---\nname: [\n---\nbody")]).starts_with("SKILL.md: the front matter"));
    let python = |entry: &str| format!("[skill]\nname = \"a\"\n[runtime]\ntype = \"python\"\nentry = \"{entry}\"\n");
    for entry in ["missing.py", "../outside.py", "/etc/passwd"] {
        assert!(why(&[("skill.toml", &python(entry))]).contains("runtime.entry"), "{entry}");
    }
    assert!(why(&[("skill.toml", "[skill]\nname = \"a\"\n[runtime]\ntype = \"node\"\n")]).contains("no usual file"));
    assert!(
        why(&[("SKILL.md", &format!("---\nname: x\ndescription: About\n---\n{}", "x".repeat(300 << 10)))])
            .contains("larger")
    );
    assert!(why(&[("package.json", "{")]).starts_with("package.json: it is not valid JSON"));
}

#[test]
fn names_are_taken_leniently() {
    let named =
        |name: &str| read_it(&[("SKILL.md", &format!("---\nname: {name}\ndescription: About\n---\nz"))]).unwrap();
    assert_eq!((&*named("it").name, named("it").warnings.len()), ("it", 0));
    for name in ["Other Name", "other", "x.y"] {
        assert_eq!((&*named(name).name, named(name).warnings.len()), (name, 1));
    }
    for name in ["../up", "a/b", ".hidden", &"x".repeat(300)] {
        assert_eq!((&*named(name).name, named(name).warnings.len()), ("it", 1));
    }
    let plain = read_it(&[("skill.md", "---\ndescription: About\n---\nz")]).unwrap();
    assert_eq!((&*plain.name, &*plain.version, plain.category()), ("it", "0.1.0", "general"));
}

#[test]
fn a_hash_is_that_of_the_files() {
    let first = read_it(&[("SKILL.md", "---\nname: it\ndescription: About\n---\nz"), ("a/b.txt", "1")]).unwrap();
    let same = read_it(&[("SKILL.md", "---\nname: it\ndescription: About\n---\nz"), ("a/b.txt", "1")]).unwrap();
    let other = read_it(&[("SKILL.md", "---\nname: it\ndescription: About\n---\nz"), ("a/c.txt", "1")]).unwrap();
    assert_eq!((first.content_hash.len(), &first.content_hash), (64, &same.content_hash));
    assert_ne!(first.content_hash, other.content_hash);
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[\\[\\]{}:,'\"/*#&!|>a-z0-9 \n\t=.-]{0,120}") {
        let head = format!("---\n{text}\n---\n{text}");
        let _ = skill_md::fill(&mut Skill::default(), &head);
        let _ = skill_toml::fill(&mut Skill::default(), &text, None);
        let _ = skill_toml::fill(&mut Skill::default(), &format!("[skill]\nname = \"a\"\n{text}"), None);
        let _ = package_json::fill(&mut Skill::default(), &text, Some("index.js"), false);
    }
}
