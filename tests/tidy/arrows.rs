//! The rules about modules: no cycle in a crate, no arrow between domains that is not declared, no domain in a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::imports::{CRATES, Crate, Places, ROOT};
use super::support::routes::{root, sources};
use super::{none, ratchet};

/// Modules that are part of a cycle.
const MODULES_IN_CYCLES: &[(&str, usize)] = &[];

/// Top-level modules that are neither the kernel nor a folder with a `DOMAIN`.
const MODULES_WITHOUT_DOMAIN: &[(&str, usize)] = &[("src", 1)];

/// Arrows from a domain to one of another crate that are not declared.
const UNDECLARED_ACROSS_CRATES: &[(&str, usize)] = &[];

/// Places in a kernel that name a domain.
const DOMAINS_NAMED_IN_KERNELS: &[(&str, usize)] = &[];

/// The crates of the workspace, read once.
pub(crate) fn workspace() -> &'static [Crate] {
    static WORKSPACE: OnceLock<Vec<Crate>> = OnceLock::new();
    WORKSPACE.get_or_init(|| CRATES.iter().map(|(folder, _, _)| on_disk(folder)).collect())
}

fn on_disk(folder: &'static str) -> Crate {
    let base = if folder == "src" { root().join("src") } else { root().join(folder).join("src") };
    let files = sources(&base).into_iter().map(|path| {
        let name = path.strip_prefix(&base).expect("below the sources").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        (&*name.leak(), &*text.leak())
    });
    Crate::of(folder, &files.collect::<Vec<_>>())
}

type Edges = BTreeMap<(&'static str, &'static str), Places>;

/// The groups of modules each of which reaches each other one of its group.
fn cycles(edges: &Edges) -> Vec<BTreeSet<&'static str>> {
    let reach = |from: &'static str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            let to = edges.range((next, "")..).take_while(|((from, _), _)| *from == next);
            open.extend(to.map(|((_, to), _)| *to).filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: BTreeMap<_, _> = edges.keys().map(|(from, _)| (*from, reach(from))).collect();
    let mut groups = BTreeSet::new();
    for (module, seen) in reached.iter().filter(|(module, seen)| seen.contains(*module)) {
        let back = |other: &&&str| reached.get(**other).is_some_and(|seen| seen.contains(module));
        groups.insert(seen.iter().filter(back).copied().collect::<BTreeSet<_>>());
    }
    groups.into_iter().collect()
}

