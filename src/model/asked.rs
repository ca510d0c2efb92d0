//! What the request of a turn asks for in OpenAI's form, read for the drivers of other protocols.

use serde_json::{Map, Value};

use super::Request;

/// Which tool the model should call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// None.
    None,
    /// As it likes.
    Auto,
    /// Any, but one at least.
    Required,
    /// This one.
    Function(String),
}

/// The tool choice of `request`; `None` where it makes none, or one that is not known.
pub(crate) fn tool_choice(request: &Request<'_>) -> Option<ToolChoice> {
    let choice: Value = serde_json::from_str(request.tool_choice()?).ok()?;
    match choice.as_str() {
        Some("none") => Some(ToolChoice::None),
        Some("auto") => Some(ToolChoice::Auto),
        Some("required") => Some(ToolChoice::Required),
        Some(_) => None,
        None => Some(ToolChoice::Function(choice["function"]["name"].as_str()?.to_owned())),
    }
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerForm {
    /// Some JSON object.
    Json,
    /// JSON that fits this schema.
    Schema {
        /// Name.
        name: String,
        /// The JSON schema.
        schema: Value,
        /// Whether the model must keep to it, where that was said.
        strict: Option<bool>,
    },
}

/// What `response_format` asks for; `None` for plain text.
pub(crate) fn answer_form(parameters: &Map<String, Value>) -> Option<AnswerForm> {
    let format = parameters.get("response_format")?;
    match format["type"].as_str()? {
        "json_object" => Some(AnswerForm::Json),
        "json_schema" => {
            let wanted = &format["json_schema"];
            let Some(schema) = wanted.get("schema") else { return Some(AnswerForm::Json) };
            let name = wanted["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("answer");
            let strict = wanted["strict"].as_bool();
            Some(AnswerForm::Schema { name: name.to_owned(), schema: schema.clone(), strict })
        }
        _ => None,
    }
}

/// The texts of `stop`, which is one or a list of them.
pub(crate) fn stops(parameters: &Map<String, Value>) -> Vec<String> {
    match parameters.get("stop") {
        Some(Value::String(stop)) => vec![stop.clone()],
        Some(Value::Array(stops)) => stops.iter().filter_map(|stop| stop.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// How hard the model should think: what the request says, or `high` when it asks for thinking. `None` when thinking is
/// not asked for, or asked not to be done.
pub(crate) fn effort(request: &Request<'_>, parameters: &Map<String, Value>) -> Option<String> {
    match parameters.get("reasoning_effort").and_then(Value::as_str) {
        Some("none") => None,
        Some(effort) => Some(effort.to_owned()),
        None => request.thinks().then(|| "high".to_owned()),
    }
}

/// The arguments of a past call as the text of a JSON object. Providers that parse them refuse the whole request when
/// one is malformed; what was wrong with them stands in the call's result.
pub(crate) fn object_text(input: &str) -> &str {
    let is_object =
        input.trim_start().starts_with('{') && serde_json::from_str::<&serde_json::value::RawValue>(input).is_ok();
    if is_object { input } else { "{}" }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::TurnRequest;
    use serde_json::json;

    use super::*;
    use crate::model::images::Images;
    use crate::model::provider::DriverKind;
    use crate::model::testing::{ATTEMPT, target};
    use crate::model::{Purpose, Request};
    use crate::tool::toolset::built_in;
    use agentsvc_systems::prompt::Prompt;

    fn asked(asked: &TurnRequest) -> (Option<ToolChoice>, Option<String>) {
        let (target, prompt) = (target(DriverKind::Gemini, "http://h"), Prompt::default());
        let (images, tools) = (Images::default(), built_in().offered_to_all());
        let request = Request {
            attempt: ATTEMPT,
            target: &target,
            purpose: Purpose::Turn,
            temperature: None,
            max_tokens: None,
            prompt: &prompt,
            images: &images,
            tools: &tools,
            asked: Some(asked),
            streaming: false,
        };
        (tool_choice(&request), effort(&request, &request.parameters()))
    }

    #[test]
    fn choices() {
        let choice =
            |text: &str| asked(&TurnRequest { tool_choice: Some(text.to_owned()), ..TurnRequest::default() }).0;
        assert_eq!(choice("\"none\""), Some(ToolChoice::None));
        assert_eq!(choice("\"auto\""), Some(ToolChoice::Auto));
        assert_eq!(choice("\"required\""), Some(ToolChoice::Required));
        let named = r#"{"type":"function","function":{"name":"t"}}"#;
        assert_eq!(choice(named), Some(ToolChoice::Function("t".to_owned())));
        assert_eq!((choice("\"odd\""), choice("{}")), (None, None));
    }

    #[test]
    fn efforts() {
        let with = |thinking, parameters: Option<&str>| {
            let parameters = parameters.map(Into::into);
            asked(&TurnRequest { thinking, parameters, ..TurnRequest::default() }).1
        };
        assert_eq!(with(false, None), None);
        assert_eq!(with(true, None).as_deref(), Some("high"));
        assert_eq!(with(false, Some(r#"{"reasoning_effort":"low"}"#)).as_deref(), Some("low"));
        assert_eq!(with(true, Some(r#"{"reasoning_effort":"none"}"#)), None);
    }

    #[test]
    fn forms_and_stops() {
        let of = |value: Value| value.as_object().cloned().unwrap();
        assert_eq!(answer_form(&of(json!({}))), None);
        assert_eq!(answer_form(&of(json!({"response_format": {"type": "text"}}))), None);
        assert_eq!(answer_form(&of(json!({"response_format": {"type": "json_object"}}))), Some(AnswerForm::Json));
        let schema = json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"a": 1}}});
        let form = AnswerForm::Schema { name: "n".to_owned(), schema: json!({"a": 1}), strict: Some(true) };
        assert_eq!(answer_form(&of(json!({"response_format": schema}))), Some(form));
        assert_eq!(stops(&of(json!({"stop": "a"}))), ["a"]);
        assert_eq!(stops(&of(json!({"stop": ["a", "b", 1]}))), ["a", "b"]);
        assert_eq!(stops(&of(json!({"stop": null}))), Vec::<String>::new());
    }

    #[test]
    fn arguments_are_objects() {
        for (input, text) in [("{\"x\":1}", "{\"x\":1}"), ("", "{}"), ("{broken", "{}"), ("[1]", "{}")] {
            assert_eq!(object_text(input), text);
        }
    }
}
