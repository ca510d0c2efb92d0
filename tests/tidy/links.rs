//! The links of the documentation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::support::routes::root;

/// Markdown without what stands in code.
fn prose(text: &str) -> String {
    let code = Regex::new(r"(?ms)^[ ]*```.*?^[ ]*```|`[^`\n]*`").expect("a pattern");
    code.replace_all(text, "").into_owned()
}

/// The anchors of a page: its headings, and those that it names.
fn anchors(text: &str) -> Vec<String> {
    let fences = Regex::new(r"(?ms)^```.*?^```").expect("a pattern").replace_all(text, "").into_owned();
    let headings = fences.lines().filter(|line| line.starts_with('#'));
    let word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    let headings = headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|heading| heading.chars().filter(|&c| word(c)).collect::<String>().replace(' ', "-"));
    let named = Regex::new("<a id=\"([^\"]+)\">").expect("a pattern");
    headings.chain(named.captures_iter(text).map(|found| found[1].to_owned())).collect()
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Adds the pages in a folder below the root.
fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            read(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.insert(path, fs::read_to_string(entry.path()).expect("a page"));
        }
    }
}

/// The links among `pages`, by path below the root, that lead nowhere.
fn broken(pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let elsewhere = Regex::new("^[a-z]+:").expect("a pattern");
    let mut broken = Vec::new();
    for (page, text) in pages {
        for found in link.captures_iter(&prose(text)) {
            let target = &found[1];
            if elsewhere.is_match(target) {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = page.parent().unwrap_or(page);
            let path = if path.is_empty() { page.clone() } else { plain(&folder.join(path)) };
            let has_anchor = || pages.get(&path).is_none_or(|text| anchors(text).iter().any(|known| known == anchor));
            if !root().join(&path).exists() || !(anchor.is_empty() || has_anchor()) {
                broken.push(format!("{}: the link to {target} leads nowhere", page.display()));
            }
        }
    }
    broken
}

#[test]
fn no_link_of_the_documentation_is_broken() {
    let mut pages = BTreeMap::new();
    for folder in ["docs", "packaging", "benches"] {
        read(Path::new(folder), &mut pages);
    }
    pages.insert(PathBuf::from("README.md"), fs::read_to_string(root().join("README.md")).expect("a page"));
    assert!(pages.len() > 50, "{}", pages.len());
    let broken = broken(&pages);
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_summary_of_the_book_once() {
    let mut pages = BTreeMap::new();
    read(Path::new("docs"), &mut pages);
    let summary = pages.remove(Path::new("docs/SUMMARY.md")).expect("a summary");
    let link = Regex::new(r"(?m)^ *- \[[^\]]+\]\(([^)]+)\)$").expect("a pattern");
    let listed: Vec<_> = link.captures_iter(&summary).map(|found| Path::new("docs").join(&found[1])).collect();
    let times = |page: &PathBuf| listed.iter().filter(|listed| *listed == page).count();
    let wrong: Vec<_> = pages.keys().filter(|page| times(page) != 1).collect();
    assert!(wrong.is_empty(), "docs/SUMMARY.md has not one line with each of {wrong:?}");
}

#[test]
fn links_are_found_and_followed() {
    let page = |name: &str, text: &str| (PathBuf::from(name), text.to_owned());
    let pages = BTreeMap::from([
        page(
            "docs/api.md",
            "# Of `this`, and that\n[a](#of-this-and-that) [b](../README.md) `[x](none.md)`\n```\n# no heading\n```\n",
        ),
        page("docs/ui.md", "[c](api.md#no-heading) [d](none.md) [e](https://example.org/none.md) [f](api.md)"),
    ]);
    let broken = broken(&pages);
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert!(broken[0].contains("api.md#no-heading") && broken[1].contains("none.md"), "{broken:?}");
}
