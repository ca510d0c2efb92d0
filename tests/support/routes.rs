//! The routes as the source declares them, read from the text of the domains in `api/src`, so that no test can pass
//! because the table it compares with is empty.

use std::fs;
use std::path::{Path, PathBuf};

/// One declared route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    /// `/api/agents/{id}`
    pub(crate) path: String,
    /// `GET`
    pub(crate) verb: String,
}

impl Route {
    /// The path with `values` for its parameters, the first for the first.
    pub(crate) fn filled(&self, value: &str) -> String {
        let segments = self.path.split('/').map(|s| if s.starts_with('{') { value } else { s });
        segments.collect::<Vec<_>>().join("/")
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every `.rs` file below `folder`, sorted.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Every declared route, sorted.
pub(crate) fn declared() -> Vec<Route> {
    let mut routes = Vec::new();
    let (api, kernel) = (root().join("api/src"), root().join("api/src/http"));
    for file in sources(&api).into_iter().filter(|file| !file.starts_with(&kernel)) {
        let text = fs::read_to_string(&file).expect("a source file is text");
        for verb in ["get", "post", "put", "patch", "delete"] {
            for (at, found) in text.match_indices(&format!("Route::{verb}(")) {
                let rest = text[at + found.len()..].trim_start();
                let path = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
                let Some(path) = path.filter(|path| path.starts_with('/')) else { continue };
                routes.push(Route { path: path.to_owned(), verb: verb.to_uppercase() });
            }
        }
    }
    assert!(routes.len() > 20, "the routes were not found in the source: {routes:?}");
    routes.sort();
    routes
}
