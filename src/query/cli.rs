//! `query`: asks the running world for entities and figures over them.

use clap::Args;
use reqwest::Method;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::{Error, Run};

/// Options of `query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The query, such as 'agents where tokens > 1000 sort by tokens desc limit 20'
    query: String,
    /// Print CSV
    #[arg(long, conflicts_with = "watch")]
    csv: bool,
    /// Print the result again whenever it changes
    #[arg(short, long)]
    watch: bool,
    /// Interval for --watch, such as 2s
    #[arg(long, value_name = "DURATION", default_value = "2s", requires = "watch")]
    every: String,
}

impl Run for Query {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        if self.watch {
            return self.follow(context);
        }
        if self.csv {
            let text = context.block_on(client.text("/api/world/query", &[("q", &self.query), ("format", "csv")]))?;
            return output::print(&text);
        }
        let answer = context.block_on(client.get("/api/world/query", &[("q", &self.query)]))?;
        context.print(&answer, shown)
    }
}

impl Query {
    fn follow(&self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let mut url = reqwest::Url::parse("http://daemon/api/world/query/stream")
            .map_err(|error| Error::Usage(error.to_string()))?;
        url.query_pairs_mut().append_pair("q", &self.query).append_pair("every", &self.every);
        let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        context.block_on(async {
            let mut events = client.events(Method::GET, &path, None).await?;
            while let Some(event) = events.next().await? {
                let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
                match event.name.as_str() {
                    "result" if context.json() => output::line(&event.data)?,
                    "result" => output::line(&shown(&data).text)?,
                    "lagged" => output::note(&format!("{} results were skipped", data["missed"])),
                    "error" => output::note(&format!("the world does not respond: {}", output::field(&data, "/error"))),
                    _ => {}
                }
            }
            Ok(())
        })
    }
}

/// The rows under their headings, and what there is to know below.
fn shown(answer: &Value) -> Shown {
    let columns: Vec<&Value> = output::items(answer, "columns").collect();
    let headings = columns.iter().map(|column| output::field(column, "/name")).collect();
    let mut table = Table::with("rows", headings);
    for row in output::items(answer, "rows") {
        let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
        table.push(cells.iter().zip(&columns).map(|(cell, column)| cell_of(cell, column)));
    }
    let foot = foot(answer, output::items(answer, "rows").count());
    // It says so where there are none.
    if table.is_empty() { foot.into() } else { Shown::from(table).and(foot) }
}

/// `2 of 40 rows, 40 looked at, 1.2 ms`.
fn foot(answer: &Value, rows: usize) -> String {
    let total = answer["total"].as_u64().unwrap_or_default();
    let of = if total as usize == rows { String::new() } else { format!(" of {total}") };
    let noun = if rows == 1 && of.is_empty() { "row" } else { "rows" };
    let complete = if answer["complete"] == true { "" } else { ", NOT COMPLETE" };
    format!("({rows}{of} {noun}, {} scanned, {} ms{complete})\n", answer["looked_at"], answer["took_ms"])
}

/// A cell for people: durations in their units.
fn cell_of(cell: &Value, column: &Value) -> String {
    match (column["type"].as_str(), cell.as_f64()) {
        (Some("duration"), Some(secs)) if secs >= 60.0 => output::duration(secs as u64),
        (Some("duration"), Some(secs)) => format!("{secs} s"),
        _ => output::field(cell, ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::shown;

    #[test]
    fn an_answer_is_a_table() {
        let column = |name: &str, kind: &str| json!({"name": name, "type": kind});
        let answer = json!({
            "columns": [column("name", "text"), column("tokens", "number"), column("turn_age", "duration")],
            "rows": [["a\u{1b}[31m\nb", 5, 3_700], ["long", 12_345, null], ["x", 0.5, 1.5]],
            "total": 40, "looked_at": 41, "complete": false, "took_ms": 1.2,
        });
        let expected = "name     tokens  turn_age\n\
                        a[31m b       5  1 h 1 min\n\
                        long      12345\n\
                        x           0.5  1.5 s\n\
                        (3 of 40 rows, 41 scanned, 1.2 ms, NOT COMPLETE)\n";
        assert_eq!(shown(&answer).text, expected);
    }

    #[test]
    fn no_rows_are_counted() {
        let answer = json!({ "columns": [{"name": "t", "type": "text"}], "rows": [], "total": 0, "looked_at": 1, "complete": true, "took_ms": 1 });
        assert_eq!(shown(&answer).text, "(0 rows, 1 scanned, 1 ms)\n");
    }
}
