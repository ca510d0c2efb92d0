//! `rehearse`: a copy of the daemon's world runs ahead in virtual time, and what came of it is shown.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{Shown, Table, Waiting, duration, field, items};
use crate::kernel::cli::words::{count, dollars};
use crate::kernel::cli::{Error, Run};

/// How often the daemon is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Lines of each table.
const LINES_MAX: usize = 10;

/// Options of `rehearse`.
#[derive(Debug, Args)]
pub(crate) struct Rehearse {
    /// Duration, such as 7d, 12h or 1d12h
    #[arg(long = "for", value_name = "LENGTH", required_unless_present = "until", conflicts_with = "until")]
    length: Option<String>,
    /// End time, RFC 3339
    #[arg(long, value_name = "MOMENT")]
    until: Option<String>,
    /// The world to start from: now, or the id of a snapshot
    #[arg(long, value_name = "FROM", default_value = "now")]
    from: String,
    /// Source of model responses: builtin, or recorded (from the agents' past turns)
    #[arg(long, value_name = "MODEL", default_value = "builtin", value_parser = ["builtin", "recorded"])]
    model: String,
    /// Random seed; the same seed gives the same fires
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Write all fires to this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Run for Rehearse {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        // Before anything runs: a path that cannot be written is found out first.
        let file = self
            .csv
            .as_ref()
            .map(|path| File::create(path).map_err(Error::io(format!("cannot write {}", path.display()))));
        let file = file.transpose()?;
        context.block_on(async {
            let begun = client.post("/api/world/rehearsals", Some(&self.body())).await?;
            let ended = follow(&client, &field(&begun, "/id")).await?;
            if let Some(file) = file {
                let path = format!("/api/world/rehearsals/{}/fires.csv", field(&ended, "/id"));
                client.download(&path, &mut BufWriter::new(file)).await?;
            }
            context.print(&ended, summary)?;
            match ended["state"].as_str() {
                Some("completed") => Ok(()),
                Some("cancelled") => Err(Error::Protocol("the rehearsal was cancelled".to_owned())),
                _ => Err(Error::Protocol(format!("the rehearsal failed: {}", field(&ended, "/error")))),
            }
        })
    }
}

impl Rehearse {
    fn body(&self) -> Value {
        let mut body = json!({ "from": self.from, "model": self.model });
        for (key, value) in [("for", &self.length), ("until", &self.until)] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        if let Some(seed) = self.seed {
            body["seed"] = json!(seed);
        }
        body
    }
}

