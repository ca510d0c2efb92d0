//! Answers of queries as JSON and as CSV, and the description of what can be asked for.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_systems::query::{Found, KINDS, Type, Value};
use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::http::csv;
use crate::query::run::Answered;

/// Result of a query.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AnswerBody<'a> {
    columns: Vec<Column<'a>>,
    /// One cell per column. Times are RFC 3339, durations are in seconds.
    #[schemars(with = "Vec<Vec<serde_json::Value>>")]
    rows: Rows<'a>,
    /// Total number of rows or groups, without the limit.
    total: u64,
    /// Number of entities scanned.
    looked_at: u64,
    /// Whether all entities were scanned and the result is complete.
    complete: bool,
    /// Newest step that changed something; null if steps have no numbers.
    step: Option<u64>,
    /// World time at the start of the query.
    at: Option<String>,
    took_ms: f64,
}

#[derive(Serialize, JsonSchema)]
struct Column<'a> {
    name: &'a str,
    /// `bool`, `number`, `text`, `word`, `time`, `duration` or `id`.
    r#type: &'static str,
}

impl<'a> AnswerBody<'a> {
    pub(crate) fn of(answered: &'a Answered, step: Option<u64>) -> Self {
        let found = &answered.found;
        let columns = found.columns.iter().map(|column| Column { name: &column.name, r#type: column.kind.as_str() });
        Self {
            columns: columns.collect(),
            rows: Rows(&found.rows),
            total: found.total,
            looked_at: found.looked_at,
            complete: found.complete,
            step,
            at: found.now.as_ref().map(Timestamp::to_string),
            took_ms: (answered.took.as_secs_f64() * 1e5).round() / 100.0,
        }
    }
}

/// The rows as they are written, without a copy.
struct Rows<'a>(&'a [Vec<Value<'static>>]);

struct Row<'a>(&'a [Value<'static>]);

struct Cell<'a>(&'a Value<'static>);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|row| Row(row)))
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for cell in self.0 {
            seq.serialize_element(&Cell(cell))?;
        }
        seq.end()
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Bool(it) => serializer.serialize_bool(*it),
            Value::Number(number) => match whole(*number) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(rounded(*number)),
            },
            Value::Text(text) => serializer.serialize_str(text),
            Value::Time(time) => serializer.collect_str(time),
            Value::Duration(ms) => match ms % 1_000 {
                0 => serializer.serialize_i64(ms / 1_000),
                _ => serializer.serialize_f64(*ms as f64 / 1e3),
            },
            Value::Id(id) => serializer.collect_str(id),
        }
    }
}

/// The number when it is whole and exact.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

/// Sums of dollars have nine digits behind the point and no more, whatever their order was.
fn rounded(number: f64) -> f64 {
    let rounded = (number * 1e9).round() / 1e9;
    if rounded.is_finite() && rounded != 0.0 { rounded } else { number }
}

/// What of an answer counts when it is asked whether it has changed.
pub(crate) fn fingerprint(found: &Found) -> Vec<u8> {
    let parts = (Rows(&found.rows), found.total, found.complete);
    serde_json::to_vec(&parts).unwrap_or_default()
}

/// The answer as RFC 4180 has it: a line of headings and one for each row.
pub(crate) fn csv(found: &Found) -> String {
    let mut out = String::new();
    for (at, column) in found.columns.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "," });
        csv::text(&mut out, &column.name);
    }
    out.push_str("\r\n");
    for row in &found.rows {
        for (at, cell) in row.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            match cell {
                Value::Null => {}
                Value::Text(value) => csv::text(&mut out, value),
                Value::Time(time) => out.push_str(&time.to_string()),
                Value::Id(id) => out.push_str(&id.to_string()),
                // What is left is written as in JSON.
                other => out.push_str(&serde_json::to_string(&Cell(other)).unwrap_or_default()),
            }
        }
        out.push_str("\r\n");
    }
    out
}

/// Get the query schema.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Schema {
    kinds: Vec<KindShape>,
    aggregates: [&'static str; 5],
    operators: [&'static str; 11],
    limits: Limits,
    examples: &'static [&'static str],
}

#[derive(Serialize, JsonSchema)]
struct KindShape {
    name: &'static str,
    text: &'static str,
    /// Fields shown by default.
    shown: &'static [&'static str],
    fields: Vec<FieldShape>,
    relations: Vec<RelationShape>,
}

