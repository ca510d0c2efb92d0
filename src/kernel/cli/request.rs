//! `api`: any route of the API.

use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value};

use super::client::Body;
use super::{Context, Error, Run, output};

/// Options of `api`.
#[derive(Debug, Args)]
pub(crate) struct Request {
    /// GET, POST, PUT, PATCH or DELETE
    method: String,
    /// The path, such as /api/agents?limit=3
    path: String,
    /// Keys of the JSON body, whose values are text if they are not JSON; or the whole body as JSON, `-` for standard input
    #[arg(value_name = "KEY=VALUE|JSON")]
    keys: Vec<String>,
}

impl Run for Request {
    fn run(self, context: &Context) -> Result<(), Error> {
        let method = match self.method.to_uppercase().as_str() {
            "GET" => Method::GET,
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            "DELETE" => Method::DELETE,
            _ => return Err(Error::Usage(format!("{}: not GET, POST, PUT, PATCH or DELETE", self.method))),
        };
        if !self.path.starts_with('/') {
            return Err(Error::Usage(format!("{}: a path begins with /", self.path)));
        }
        let body = body(&self.keys)?;
        let client = context.client()?;
        match context.block_on(client.call(method, &self.path, &[], body.as_ref()))? {
            Body::Json(answer) => output::json(&answer),
            Body::Text(text) => output::text(&text),
            Body::None => Ok(()),
        }
    }
}

fn body(keys: &[String]) -> Result<Option<Value>, Error> {
    if keys.is_empty() {
        return Ok(None);
    }
    if let [whole] = keys
        && (whole == "-" || whole.starts_with(['{', '[']))
    {
        let text = if whole == "-" { output::read_stdin()? } else { whole.clone() };
        return serde_json::from_str(&text).map(Some).map_err(|error| Error::Usage(format!("not JSON: {error}")));
    }
    let pair = |text: &String| {
        let (key, value) =
            text.split_once('=').ok_or_else(|| Error::Usage(format!("{text}: neither KEY=VALUE nor a JSON object")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((key.to_owned(), value))
    };
    keys.iter().map(pair).collect::<Result<Map<_, _>, Error>>().map(|keys| Some(Value::Object(keys)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::body;

    #[test]
    fn keys_become_a_body() {
        let given = |keys: &[&str]| body(&keys.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(given(&["a=1", "b=x=y", "c=[\"d\"]"]).unwrap(), Some(json!({"a": 1, "b": "x=y", "c": ["d"]})));
        assert_eq!(given(&["{\"a\": 1}"]).unwrap(), Some(json!({ "a": 1 })));
        assert_eq!(given(&["[1]"]).unwrap(), Some(json!([1])));
        assert!(given(&["{a"]).unwrap_err().to_string().starts_with("not JSON: "));
        assert_eq!(given(&[]).unwrap(), None);
        assert!(given(&["a"]).is_err());
    }
}
