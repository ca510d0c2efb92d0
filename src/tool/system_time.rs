//! `system_time`: the date and time in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::tool::toolset::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "system_time",
    "Returns the current date and time in UTC, in all formats as a JSON object, or only in the given `format`.",
    run,
)
.safe()
.anywhere()
.order(3);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A single format, such as rfc3339 for 2026-11-21T10:55:00Z.
    format: Option<Format>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Rfc3339,
    Date,
    Time,
    Weekday,
    UnixSeconds,
}

fn run(_context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move { tell(&text, agentsvc_api::http::timestamp::now()).map(Ended::Text) })
}

fn tell(text: &str, now: DateTime<Utc>) -> Result<String, String> {
    let form = |format: Format| match format {
        Format::Rfc3339 => now.to_rfc3339_opts(SecondsFormat::Secs, true),
        Format::Date => now.format("%Y-%m-%d").to_string(),
        Format::Time => now.format("%H:%M:%S").to_string(),
        Format::Weekday => now.format("%A").to_string(),
        Format::UnixSeconds => now.timestamp().to_string(),
    };
    let Input { format } = input(text)?;
    Ok(match format {
        Some(format) => form(format),
        None => json!({
            "rfc3339": form(Format::Rfc3339),
            "date": form(Format::Date),
            "time": form(Format::Time),
            "weekday": form(Format::Weekday),
            "unix_seconds": now.timestamp(),
        })
        .to_string(),
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::tell;

    fn at_noon(text: &str) -> Result<String, String> {
        tell(text, DateTime::from_timestamp(1_795_262_400, 0).unwrap())
    }

    #[test]
    fn forms() {
        assert_eq!(at_noon(r#"{"format":"rfc3339"}"#).unwrap(), "2026-11-21T12:00:00Z");
        assert_eq!(at_noon(r#"{"format":"weekday"}"#).unwrap(), "Saturday");
        assert_eq!(at_noon(r#"{"format":"unix_seconds"}"#).unwrap(), "1795262400");
        for nothing in ["", "{}", " {} ", r#"{"format":null}"#] {
            let all: serde_json::Value = serde_json::from_str(&at_noon(nothing).unwrap()).unwrap();
            assert_eq!((&all["date"], &all["time"]), (&"2026-11-21".into(), &"12:00:00".into()), "{nothing}");
        }
    }

    #[test]
    fn wrong_input_is_explained() {
        let wrong = |text| at_noon(text).unwrap_err();
        assert!(wrong(r#"{"zone":"CET"}"#).contains("unknown field `zone`, expected `format`"));
        assert!(wrong(r#"{"format":"iso"}"#).contains("unknown variant `iso`"));
        assert!(wrong(r#"{"format":7}"#).contains("The arguments are not valid"));
        assert!(wrong(r#"{"format":"#).contains("not valid JSON"));
        assert!(wrong("[]").contains("not a JSON object"));
        assert!(wrong("null").contains("not a JSON object"));
    }
}
