//! Guards of the code's style and architecture: dependency arrows, module docs, lengths, names, and that every
//! route is documented and tested. A budget here may only shrink.

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/commands.rs"]
mod commands;
#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/links.rs"]
mod links;
mod support;
#[path = "tidy/systems.rs"]
mod systems;
#[path = "tidy/tokens.rs"]
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use support::routes::{Route, declared, root, sources};

/// Lines a file may have.
const FILE_LINES_MAX: usize = 450;
/// Lines a function may have, its signature and closing brace included.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that are longer than [`FILE_LINES_MAX`], with the lines they have now.
const LONG_FILES: &[(&str, usize)] = &[];

/// Functions that are longer than [`FUNCTION_LINES_MAX`], as `file::function`, with the lines they have now.
const LONG_FUNCTIONS: &[(&str, usize)] = &[];

/// Crates that `components` may use: data and its derives.
const COMPONENTS_MAY_USE: &[&str] = &["bevy_ecs", "serde", "uuid", "chrono"];
/// Crates that `systems` must not use: no I/O, no clock, no entropy.
const SYSTEMS_MUST_NOT_USE: &[&str] =
    &["tokio", "hyper", "hyper-util", "reqwest", "fjall", "rand", "getrandom", "agentsvc-api", "agentsvc"];
/// Crates that `api` must not use: no store, no provider.
const API_MUST_NOT_USE: &[&str] = &["fjall", "reqwest", "agentsvc"];

/// The one file of the world with a thread: before a world takes anything in, its indexes are filled side by side, and
/// waited for. What comes of it does not depend on which is done first.
const MAY_HAVE_THREADS: &str = "systems/src/agent/population.rs";

/// What the sources of `components` and `systems` must not say.
const WORLD_MUST_NOT_SAY: &[&str] = &[
    "tokio",
    "hyper",
    "reqwest",
    "fjall",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime::now",
    "Instant::now",
    "Utc::now",
    "now_v7",
    "new_v4",
    "thread_rng",
    "OsRng",
    // `cron` from now on.
    ".upcoming",
];
/// What the sources of `api` must not say.
const API_MUST_NOT_SAY: &[&str] = &["fjall", "reqwest", "std::fs"];

/// Words that name nothing.
const EMPTY_WORDS: &[&str] = &["helpers", "util", "utils"];

/// Test files that may sleep: the one poll loop, the model that thinks, the kill at a random time, the client that is slow,
/// and its neighbour that asks now and then.
const SLEEPERS: &[&str] = &[
    "tests/support/mod.rs",
    "tests/support/model.rs",
    "tests/abuse/harness.rs",
    "tests/abuse/slow.rs",
    "tests/crash.rs",
    "tests/task_crash.rs",
    "tests/tool_crash.rs",
    "tests/trigger_crash.rs",
    "tests/budget_crash.rs",
    "tests/tidy.rs",
];

/// One source file.
struct Source {
    /// From the root of the repository, with `/`.
    name: String,
    text: String,
}

/// Every source file of the repository.
fn all_sources() -> Vec<Source> {
    let rooms = ["components", "systems", "api", "src", "tests", "benches", "fuzz/src"];
    let paths = rooms.iter().map(|room| root().join(room)).filter(|path| path.is_dir());
    paths.flat_map(|path| sources(&path)).map(|path| read(&path)).collect()
}

fn read(path: &Path) -> Source {
    let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    Source { name, text }
}

