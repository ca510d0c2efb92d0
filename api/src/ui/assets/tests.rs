//! The files of the page hold together, need nothing but what is served, and stay small.

use std::collections::BTreeSet;
use std::path::Path;

use super::{ASSETS, Asset, asset, page, version};

/// Bytes that the first paint of a page may need, compressed.
const FIRST_PAINT_BYTES_MAX: usize = 100 * 1024;

fn text(asset: &Asset) -> &'static str {
    std::str::from_utf8(asset.body).unwrap()
}

fn index() -> &'static str {
    std::str::from_utf8(&page().plain).unwrap()
}

/// The parts of `text` between `open` and the next `"`.
fn quoted<'t>(text: &'t str, open: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(open).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The path below `api/ui` that `link` means in the file at `from`.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What `asset` imports at once (`import ... from "./x.js"`), and what it loads later (`import("./x.js")`, `new URL`).
fn links(asset: &Asset) -> (Vec<String>, Vec<String>) {
    let is_comment = |line: &&str| ["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark));
    let code: String = text(asset).lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n");
    let of = |mark| quoted(&code, mark).filter(|l| l.starts_with('.') || mark.contains("URL")).collect::<Vec<_>>();
    let resolve = |links: Vec<&str>| links.into_iter().map(|link| resolved(asset.path, link)).collect();
    (resolve(of("from \"")), resolve([of("import(\""), of("new URL(\"")].concat()))
}

/// The files that the page names.
fn linked() -> Vec<&'static str> {
    let prefix = format!("assets/{}/", version());
    let all = quoted(index(), "src=\"").chain(quoted(index(), "href=\"")).filter(|link| !link.starts_with('#'));
    all.map(|link| link.strip_prefix(&prefix).unwrap_or_else(|| panic!("{link} has no version"))).collect()
}

/// `roots`, and all that they import.
fn closure(roots: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<String> = roots.into_iter().collect();
    while let Some(path) = open.pop() {
        if found.insert(path.clone()) {
            open.extend(links(asset(&path).unwrap_or_else(|| panic!("{path} is not served"))).0);
        }
    }
    found
}

#[test]
fn everything_that_is_linked_is_served() {
    for link in linked() {
        assert!(asset(link).is_some(), "{link}");
    }
    for file in ASSETS.iter().filter(|asset| asset.path.ends_with(".js")) {
        let (now, later) = links(file);
        for link in now.iter().chain(&later) {
            assert!(asset(link).is_some(), "{}: {link}", file.path);
        }
    }
}

#[test]
fn the_table_has_every_file_of_the_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
    let mut found = BTreeSet::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    assert!(found.remove("index.html"));
    let table: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
    assert_eq!(table, found.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn what_the_shell_imports_is_asked_for_at_once() {
    // Else the browser would learn of each module only from the one before it.
    let linked: BTreeSet<_> = linked().into_iter().map(str::to_owned).collect();
    let needed = closure(["app.js".to_owned()]);
    assert!(needed.is_subset(&linked), "index.html lacks {:?}", needed.difference(&linked));
}

#[test]
fn nothing_needs_more_than_the_strict_policy() {
    let forbidden = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "eval(",
        "new Function",
        "style=\"",
        "onclick=\"",
        "localStorage.setItem(KEY",
    ];
    for file in ASSETS.iter() {
        for word in forbidden {
            assert!(!text(file).contains(word), "{}: {word}", file.path);
        }
        let without_namespace = text(file).replace("http://www.w3.org/", "");
        for word in ["src=\"http", "url(http", "url(\"http", "from \"http", "import(\"http", "@import"] {
            assert!(!without_namespace.contains(word), "{}: {word} loads from elsewhere", file.path);
        }
    }
    assert!(!index().contains("<style") && !index().contains("style=") && !index().contains(" on"), "{}", index());
    assert_eq!(index().matches("<script").count(), 1);
}

#[test]
fn the_first_paint_is_small() {
    for file in ASSETS.iter().filter(|asset| asset.path.starts_with("pages/") && asset.path.matches('/').count() == 1) {
        // The shell, and the page with its style sheets.
        let roots = linked().into_iter().map(str::to_owned).chain([file.path.to_owned()]);
        let mut files = closure(roots);
        let styles: Vec<_> = files.iter().flat_map(|path| links(asset(path).unwrap()).1).collect();
        files.extend(styles.into_iter().filter(|path| path.ends_with(".css")));
        let bytes: usize = files.iter().map(|path| asset(path).unwrap().packed().len()).sum();
        let all = bytes + page().packed.len();
        assert!(all < FIRST_PAINT_BYTES_MAX, "{}: {all} bytes: {files:?}", file.path);
    }
}

#[test]
fn modules_stay_short() {
    for file in ASSETS.iter() {
        let lines = text(file).lines().count();
        assert!(lines <= 450, "{}: {lines} lines", file.path);
    }
}

#[test]
fn the_version_follows_the_content() {
    let of = |parts: &[&str]| super::fingerprint(parts.iter().map(|part| part.as_bytes()));
    assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
    assert_eq!(of(&["a"]).len(), 16);
    assert!(index().contains(&format!("assets/{}/app.js", version())) && !index().contains("{version}"));
}
