//! The OpenAPI 3.0 document, made from the route table.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::route::{Auth, Reply, Route, SchemaOf};
use crate::http::settings::Build;

/// Errors that any route may answer with, beside those that depend on what it takes.
const COMMON_ERRORS: [(u16, &str); 3] =
    [(429, "the rate limit is exceeded"), (500, "internal error"), (503, "not ready or overloaded; try again later")];

/// The document.
pub(crate) fn document(routes: &[Route], build: &Build) -> Value {
    let settings = SchemaSettings::openapi3();
    let mut bodies = settings.clone().into_generator();
    let mut answers = settings.clone().for_serialize().into_generator();
    // Parameters have no place for references, so their shapes are written out.
    let mut queries = settings.with(|s| s.inline_subschemas = true).into_generator();
    let mut paths = Map::new();
    for route in routes {
        let mut schemas = Schemas { bodies: &mut bodies, answers: &mut answers, queries: &mut queries };
        let operation = operation(route, &mut schemas);
        let path = paths.entry(path_of(route)).or_insert_with(|| Value::Object(Map::new()));
        path[route.verb.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas = answers.take_definitions(true);
    schemas.extend(bodies.take_definitions(true));
    schemas.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "agentsvc",
            "version": build.version,
            "description": "Run and supervise AI agents.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
        "security": [{"bearer": []}, {"apiKey": []}],
    })
}

struct Schemas<'g> {
    bodies: &'g mut SchemaGenerator,
    answers: &'g mut SchemaGenerator,
    queries: &'g mut SchemaGenerator,
}

/// OpenAPI knows no wildcards; the star is only our router's.
fn path_of(route: &Route) -> String {
    route.path.replace("{*", "{")
}

fn operation(route: &Route, schemas: &mut Schemas<'_>) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [tag(route)],
        "responses": responses(route, schemas.answers),
    });
    let parameters = parameters(route, schemas.queries);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(request) = route.request {
        let content = json!({"application/json": {"schema": schema(request, schemas.bodies)}});
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    if let Some(content_type) = route.streamed {
        let schema = match content_type {
            "multipart/form-data" => json!({
                "type": "object",
                "required": ["file"],
                "properties": {"file": {"type": "string", "format": "binary"}},
            }),
            _ => json!({"type": "string", "format": "binary"}),
        };
        operation["requestBody"] = json!({"content": {content_type: {"schema": schema}}, "required": true});
    }
    match route.auth {
        Auth::Public | Auth::Page => operation["security"] = json!([]),
        Auth::Optional => operation["security"] = json!([{"bearer": []}, {"apiKey": []}, {}]),
        Auth::Bearer | Auth::Socket => {}
    }
    operation
}

/// Such as `get_api_agents_id`.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = route.verb.as_str().to_ascii_lowercase();
    for word in words {
        id.push('_');
        id.push_str(word);
    }
    id
}

/// The first word of the path that says something.
fn tag(route: &Route) -> &'static str {
    route.path.split('/').find(|word| !word.is_empty() && *word != "api").unwrap_or("web")
}

fn parameters(route: &Route, queries: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = |name: &str| {
        let is_id = name == "id" || name.ends_with("_id");
        let schema = if is_id { json!({"type": "string", "format": "uuid"}) } else { json!({"type": "string"}) };
        json!({"name": name, "in": "path", "required": true, "schema": schema})
    };
    let mut parameters: Vec<Value> = route.param_names().map(in_path).collect();
    parameters.extend(route.query.map(|query| query_parameters(query, queries)).unwrap_or_default());
    parameters
}

fn query_parameters(query: SchemaOf, queries: &mut SchemaGenerator) -> Vec<Value> {
    let schema = schema(query, queries);
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let parameter = |(name, schema): (&String, &Value)| {
        let description = schema["description"].as_str().unwrap_or("");
        let schema = without_null(schema);
        json!({"name": name, "in": "query", "required": required(name), "description": description, "schema": schema})
    };
    properties.iter().map(parameter).collect()
}

/// In the words of OpenAPI 3.0, which the generator uses of itself only for the components.
fn schema(of: SchemaOf, generator: &mut SchemaGenerator) -> Value {
    let mut schema = of(generator);
    generator.transforms_mut().for_each(|transform| transform.transform(&mut schema));
    schema.to_value()
}

