//! The verbs of a noun: what its routes are called on the command line.

use agentsvc_api::http::operations::Operation;
use agentsvc_api::http::route::Verb;

/// What a route is called below its noun, such as `list`, `show` or `deliveries`.
pub(super) fn name_of(operation: &Operation, prefix: &str, others: &[Operation]) -> String {
    let rest = operation.path.strip_prefix(prefix).unwrap_or_default();
    let segments: Vec<&str> = rest.split('/').filter(|segment| !segment.is_empty()).collect();
    let words: Vec<&str> = segments.iter().copied().filter(|segment| !segment.starts_with('{')).collect();
    let is_one = segments.last().is_some_and(|last| last.starts_with('{'));
    let shares = others.iter().filter(|other| other.path == operation.path).count() > 1;
    let posts = others.iter().any(|other| other.path == operation.path && other.verb == Verb::Post);
    let has_ones = others.iter().any(|other| other.path.starts_with(&format!("{}/{{", operation.path)));
    let deed = match operation.verb {
        Verb::Get if is_one => "show",
        Verb::Get if words.is_empty() => {
            if has_ones || posts {
                "list"
            } else {
                "show"
            }
        }
        Verb::Get => "",
        Verb::Post if words.is_empty() || shares => "create",
        Verb::Post => "",
        Verb::Put | Verb::Patch if is_one || words.is_empty() => "update",
        Verb::Put | Verb::Patch if shares => "set",
        Verb::Put | Verb::Patch => "",
        Verb::Delete => "delete",
    };
    words.into_iter().chain((!deed.is_empty()).then_some(deed)).collect::<Vec<_>>().join("-").replace('_', "-")
}