/// Fails with every complaint at once.
#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The names of a manifest's ordinary dependencies.
fn dependencies(room: &str) -> BTreeSet<String> {
    let manifest: toml::Table = read(&root().join(room).join("Cargo.toml")).text.parse().expect("valid TOML");
    manifest.get("dependencies").and_then(|d| d.as_table()).map(|d| d.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn dependencies_point_one_way() {
    let mut complaints = Vec::new();
    for name in dependencies("components") {
        if !COMPONENTS_MAY_USE.contains(&name.as_str()) {
            complaints.push(format!("components must not depend on {name}"));
        }
    }
    for (room, forbidden) in [("systems", SYSTEMS_MUST_NOT_USE), ("api", API_MUST_NOT_USE)] {
        let found = dependencies(room).into_iter().filter(|name| forbidden.contains(&name.as_str()));
        complaints.extend(found.map(|name| format!("{room} must not depend on {name}")));
    }
    none(&complaints);
}

#[test]
fn rooms_do_not_say_what_they_must_not_know() {
    let mut complaints = Vec::new();
    for source in all_sources() {
        let forbidden = match source.name.split('/').next() {
            Some("components" | "systems") => WORLD_MUST_NOT_SAY,
            Some("api") => API_MUST_NOT_SAY,
            _ => continue,
        };
        // Tests may look at a clock; what they test may not.
        if source.name.ends_with("tests.rs") {
            continue;
        }
        let text = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let may = |word: &str| word == "std::thread" && source.name == MAY_HAVE_THREADS;
            let words = forbidden.iter().filter(|word| code.contains(**word) && !may(word));
            complaints.extend(words.map(|word| format!("{}:{}: says {word}", source.name, number + 1)));
        }
    }
    none(&complaints);
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let missing = all_sources().into_iter().filter(|source| !source.text.starts_with("//! "));
    none(&missing.map(|source| format!("{}: begin with a `//!` sentence", source.name)).collect::<Vec<_>>());
}

/// Compares counts of `what` with their budget: growth is refused, shrinking must be written down.
fn ratchet(found: &[(String, usize)], max: usize, budget: &[(&str, usize)], what: &str) -> Vec<String> {
    let allowed = |name: &str| budget.iter().find(|(n, _)| *n == name).map(|(_, count)| *count);
    let mut complaints = Vec::new();
    for (name, count) in found.iter().filter(|(name, count)| *count > allowed(name).unwrap_or(max)) {
        complaints.push(format!("{name}: {count} {what}, at most {} are allowed", allowed(name).unwrap_or(max)));
    }
    for (name, allowed) in budget {
        let now = found.iter().filter(|(n, _)| n == name).map(|(_, count)| *count).max().unwrap_or(0);
        if now < *allowed {
            complaints.push(format!("{name}: {now} {what} now; lower its budget of {allowed} (or remove it)"));
        }
    }
    complaints
}

#[test]
fn files_stay_short() {
    let lengths: Vec<_> = all_sources().into_iter().map(|s| (s.name, s.text.lines().count())).collect();
    none(&ratchet(&lengths, FILE_LINES_MAX, LONG_FILES, "lines"));
}

/// The name that a line of formatted source declares with `word`, such as `fn`.
fn declares<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    loop {
        let next = words.next()?;
        if next == word {
            let name = words.next()?;
            return name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty());
        }
        let prefix = next.starts_with("pub") || ["async", "const", "unsafe", "extern"].contains(&next);
        if !prefix {
            return None;
        }
    }
}

/// The functions of formatted source: one begins at its `fn` and ends at the brace below it.
fn functions(source: &Source) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = declares(line, "fn").filter(|_| !line.ends_with(['}', ';'])) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends =
            |l: &&str| l.strip_prefix(indent).is_some_and(|l| l == "}" || l.starts_with(") ") && l.ends_with(';'));
        if let Some(length) = lines[at..].iter().position(ends) {
            found.push((format!("{}::{name}", source.name), length + 1));
        }
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let lengths: Vec<_> = all_sources().iter().flat_map(functions).collect();
    none(&ratchet(&lengths, FUNCTION_LINES_MAX, LONG_FUNCTIONS, "lines"));
}

#[test]
fn names_say_something() {
    let mut complaints = Vec::new();
    for source in all_sources() {
        for (number, line) in source.text.lines().enumerate() {
            for word in ["struct", "enum", "trait", "mod"] {
                let Some(name) = declares(line, word) else { continue };
                let empty = words_of(name).into_iter().find(|w| EMPTY_WORDS.contains(&w.as_str()));
                if let Some(empty) = empty {
                    complaints.push(format!("{}:{}: '{name}' says '{empty}'", source.name, number + 1));
                }
            }
        }
    }
    none(&complaints);
}

/// The words of a `CamelCase` or `snake_case` name, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("one word at least").extend(c.to_lowercase());
        }
    }
    words
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [["TO", "DO"], ["FIX", "ME"], ["to", "do!("], ["unimple", "mented!("], ["XX", "X"]].map(|m| m.concat());
    let mut files = all_sources();
    files.extend(["README.md", ".ci/run", "Cargo.toml"].map(|name| root().join(name)).iter().map(|path| read(path)));
    let mut complaints = Vec::new();
    for source in files {
        for (number, line) in source.text.lines().enumerate() {
            let found = marks.iter().filter(|mark| line.contains(mark.as_str()));
            complaints.extend(found.map(|mark| format!("{}:{}: {mark}", source.name, number + 1)));
        }
    }
    none(&complaints);
}