/// Waits for the end and says how far it is.
async fn follow(client: &Client, id: &str) -> Result<Value, Error> {
    let waiting = Waiting::on("rehearsing");
    loop {
        let found = client.get(&format!("/api/world/rehearsals/{id}"), &[]).await?;
        if found["state"] != "running" {
            return Ok(found);
        }
        let percent = found["progress"]["share"].as_f64().unwrap_or_default() * 100.0;
        let (at, fires) = (field(&found, "/progress/at"), field(&found, "/progress/fires"));
        waiting.say(format!("rehearsing: {percent:.0} %, {at}, {fires} fires"));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn usd(value: &Value) -> String {
    dollars(value.as_f64().unwrap_or_default())
}

/// A moment to the minute: in a rehearsal, seconds say nothing.
fn minute(value: &Value, pointer: &str) -> String {
    let text = field(value, pointer);
    let at = text.parse::<DateTime<Utc>>();
    at.map_or(text, |at| at.format("%Y-%m-%d %H:%M UTC").to_string())
}

/// The report in a page of text.
fn summary(ended: &Value) -> Shown {
    let report = &ended["report"];
    let mut text = format!(
        "{} from {} to {} ({} model, seed {})\n",
        field(ended, "/state"),
        minute(ended, "/from_at"),
        minute(report, "/rehearsed_until"),
        field(ended, "/model"),
        field(ended, "/seed")
    );
    if report.is_null() {
        return text.into();
    }
    let outcomes = report["outcomes"].as_object().into_iter().flatten();
    let outcomes: Vec<String> = outcomes.map(|(word, count)| format!("{count} {}", word.replace('_', " "))).collect();
    let none = || "none".to_owned();
    let line = |name: &str, said: String| format!("{name:<12}{said}\n");
    text += &line("fires", if outcomes.is_empty() { none() } else { outcomes.join(", ") });
    text += &line("turns", {
        let count = |key: &str| field(report, &format!("/turns/{key}"));
        let (completed, failed) = (count("completed"), count("failed"));
        format!("{completed} completed, {failed} failed, {} over budget, {} open", count("over_budget"), count("open"))
    });
    text += &line("tokens", format!("{} in, {} out", field(report, "/tokens/input"), field(report, "/tokens/output")));
    let cost = &report["cost"];
    text += &line(
        "cost",
        format!(
            "{} (80 %: {} to {}); {} by their history, {} by estimate",
            usd(&cost["forecast_usd"]),
            usd(&cost["low_usd"]),
            usd(&cost["high_usd"]),
            count(cost["agents_with_history"].as_u64().unwrap_or_default(), "agent"),
            field(cost, "/agents_estimated")
        ),
    );
    let overlaps = &report["overlaps"];
    let longest = overlaps["longest_wait_secs"].as_f64().unwrap_or_default();
    text += &line(
        "overlaps",
        format!(
            "{} queued (longest {}), {} skipped, {} refused",
            field(overlaps, "/queued"),
            duration(longest as u64),
            field(overlaps, "/skipped"),
            field(overlaps, "/refused")
        ),
    );
    text += &line("approvals", format!("{} would wait for approval", field(report, "/approvals/requested")));
    if !report["busiest_minute"].is_null() {
        let fires = report["busiest_minute"]["fires"].as_u64().unwrap_or_default();
        text += &line("busiest", format!("{} at {}", count(fires, "fire"), minute(report, "/busiest_minute/at")));
    }
    tables(report).into_iter().fold(Shown::from(text), |shown, table| shown.and(table))
}

fn rows<'a>(report: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    items(report, key).take(LINES_MAX)
}

/// Tables of what stands out, with a line on what each leaves out.
fn tables(report: &Value) -> Vec<Shown> {
    let mut table = Table::list("budgets", &["BUDGET", "PERIOD", "WHAT", "WHEN"]);
    for row in rows(report, "budgets") {
        let name = field(row, "/agent_name");
        let whose = if name.is_empty() { field(row, "/scope") } else { name };
        table.row([&whose, &field(row, "/period"), &field(row, "/event"), &minute(row, "/at")]);
    }
    let mut all = vec![cut(report, "budgets", table)];
    let columns = [("SKIPPED", "/kind"), ("OUTCOME", "/outcome"), ("COUNT", "/count"), ("REASON", "/reason")];
    all.push(cut(report, "skips", Table::of("skips", rows(report, "skips"), &columns)));
    let mut table = Table::list("agents", &["AGENT", "FIRES", "TURNS", "FORECAST", "BY"]);
    for row in rows(report, "agents") {
        let forecast = usd(&row["forecast_usd"]);
        table.row([
            &field(row, "/name"),
            &field(row, "/fires"),
            &field(row, "/turns"),
            &forecast,
            &field(row, "/basis"),
        ]);
    }
    all.push(cut(report, "agents", table));
    all
}

/// A table, if it has rows, with a line on what it leaves out.
fn cut(report: &Value, key: &str, table: Table) -> Shown {
    let shown = Shown::default().and_below(table);
    match report[key].as_array().map_or(0, Vec::len).saturating_sub(LINES_MAX) {
        0 => shown,
        more => shown.and(format!("... and {more} more; use --json to list all\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_says_what_matters() {
        let ended = json!({
            "state": "completed", "from_at": "A", "model": "builtin", "seed": 1,
            "report": {
                "rehearsed_until": "B", "outcomes": { "fired": 5, "over_budget": 2 },
                "turns": { "completed": 4, "failed": 1, "over_budget": 0, "open": 0 },
                "tokens": { "input": 10, "output": 20 },
                "cost": { "forecast_usd": 1.5, "low_usd": 1.0, "high_usd": 2.0, "agents_with_history": 1,
                    "agents_estimated": 0 },
                "overlaps": { "queued": 1, "longest_wait_secs": 65.0, "skipped": 0, "refused": 0 },
                "approvals": { "requested": 3 },
                "busiest_minute": { "at": "C", "fires": 2 },
                "budgets": [{ "scope": "global", "period": "daily", "event": "exceeded", "at": "D" }],
                "skips": [], "agents": []
            }
        });
        let text = summary(&ended).text;
        for part in [
            "5 fired, 2 over budget",
            "$1.50 (80 %: $1.00 to $2.00); 1 agent by",
            "2 fires at C",
            "3 would wait",
            "global",
            "exceeded",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("AGENT"), "{text}");
        assert!(summary(&json!({ "state": "cancelled" })).text.starts_with("cancelled"));
    }
}
