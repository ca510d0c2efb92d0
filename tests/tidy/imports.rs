//! What the modules of a crate name: its imports and the paths in its code, each followed to the module that it leads to.
//! Test code is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{Kind, Token, after_group, text_at, tokens, without_tests};

/// The crates of the workspace: folder, name in paths, and the module that names no domain.
pub(crate) const CRATES: [(&str, &str, &str); 4] = [
    ("components", "agentsvc_components", "kernel"),
    ("systems", "agentsvc_systems", "kernel"),
    ("api", "agentsvc_api", "http"),
    ("src", "agentsvc", "kernel"),
];
/// What `lib.rs` itself defines or names, apart from its modules and what it re-exports.
pub(crate) const ROOT: &str = "lib";

type Path = Vec<&'static str>;

/// One module of a crate.
#[derive(Default)]
struct Module {
    /// What its imports bring in, with the path as it is written.
    names: BTreeMap<&'static str, Path>,
    /// The paths of which it imports everything.
    globs: Vec<Path>,
    children: BTreeSet<&'static str>,
    /// What it defines.
    items: BTreeSet<&'static str>,
}

/// A path as a module writes it.
struct Reference {
    from: Path,
    path: Path,
    /// `file:line`
    place: String,
    /// It is imported with `pub use`.
    reexported: bool,
}

/// One source file without its tests.
pub(crate) struct File {
    pub(crate) module: Path,
    pub(crate) name: String,
    pub(crate) tokens: Vec<Token>,
}

/// What leads from one top-level module to another: every place that names it.
pub(crate) type Places = BTreeSet<String>;

/// The modules of one crate and what they name.
pub(crate) struct Crate {
    /// Its folder.
    pub(crate) folder: &'static str,
    /// The modules of the first level.
    pub(crate) tops: BTreeSet<&'static str>,
    /// The top-level modules with a `DOMAIN`, and what it declares in `uses`.
    pub(crate) domains: BTreeMap<&'static str, BTreeSet<&'static str>>,
    pub(crate) files: Vec<File>,
    modules: BTreeMap<Path, Module>,
    references: Vec<Reference>,
}

/// The module of a file, by its path below the crate's sources; none for test files and for a binary.
fn module_of(path: &'static str) -> Option<Path> {
    let mut segments: Path = path.strip_suffix(".rs")?.split('/').collect();
    let last = *segments.last()?;
    let for_tests = segments.contains(&"tests") || last == "testing" || last.ends_with("_tests");
    if for_tests || segments == ["main"] {
        return None;
    }
    if last == "mod" || segments == ["lib"] {
        segments.pop();
    }
    Some(segments)
}

impl Crate {
    /// The crate in `folder`, of its files: paths below its sources, and texts.
    pub(crate) fn of(folder: &'static str, files: &[(&'static str, &'static str)]) -> Self {
        let mut read = Vec::new();
        let mut tests = BTreeSet::new();
        for (path, text) in files {
            let Some(module) = module_of(path) else { continue };
            let (tokens, for_tests) = without_tests(&tokens(text));
            tests.extend(for_tests.into_iter().map(|name| [module.as_slice(), &[name]].concat()));
            let name = if folder == "src" { format!("src/{path}") } else { format!("{folder}/src/{path}") };
            read.push(File { module, name, tokens });
        }
        read.retain(|file| !(1..=file.module.len()).any(|length| tests.contains(&file.module[..length])));
        let mut found = Self {
            folder,
            tops: read.iter().filter_map(|file| file.module.first().copied()).collect(),
            domains: BTreeMap::new(),
            files: Vec::new(),
            modules: BTreeMap::new(),
            references: Vec::new(),
        };
        for file in &read {
            found.module(&file.module);
            found.read(file);
        }
        found.files = read;
        found
    }

