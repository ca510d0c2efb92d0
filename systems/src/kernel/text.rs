//! What texts of clients may be.

use agentsvc_components::Refusal;

/// Refuses a text of more than `most` bytes.
pub(crate) fn check_length(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::bad_field(field, format!("{field} is longer than {most} bytes")));
    }
    Ok(())
}

/// Refuses what is not one line of at most `most` bytes.
pub(crate) fn check_line(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    check_length(field, text, most)?;
    if text.chars().any(char::is_control) {
        return Err(Refusal::bad_field(field, format!("{field} must not contain control characters")));
    }
    Ok(())
}

/// Refuses what is no name: an empty text, and what is not one line of at most `most` bytes.
pub(crate) fn check_name(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    check_filled(field, text)?;
    check_line(field, text, most)
}

/// Refuses an empty text.
pub(crate) fn check_filled(field: &str, text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::bad_field(field, format!("{field} must not be empty")));
    }
    Ok(())
}

/// A name as it is stored, without the blanks around it.
pub(crate) fn name(field: &str, text: &str, most: usize) -> Result<Box<str>, Refusal> {
    let name = text.trim();
    check_name(field, name, most)?;
    Ok(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_filled_line_of_bounded_length() {
        assert_eq!(&*name("name", " a b ", 3).unwrap(), "a b");
        let why = |text: &str| name("name", text, 3).unwrap_err().message;
        assert_eq!(why(" "), "name must not be empty");
        assert_eq!(why("abcd"), "name is longer than 3 bytes");
        assert_eq!(why("a\nb"), "name must not contain control characters");
    }
}