#[derive(Serialize, JsonSchema)]
struct FieldShape {
    name: &'static str,
    r#type: &'static str,
    /// Possible values of a `word`.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<&'static [&'static str]>,
    text: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct RelationShape {
    name: &'static str,
    /// Kind of the relation.
    to: &'static str,
    text: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Limits {
    query_bytes: usize,
    conditions: usize,
    rows: usize,
    rows_default: usize,
    groups: usize,
    looked_at: u64,
    cell_bytes: usize,
    at_once: usize,
    streams: usize,
}

const EXAMPLES: &[&str] = &[
    "agents where state = \"Running\" and tokens > 1000 sort by tokens desc limit 20",
    "turns group by state count",
    "schedules where next_run < now + 1h and agent.name ~ \"ops-*\"",
    "turns where age > 5m and state != \"Queued\" select id, agent.name, state, age sort by age desc",
    "agents group by provider, model select count, sum(tokens), sum(cost_usd) sort by count desc",
    "tasks where state in (\"pending\", \"running\") and created_at < now - 1d",
    "approvals where state = \"pending\" and deadline - now < 10m",
];

/// Get the query schema; the same for every world.
pub(crate) fn schema() -> Schema {
    let kinds = KINDS.iter().map(|kind| KindShape {
        name: kind.name,
        text: kind.text,
        shown: kind.shown,
        fields: kind
            .fields
            .iter()
            .map(|field| FieldShape {
                name: field.name,
                r#type: field.kind.as_str(),
                words: if let Type::Word(words) = field.kind { Some(words) } else { None },
                text: field.text,
            })
            .collect(),
        relations: kind
            .relations
            .iter()
            .map(|relation| RelationShape { name: relation.name, to: relation.to.name, text: relation.text })
            .collect(),
    });
    Schema {
        kinds: kinds.collect(),
        aggregates: ["count", "sum", "min", "max", "avg"],
        operators: ["=", "!=", "<", "<=", ">", ">=", "~", "!~", "contains", "in", "is null"],
        limits: Limits {
            query_bytes: limit::QUERY_BYTES_MAX,
            conditions: limit::QUERY_CONDITIONS_MAX,
            rows: limit::QUERY_ROWS_MAX,
            rows_default: limit::QUERY_ROWS_DEFAULT,
            groups: limit::QUERY_GROUPS_MAX,
            looked_at: limit::QUERY_LOOKED_MAX,
            cell_bytes: limit::QUERY_CELL_BYTES_MAX,
            at_once: limit::QUERIES_MAX,
            streams: limit::QUERY_STREAMS_MAX,
        },
        examples: EXAMPLES,
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_systems::query::{OutputColumn, prepare};

    use super::*;

    fn found(cells: Vec<Value<'static>>) -> Found {
        let columns = cells.iter().map(|_| OutputColumn { name: "a.\"b\"".to_owned(), kind: Type::Text }).collect();
        Found { columns, rows: vec![cells], total: 1, looked_at: 1, complete: true, now: None }
    }

    #[test]
    fn cells_are_written_as_what_they_are() {
        let found = found(vec![
            Value::Null,
            Value::Bool(true),
            Value::Number(1e6),
            Value::Number(0.1 + 0.2),
            Value::Text("=a,\"b\"".into()),
            Value::Time(Timestamp(0)),
            Value::Duration(90_000),
            Value::Duration(1_500),
            Value::Id(uuid::Uuid::nil()),
        ]);
        let row = serde_json::to_string(&Rows(&found.rows)).unwrap();
        let nil = uuid::Uuid::nil();
        let expected =
            format!("[[null,true,1000000,0.3,\"=a,\\\"b\\\"\",\"1970-01-01T00:00:00.000Z\",90,1.5,\"{nil}\"]]");
        assert_eq!(row, expected);
        let text = csv(&found);
        let line = format!(",true,1000000,0.3,\"'=a,\"\"b\"\"\",1970-01-01T00:00:00.000Z,90,1.5,{nil}\r\n");
        assert!(text.starts_with("\"a.\"\"b\"\"\",") && text.ends_with(&line), "{text}");
    }

    #[test]
    fn every_example_is_a_query() {
        for example in EXAMPLES {
            prepare(example).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
        assert_eq!(schema().kinds.len(), KINDS.len());
    }
}
