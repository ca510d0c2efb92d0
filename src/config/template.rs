//! The commented `config.toml` that `init` writes, made from the same lists the parser uses.

use super::key::{Key, Table};
use super::{
    Approval, Audit, Budget, Catalog, Concurrency, DefaultModel, ExecPolicy, Log, Price, Provider, Queue, Security,
    ToolInvoke, Triggers, Uploads, Usage, WebFetch, WebSearch, World, top,
};

/// One table as it stands in the file.
pub(crate) struct Section {
    /// Its path; empty at top level.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
}

/// The tables, in the order of the file.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "", about: "", keys: top::KEYS },
    Section {
        name: "default_model",
        about: "Who answers for agents whose manifest names no model.",
        keys: DefaultModel::KEYS,
    },
    Section {
        name: "providers.openai",
        about: "One table per provider of models, under its name.",
        keys: Provider::KEYS,
    },
    Section { name: "world", about: "The world loop.", keys: World::KEYS },
    Section { name: "queue", about: "The task queue.", keys: Queue::KEYS },
    Section {
        name: "queue.concurrency",
        about: "How much runs at once; the rest waits, fairly over agents.",
        keys: Concurrency::KEYS,
    },
    Section { name: "triggers", about: "What bounds the agents that events wake.", keys: Triggers::KEYS },
    Section {
        name: "web.fetch",
        about: "What the web tools of agents may reach; private addresses are refused.",
        keys: WebFetch::KEYS,
    },
    Section { name: "web.search", about: "Who answers the tool web_search.", keys: WebSearch::KEYS },
    Section { name: "exec_policy", about: "Whether and how agents run commands.", keys: ExecPolicy::KEYS },
    Section {
        name: "approval",
        about: "Which tool calls wait for a person, and how a person decides.",
        keys: Approval::KEYS,
    },
    Section {
        name: "tool_invoke",
        about: "Which tools clients may call without an agent's turn; none unless allowed here.",
        keys: ToolInvoke::KEYS,
    },
    Section { name: "uploads", about: "Files that clients send to agents.", keys: Uploads::KEYS },
    Section {
        name: "budget",
        about: "What may be spent; limits set by the API take the place of these.",
        keys: Budget::KEYS,
    },
    Section {
        name: "prices.\"openai/gpt-4o-mini\"",
        about: "What models cost, one table for each; `*` as model is every other one of the provider.",
        keys: Price::KEYS,
    },
    Section { name: "catalog", about: "Where newer catalogs of models come from.", keys: Catalog::KEYS },
    Section { name: "usage", about: "Usage events.", keys: Usage::KEYS },
    Section { name: "audit", about: "The record of every action.", keys: Audit::KEYS },
    Section {
        name: "security",
        about: "Content from outside, the turns that read it, and the signatures of manifests.",
        keys: Security::KEYS,
    },
    Section { name: "log", about: "Log lines on stderr.", keys: Log::KEYS },
];

/// The text of a first `config.toml`: every key, commented out, with its default or an example.
#[must_use]
pub fn template() -> String {
    let mut text = "# agentsvc configuration. Every key is optional; remove the `#` before a key to set it.\n\
                    # `agentsvc config check` checks this file, `agentsvc config show` shows what is in effect.\n"
        .to_owned();
    for section in SECTIONS {
        if !section.name.is_empty() {
            text.push_str(&format!("\n# {}\n#[{}]\n", section.about, section.name));
        }
        for key in section.keys.iter().filter(|key| !key.value.is_empty()) {
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