#[test]
fn tests_wait_for_conditions_and_do_not_sleep() {
    let sleeps = |source: &Source| {
        let in_tests = source.name.starts_with("tests/") && !SLEEPERS.contains(&source.name.as_str());
        in_tests && source.text.contains("sleep(")
    };
    none(&all_sources().into_iter().filter(sleeps).map(|s| format!("{}: sleeps", s.name)).collect::<Vec<_>>());
}

#[test]
fn every_route_is_documented() {
    let page = read(&root().join("docs/api.md")).text;
    let documented = |route: &Route| {
        page.lines().any(|line| line.contains(&route.verb) && cells(line).any(|cell| cell == route.path))
    };
    let missing = declared().into_iter().filter(|route| !documented(route));
    none(&missing.map(|r| format!("docs/api.md has no line with {} {}", r.verb, r.path)).collect::<Vec<_>>());
}

/// The words of a line without the marks of a table.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || "|`,".contains(c)).filter(|cell| !cell.is_empty())
}

#[test]
fn every_route_is_tested() {
    let tests = ["tests/http", "tests/support"].map(|folder| sources(&root().join(folder))).concat();
    let called: BTreeSet<Route> = tests.iter().flat_map(|path| calls(&read(path).text)).collect();
    let shape = |route: &Route| Route { path: shape_of(&route.path), verb: route.verb.clone() };
    let missing = declared().into_iter().filter(|route| !called.contains(&shape(route)));
    none(&missing.map(|r| format!("no test in tests/http calls {} {}", r.verb, r.path)).collect::<Vec<_>>());
}

/// A path with every parameter written `{}` and without its query.
fn shape_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let segments = path.split('/').map(|segment| if segment.contains('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// The calls that a test's source makes: every string that begins like a path, with the verb said just before it.
fn calls(text: &str) -> Vec<Route> {
    const VERBS: &[(&str, &str)] = &[
        (".get(", "GET"),
        (".post(", "POST"),
        (".poke(", "POST"),
        (".put(", "PUT"),
        (".patch(", "PATCH"),
        (".delete(", "DELETE"),
        ("\"GET\"", "GET"),
        ("\"POST\"", "POST"),
        ("\"PUT\"", "PUT"),
        ("\"DELETE\"", "DELETE"),
    ];
    let paths = text.match_indices("\"/").filter_map(|(at, _)| {
        let path = text[at + 1..].split('"').next()?;
        let before = &text[..at];
        let start = before.char_indices().rev().nth(60).map_or(0, |(start, _)| start);
        let said = |(mark, verb): &(&str, &'static str)| Some((before[start..].rfind(mark)?, *verb));
        let (_, verb) = VERBS.iter().filter_map(said).max()?;
        Some(Route { path: shape_of(path), verb: verb.to_owned() })
    });
    paths.collect()
}

#[test]
fn the_guards_themselves_work() {
    let route = |verb: &str, path: &str| Route { path: path.to_owned(), verb: verb.to_owned() };
    let found =
        calls("let x = daemon.get(&format!(\"/api/agents/{id}/tools?x=1\")); daemon.send(\"PUT\", \"/api/x\", &[]);");
    assert_eq!(found, [route("GET", "/api/agents/{}/tools"), route("PUT", "/api/x")]);
    assert_eq!(words_of("AgentManager"), ["", "agent", "manager"]);
    assert_eq!(declares("    pub(crate) async fn run(&self) {", "fn"), Some("run"));
    assert_eq!(declares("    let fn_name = 1;", "fn"), None);
    let text = "fn a() {\n    b();\n}\n\nfn c(\n    d: u8,\n) -> u8 {\n    d\n}\n".to_owned();
    let lengths = functions(&Source { name: "x".into(), text });
    assert_eq!(lengths, [("x::a".to_owned(), 3), ("x::c".to_owned(), 5)]);
    let found = [("long".to_owned(), 80), ("short".to_owned(), 10)];
    assert_eq!(ratchet(&found, 70, &[], "lines").len(), 1);
    assert_eq!(ratchet(&found, 70, &[("long", 80)], "lines").len(), 0);
    assert_eq!(ratchet(&found, 70, &[("long", 90)], "lines").len(), 1);
}
