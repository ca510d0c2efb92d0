//! The commented `config.toml` that `init` writes, made from the same lists the parser uses.

use super::key::Key;
use super::tree;

/// The text of a first `config.toml`: every key, commented out, with its default or an example.
pub(super) fn template(root: &'static [Key]) -> String {
    let mut text = "# agentsvc configuration. Every key is optional; remove the `#` before a key to set it.\n\
                    # `agentsvc config check` checks this file, `agentsvc config show` shows what is in effect.\n"
        .to_owned();
    for section in tree::sections(root) {
        if !section.name.is_empty() {
            text.push_str(&format!("\n# {}\n#[{}]\n", section.about, section.name));
        }
        for key in section.keys {
            text.push_str(&format!("\n# {}\n#{} = {}\n", key.about, key.name, key.value()));
        }
    }
    text
}
