//! What the Claude models can do, by the version in their names, whoever serves them.

/// A version, such as 4.6; the newest where the name has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claude(u32, u32);

/// Above this a number in a name is a date.
const VERSION_MAX: u32 = 99;

impl Claude {
    /// The version of `model`; `None` when it is no Claude.
    pub(crate) fn of(model: &str) -> Option<Self> {
        let (_, name) = model.split_once("claude")?;
        let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let number = |word: &&str| word.parse::<u32>().ok().filter(|number| *number <= VERSION_MAX);
        let first = words.iter().position(|word| number(&word.trim_start_matches('v')).is_some());
        let Some(first) = first else { return Some(Self(u32::MAX, 0)) };
        let major = number(&words[first].trim_start_matches('v'))?;
        Some(Self(major, words.get(first + 1).and_then(number).unwrap_or(0)))
    }

    /// It can think before it answers.
    pub(crate) fn thinks(self) -> bool {
        self >= Self(3, 7)
    }

    /// It decides itself how much to think; those after 4.6 take no budget any more.
    pub(crate) fn thinks_adaptively(self) -> bool {
        self >= Self(4, 6)
    }

    /// It takes `temperature` and `top_p`.
    pub(crate) fn is_sampled(self) -> bool {
        self < Self(4, 7)
    }

    /// It can be held to a JSON schema.
    pub(crate) fn fits_schemas(self) -> bool {
        self >= Self(4, 5)
    }
}

#[cfg(test)]
mod tests {
    use super::Claude;

    #[test]
    fn versions_in_names() {
        for (model, version) in [
            ("claude-opus-4-6", Claude(4, 6)),
            ("claude-sonnet-4-5-20250929", Claude(4, 5)),
            ("claude-opus-4-20250514", Claude(4, 0)),
            ("claude-3-7-sonnet-latest", Claude(3, 7)),
            ("claude-3-5-haiku-20241022", Claude(3, 5)),
            ("anthropic.claude-3-haiku-20240307-v1:0", Claude(3, 0)),
            ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", Claude(4, 5)),
            ("us.anthropic.claude-opus-4-6-v1", Claude(4, 6)),
            ("anthropic/claude-opus-4.7", Claude(4, 7)),
            ("anthropic.claude-v2:1", Claude(2, 1)),
            ("claude-sonnet-5", Claude(5, 0)),
            ("claude-mythos-preview", Claude(u32::MAX, 0)),
        ] {
            assert_eq!(Claude::of(model), Some(version), "{model}");
        }
        assert_eq!((Claude::of("MiniMax-M2"), Claude::of("")), (None, None));
    }

    #[test]
    fn abilities() {
        let of =
            |model| Claude::of(model).map(|c| (c.thinks(), c.thinks_adaptively(), c.is_sampled(), c.fits_schemas()));
        assert_eq!(of("claude-3-5-haiku-20241022"), Some((false, false, true, false)));
        assert_eq!(of("claude-sonnet-4-20250514"), Some((true, false, true, false)));
        assert_eq!(of("claude-haiku-4-5"), Some((true, false, true, true)));
        assert_eq!(of("claude-opus-4-6"), Some((true, true, true, true)));
        assert_eq!(of("claude-opus-4-7"), Some((true, true, false, true)));
    }
}
