//! `status`: whether the daemon runs, and how it is.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, duration, field};
use crate::kernel::cli::{Error, Run, words};

/// Options of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {}

/// What `GET /api/status` says, without the agents: they are `agent list`, and there can be very many.
#[derive(Debug, Serialize, Deserialize)]
struct Running {
    status: String,
    agent_count: u64,
    #[serde(default)]
    data_dir: String,
    #[serde(default)]
    default_provider: String,
    #[serde(default)]
    default_model: String,
    #[serde(default)]
    uptime_seconds: u64,
}

/// What else a person wants to know at a glance. A key that may not read some of it sees the rest.
#[derive(Debug, Default)]
struct Glance {
    version: String,
    spent_today: Option<f64>,
    waiting_approvals: Option<u64>,
}

impl Run for Status {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (running, health, glance): (Running, Value, Glance) = context.block_on(async {
            let running = client.get_as("/api/status", &[]).await?;
            let health = client.get("/api/health/detail", &[]).await?;
            Ok((running, health, Glance::read(&client).await))
        })?;
        if context.json() {
            return output::json(&merged(&running, &health)?);
        }
        let address = if context.is_elsewhere() { None } else { context.home()?.address() };
        let pid = address.map(|address| address.pid.to_string()).unwrap_or_default();
        output::print(&render(client.base(), pid, &running, &health, &glance))
    }
}

/// The status with what the health adds.
fn merged(running: &Running, health: &Value) -> Result<Value, Error> {
    let mut all = serde_json::to_value(running).map_err(|error| Error::Protocol(error.to_string()))?;
    if let (Some(all), Some(health)) = (all.as_object_mut(), health.as_object()) {
        for (key, value) in health {
            let key = if key == "status" { "health" } else { key };
            all.entry(key).or_insert_with(|| value.clone());
        }
    }
    Ok(all)
}

impl Glance {
    async fn read(client: &Client) -> Self {
        let version =
            client.get("/api/version", &[]).await.map(|answer| field(&answer, "/version")).unwrap_or_default();
        let budget = client.get("/api/budget", &[]).await.ok();
        let approvals = client.get("/api/approvals/count", &[]).await.ok();
        Self {
            version,
            spent_today: budget.and_then(|budget| budget["today_spent_usd"].as_f64()),
            waiting_approvals: approvals.and_then(|count| count["pending"].as_u64()),
        }
    }
}

fn render(url: &str, pid: String, running: &Running, health: &Value, glance: &Glance) -> String {
    let model = [running.default_provider.as_str(), &running.default_model];
    let model = model.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let rows = [
        ("status", running.status.clone()),
        ("health", field(health, "/status")),
        ("url", url.to_owned()),
        ("pid", pid),
        ("version", glance.version.clone()),
        ("uptime", duration(running.uptime_seconds)),
        ("agents", running.agent_count.to_string()),
        ("approvals waiting", glance.waiting_approvals.map(|count| count.to_string()).unwrap_or_default()),
        ("spent today", glance.spent_today.map(words::dollars).unwrap_or_default()),
        ("default model", model),
        ("data", running.data_dir.clone()),
        ("database", field(health, "/database")),
    ];
    let mut table = Table::pairs();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table.row([name, value]);
    }
    let warnings = ["config_warnings", "workspace_warnings"].map(|key| health[key].as_array());
    for warning in warnings.into_iter().flatten().flatten() {
        table.row(["warning", &field(warning, "")]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Glance, Running, merged, render};

    #[test]
    fn status_for_people_and_programs() {
        let text = r#"{"agents": [{"id": "i"}], "status": "running", "agent_count": 2, "uptime_seconds": 61,
            "default_provider": "builtin", "default_model": "builtin"}"#;
        let running: Running = serde_json::from_str(text).unwrap();
        let health = json!({"status": "ok", "database": "connected", "config_warnings": ["w"]});
        let glance = Glance { version: "1.2.3".into(), spent_today: Some(0.5), waiting_approvals: None };
        let text = render("http://h", String::new(), &running, &health, &glance);
        assert!(text.contains("version        1.2.3\n") && text.contains("spent today    $0.50\n"), "{text}");
        assert!(text.contains("uptime         1 min 1 s\n") && text.contains("warning        w\n"), "{text}");
        assert!(text.contains("default model  builtin/builtin\n") && !text.contains("pid"), "{text}");
        let merged = merged(&running, &health).unwrap();
        assert_eq!((&merged["status"], &merged["health"]), (&json!("running"), &json!("ok")));
        assert_eq!(merged["database"], "connected");
    }
}