    /// The module that names no domain.
    pub(crate) fn kernel(&self) -> &'static str {
        CRATES.iter().find(|(folder, _, _)| *folder == self.folder).map_or("kernel", |(_, _, kernel)| kernel)
    }

    fn module(&mut self, path: &[&'static str]) -> &mut Module {
        if let Some((last, parent)) = path.split_last()
            && !self.modules.contains_key(path)
        {
            self.module(parent).children.insert(last);
        }
        self.modules.entry(path.to_vec()).or_default()
    }

    fn read(&mut self, file: &File) {
        let tokens = &file.tokens;
        let (mut inline, mut depth, mut from, mut at) = (Vec::new(), 0_usize, file.module.clone(), 0);
        while at < tokens.len() {
            let token = tokens[at];
            let before = if at == 0 { "" } else { text_at(tokens, at - 1) };
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    from.pop();
                }
            } else if token.kind == Kind::Word {
                let top = inline.last().map_or(0, |depth| depth + 1) == depth;
                if token.text == "mod" && text_at(tokens, at + 2) == "{" {
                    from.push(text_at(tokens, at + 1));
                    self.module(&from);
                    inline.push(depth);
                } else if token.text == "use" && before != "." && !["<", "("].contains(&text_at(tokens, at + 1)) {
                    at = self.import(file, &from, at);
                } else if text_at(tokens, at + 1) == "::" && !["::", "."].contains(&before) {
                    let (path, end) = path_at(tokens, at);
                    self.refer(file, &from, path, token.line, false);
                    at = end;
                } else if top && DEFINES.contains(&token.text) {
                    self.define(file, &from, at);
                }
            }
            at += 1;
        }
    }

    fn refer(&mut self, file: &File, from: &[&'static str], path: Path, line: usize, reexported: bool) {
        let place = format!("{}:{line}", file.name);
        self.references.push(Reference { from: from.to_vec(), path, place, reexported });
    }

    /// Reads the `use` at `at`; gives the place of its semicolon.
    fn import(&mut self, file: &File, from: &[&'static str], at: usize) -> usize {
        let tokens = &file.tokens;
        let reexported = at > 0 && ["pub", ")"].contains(&text_at(tokens, at - 1));
        let mut leaves = Vec::new();
        let end = use_tree(tokens, at + 1, &[], &mut leaves);
        for Leaf { mut path, alias, line } in leaves {
            if path.last() == Some(&"self") && path.len() > 1 {
                path.pop();
            }
            let (last, parent) = path.split_last().expect("a path has a segment");
            let module = self.module(from);
            if *last == "*" {
                module.globs.push(parent.to_vec());
            } else {
                module.names.insert(alias.unwrap_or(last), path.clone());
            }
            self.refer(file, from, path, line, reexported);
        }
        end
    }

    /// Notes the item that is defined at `at`, and what a `DOMAIN` declares.
    fn define(&mut self, file: &File, from: &[&'static str], at: usize) {
        let tokens = &file.tokens;
        let name = text_at(tokens, at + 1);
        self.module(from).items.insert(name);
        if name == "DOMAIN" && ["const", "static"].contains(&text_at(tokens, at)) && from.len() == 1 {
            let end = tokens[at..].iter().position(|token| token.is(";")).map_or(tokens.len(), |end| at + end);
            self.domains.insert(from[0], declared(&tokens[at..end]));
        }
    }

    /// The folder of the crate and the path in it to which a path leads that a module writes; none for what is not of the
    /// workspace.
    pub(crate) fn resolve(&self, from: &[&'static str], path: &[&'static str]) -> Option<(&'static str, Path)> {
        self.follow(from, path, 0)
    }

    fn follow(&self, from: &[&'static str], path: &[&'static str], steps: usize) -> Option<(&'static str, Path)> {
        let (first, rest) = path.split_first()?;
        if steps > LINKS_MAX {
            return None;
        }
        if let Some((folder, _, _)) = CRATES.iter().find(|(_, name, _)| name == first) {
            return Some((folder, rest.to_vec()));
        }
        let supers = path.iter().take_while(|segment| **segment == "super").count();
        let base = match *first {
            "crate" => &[],
            "self" => from,
            "super" => &from[..from.len().saturating_sub(supers)],
            _ => return self.follow_name(from, first, rest, steps),
        };
        Some(self.rooted([base, &path[supers.max(1)..]].concat(), steps))
    }

    /// Follows a path whose first segment is a name in `from`.
    fn follow_name(
        &self,
        from: &[&'static str],
        first: &'static str,
        rest: &[&'static str],
        steps: usize,
    ) -> Option<(&'static str, Path)> {
        let module = self.modules.get(from)?;
        if let Some(import) = module.names.get(first).filter(|import| **import != [first]) {
            let (folder, path) = self.follow(from, import, steps + 1)?;
            return Some((folder, [&path, rest].concat()));
        }
        if module.children.contains(first) || module.items.contains(first) {
            return Some(self.rooted([from, &[first], rest].concat(), steps));
        }
        module.globs.iter().find_map(|glob| {
            let (folder, path) = self.follow(from, glob, steps + 1)?;
            let here = folder == self.folder && path != from;
            here.then(|| self.follow_name(&path, first, rest, steps + 1)).flatten()
        })
    }

    /// A path from the crate's root, behind what `lib.rs` re-exports.
    fn rooted(&self, path: Path, steps: usize) -> (&'static str, Path) {
        let reexported = path.first().filter(|first| !self.tops.contains(**first)).and_then(|first| {
            let root = self.modules.get([].as_slice())?;
            let known = root.names.contains_key(first) || !root.globs.is_empty() && !root.items.contains(first);
            known.then(|| self.follow_name(&[], first, &path[1..], steps + 1)).flatten()
        });
        reexported.unwrap_or((self.folder, path))
    }

    /// The top-level module that a path from the crate's root leads to.
    pub(crate) fn top_of(&self, path: &[&'static str]) -> &'static str {
        let (_, path) = self.rooted(path.to_vec(), 0);
        path.first().filter(|first| self.tops.contains(**first)).copied().unwrap_or(ROOT)
    }

    /// What leads from a top-level module to a path from the root of a crate, which is this one or another.
    pub(crate) fn arrows(&self) -> Vec<(&'static str, &'static str, Path, String)> {
        let leads = |reference: &Reference| {
            let (folder, path) = self.resolve(&reference.from, &reference.path)?;
            let from = reference.from.first().copied().unwrap_or(ROOT);
            let counts = !(path.is_empty() || from == ROOT && reference.reexported);
            counts.then(|| (from, folder, path.clone(), format!("{}: {}", reference.place, path.join("::"))))
        };
        self.references.iter().filter_map(leads).collect()
    }

    /// The arrows between different top-level modules of this crate.
    pub(crate) fn edges(&self) -> BTreeMap<(&'static str, &'static str), Places> {
        let mut edges = BTreeMap::<_, Places>::new();
        for (from, folder, path, place) in self.arrows() {
            let to = self.top_of(&path);
            if folder == self.folder && to != from {
                edges.entry((from, to)).or_default().insert(place);
            }
        }
        edges
    }
}

/// Imports that are followed one after the other.
const LINKS_MAX: usize = 16;
/// The keywords that define an item by the name behind them.
const DEFINES: &[&str] = &["struct", "enum", "trait", "fn", "const", "static", "type", "union"];

/// The path that begins at `at`, and the place of its last segment.
pub(crate) fn path_at(tokens: &[Token], at: usize) -> (Path, usize) {
    let (mut path, mut end) = (vec![tokens[at].text], at);
    while text_at(tokens, end + 1) == "::" && tokens.get(end + 2).is_some_and(|token| token.kind == Kind::Word) {
        end += 2;
        path.push(tokens[end].text);
    }
    (path, end)
}

/// One path of a `use`.
struct Leaf {
    path: Path,
    alias: Option<&'static str>,
    line: usize,
}

/// Reads the tree of a `use` from `at`; gives the place behind it.
fn use_tree(tokens: &[Token], mut at: usize, prefix: &[&'static str], leaves: &mut Vec<Leaf>) -> usize {
    let mut path = prefix.to_vec();
    loop {
        if text_at(tokens, at) == "::" {
            at += 1;
        } else if text_at(tokens, at) == "{" {
            let end = after_group(tokens, at) - 1;
            at += 1;
            while at < end {
                at = use_tree(tokens, at, &path, leaves) + 1;
            }
            return end + 1;
        } else {
            path.push(text_at(tokens, at));
            let line = tokens[at].line;
            at += 1;
            if text_at(tokens, at) != "::" {
                let alias = (text_at(tokens, at) == "as").then(|| text_at(tokens, at + 1));
                leaves.push(Leaf { path, alias, line });
                return at + if alias.is_some() { 2 } else { 0 };
            }
        }
    }
}

/// The names in the list behind `uses` in the tokens of a `DOMAIN`.
fn declared(tokens: &[Token]) -> BTreeSet<&'static str> {
    let uses = tokens.iter().position(|token| token.text == "uses").unwrap_or(tokens.len());
    let list = tokens[uses..].iter().position(|token| token.is("[")).map_or(tokens.len(), |list| uses + list);
    let names = tokens[list..after_group(tokens, list).max(list)].iter().filter(|token| token.kind == Kind::Text);
    names.map(|token| token.text.trim_matches('"')).collect()
}
