//! `docs/api.md`, and one page of the reference for each domain that has routes.

use std::fmt::Write;

use crate::DOMAINS;
use crate::http::domain::HttpDomain;
use crate::http::route::{Auth, Route};
use serde_json::Value;

use super::shape::{Schemas, one_line, table};
use super::tables;

/// The first line of every generated page.
pub(crate) const MADE: &str = "<!-- Generated from the domains; change the sources, not this page. -->\n";

/// Statuses that every route may answer with; they are described once in `docs/api.md`.
const COMMON: &[&str] = &["400", "401", "403", "404", "413", "415", "422", "429", "500", "503"];

/// The text that a domain's folder in `api/src` says about its routes, with its title.
fn about(domain: &str) -> (String, String) {
    let text = super::text(&format!("api/src/{domain}/about.md"));
    match text.strip_prefix("# ").and_then(|text| text.split_once('\n')) {
        Some((title, text)) => (title.to_owned(), text.trim().to_owned()),
        None => {
            let mut title = domain.replace('_', " ");
            title[..1].make_ascii_uppercase();
            (title, text.trim().to_owned())
        }
    }
}

fn routes(domain: &HttpDomain) -> impl Iterator<Item = &'static Route> + use<> {
    domain.routes.iter().copied().flatten()
}

/// `docs/api.md`: what holds for all routes, and the routes of each domain.
pub(crate) fn index() -> String {
    let (title, text) = about("http");
    let mut page = format!("{MADE}\n# {title}\n\n{text}\n");
    for domain in DOMAINS.list().iter().filter(|domain| !domain.routes.is_empty()) {
        let (title, text) = about(domain.name);
        let _ = write!(page, "\n## {title}\n\n| method | path | |\n| --- | --- | --- |\n");
        for route in routes(domain) {
            let public = match route.auth {
                Auth::Public => " *public*",
                Auth::Page => " *pages of sites*",
                Auth::Optional => " *key optional*",
                Auth::Bearer | Auth::Socket => "",
            };
            let _ =
                writeln!(page, "| {} | `{}` | {}{public} |", route.verb.as_str(), route.path, one_line(route.summary));
        }
        let _ = write!(
            page,
            "\nParameters, bodies, replies and errors: [reference/{0}.md](reference/{0}.md).\n",
            domain.name
        );
        if !text.is_empty() {
            let _ = write!(page, "\n{text}\n");
        }
    }
    page
}

/// The page of one domain: each route with parameters, body, replies, errors and an example.
pub(crate) fn of(domain: &HttpDomain, document: &Value) -> String {
    let (title, _) = about(domain.name);
    let mut page = format!(
        "{MADE}\n# {title}: routes\n\nWhat holds for all routes, and what these routes are for: [api.md](../api.md#{}).\n",
        title.to_lowercase().replace(' ', "-")
    );
    for route in routes(domain) {
        describe(route, document, &mut page);
    }
    let codes = tables::codes_of(domain.name);
    if !codes.is_empty() {
        let _ = write!(page, "\n## Error codes\n\n{}", tables::code_table(&codes));
    }
    page
}

