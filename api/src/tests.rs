//! The route table, and the reference in `docs/` that is made from the domains: `docs/api.md` and `docs/reference/`. A
//! test fails when its pages are stale; `WRITE_REFERENCE=1 cargo test -p agentsvc-api --lib reference` writes them.

mod access;
mod page;
mod pools;
mod shape;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::DOMAINS;
use crate::http::openapi;
use crate::http::settings::Build;

/// Every generated page, by its path from the root.
fn pages() -> BTreeMap<String, String> {
    let document = openapi::document(DOMAINS.table().routes(), &Build::default());
    let mut pages = BTreeMap::from([
        ("docs/api.md".to_owned(), page::index()),
        ("docs/reference/errors.md".to_owned(), tables::errors()),
        ("docs/reference/limits.md".to_owned(), tables::limits()),
        ("docs/reference/audit-actions.md".to_owned(), tables::audit()),
        ("docs/reference/access.md".to_owned(), access::page()),
        ("docs/reference/metrics.md".to_owned(), tables::metrics()),
    ]);
    for domain in DOMAINS.list().iter().filter(|domain| !domain.routes.is_empty()) {
        pages.insert(format!("docs/reference/{}.md", domain.name), page::of(domain, &document));
    }
    pages
}

/// The text of a file of the repository; empty when there is none.
fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn the_reference_is_what_the_domains_say() {
    let pages = pages();
    let is_writing = std::env::var_os("WRITE_REFERENCE").is_some();
    let folder = root().join("docs/reference");
    if is_writing {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        pages.iter().for_each(|(path, text)| fs::write(root().join(path), text).unwrap());
    }
    let mut stale: BTreeSet<String> =
        pages.iter().filter(|(path, text)| self::text(path) != **text).map(|(path, _)| path.clone()).collect();
    let there = fs::read_dir(&folder).unwrap().flatten();
    let there = there.map(|entry| format!("docs/reference/{}", entry.file_name().display()));
    stale.extend(there.filter(|path| !pages.contains_key(path)));
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; write them with WRITE_REFERENCE=1 cargo test -p agentsvc-api --lib reference"
    );
}

#[test]
fn every_error_code_has_one_meaning_and_every_declared_list_is_in_a_domain() {
    let codes: Vec<_> = tables::codes().into_iter().flat_map(|(_, codes)| codes).collect();
    let mut names = BTreeSet::new();
    for code in &codes {
        let meaning = code.meaning();
        assert!(names.insert(code.as_str()), "{code} is declared twice");
        assert!(meaning.what.trim().ends_with('.') && meaning.remedy.ends_with('.'), "{code}");
        assert!(meaning.statuses.iter().all(|status| (400..600).contains(status)), "{code}");
    }
    let mut declared = 0;
    for folder in ["components/src", "systems/src", "api/src"] {
        declared += declarations(&root().join(folder));
    }
    assert_eq!(declared, codes.len(), "a list of error codes is in no DOMAIN");
}

/// Error codes that the files `error_codes.rs` declare.
fn declarations(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let count = |path: PathBuf| match path.file_name().and_then(|name| name.to_str()) {
        _ if path.is_dir() => declarations(&path),
        Some("error_codes.rs") => fs::read_to_string(&path).unwrap().matches(" = \"").count(),
        _ => 0,
    };
    entries.map(count).sum()
}

/// Method and path of every row of the page's tables; a row may have several methods.
fn rows() -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for line in include_str!("../../docs/api.md").lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(methods), Some(path)) = (cells.next(), cells.next()) else { continue };
        if let Some(path) = path.strip_prefix("`/").and_then(|path| path.strip_suffix('`')) {
            rows.extend(methods.split(", ").map(|method| (method.to_owned(), format!("/{path}"))));
        }
    }
    rows
}

#[test]
fn every_route_is_documented_and_every_documented_route_exists() {
    let mut table: Vec<_> =
        DOMAINS.table().routes().iter().map(|route| (route.verb.as_str().to_owned(), route.path.to_owned())).collect();
    let mut page = rows();
    table.sort();
    page.sort();
    assert_eq!(page, table);
}

#[test]
fn every_route_says_what_it_does_and_costs_something() {
    assert!(!DOMAINS.table().routes().is_empty());
    for route in DOMAINS.table().routes() {
        assert!(!route.summary.is_empty() && route.cost > 0, "{}", route.path);
    }
}
