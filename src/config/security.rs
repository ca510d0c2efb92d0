//! `[security]`: what is done with content from outside, with turns that read it, and with manifests.

use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::taint::TaintPolicy;
use serde::{Serialize, Serializer};

use super::key::{Key, Table, Word};
use super::reader::{Reader, tool_pattern};
use crate::agent::manifest_keys::{ManifestKey, manifest_key};

/// `[security]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Security {
    /// What becomes of a text from outside that looks like a prompt injection.
    #[serde(serialize_with = "injection_word")]
    pub prompt_injection: InjectionPolicy,
    /// What becomes of a sensitive tool call of a turn that has read untrusted content.
    #[serde(serialize_with = "taint_word")]
    pub taint: TaintPolicy,
    /// Tools whose calls wait for a person then, whatever `taint` says.
    pub taint_approve: Vec<Box<str>>,
    /// Tools whose calls are refused then, whatever `taint` says.
    pub taint_deny: Vec<Box<str>>,
    /// Ed25519 keys whose signatures of manifests count.
    pub manifest_keys: Vec<ManifestKey>,
    /// Agents are created from signed manifests only.
    pub require_signed_manifests: bool,
}

fn injection_word<S: Serializer>(policy: &InjectionPolicy, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(policy.as_str())
}

fn taint_word<S: Serializer>(policy: &TaintPolicy, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(policy.as_str())
}

impl Word for InjectionPolicy {
    const WORDS: &'static [(&'static str, Self)] =
        &[(Self::Off.as_str(), Self::Off), (Self::Mark.as_str(), Self::Mark), (Self::Block.as_str(), Self::Block)];
}

impl Word for TaintPolicy {
    const WORDS: &'static [(&'static str, Self)] = &[
        (Self::Off.as_str(), Self::Off),
        (Self::Audit.as_str(), Self::Audit),
        (Self::Approve.as_str(), Self::Approve),
        (Self::Deny.as_str(), Self::Deny),
    ];
}

impl Table for Security {
    const KEYS: &'static [Key] = &[
        Key::choice::<InjectionPolicy>(
            "prompt_injection",
            "\"mark\"",
            "off, mark or block: text from outside that looks like orders is shown to models as data, or withheld.",
        )
        .protected()
        .at_restart(),
        Key::choice::<TaintPolicy>(
            "taint",
            "\"audit\"",
            "off, audit, approve or deny: sensitive tool calls of turns that have read untrusted content.",
        )
        .protected(),
        Key::list("taint_approve", "[]", "Tools whose calls wait for a person then: names or globs.").protected(),
        Key::list("taint_deny", "[]", "Tools whose calls are refused then: names or globs.").protected(),
        Key::list("manifest_keys", "[]", "Ed25519 public keys, 32 bytes in hex or base64, that may sign manifests.")
            .protected()
            .at_restart(),
        Key::flag("require_signed_manifests", "false", "Whether agents are created from signed manifests only.")
            .protected()
            .at_restart(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let security = Self {
            prompt_injection: reader.choice("prompt_injection").unwrap_or_default(),
            taint: reader.choice("taint").unwrap_or_default(),
            taint_approve: reader.list("taint_approve", tool_pattern).unwrap_or_default(),
            taint_deny: reader.list("taint_deny", tool_pattern).unwrap_or_default(),
            manifest_keys: reader.list("manifest_keys", manifest_key).unwrap_or_default(),
            require_signed_manifests: reader.flag("require_signed_manifests").unwrap_or_default(),
        };
        if security.require_signed_manifests && security.manifest_keys.is_empty() {
            let message = "needs a key in `manifest_keys`; without one no agent could be created";
            reader.problem("require_signed_manifests", message.to_owned());
        }
        if security.taint == TaintPolicy::Off {
            for key in ["taint_approve", "taint_deny"] {
                let list = if key == "taint_approve" { &security.taint_approve } else { &security.taint_deny };
                if !list.is_empty() {
                    reader.warning(key, "has no effect while `taint` is \"off\"".to_owned());
                }
            }
        }
        security
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agentsvc_systems::injection::InjectionPolicy;
    use agentsvc_systems::taint::TaintPolicy;

    use crate::config::parse;

    #[test]
    fn all_of_it_is_read() {
        let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let text = format!(
            "[security]\nprompt_injection = \"block\"\ntaint = \"approve\"\ntaint_approve = [\"web_*\"]\n\
             taint_deny = [\"shell_exec\"]\nmanifest_keys = [\"{key}\"]\nrequire_signed_manifests = true\n"
        );
        let loaded = parse(&text, Path::new("c")).unwrap();
        let security = &loaded.config.security;
        assert_eq!((security.prompt_injection, security.taint), (InjectionPolicy::Block, TaintPolicy::Approve));
        assert_eq!((security.taint_approve.len(), security.taint_deny.len()), (1, 1));
        assert!(security.manifest_keys.len() == 1 && security.require_signed_manifests);
        assert!(toml::to_string(&loaded.config).unwrap().contains(key));
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_refused_or_said() {
        for (text, expected) in [
            ("taint = \"refuse\"", "security.taint: must be one of `off`, `audit`, `approve`, `deny`"),
            ("prompt_injection = \"marks\"", "did you mean `mark`?"),
            ("manifest_keys = [\"abc\"]", "security.manifest_keys: must be the 32 bytes of an Ed25519 public key"),
            ("require_signed_manifests = true", "needs a key in `manifest_keys`"),
            ("taint_deny = [\"\"]", "security.taint_deny: must name a tool"),
        ] {
            let error = parse(&format!("[security]\n{text}\n"), Path::new("c")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let loaded = parse("[security]\ntaint = \"off\"\ntaint_deny = [\"x\"]\n", Path::new("c")).unwrap();
        assert_eq!(loaded.warnings.len(), 1);
    }
}
