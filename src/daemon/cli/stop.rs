//! `stop`: asks the daemon to stop and waits until it has.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::output::Waiting;
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::Home;

/// How often a daemon elsewhere is asked whether it still answers.
const POLL: Duration = Duration::from_millis(100);

/// Options of `stop`.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Do not wait until the daemon has stopped
    #[arg(long)]
    no_wait: bool,
    /// Seconds to wait until the daemon has stopped
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

impl Run for Stop {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let answer = context.block_on(client.post("/api/shutdown", None))?;
        if !self.no_wait {
            let _waiting = Waiting::on("the daemon is stopping");
            let timeout = Duration::from_secs(self.timeout);
            let ended = if context.is_elsewhere() {
                context.block_on(wait_for_silence(&client, timeout))?
            } else {
                wait_for_home(context.home()?, timeout)?
            };
            if !ended {
                let secs = self.timeout;
                return Err(Error::Protocol(format!(
                    "the daemon is still stopping after {secs} s; running turns resume at its next start"
                )));
            }
        }
        self.report(context, &answer)
    }
}

impl Stop {
    fn report(&self, context: &Context, answer: &Value) -> Result<(), Error> {
        if context.json() {
            return output::json(answer);
        }
        output::line(if self.no_wait { "stopping" } else { "stopped" })
    }
}

/// Waits for the lock of the home; exact, since the system frees it when the process ends.
fn wait_for_home(home: Home, timeout: Duration) -> Result<bool, Error> {
    let (free, ended) = mpsc::channel();
    // Left behind when the time is over; the process ends soon after.
    thread::spawn(move || free.send(home.wait_until_free()));
    match ended.recv_timeout(timeout) {
        Ok(result) => result.map(|()| true).map_err(Error::from),
        Err(_) => Ok(false),
    }
}

/// Asks until nobody answers.
async fn wait_for_silence(client: &Client, timeout: Duration) -> Result<bool, Error> {
    let end = Instant::now() + timeout;
    while Instant::now() < end {
        if let Err(Error::Unreachable { .. } | Error::Protocol(_)) = client.get("/api/health", &[]).await {
            return Ok(true);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::wait_for_home;
    use crate::kernel::home::Home;

    #[test]
    fn the_home_is_free_when_the_lock_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let lock = home.lock().unwrap();
        assert!(!wait_for_home(home.clone(), Duration::from_millis(1)).unwrap());
        drop(lock);
        assert!(wait_for_home(home, Duration::from_secs(10)).unwrap());
    }
}
