//! `[security]`: what is done with content from outside, with turns that read it, and with manifests.

use agentsvc_systems::config::taint::TaintPolicy;
use agentsvc_systems::injection::InjectionPolicy;

use crate::agent::manifest_keys::{ManifestKey, manifest_key};
use crate::kernel::config::text::{is_own_variable, variable};
use crate::kernel::config::{Reader, Word, table, word};
use crate::tool::config::tool_pattern;

table! {
    /// `[security]`. `taint_approve` and `taint_deny` hold whatever `taint` says, save for `off`.
    #[check(Self::note_combinations)]
    pub struct Security {
        /// Untrusted text that looks like instructions: off, mark (show it to models as data) or block (withhold it).
        #[serde(serialize_with = "word")]
        prompt_injection: InjectionPolicy => choice(InjectionPolicy::WORDS).protected().at_restart(),
        /// Sensitive tool calls of turns that have read untrusted content: off, audit, approve or deny.
        #[serde(serialize_with = "word")]
        taint: TaintPolicy => choice(TaintPolicy::WORDS).protected(),
        /// Tools that need approval after reading untrusted content: names or globs.
        taint_approve: Vec<Box<str>> => list(tool_pattern).protected(),
        /// Tools that are refused after reading untrusted content: names or globs.
        taint_deny: Vec<Box<str>> => list(tool_pattern).protected(),
        /// Ed25519 public keys that can sign manifests, 32 bytes in hex or base64.
        manifest_keys: Vec<ManifestKey> => list(manifest_key).protected().at_restart(),
        /// Only create agents from signed manifests.
        require_signed_manifests: bool => flag().protected().at_restart(),
        /// Environment variables that manifests can name in `api_key_env` beside any `base_url`.
        manifest_key_envs: Vec<Box<str>> => list(key_variable).protected(),
    }
}

impl Security {
    fn note_combinations(&self, reader: &mut Reader<'_, '_>) {
        if self.require_signed_manifests && self.manifest_keys.is_empty() {
            let message = "needs at least one key in `manifest_keys`";
            reader.problem("require_signed_manifests", message.to_owned());
        }
        for (key, list) in [("taint_approve", &self.taint_approve), ("taint_deny", &self.taint_deny)] {
            if self.taint == TaintPolicy::Off && !list.is_empty() {
                reader.warning(key, "has no effect while `taint` is \"off\"".to_owned());
            }
        }
    }
}

/// A variable that manifests may name.
fn key_variable(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() {
        Err("must be names of environment variables".to_owned())
    } else if is_own_variable(text) {
        Err(format!("must not be {text}; no manifest can name a variable of agentsvc itself"))
    } else {
        variable(text)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_systems::config::taint::TaintPolicy;
    use agentsvc_systems::injection::InjectionPolicy;

    use super::Security;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Security>, Error> {
        read_table("security", text)
    }

    #[test]
    fn all_of_it_is_read() {
        let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let text = format!(
            "[security]\nprompt_injection = \"block\"\ntaint = \"approve\"\ntaint_approve = [\"web_*\"]\n\
             taint_deny = [\"shell_exec\"]\nmanifest_keys = [\"{key}\"]\nrequire_signed_manifests = true\n\
             manifest_key_envs = [\"CORP_KEY\"]\n"
        );
        let loaded = parse(&text).unwrap();
        let security = &loaded.config;
        assert_eq!((security.prompt_injection, security.taint), (InjectionPolicy::Block, TaintPolicy::Approve));
        assert_eq!((security.taint_approve.len(), security.taint_deny.len()), (1, 1));
        assert!(security.manifest_keys.len() == 1 && security.require_signed_manifests);
        assert_eq!(security.manifest_key_envs, ["CORP_KEY".into()]);
        assert!(toml::to_string(&loaded.config).unwrap().contains(key));
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused_or_said() {
        for (text, expected) in [
            ("taint = \"refuse\"", "security.taint: must be one of `off`, `audit`, `approve`, `deny`"),
            ("prompt_injection = \"marks\"", "did you mean `mark`?"),
            ("manifest_keys = [\"abc\"]", "security.manifest_keys: must be the 32 bytes of an Ed25519 public key"),
            ("require_signed_manifests = true", "needs at least one key in `manifest_keys`"),
            ("manifest_key_envs = [\"A-B\"]", "must be the name of an environment variable"),
            ("manifest_key_envs = [\"AGENTSVC_VAULT_KEY\"]", "must not be AGENTSVC_VAULT_KEY"),
            ("manifest_key_envs = [\"\"]", "must be names of environment variables"),
            ("taint_deny = [\"\"]", "security.taint_deny: must name a tool"),
        ] {
            let error = parse(&format!("[security]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let loaded = parse("[security]\ntaint = \"off\"\ntaint_deny = [\"x\"]\n").unwrap();
        assert_eq!(loaded.warnings.len(), 1);
    }
}
