//! The commented `config.toml` that `init` writes, made from the same lists the parser uses.

use super::tree;

/// The text of a first `config.toml`: every key, commented out, with its default or an example.
#[must_use]
pub fn template() -> String {
    let mut text = "# agentsvc configuration. Every key is optional; remove the `#` before a key to set it.\n\
                    # `agentsvc config check` checks this file, `agentsvc config show` shows what is in effect.\n"
        .to_owned();
    for section in tree::sections() {
        if !section.name.is_empty() {
            text.push_str(&format!("\n# {}\n#[{}]\n", section.about, section.name));
        }
        for key in section.keys {
            text.push_str(&format!("\n# {}\n#{} = {}\n", key.about, key.name, key.value));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::template;
    use crate::config::{Config, parse};

    #[test]
    fn as_written_it_is_the_default() {
        let loaded = parse(&template(), Path::new("c")).unwrap();
        assert_eq!(loaded.config, Config::default());
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn every_key_can_be_uncommented() {
        let lines = template();
        let lines: Vec<_> =
            lines.lines().map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line)).collect();
        let loaded = parse(&lines.join("\n"), Path::new("c")).unwrap();
        let default = Config::default();
        assert_eq!(loaded.config.api_listen, default.api_listen);
        assert_eq!(loaded.config.world, default.world);
        assert_eq!(loaded.config.rate_limit_per_second, default.rate_limit_per_second);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }
}
