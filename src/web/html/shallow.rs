//! The text of a page as the tokenizer reads it, with a bound of how deep it goes.
//!
//! `html5gum` takes each quoted attribute of a tag in a call within the call of the one before it. A tag of some thousand
//! attributes would use up the stack of its thread, which ends the whole process.

use std::hint::black_box;

use html5gum::{Readable, Reader, StringReader};

/// Bytes of stack that the tokenizer may use: half of what the threads here have. One attribute takes some 200 of them, and
/// 5,000 in a build without optimisation.
const STACK_BYTES_MAX: usize = 1 << 20;

/// A page that is read until it goes too deep.
pub(super) struct Shallow<'a> {
    text: StringReader<'a>,
    /// Where the stack was at the first byte.
    begin: Option<usize>,
}

/// The page goes too deep.
#[derive(Debug, thiserror::Error)]
#[error("a tag has too many attributes")]
pub(super) struct TooDeep;

impl<'a> Shallow<'a> {
    pub(super) fn of(html: &'a str) -> Self {
        Self { text: html.to_reader(), begin: None }
    }

    fn check(&mut self) -> Result<(), TooDeep> {
        let here = 0_u8;
        let at = std::ptr::from_ref(black_box(&here)).addr();
        let begin = *self.begin.get_or_insert(at);
        if begin.abs_diff(at) > STACK_BYTES_MAX { Err(TooDeep) } else { Ok(()) }
    }
}

/// What cannot fail, did not.
fn sure<T>(read: Result<T, std::convert::Infallible>) -> T {
    match read {
        Ok(read) => read,
        Err(never) => match never {},
    }
}

impl Reader for Shallow<'_> {
    type Error = TooDeep;

    fn read_byte(&mut self) -> Result<Option<u8>, TooDeep> {
        self.check()?;
        Ok(sure(self.text.read_byte()))
    }

    fn try_read_string(&mut self, text: &[u8], case_sensitive: bool) -> Result<bool, TooDeep> {
        self.check()?;
        Ok(sure(self.text.try_read_string(text, case_sensitive)))
    }

    fn read_until<'b>(&'b mut self, needle: &[u8], byte: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, TooDeep> {
        self.check()?;
        Ok(sure(self.text.read_until(needle, byte)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::read;

    /// Reads a page in a thread with the stack of those that do so in the daemon.
    fn text_of(html: String) -> String {
        let reader = std::thread::Builder::new().stack_size(2 << 20).spawn(move || read(&html, None).text);
        reader.unwrap().join().unwrap()
    }

    #[test]
    fn a_tag_of_any_number_of_attributes_is_no_end_of_the_process() {
        for attribute in ["a=\"b\" ", "a='b' ", "a=b ", "a ", "a=\"\"", "a/", "a = \"b\"", "\"", "=", "a=\"&amp;\" "] {
            for open in ["p ", "script ", "textarea ", "/p ", "!DOCTYPE "] {
                let text = text_of(format!("<p>before</p><{open}{}>after", attribute.repeat(20_000)));
                assert!(text.starts_with("before"), "{open}{attribute}: {text:.40}");
            }
        }
        for piece in
            ["<!--", "<!-", "&", "&#", "<", "</", "<!", "<?", "-", "]]>", "<![CDATA[", "<script><!--", "\0", "\r"]
        {
            text_of(piece.repeat(20_000));
            text_of(format!("<script>{}", piece.repeat(20_000)));
            text_of(format!("<title>{}", piece.repeat(20_000)));
            text_of(format!("<!--{}", piece.repeat(20_000)));
        }
        let usual = format!("<a {}href=\"https://a.example/\">link</a> after", "data-x=\"1\" ".repeat(100));
        assert!(text_of(usual).ends_with("after"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn no_piece_that_repeats_goes_too_deep(
            piece in proptest::collection::vec(prop_oneof![
                Just("<"), Just(">"), Just("\""), Just("'"), Just("="), Just("a"), Just(" "), Just("/"), Just("!"), Just("-"),
                Just("&"), Just("#"), Just(";"), Just("script"), Just("?"), Just("["), Just("]"), Just("doctype"),
            ], 1..8),
        ) {
            text_of(format!("<p a=\"b\" {}", piece.concat().repeat(5_000)));
            text_of(piece.concat().repeat(5_000));
        }
    }
}