/// A parameter is left out; it is never null.
fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(any) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        any.retain(|one| one["enum"] != json!([null]));
        if let [Value::Object(only)] = any.as_mut_slice() {
            let only = std::mem::take(only);
            let outer = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
            schema = only.into_iter().chain(outer.into_iter().filter(|(key, _)| key != "anyOf")).collect();
        }
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("nullable");
        schema.retain(|key, value| key != "default" || !value.is_null());
    }
    schema
}

fn responses(route: &Route, answers: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut errors = COMMON_ERRORS.to_vec();
    if !route.auth.is_keyless() {
        errors.push((401, "the API key is missing or wrong"));
        errors.push((403, "the key may not use this route"));
    }
    if route.auth == Auth::Page {
        errors.push((403, "the origin of the page is not one of the site's"));
    }
    let has_params = route.param_names().next().is_some();
    if has_params {
        errors.push((404, "not found"));
    }
    if has_params || route.query.is_some() || route.request.is_some() {
        errors.push((400, "invalid request; `field` names the parameter or key"));
    }
    if route.request.is_some() {
        errors.extend([(413, "the request body is too large"), (415, "the request body is not JSON")]);
    }
    if route.closed {
        errors.push((422, "unknown field"));
    }
    for (status, text) in errors {
        responses.insert(status.to_string(), error_response(text));
    }
    for reply in route.replies {
        responses.insert(reply.status.to_string(), response(reply, answers));
    }
    if route.replies.is_empty() {
        responses.insert("200".to_owned(), json!({"description": "success"}));
    }
    Value::Object(responses)
}

fn response(reply: &Reply, answers: &mut SchemaGenerator) -> Value {
    if reply.status >= 400 {
        return error_response(reply.text);
    }
    let mut response = json!({"description": reply.text});
    if !reply.content_type.is_empty() {
        let schema = reply.schema.map_or_else(|| json!({}), |of| schema(of, answers));
        response["content"] = json!({reply.content_type: {"schema": schema}});
    }
    response
}

fn error_response(text: &str) -> Value {
    let schema = json!({"$ref": "#/components/schemas/Error"});
    json!({"description": text, "content": {"application/json": {"schema": schema}}})
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {"type": "string", "description": "A human-readable message."},
            "code": {"type": "string", "description": "A stable error code for programs, if there is one."},
            "field": {"type": "string", "description": "The invalid parameter or key, if there is one."},
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::DOMAINS;
    use crate::http::reply;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Ask {
        /// Label.
        name: String,
        size: Option<u32>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Told {
        told: bool,
    }

    const RUN: crate::http::route::Run = |_| Box::pin(async { Ok(reply::no_content()) });

    const REPLIES: &[Reply] = &[Reply::json::<Told>(201, "made"), Reply::error(409, "there is one")];

    #[test]
    fn a_route_is_described_whole() {
        let route = Route::post("/api/things/{id}/{*rest}", "Makes a thing", RUN)
            .body::<Ask>()
            .query::<Ask>()
            .public()
            .replies(REPLIES);
        let document = document(&[route], &Build::default());
        let operation = &document["paths"]["/api/things/{id}/{rest}"]["post"];
        assert_eq!(operation["operationId"], "post_api_things_id_rest");
        assert_eq!(operation["security"], json!([]));
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/Ask");
        assert_eq!(document["components"]["schemas"]["Ask"]["properties"]["name"]["type"], "string");
        let parameters = operation["parameters"].as_array().unwrap();
        let names: Vec<_> = parameters.iter().map(|p| (p["name"].as_str().unwrap(), &p["required"])).collect();
        let yes = &Value::Bool(true);
        assert_eq!(names, [("id", yes), ("rest", yes), ("name", yes), ("size", &Value::Bool(false))]);
        assert_eq!(parameters[3]["schema"], json!({"type": "integer", "format": "uint32", "minimum": 0}));
        let responses = operation["responses"].as_object().unwrap();
        let statuses: HashSet<_> = responses.keys().map(String::as_str).collect();
        assert_eq!(statuses, HashSet::from(["201", "400", "404", "409", "413", "415", "429", "500", "503"]));
    }

    #[test]
    fn every_route_is_there_and_every_reference_leads_somewhere() {
        let document = document(DOMAINS.table().routes(), &Build::default());
        let mut ids = HashSet::new();
        for route in DOMAINS.table().routes() {
            let verb = route.verb.as_str().to_ascii_lowercase();
            let operation = &document["paths"][path_of(route)][verb];
            assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()), "{}", route.path);
        }
        let text = document.to_string();
        // Words of JSON Schema that OpenAPI 3.0 does not know.
        assert!(!text.contains("\"type\":[") && !text.contains("\"const\":"));
        for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
