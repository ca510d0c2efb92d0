//! The rule about systems: those that take the whole world are counted, and each says why.

use std::collections::BTreeSet;

use super::arrows::workspace;
use super::imports::{Crate, File, path_at};
use super::tokens::{Kind, Token, text_at};
use super::{none, ratchet, read, root};

/// Systems that take `&mut World`.
const SYSTEMS_WITH_THE_WORLD: &[(&str, usize)] = &[("systems", 38)];
/// Those of them without a line `// &mut World: <why>` above.
const SYSTEMS_WITHOUT_A_REASON: &[(&str, usize)] = &[];

/// What fills a new world is no system.
const SET_UP: &str = "install";

/// A function that takes `&mut World` and nothing else, and returns nothing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    /// Its top-level module and its name.
    known_as: (&'static str, &'static str),
    file: String,
    /// Counted from one.
    line: usize,
}

/// The functions of a file that could be systems with `&mut World`.
fn functions(file: &File) -> Vec<Function> {
    const REST: [&str; 7] = ["(", "", ":", "&", "mut", "World", ")"];
    let tokens = &file.tokens;
    let is_one = |at: &usize| {
        let begins = text_at(tokens, *at) == "fn" && text_at(tokens, at + 9) == "{";
        begins && REST.iter().enumerate().all(|(n, text)| text.is_empty() || text_at(tokens, at + 2 + n) == *text)
    };
    let found = (0..tokens.len()).filter(is_one).map(|at| Function {
        known_as: (file.module.first().copied().unwrap_or_default(), text_at(tokens, at + 1)),
        file: file.name.clone(),
        line: tokens[at].line,
    });
    found.filter(|function| function.known_as.1 != SET_UP).collect()
}

/// The functions that a file hands over as values, by their top-level module and name.
fn handed_over(one: &Crate, file: &File) -> BTreeSet<(&'static str, &'static str)> {
    let tokens: &[Token] = &file.tokens;
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < tokens.len() {
        let before = if at == 0 { "" } else { text_at(tokens, at - 1) };
        if text_at(tokens, at) == "use" {
            at += tokens[at..].iter().position(|token| token.is(";")).unwrap_or(0);
        } else if tokens[at].kind == Kind::Word && ["(", ",", "[", "=", ":"].contains(&before) {
            let (path, end) = path_at(tokens, at);
            at = end;
            if [",", ")", "]", "}", ";"].contains(&text_at(tokens, end + 1))
                && let Some((folder, path)) = one.resolve(&file.module, &path)
                && folder == one.folder
                && let [top, .., name] = path[..]
            {
                found.insert((top, name));
            }
        }
        at += 1;
    }
    found
}

/// The systems of a crate that take `&mut World`: such a function that is handed over somewhere, and not only called.
fn systems(one: &Crate) -> Vec<Function> {
    let handed_over: BTreeSet<_> = one.files.iter().flat_map(|file| handed_over(one, file)).collect();
    let functions = one.files.iter().flat_map(functions);
    functions.filter(|function| handed_over.contains(&function.known_as)).collect()
}

/// Does the function on `line` say why it takes the world, in a comment between its documentation and its name?
fn says_why(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().take(line - 1).collect();
    let above = lines.iter().rev().map(|line| line.trim());
    let mut head = above.take_while(|line| line.starts_with("//") || line.starts_with("#["));
    head.any(|line| line.strip_prefix("// &mut World: ").is_some_and(|why| why.len() > 10))
}

#[test]
fn systems_say_what_they_touch() {
    let one = workspace().iter().find(|one| one.folder == "systems").expect("the crate is there");
    let systems = systems(one);
    let unexplained = |function: &&Function| !says_why(&read(&root().join(&function.file)).text, function.line);
    let silent: Vec<_> = systems.iter().filter(unexplained).collect();
    let count = |count: usize| [("systems".to_owned(), count)];
    let mut complaints = ratchet(&count(systems.len()), 0, SYSTEMS_WITH_THE_WORLD, "systems that take `&mut World`");
    complaints.extend(ratchet(
        &count(silent.len()),
        0,
        SYSTEMS_WITHOUT_A_REASON,
        "systems without a line `// &mut World: <why>` above",
    ));
    if !complaints.is_empty() {
        complaints.extend(silent.iter().map(|found| format!("{}:{}: {}", found.file, found.line, found.known_as.1)));
    }
    none(&complaints);
}

#[test]
fn systems_are_told_from_functions_that_are_called() {
    let files = [
        ("lib.rs", "mod a; mod engine;"),
        (
            "a/mod.rs",
            "mod b; pub(crate) use b::{beat, meet};\npub(crate) fn install(world: &mut World) { b::called(world); }",
        ),
        (
            "a/b.rs",
            "pub fn beat(world: &mut World) { x() }\nfn called(world: &mut World) { y() }\nfn take(w: &mut World) -> bool { z() }\npub fn meet(world: &mut World) {}",
        ),
        (
            "engine.rs",
            "use crate::a;\nfn new() { a::install(w); s.timed(\"a_beat\", a::beat); s.add(a::meet, 1); f(a::take); g(a::install) }",
        ),
    ];
    let found = systems(&Crate::of("systems", &files));
    let lines: Vec<_> = found.iter().map(|found| (found.known_as, found.line)).collect();
    assert_eq!(lines, [(("a", "beat"), 1), (("a", "meet"), 4)]);
    let text = "/// Doc.\n// &mut World: it calls every domain.\n#[inline]\nfn a() {}\nfn b() {}";
    assert!(says_why(text, 4) && !says_why(text, 5));
}
