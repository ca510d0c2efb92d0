//! Prompts of steps: `{{input}}` and `{{<variable>}}` in a text (spec 1, Workflow, step object, `prompt`).

/// What is put in is longer than a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Fills `template` in one pass, so that inserted text is never expanded again. Names that `value` does not know stay as
/// they are; spaces inside the braces do not matter.
///
/// # Errors
/// [`TooLong`] when the whole would have more than `bytes_max` bytes.
pub(super) fn render<'t, 'v>(
    template: &'t str,
    bytes_max: usize,
    value: impl Fn(&'t str) -> Option<&'v str>,
) -> Result<String, TooLong> {
    let mut whole = String::with_capacity(template.len().min(bytes_max));
    let mut push = |part: &str| {
        if whole.len() + part.len() > bytes_max {
            return Err(TooLong);
        }
        whole.push_str(part);
        Ok(())
    };
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        push(&rest[..at])?;
        rest = &rest[at..];
        match placeholder(rest).and_then(|(name, bytes)| Some((value(name)?, bytes))) {
            Some((value, bytes)) => {
                push(value)?;
                rest = &rest[bytes..];
            }
            None => {
                push("{")?;
                rest = &rest[1..];
            }
        }
    }
    push(rest)?;
    Ok(whole)
}

/// The name in the placeholder that `text` begins with, and the bytes of the placeholder.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix("{{")?;
    // A name holds no brace: the first one ends it, so that the search never goes over the same text twice.
    let end = inside.find(['{', '}'])?;
    inside[end..].starts_with("}}").then(|| (inside[..end].trim(), 2 + end + 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(name: &str) -> Option<&'static str> {
        match name {
            "input" => Some("the input"),
            "plan" => Some("{{input}} and {{plan}}"),
            "empty" => Some(""),
            _ => None,
        }
    }

    fn rendered(template: &str) -> String {
        render(template, 1_000, value).unwrap()
    }

    #[test]
    fn names_are_replaced_everywhere_and_once() {
        for (template, expected) in [
            ("", ""),
            ("no names", "no names"),
            ("{{input}}", "the input"),
            ("a {{ input }} b {{input}}", "a the input b the input"),
            ("{{plan}}", "{{input}} and {{plan}}"),
            ("<{{empty}}>", "<>"),
            ("{{unknown}} {{in put}} {{}}", "{{unknown}} {{in put}} {{}}"),
            ("{{{input}}}", "{the input}"),
            ("{{ {{input}} }}", "{{ the input }}"),
            ("{{input", "{{input"),
            ("{{input}", "{{input}"),
            ("{input}}", "{input}}"),
            ("}}{{", "}}{{"),
            ("ä{{input}}ö", "äthe inputö"),
        ] {
            assert_eq!(rendered(template), expected, "{template}");
        }
    }

    #[test]
    fn what_would_be_too_long_is_never_built() {
        assert_eq!(render("{{input}}", 9, value).as_deref(), Ok("the input"));
        assert_eq!(render("{{input}}", 8, value), Err(TooLong));
        let many = "{{input}}".repeat(100_000);
        assert_eq!(render(&many, 1_000, value), Err(TooLong));
        assert_eq!(render(&"{".repeat(100_000), 1 << 20, value).unwrap().len(), 100_000);
    }

    proptest! {
        #[test]
        fn any_template_renders_and_without_names_stays_as_it_is(template in any::<String>()) {
            prop_assert_eq!(render(&template, 1 << 20, |_| None).unwrap(), template);
        }

        #[test]
        fn parts_are_joined_in_order(parts in prop::collection::vec((any::<bool>(), "[a-z{ ]{0,5}[a-z]"), 0..10)) {
            // Text that ends in a letter, so that no brace of it joins those of a name behind it, and that closes none,
            // so that two texts never make a name.
            let name = |text: &str| format!("{{{{{}}}}}", text.replace(['{', ' '], "_"));
            let template: String = parts.iter().map(|(is_name, text)| if *is_name { name(text) } else { text.clone() }).collect();
            let expected: String = parts.iter().map(|(is_name, text)| if *is_name { "V" } else { text }).collect();
            prop_assert_eq!(render(&template, 1 << 20, |name| (!name.contains('{')).then_some("V")).unwrap(), expected);
        }
    }
}