/// What a cycle consists of: its modules, and each arrow between them with one of its places.
fn shown(cycle: &BTreeSet<&str>, edges: &Edges) -> String {
    let inside = edges.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
    let lines = inside.map(|((from, to), places)| {
        let place = places.first().map_or("", String::as_str);
        format!("  {from} -> {to}, {} times, first at {place}", places.len())
    });
    format!("these modules form a cycle: {cycle:?}\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn modules_form_no_cycle() {
    let (mut counts, mut descriptions) = (Vec::new(), Vec::new());
    for one in workspace() {
        let edges = one.edges();
        let cycles = cycles(&edges);
        counts.push((one.folder.to_owned(), cycles.iter().map(BTreeSet::len).sum()));
        descriptions.push((one.folder, cycles.iter().map(|cycle| shown(cycle, &edges)).collect::<Vec<_>>().join("\n")));
    }
    let mut complaints = ratchet(&counts, 0, MODULES_IN_CYCLES, "modules in cycles");
    let beyond = |folder: &str| complaints.iter().any(|text| text.starts_with(folder) && text.contains("at most"));
    let descriptions: Vec<_> =
        descriptions.into_iter().filter(|(folder, _)| beyond(folder)).map(|(_, text)| text).collect();
    complaints.extend(descriptions);
    none(&complaints);
}

#[test]
fn every_module_is_a_domain_or_the_kernel() {
    let without_domain = |one: &Crate| {
        let modules = one.tops.iter().filter(|top| **top != one.kernel() && !one.domains.contains_key(*top));
        modules.count()
    };
    let counts: Vec<_> = workspace().iter().map(|one| (one.folder.to_owned(), without_domain(one))).collect();
    none(&ratchet(&counts, 0, MODULES_WITHOUT_DOMAIN, "modules without a DOMAIN"));
}

/// What a domain uses: the crate in which that is, its name, and every place that names it.
type Uses = BTreeMap<(&'static str, &'static str, &'static str), Places>;

/// What the domains of a crate use of other domains, in their crate and in those below.
fn uses(one: &Crate, all: &[Crate]) -> Uses {
    let mut uses = Uses::new();
    for (from, folder, path, place) in one.arrows().into_iter().filter(|(from, ..)| one.domains.contains_key(from)) {
        let Some(target) = all.iter().find(|other| other.folder == folder) else { continue };
        let to = target.top_of(&path);
        if to != from && target.domains.contains_key(to) {
            uses.entry((from, target.folder, to)).or_default().insert(place);
        }
    }
    uses
}

/// What the domains of a crate use of it and do not declare, and what they declare and do not use.
fn undeclared(one: &Crate, all: &[Crate]) -> Vec<String> {
    let (uses, mut complaints) = (uses(one, all), Vec::new());
    for ((from, folder, to), places) in &uses {
        if *folder == one.folder && !one.domains[from].contains(to) {
            complaints.extend(places.iter().map(|place| format!("{place}: {from} does not declare that it uses {to}")));
        }
    }
    for (domain, declared) in &one.domains {
        let used = |name: &&&str| uses.keys().any(|(from, _, to)| from == domain && to == *name);
        let unused = declared.iter().filter(|name| !used(name));
        complaints.extend(unused.map(|name| format!("{}: {domain} declares {name} and does not use it", one.folder)));
    }
    complaints
}

/// What the domains of a crate use of another crate's, and what neither they declare nor the domains of their name there.
fn undeclared_across(one: &Crate, all: &[Crate]) -> Vec<String> {
    let declared = |folder: &str, from: &str, to: &str| {
        let mut crates = all.iter().filter(|other| [one.folder, folder].contains(&other.folder));
        crates.any(|other| other.domains.get(from).is_some_and(|declared| declared.contains(to)))
    };
    let uses = uses(one, all).into_iter();
    let hidden = uses.filter(|((from, folder, to), _)| *folder != one.folder && !declared(folder, from, to));
    let shown = hidden.map(|((from, folder, to), places)| {
        let place = places.first().map_or("", String::as_str);
        format!("{place}: {from} does not declare that it uses {to} of {folder}")
    });
    shown.collect()
}

#[test]
fn domains_declare_what_they_use() {
    let complaints = workspace().iter().flat_map(|one| undeclared(one, workspace()));
    none(&complaints.collect::<Vec<_>>());
}

#[test]
fn domains_declare_what_they_use_of_other_crates() {
    let found: Vec<_> = workspace().iter().map(|one| (one.folder, undeclared_across(one, workspace()))).collect();
    let counts: Vec<_> = found.iter().map(|(folder, arrows)| ((*folder).to_owned(), arrows.len())).collect();
    let mut complaints = ratchet(&counts, 0, UNDECLARED_ACROSS_CRATES, "undeclared arrows to domains of other crates");
    if !complaints.is_empty() {
        complaints.extend(found.into_iter().flat_map(|(_, arrows)| arrows));
    }
    none(&complaints);
}

/// The places at which a kernel names another module of its own crate or of another one that is not its kernel, or a list
/// of domains.
fn named_in_kernel(one: &Crate, all: &[Crate]) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for (from, folder, path, place) in one.arrows().into_iter().filter(|(from, ..)| *from == one.kernel()) {
        let Some(target) = all.iter().find(|other| other.folder == folder) else { continue };
        let to = target.top_of(&path);
        let list = path.contains(&"DOMAINS");
        if list || ![target.kernel(), ROOT].contains(&to) {
            places.insert(format!("{place}: {from} names {}", if list { "the list of domains" } else { to }));
        }
    }
    places
}

#[test]
fn kernels_name_no_domain() {
    let named: Vec<_> = workspace().iter().map(|one| (one.folder, named_in_kernel(one, workspace()))).collect();
    let counts: Vec<_> = named.iter().map(|(folder, places)| ((*folder).to_owned(), places.len())).collect();
    let mut complaints = ratchet(&counts, 0, DOMAINS_NAMED_IN_KERNELS, "places that name a domain in the kernel");
    if !complaints.is_empty() {
        complaints.extend(named.into_iter().flat_map(|(_, places)| places));
    }
    none(&complaints);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges_of(one: &Crate) -> Vec<String> {
        one.edges().into_iter().map(|((from, to), places)| format!("{from} -> {to} {}", places.len())).collect()
    }

    #[test]
    fn imports_are_followed_to_their_module() {
        let files = [
            ("lib.rs", "//! x\nmod a; mod b; mod c; mod d;\npub use c::{Engine as Motor, inner::*};"),
            ("a/mod.rs", "use crate::{b, c::{self, Engine}};\nmod deep; fn f() { b::g(); }"),
            ("a/deep.rs", "use super::super::d::X; use super::*;\nfn f() { b::h(); self::g(); crate::a::f(); }"),
            ("b.rs", "// crate::a::x\nfn g() { \"crate::a\"; crate::Motor::new(); crate::Wheel::new() }"),
            ("c/mod.rs", "pub mod inner; pub struct Engine; mod here { use super::super::d; }"),
            ("c/inner.rs", "pub struct Wheel; #[cfg(test)] mod tests { use crate::a; }"),
            ("d.rs", "use std::fmt; use other::b; fn f(b: u8) { fmt::g(b); X::c() }"),
            ("b/tests.rs", "use crate::d;"),
            ("b/more_tests.rs", "use crate::d;"),
            ("b/tests/one.rs", "use crate::d;"),
        ];
        let one = Crate::of("systems", &files);
        assert_eq!(edges_of(&one), ["a -> b 3", "a -> c 2", "a -> d 1", "b -> c 2", "c -> d 1"]);
        assert_eq!(one.edges()[&("a", "d")].first().expect("one"), "systems/src/a/deep.rs:1: d::X");
        assert_eq!(cycles(&one.edges()), [] as [BTreeSet<&str>; 0]);
    }

    #[test]
    fn what_lib_names_closes_a_cycle() {
        let lib = "mod a; mod b; pub use a::A; pub const DOMAINS: &[D] = &[a::DOMAIN];";
        let files = [("lib.rs", lib), ("a/mod.rs", "use crate::b;"), ("b.rs", "fn f() { crate::DOMAINS.len(); }")];
        let one = Crate::of("systems", &files);
        assert_eq!(edges_of(&one), ["a -> b 1", "b -> lib 1", "lib -> a 1"]);
        assert_eq!(cycles(&one.edges()), [BTreeSet::from(["a", "b", "lib"])]);
        let apart = [("a.rs", "use crate::b;"), ("b.rs", "use crate::a;"), ("c.rs", "use crate::a;")];
        assert_eq!(cycles(&Crate::of("systems", &apart).edges()), [BTreeSet::from(["a", "b"])]);
    }

    #[test]
    fn domains_say_what_they_use() {
        let below = [
            ("lib.rs", "pub mod kernel; pub mod goal; pub use goal::GoalId;"),
            ("kernel.rs", "pub struct Timestamp;"),
            ("goal/mod.rs", "pub const DOMAIN: Domain = Domain::new(\"goal\"); pub struct GoalId;"),
        ];
        let files = [
            (
                "kernel/mod.rs",
                "use agentsvc_components::GoalId; use crate::{event, loose::DOMAINS}; use agentsvc_components::kernel::X;",
            ),
            ("event/mod.rs", "pub static DOMAIN: Domain = Domain { name: \"event\", uses: &[] };"),
            ("task/mod.rs", "pub const DOMAIN: Domain = Domain { name: \"task\", uses: &[\"event\", \"turn\"] };"),
            ("task/run.rs", "use agentsvc_components::{GoalId, kernel::Timestamp}; use crate::{event::X, kernel};"),
            (
                "turn/mod.rs",
                "pub const DOMAIN: Domain = Domain::new(\"turn\").uses(&[\"task\"]); use crate::{event, task};",
            ),
            ("loose.rs", "use crate::event;"),
        ];
        let all = [Crate::of("components", &below), Crate::of("systems", &files)];
        assert_eq!(all[1].domains["turn"], BTreeSet::from(["task"]));
        assert_eq!(all[1].domains.len(), 3);
        assert_eq!(
            undeclared_across(&all[1], &all),
            ["systems/src/task/run.rs:1: GoalId: task does not declare that it uses goal of components"]
        );
        assert_eq!(
            undeclared(&all[1], &all),
            [
                "systems/src/turn/mod.rs:1: event: turn does not declare that it uses event",
                "systems: task declares turn and does not use it",
            ]
        );
        let named = named_in_kernel(&all[1], &all);
        assert_eq!(
            named,
            BTreeSet::from([
                "systems/src/kernel/mod.rs:1: GoalId: kernel names goal".to_owned(),
                "systems/src/kernel/mod.rs:1: event: kernel names event".to_owned(),
                "systems/src/kernel/mod.rs:1: loose::DOMAINS: kernel names the list of domains".to_owned(),
            ])
        );
    }
}
