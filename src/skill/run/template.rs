//! Skills that are a template: the result of their tool is its text with the input filled in.

use serde_json::{Map, Value};

use super::Call;

/// The text of a call.
pub(super) fn filled(call: &Call) -> String {
    match &call.skill.template {
        Some(template) => fill(template, &call.input),
        // A tool of a skill without a template shows what the skill says.
        None => fill(&call.skill.text(), &call.input),
    }
}

/// `template` with each `{{name}}` replaced by the input of that name, in one pass: what is filled in is not looked at again. A
/// name without an input becomes nothing.
fn fill(template: &str, input: &Map<String, Value>) -> String {
    let (mut out, mut rest) = (String::with_capacity(template.len()), template);
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, behind)) = after.split_once("}}").filter(|(name, _)| is_name(name.trim())) else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        match input.get(name.trim()) {
            Some(Value::String(text)) => out.push_str(text),
            Some(Value::Null) | None => {}
            Some(other) => out.push_str(&other.to_string()),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fill;

    #[test]
    fn inputs_are_filled_in_once() {
        let input = json!({ "a": "{{b}}", "b": 7, "c": null });
        let filled = |template: &str| fill(template, input.as_object().unwrap());
        assert_eq!(filled("<{{a}}|{{ b }}|{{c}}|{{d}}>"), "<{{b}}|7||>");
        assert_eq!(filled("{{not a name}} {{ {{b}}"), "{{not a name}} {{ 7");
        assert_eq!(filled("open {{a"), "open {{a");
    }
}
