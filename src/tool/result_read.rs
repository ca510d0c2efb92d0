//! `result_read`: reads on in a tool result that was too long for the conversation.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// Bytes of one piece unless asked otherwise.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of one piece at most: less than what would be cut again.
const PIECE_BYTES_MAX: usize = 30 << 10;

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "result_read",
    "Reads part of an earlier tool result of this conversation that was truncated. The truncated result gives its \
     name and the offset to continue from.",
    |context, text| on_input(context, text, run),
)
.safe()
.in_turn()
.order(2);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name of the result, such as "3.2", as given in the truncated result.
    result: String,
    /// Offset in bytes.
    #[serde(default)]
    offset: usize,
    /// Number of bytes, at most 30720. Default: 16384.
    length: Option<usize>,
}

async fn run(context: Context, Input { result, offset, length }: Input) -> Result<Ended, String> {
    let place = result.split_once('.').and_then(|(turn, row)| Some((turn.parse().ok()?, row.parse().ok()?)));
    let (ordinal, index) =
        place.ok_or_else(|| format!("Result {result:?} does not exist; names look like \"3.2\"."))?;
    let (content, log) = (context.stores.content.clone(), context.run.log);
    let read = tokio::task::spawn_blocking(move || content.result(log, ordinal, index)).await;
    let whole = read.map_err(|_| "The result could not be read.")?.map_err(|error| error.to_string())?;
    let whole = whole.ok_or_else(|| format!("Truncated result {result:?} does not exist in this conversation."))?;
    piece(&whole, offset, length.unwrap_or(PIECE_BYTES)).map(Ended::Text)
}

/// A piece of `text`, moved to the borders of characters, and where the next one begins.
fn piece(text: &str, offset: usize, length: usize) -> Result<String, String> {
    if offset >= text.len() {
        return Err(format!("The result ends at {} bytes.", text.len()));
    }
    let start = text.floor_char_boundary(offset);
    let end = text.ceil_char_boundary((start + length.clamp(1, PIECE_BYTES_MAX)).min(text.len()));
    let rest = if end < text.len() {
        format!("\n[... {} more bytes; continue from offset {end} ...]", text.len() - end)
    } else {
        "\n[end of the result]".to_owned()
    };
    Ok(format!("{}{rest}", &text[start..end]))
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn pieces_join_to_the_whole() {
        let text = "aé漢".repeat(100);
        let (mut read, mut offset) = (String::new(), 0);
        while offset < text.len() {
            let next = piece(&text, offset, 7).unwrap();
            let (body, note) = next.rsplit_once("\n[").unwrap();
            read.push_str(body);
            offset += body.len();
            assert_eq!(note.starts_with("end"), offset == text.len(), "{note}");
        }
        assert_eq!(read, text);
        assert!(piece(&text, text.len(), 1).unwrap_err().contains("600 bytes"));
    }
}
