//! `logs`: the newest lines of the log files, or the lines as they come.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use clap::Args;
use reqwest::Method;
use serde_json::Value;

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};
use crate::kernel::logging;

/// Bytes read at once on the way from a file's end to its start.
const BLOCK_BYTES: u64 = 64 << 10;

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
        let directory = context.home()?.logs_dir();
        let cannot = |path: &Path| Error::io(format!("cannot read {}", path.display()));
        let files = match logging::newest_first(&directory) {
            Ok(files) => files,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(cannot(&directory)(error)),
        };
        if files.is_empty() {
            let none = || Error::NotFound(format!("no log files in {}", directory.display()));
            return if self.follow { Ok(()) } else { Err(none()) };
        }
        let (mut texts, mut left) = (Vec::new(), self.lines);
        for path in files {
            if left == 0 {
                break;
            }
            match tail(&path, left) {
                Ok(text) => {
                    left -= text.lines().count();
                    texts.push(text);
                }
                // The daemon deletes the oldest.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                Err(error) => return Err(cannot(&path)(error)),
            }
        }
        texts.iter().rev().flat_map(|text| text.lines()).try_for_each(|line| print(context, line))
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

/// The last `count` lines of a file. Reads from its end, so that its size does not matter.
fn tail(path: &Path, count: usize) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut start = file.seek(SeekFrom::End(0))?;
    let mut bytes = Vec::new();
    // One newline more than lines: the one before the first.
    while start > 0 && bytes.iter().filter(|byte| **byte == b'\n').count() <= count {
        let size = start.min(BLOCK_BYTES);
        start -= size;
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (&file).take(size).read_to_end(&mut block)?;
        block.append(&mut bytes);
        bytes = block;
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(count)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{for_people, tail};

    #[test]
    fn lines_for_people() {
        let line = r#"{"timestamp":"T","level":"INFO","message":"hi","target":"a::b","port":3}"#;
        assert_eq!(for_people(line), "T  INFO a::b: hi port=3");
        assert_eq!(for_people("plain"), "plain");
    }

    #[test]
    fn the_tail_of_a_long_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, text).unwrap();
        assert_eq!(tail(&path, 2).unwrap(), "line 19998\nline 19999");
        assert_eq!(tail(&path, 15_000).unwrap().lines().next(), Some("line 5000"));
        assert_eq!(tail(&path, 99_999).unwrap().lines().count(), 20_000);
        assert_eq!(tail(&path, 0).unwrap(), "");
    }
}
