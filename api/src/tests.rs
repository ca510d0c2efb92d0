//! The page `docs/api.md` and the route table say the same.

use crate::DOMAINS;

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
