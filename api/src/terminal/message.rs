//! What clients of terminals send.

use serde::Deserialize;

use super::host::Size;

/// Columns and rows of a terminal whose client names none, and at most.
pub(super) const SIZE: Size = Size { columns: 120, rows: 40 };
pub(super) const SIZE_MAX: Size = Size { columns: 1_000, rows: 500 };
/// Bytes of a message.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Was typed.
    Input(Vec<u8>),
    /// The window has another size.
    Resize(Size),
    /// The end.
    Close,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written {
    Input { data: String },
    Resize { cols: i64, rows: i64 },
    Close,
    SwitchWindow {},
    NewWindow {},
}

/// Reads a message.
///
/// # Errors
/// A sentence: what is wrong with it.
pub(super) fn read(text: &str) -> Result<Message, String> {
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(format!("the message is longer than {MESSAGE_BYTES_MAX} bytes"));
    }
    match serde_json::from_str(text).map_err(|error| format!("the message is not valid: {error}"))? {
        Written::Input { data } => Ok(Message::Input(data.into_bytes())),
        Written::Resize { cols, rows } => size(cols, rows).map(Message::Resize).map_err(|(_, why)| why),
        Written::Close => Ok(Message::Close),
        Written::SwitchWindow {} | Written::NewWindow {} => {
            Err("windows are not supported; open another terminal".to_owned())
        }
    }
}

/// A size as clients write it.
///
/// # Errors
/// The field, and a sentence: what it must be.
pub(super) fn size(columns: i64, rows: i64) -> Result<Size, (&'static str, String)> {
    let checked = |field: &'static str, value: i64, most: u16| match u16::try_from(value) {
        Ok(value) if (1..=most).contains(&value) => Ok(value),
        _ => Err((field, format!("{field} must be 1 to {most}"))),
    };
    Ok(Size { columns: checked("cols", columns, SIZE_MAX.columns)?, rows: checked("rows", rows, SIZE_MAX.rows)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_and_others_are_refused() {
        assert_eq!(read(r#"{"type":"input","data":"a\r"}"#), Ok(Message::Input(b"a\r".to_vec())));
        let size = Size { columns: 80, rows: 24 };
        assert_eq!(read(r#"{"type":"resize","cols":80,"rows":24}"#), Ok(Message::Resize(size)));
        assert_eq!(read(r#"{"type":"close"}"#), Ok(Message::Close));
        for (text, why) in [
            ("ls", "not valid"),
            ("{}", "type"),
            (r#"{"type":"input"}"#, "data"),
            (r#"{"type":"resize","cols":0,"rows":1}"#, "cols must be 1 to 1000"),
            (r#"{"type":"resize","cols":1,"rows":501}"#, "rows must be 1 to 500"),
            (r#"{"type":"resize","cols":-1,"rows":1}"#, "cols"),
            (r#"{"type":"switch_window","window":1}"#, "windows are not supported"),
            (&format!(r#"{{"type":"input","data":"{}"}}"#, "x".repeat(MESSAGE_BYTES_MAX)), "longer"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
    }
}
