//! A bound on nesting, checked before a tree is built.
//!
//! The TOML parser bounds brackets and dotted keys each at 80 levels, but not their product: 79 inline tables
//! that are each 79 dotted keys deep make a tree whose recursive drop needs over a megabyte of stack. This scan
//! reads the text once, without recursion, and refuses such texts.

use super::error::Error;

/// Levels of brackets and dots that one value may have. Far more than a person writes.
const DEPTH_MAX: u32 = 64;

/// Refuses a text in which brackets and dotted keys nest more than [`DEPTH_MAX`] levels.
///
/// It never counts less than the parser sees: strings and comments end here where they end there, and a
/// closing bracket counts only when it matches. In a broken text it may count more.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    let bytes = text.as_bytes();
    // The open brackets, innermost last, each with the dots of the key before it.
    let mut open: Vec<(u8, u32)> = Vec::new();
    // Levels of everything in `open`; and the dots of the key that is being read.
    let (mut levels, mut dots) = (0_u32, 0_u32);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'#' => at = end_of_line(bytes, at),
            b'"' | b'\'' => at = end_of_string(bytes, start),
            b'.' => dots += 1,
            b',' => dots = 0,
            b'\n' if open.is_empty() => dots = 0,
            b'[' | b'{' => {
                open.push((byte, dots));
                levels += dots + 1;
                dots = 0;
            }
            b']' | b'}' => {
                let partner = if byte == b']' { b'[' } else { b'{' };
                if let Some((_, before)) = open.pop_if(|(bracket, _)| *bracket == partner) {
                    levels -= before + 1;
                    dots = before;
                }
            }
            _ => {}
        }
        if levels + dots > DEPTH_MAX {
            return Err(Error::syntax(
                text,
                start,
                format!("nested too deeply, at most {DEPTH_MAX} levels are allowed"),
            ));
        }
    }
    Ok(())
}

/// The offset of the end of the line that `from` is in.
fn end_of_line(bytes: &[u8], from: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
    bytes[from..].iter().position(ends).map_or(bytes.len(), |length| from + length)
}

/// The offset behind the string whose opening quote is at `start`; of the line's end when a one-line string is open.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' && matches!(bytes.get(at + 1), Some(b'\\' | b'"')) => at += 2,
            b'\n' if !triple => return at,
            _ if byte == quote && !triple => return at + 1,
            _ if byte == quote && bytes[at..].starts_with(&[quote; 3]) => {
                // Up to two quotes may stand right before the closing three.
                let more = bytes[at + 3..].iter().take(2).take_while(|byte| **byte == quote).count();
                return at + 3 + more;
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn ordinary_texts_pass() {
        let prose = "a. ".repeat(500);
        let text = format!(
            "a = \"\"\"{prose}{{{{[[ \"\" \\\"\"\"\"\nb = '''{prose}''''\nc = '{prose}' # {prose}\n[x.y]\nd = [{}]\n",
            "1.5, ".repeat(300)
        );
        assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn products_of_brackets_and_dots_are_refused() {
        let text = format!("{}1{}", "a.b.c.d.e.f.g.h = { ".repeat(9), "}".repeat(9));
        let error = check(&text).unwrap_err();
        assert!(error.to_string().starts_with("line 1, column "), "{error}");
        assert!(check(&"[".repeat(100_000)).is_err());
        assert!(check(&format!("a{}=1", ".a".repeat(100_000))).is_err());
    }

    #[test]
    fn a_bracket_that_does_not_match_closes_nothing() {
        assert!(check(&"a = { ] ".repeat(100)).is_err());
        assert_eq!(check(&"]}".repeat(1_000)), Ok(()));
    }
}
