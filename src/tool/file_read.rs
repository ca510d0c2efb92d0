//! `file_read`: lines of a text file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use agentsvc_components::kernel::limit::FILE_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::{in_workspace, sentence};
use crate::kernel::sandbox::Workspace;
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Lines of one call unless it says otherwise.
const LINES_DEFAULT: usize = 1_000;
/// Bytes of one call, so that a result is not put aside as too long.
const BYTES_MAX: usize = 30 << 10;
/// Bytes that are looked at to tell text from other things.
const SNIFFED_BYTES: usize = 8 << 10;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "file_read",
    "Reads a text file of your private workspace. Long files are returned in parts: the last line of the result says \
     how to continue. Binary files are not shown.",
    |context, text| on_input(context, text, run),
)
.safe()
.heavy()
.needs(Need::Files)
.order(12);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, relative to the workspace, such as "notes/today.md".
    path: String,
    /// First line, from 1. Default: 1.
    offset: Option<u64>,
    /// Maximum number of lines. Default: 1000.
    limit: Option<u64>,
}

async fn run(context: Context, input: Input) -> Result<Ended, String> {
    in_workspace(&context, move |workspace| read(workspace, &input)).await.map(Ended::Text)
}

fn read(workspace: &Workspace, input: &Input) -> Result<String, String> {
    let first = usize::try_from(input.offset.unwrap_or(1)).unwrap_or(usize::MAX);
    let limit = input.limit.map_or(LINES_DEFAULT, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if first == 0 || limit == 0 {
        return Err("`offset` counts lines from 1, and `limit` must be at least 1.".to_owned());
    }
    let (file, entry) = workspace.open_file(&input.path).map_err(sentence)?;
    if entry.size > FILE_BYTES_MAX {
        return Err(format!("{:?} is {} bytes long; the limit is {FILE_BYTES_MAX}.", input.path, entry.size));
    }
    let failed = |error: std::io::Error| format!("{:?} cannot be read: {error}.", input.path);
    let mut reader = BufReader::with_capacity(SNIFFED_BYTES, file.take(FILE_BYTES_MAX));
    if reader.fill_buf().map_err(failed)?.contains(&0) {
        return Err(format!("{:?} is not a text file. It has {} bytes.", input.path, entry.size));
    }
    if entry.size == 0 {
        return Ok("[The file is empty.]".to_owned());
    }
    Part::read(&mut reader, first, limit).map_err(failed)?.into_text(first, &input.path)
}

/// Some lines of a file.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// Lines that were taken.
    taken: usize,
    /// Lines of the whole file.
    lines: usize,
    /// Bytes cut off the end of the only line.
    cut: usize,
}

impl Part {
    fn read(reader: &mut BufReader<std::io::Take<File>>, first: usize, limit: usize) -> std::io::Result<Self> {
        let mut part = Self::default();
        let mut full = false;
        loop {
            let is_wanted = part.lines + 1 >= first && part.taken < limit && !full;
            let room = if is_wanted { BYTES_MAX - part.bytes.len() } else { 0 };
            let before = part.bytes.len();
            let length = next_line(reader, &mut part.bytes, room)?;
            if length == 0 {
                return Ok(part);
            }
            part.lines += 1;
            if !is_wanted {
                continue;
            }
            if length <= room {
                part.taken += 1;
                continue;
            }
            full = true;
            if part.taken == 0 {
                (part.taken, part.cut) = (1, length - room);
            } else {
                part.bytes.truncate(before);
            }
        }
    }

    fn into_text(self, first: usize, path: &str) -> Result<String, String> {
        if self.taken == 0 {
            return Err(format!("{path:?} has {} lines; line {first} does not exist.", self.lines));
        }
        let last = first + self.taken - 1;
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.cut > 0 {
            text.push_str(&format!("\n[Line {first} has {} more bytes, which are not shown.]", self.cut));
        }
        if last < self.lines {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            let next = last + 1;
            text.push_str(&format!(
                "{newline}[Lines {first} to {last} of {}. To continue, call file_read with offset {next}.]",
                self.lines
            ));
        }
        Ok(text)
    }
}

/// Reads on to the end of a line, and puts its first bytes, at most `most`, behind `bytes`. Gives how many it has; 0 at the end. A line
/// can be as long as the file, so it is never held whole.
fn next_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>, most: usize) -> std::io::Result<usize> {
    let end = bytes.len() + most;
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let taken = newline.map_or(buffer.len(), |at| at + 1);
        bytes.extend_from_slice(&buffer[..taken.min(end - bytes.len())]);
        reader.consume(taken);
        length += taken;
        if newline.is_some() || taken == 0 {
            return Ok(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use uuid::Uuid;

    use super::{Input, read};
    use crate::kernel::sandbox::{Workspace, Workspaces, Write};

    fn workspace(dir: &tempfile::TempDir) -> Workspace {
        Workspaces::new(dir.path().join("w")).open(AgentId(Uuid::from_u128(1)), "a").unwrap()
    }

    fn lines(workspace: &Workspace, offset: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        read(workspace, &Input { path: "f".to_owned(), offset, limit })
    }

    #[test]
    fn parts_say_how_to_read_on() {
        let dir = tempfile::tempdir().unwrap();
        let w = workspace(&dir);
        w.write("f", b"1\n2\n3\n4", Write::Overwrite).unwrap();
        assert_eq!(lines(&w, None, None).unwrap(), "1\n2\n3\n4");
        let part = lines(&w, Some(2), Some(2)).unwrap();
        assert_eq!(part, "2\n3\n[Lines 2 to 3 of 4. To continue, call file_read with offset 4.]");
        assert_eq!(lines(&w, Some(4), Some(9)).unwrap(), "4");
        assert!(lines(&w, Some(5), None).unwrap_err().contains("has 4 lines; line 5 does not exist"));
        assert!(lines(&w, Some(0), None).is_err() && lines(&w, None, Some(0)).is_err());
        w.write("f", "x".repeat(99).repeat(1_000).as_bytes(), Write::Overwrite).unwrap();
        assert!(lines(&w, None, None).unwrap().contains("[Line 1 has"));
        w.write("f", format!("{}\n", "x".repeat(99)).repeat(1_000).as_bytes(), Write::Overwrite).unwrap();
        assert!(
            lines(&w, None, None)
                .unwrap()
                .ends_with("[Lines 1 to 307 of 1000. To continue, call file_read with offset 308.]")
        );
    }

    #[test]
    fn what_is_no_text_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let w = workspace(&dir);
        w.write("f", b"\x89PNG\0\0", Write::Overwrite).unwrap();
        assert!(lines(&w, None, None).unwrap_err().contains("not a text file. It has 6 bytes."));
        w.write("f", b"", Write::Overwrite).unwrap();
        assert_eq!(lines(&w, None, None).unwrap(), "[The file is empty.]");
        w.write("f", b"caf\xe9", Write::Overwrite).unwrap();
        assert_eq!(lines(&w, None, None).unwrap(), "caf\u{fffd}");
        let missing = read(&w, &Input { path: "../f".to_owned(), offset: None, limit: None }).unwrap_err();
        assert_eq!(missing, "The path \"../f\" contains \"..\", which is not allowed.");
    }
}
