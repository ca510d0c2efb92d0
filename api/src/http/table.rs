//! The route table at work: from a method and a path to a route.

use hyper::Method;
use hyper::header::HeaderValue;
use matchit::Router;

use crate::http::call::{PARAMS_MAX, ParamSpans};
use crate::http::route::{Route, Verb};

/// Routes, indexed by path and then by verb.
pub(crate) struct Table {
    routes: Vec<Route>,
    paths: Router<Methods>,
}

/// The routes of one path.
struct Methods {
    /// Index into the routes, by verb.
    by_verb: [Option<u16>; Verb::ALL.len()],
    /// The value of `Allow`.
    allow: HeaderValue,
}

/// What the table knows of a request.
pub(crate) enum Found<'t> {
    /// The route, its index and where its parameters stand in the path.
    Route(&'t Route, usize, ParamSpans),
    /// The path exists, for other methods: the value of `Allow`.
    OtherMethods(&'t HeaderValue),
    /// No such path.
    Nothing,
}

impl Table {
    /// Builds the index.
    ///
    /// # Panics
    /// When two routes take the same requests or a pattern is malformed.
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let mut grouped: Vec<(&'static str, [Option<u16>; Verb::ALL.len()])> = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            assert!(route.param_names().count() <= PARAMS_MAX, "too many parameters in {}", route.path);
            let at = grouped.iter().position(|(path, _)| shape(path) == shape(route.path)).unwrap_or_else(|| {
                grouped.push((route.path, [None; Verb::ALL.len()]));
                grouped.len() - 1
            });
            let taken = grouped[at].1[route.verb as usize].replace(index as u16);
            assert!(taken.is_none(), "two routes for {} {}", route.verb.as_str(), route.path);
        }
        let mut paths = Router::new();
        for (path, by_verb) in grouped {
            let methods = Methods { by_verb, allow: allow_of(&by_verb) };
            if let Err(error) = paths.insert(path, methods) {
                panic!("the route {path} cannot be added: {error}");
            }
        }
        Self { routes, paths }
    }

    /// Every route, in the order of the families.
    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// What the table knows of `method` on `path`.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Found<'_> {
        let Ok(found) = self.paths.at(path) else { return Found::Nothing };
        let methods = found.value;
        let Some(index) = Verb::of(method).and_then(|verb| methods.by_verb[verb as usize]) else {
            return Found::OtherMethods(&methods.allow);
        };
        let mut spans = ParamSpans::default();
        for ((_, value), span) in found.params.iter().zip(&mut spans) {
            // The value is a part of the path, so the difference of their addresses is its place.
            let start = value.as_ptr() as usize - path.as_ptr() as usize;
            *span = (start as u16, (start + value.len()) as u16);
        }
        Found::Route(&self.routes[usize::from(index)], usize::from(index), spans)
    }
}

/// The pattern without the names of its parameters: routes of one path may name them differently.
fn shape(path: &str) -> Vec<&str> {
    let nameless = |segment| match segment {
        s if str::starts_with(s, "{*") => "{*}",
        s if s.starts_with('{') => "{}",
        s => s,
    };
    path.split('/').map(nameless).collect()
}

fn allow_of(by_verb: &[Option<u16>]) -> HeaderValue {
    let mut names = Vec::new();
    for verb in Verb::ALL {
        if by_verb[verb as usize].is_some() {
            names.push(verb.as_str());
            if verb == Verb::Get {
                names.push("HEAD");
            }
        }
    }
    names.push("OPTIONS");
    HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static("OPTIONS"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::reply;

    const RUN: crate::http::route::Run = |_| Box::pin(async { Ok(reply::no_content()) });

    #[test]
    fn paths_and_methods_are_told_apart() {
        let table = Table::new(vec![
            Route::get("/a", "", RUN),
            Route::get("/a/{id}", "", RUN),
            Route::delete("/a/{key}", "", RUN),
            Route::delete("/a/bulk", "", RUN),
            Route::get("/a/{agent_id}/s/{session_id}", "", RUN),
        ]);
        let index = |method, path| match table.find(&method, path) {
            Found::Route(_, index, _) => Some(index),
            _ => None,
        };
        assert_eq!(index(Method::GET, "/a"), Some(0));
        assert_eq!(index(Method::HEAD, "/a/7"), Some(1));
        assert_eq!(index(Method::DELETE, "/a/7"), Some(2));
        assert_eq!(index(Method::DELETE, "/a/bulk"), Some(3));
        assert_eq!(index(Method::POST, "/a"), None);
        assert!(matches!(table.find(&Method::GET, "/b"), Found::Nothing));
        assert!(matches!(table.find(&Method::GET, "/a/"), Found::Nothing));
        let Found::OtherMethods(allow) = table.find(&Method::PUT, "/a/7") else { panic!() };
        assert_eq!(allow, "GET, HEAD, DELETE, OPTIONS");
        let Found::OtherMethods(allow) = table.find(&Method::OPTIONS, "/a/bulk") else { panic!() };
        assert_eq!(allow, "DELETE, OPTIONS");

        let path = "/a/one/s/two";
        let Found::Route(route, _, spans) = table.find(&Method::GET, path) else { panic!() };
        assert_eq!(route.param_names().collect::<Vec<_>>(), ["agent_id", "session_id"]);
        let value = |n: usize| &path[usize::from(spans[n].0)..usize::from(spans[n].1)];
        assert_eq!((value(0), value(1)), ("one", "two"));
    }
}
