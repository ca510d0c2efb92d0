//! `status`: whether the daemon runs, and how it is.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::{Table, duration, field};
use crate::kernel::cli::{Error, Run};

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

impl Run for Status {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (running, health): (Running, Value) = context.block_on(async {
            let running = client.get_as("/api/status", &[]).await?;
            Ok((running, client.get("/api/health/detail", &[]).await?))
        })?;
        if context.json() {
            return output::json(&merged(&running, &health)?);
        }
        let address = if context.is_elsewhere() { None } else { context.home()?.address() };
        let pid = address.map(|address| address.pid.to_string()).unwrap_or_default();
        output::print(&render(client.base(), pid, &running, &health))
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

fn render(url: &str, pid: String, running: &Running, health: &Value) -> String {
    let model = [running.default_provider.as_str(), &running.default_model];
    let model = model.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let rows = [
        ("status", running.status.clone()),
        ("health", field(health, "/status")),
        ("url", url.to_owned()),
        ("pid", pid),
        ("uptime", duration(running.uptime_seconds)),
        ("agents", running.agent_count.to_string()),
        ("default model", model),
        ("data", running.data_dir.clone()),
        ("database", field(health, "/database")),
    ];
    let mut table = Table::new(&[]);
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

    use super::{Running, merged, render};

    #[test]
    fn status_for_people_and_programs() {
        let text = r#"{"agents": [{"id": "i"}], "status": "running", "agent_count": 2, "uptime_seconds": 61,
            "default_provider": "builtin", "default_model": "builtin"}"#;
        let running: Running = serde_json::from_str(text).unwrap();
        let health = json!({"status": "ok", "database": "connected", "config_warnings": ["w"]});
        let text = render("http://h", String::new(), &running, &health);
        assert!(text.contains("uptime         1 min 1 s\n") && text.contains("warning        w\n"), "{text}");
        assert!(text.contains("default model  builtin/builtin\n") && !text.contains("pid"), "{text}");
        let merged = merged(&running, &health).unwrap();
        assert_eq!((&merged["status"], &merged["health"]), (&json!("running"), &json!("ok")));
        assert_eq!(merged["database"], "connected");
    }
}
