//! `logs`: the newest lines of the log files, or the lines as they come.

use agentsvc_api::log::files::LogFiles;
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};
use crate::log::files::Files;

/// Options of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Follow the log of the running daemon
    #[arg(short, long)]
    follow: bool,
    /// Number of lines to print
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 50)]
    lines: usize,
}

impl Run for Logs {
    fn run(self, context: &Context) -> Result<(), Error> {
        if context.is_elsewhere() && !self.follow {
            return Err(Error::Usage("log files are only available locally; with --url, use --follow".to_owned()));
        }
        if !context.is_elsewhere() {
            self.print_file(context)?;
        }
        if self.follow { follow(context) } else { Ok(()) }
    }
}

impl Logs {
    fn print_file(&self, context: &Context) -> Result<(), Error> {
        let files = Files(context.home()?.logs_dir());
        let directory = &files.0;
        if files.are_none().map_err(Error::io(format!("cannot read {}", directory.display())))? {
            let none = || Error::NotFound(format!("no log files in {}", directory.display()));
            return if self.follow { Ok(()) } else { Err(none()) };
        }
        let (mut lines, mut cursor) = (Vec::new(), None::<String>);
        while lines.len() < self.lines {
            let read = files.before(cursor.as_deref(), self.lines - lines.len());
            let page = read.map_err(Error::io(format!("cannot read {}", directory.display())))?;
            // The daemon deletes the oldest.
            let Some(page) = page else { break };
            lines.extend(page.lines);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        lines.iter().rev().try_for_each(|line| print(context, line))
    }
}

fn follow(context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    context.block_on(async {
        let mut events = client.events(Method::GET, "/api/logs/stream", None).await?;
        while let Some(event) = events.next().await? {
            match event.name.as_str() {
                "lagged" => output::note("some lines were missed"),
                _ => print(context, &event.data)?,
            }
        }
        output::note("the daemon closed the stream");
        Ok(())
    })
}

fn print(context: &Context, line: &str) -> Result<(), Error> {
    if context.json() { output::line(line) } else { output::line(&output::clean(&for_people(line))) }
}

/// `time LEVEL target: message key=value ...`; a line that is no JSON object stays as it is.
fn for_people(line: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return line.to_owned() };
    let mut take = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let (time, level, target, message) = (take("timestamp"), take("level"), take("target"), take("message"));
    let rest: String = fields.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    format!("{time} {level:>5} {target}: {message}{rest}")
}

#[cfg(test)]
mod tests {
    use super::for_people;

    #[test]
    fn lines_for_people() {
        let line = r#"{"timestamp":"T","level":"INFO","message":"hi","target":"a::b","port":3}"#;
        assert_eq!(for_people(line), "T  INFO a::b: hi port=3");
        assert_eq!(for_people("plain"), "plain");
    }
}
