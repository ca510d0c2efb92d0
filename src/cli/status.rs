//! `status`: whether the daemon runs, and how it is.

use clap::Args;
use serde_json::Value;

use super::Error;
use super::context::Context;
use super::output::{self, Table, duration, field};

/// Options of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {}

impl Status {
    /// Fails with its own exit code when no daemon answers.
    pub(crate) fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let (status, health) = context.block_on(async {
            // The agents themselves are `agent list`; a daemon can have very many.
            let status = client.get("/api/status", &[("limit", "0")]).await?;
            Ok((status, client.get("/api/health/detail", &[]).await?))
        })?;
        if context.json() {
            return output::json(&merged(status, &health));
        }
        let pid = context.home().ok().filter(|_| !context.is_elsewhere()).and_then(|home| home.address());
        let pid = pid.map(|address| address.pid.to_string()).unwrap_or_default();
        output::print(&render(client.base(), &pid, &status, &health))
    }
}

/// The status with what the health adds; without the agents.
fn merged(mut status: Value, health: &Value) -> Value {
    if let (Some(status), Some(health)) = (status.as_object_mut(), health.as_object()) {
        status.remove("agents");
        for (key, value) in health.iter().filter(|(key, _)| *key != "status") {
            status.entry(key.clone()).or_insert_with(|| value.clone());
        }
        status.insert("health".to_owned(), health.get("status").cloned().unwrap_or_default());
    }
    status
}

fn render(url: &str, pid: &str, status: &Value, health: &Value) -> String {
    let model = [field(status, "/default_provider"), field(status, "/default_model")];
    let model = model.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let rows = [
        ("status", field(status, "/status")),
        ("health", field(health, "/status")),
        ("url", url.to_owned()),
        ("pid", pid.to_owned()),
        ("uptime", duration(status["uptime_seconds"].as_u64().unwrap_or_default())),
        ("agents", field(status, "/agent_count")),
        ("default model", model),
        ("data", field(status, "/data_dir")),
        ("database", field(health, "/database")),
    ];
    let mut table = Table::new(&[]);
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        table.row([name, value]);
    }
    for warning in health["config_warnings"].as_array().into_iter().flatten() {
        let text = warning.get("message").unwrap_or(warning);
        table.row(["warning", &field(text, "")]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{merged, render};

    #[test]
    fn status_for_people_and_programs() {
        let status = json!({"status": "running", "agent_count": 2, "uptime_seconds": 61, "default_provider": "builtin",
            "default_model": "builtin", "agents": []});
        let health = json!({"status": "ok", "database": "connected", "config_warnings": ["w"]});
        let text = render("http://h", "", &status, &health);
        assert!(text.contains("uptime         1 min 1 s\n") && text.contains("warning        w\n"), "{text}");
        assert!(!text.contains("pid"));
        let merged = merged(status, &health);
        assert_eq!((&merged["status"], &merged["health"]), (&json!("running"), &json!("ok")));
        assert!(merged.get("agents").is_none());
    }
}