fn describe(route: &Route, document: &Value, page: &mut String) {
    let (verb, path) = (route.verb.as_str(), route.path);
    let schemas = Schemas(document);
    let operation = &document["paths"][path.replace("{*", "{")][verb.to_ascii_lowercase()];
    let _ = write!(page, "\n## {verb} `{path}`\n\n{}.", one_line(route.summary).trim_end_matches('.'));
    match route.auth {
        Auth::Public => page.push_str(" No key is needed."),
        Auth::Page => page.push_str(" For pages of sites; no key is needed."),
        Auth::Optional => page.push_str(" The key is optional."),
        Auth::Bearer | Auth::Socket => {}
    }
    let _ = writeln!(page, " Rate cost: {}.", route.cost);
    let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
    if !parameters.is_empty() {
        page.push_str("\n| parameter | in | type | meaning |\n| --- | --- | --- | --- |\n");
        for one in parameters {
            let kind = schemas.kind(&one["schema"]);
            let about = one_line(one["description"].as_str().unwrap_or(""));
            let (name, place) = (one["name"].as_str().unwrap_or(""), one["in"].as_str().unwrap_or(""));
            let _ = writeln!(page, "| `{name}` | {place} | {kind} | {about} |");
        }
    }
    let content = operation["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
    if let Some((kind, content)) = content {
        let _ = write!(page, "\nRequest body, `{kind}`, at most {}:\n", tables::bytes(route.body_max as u64));
        let fields = schemas.fields(&content["schema"]);
        if !fields.is_empty() {
            let _ = write!(page, "\n{}", table(&fields, true));
        }
    }
    replies(operation, schemas, page);
    example(route, content, operation, schemas, page);
}

fn replies(operation: &Value, schemas: Schemas<'_>, page: &mut String) {
    let mut errors = String::new();
    for (status, reply) in operation["responses"].as_object().into_iter().flatten() {
        let text = one_line(reply["description"].as_str().unwrap_or(""));
        if status.as_str() >= "400" {
            let is_common = COMMON.contains(&status.as_str()) && tables::COMMON_TEXTS.contains(&text.as_str());
            if !is_common {
                let _ = writeln!(errors, "| {status} | {text} |");
            }
            continue;
        }
        let content = reply["content"].as_object().and_then(|content| content.iter().next());
        let kind = content.map(|(kind, _)| format!(", `{kind}`")).unwrap_or_default();
        let _ = write!(page, "\nReply {status}{kind}: {text}.\n");
        let fields = content.map(|(_, content)| schemas.fields(&content["schema"])).unwrap_or_default();
        if !fields.is_empty() {
            let _ = write!(page, "\n{}", table(&fields, false));
        }
    }
    if !errors.is_empty() {
        let _ = write!(page, "\n| error | when |\n| --- | --- |\n{errors}");
    }
}

fn example(
    route: &Route,
    content: Option<(&String, &Value)>,
    operation: &Value,
    schemas: Schemas<'_>,
    page: &mut String,
) {
    let id = "019aa5c8-0f10-7c3a-9d2e-5b1c6f7a8e01";
    let segment = |segment: &str| match segment.trim_matches(['{', '}', '*']) {
        plain if plain == segment => plain.to_owned(),
        name if name == "id" || name.ends_with("_id") => id.to_owned(),
        name => format!("<{name}>"),
    };
    let path = route.path.split('/').map(segment).collect::<Vec<_>>().join("/");
    let _ = write!(page, "\n```sh\ncurl ");
    if route.verb.as_str() != "GET" {
        let _ = write!(page, "-X {} ", route.verb.as_str());
    }
    if !route.auth.is_keyless() {
        page.push_str("-H \"Authorization: Bearer $API_KEY\" ");
    }
    let _ = write!(page, "\"http://127.0.0.1:4545{path}\"");
    match content {
        Some((kind, content)) if kind == "application/json" => {
            let body = schemas.example("", &content["schema"], false, 0);
            let _ = write!(
                page,
                " \\\n  -H 'Content-Type: application/json' -d '{}'",
                body.to_string().replace('\'', "'\\''")
            );
        }
        Some((kind, _)) if kind == "multipart/form-data" => page.push_str(" -F file=@report.pdf"),
        Some(_) => page.push_str(" --data-binary @file"),
        None => {}
    }
    page.push_str("\n```\n");
    let answered = operation["responses"].as_object().into_iter().flatten().find(|(status, _)| status.starts_with('2'));
    let schema = answered.map(|(_, reply)| &reply["content"]["application/json"]["schema"]);
    if let Some(schema) = schema.filter(|schema| schema.is_object()) {
        let body = serde_json::to_string_pretty(&schemas.example("", schema, false, 0)).unwrap_or_default();
        if body != "{}" {
            let _ = write!(page, "\n```json\n{body}\n```\n");
        }
    }
}
