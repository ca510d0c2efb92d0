//! `[webhook_triggers]`: calls of hooks from outside (spec 3, Webhooks).

use agentsvc_api::hook::host::{HookPolicy, HookToken};
use agentsvc_systems::hook::limits::HOOK_TOKEN_BYTES_MIN;
use sha2::{Digest, Sha256};

use crate::kernel::config::table;
use crate::kernel::config::text::own_variable;

table! {
    /// `[webhook_triggers]`.
    pub struct WebhookTriggers {
        /// Answer `/api/hooks/wake` and `/api/hooks/agent`.
        enabled: bool => flag().protected(),
        /// Environment variable that has the token of callers, at least 32 bytes. Default: callers need the API key.
        token_env: Option<Box<str>> => text(own_variable).example("HOOK_TOKEN").protected(),
        /// Calls of hooks per minute, 1 to 1000000.
        rate_limit_per_minute: u32 = 30 => integer(1..=1_000_000).protected(),
    }
}

impl WebhookTriggers {
    /// The same for the API.
    pub fn policy(&self) -> HookPolicy {
        let token = match self.token_env.as_deref().map(std::env::var) {
            None => HookToken::ApiKey,
            Some(Ok(token)) if token.trim().len() >= HOOK_TOKEN_BYTES_MIN => {
                HookToken::Own(Sha256::digest(token.trim().as_bytes()).into())
            }
            Some(_) => HookToken::Unusable,
        };
        HookPolicy { is_enabled: self.enabled, token, rate_per_minute: self.rate_limit_per_minute }
    }

    /// Why hooks answer no one, where the configuration wants them.
    pub(super) fn warning(&self) -> Option<String> {
        let name = self.token_env.as_deref().filter(|_| self.enabled)?;
        (self.policy().token == HookToken::Unusable).then(|| {
            format!(
                "hooks refuse every request: the environment variable {name} of [webhook_triggers] token_env is missing, or \
                 has fewer than {HOOK_TOKEN_BYTES_MIN} bytes"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    #[test]
    fn hooks_are_off_and_bounded_unless_the_file_says_otherwise() {
        let read = |text: &str| read_table::<WebhookTriggers>("webhook_triggers", text).map(|loaded| loaded.config);
        let policy = read("").unwrap().policy();
        assert_eq!(policy, HookPolicy { is_enabled: false, token: HookToken::ApiKey, rate_per_minute: 30 });
        let unset = read("[webhook_triggers]\nenabled = true\ntoken_env = \"NO_SUCH_VARIABLE_OF_HOOKS\"\n").unwrap();
        assert_eq!(unset.policy().token, HookToken::Unusable);
        assert!(unset.warning().unwrap().contains("NO_SUCH_VARIABLE_OF_HOOKS"));
        for (text, key) in [
            ("[webhook_triggers]\nrate_limit_per_minute = 0\n", "rate_limit_per_minute"),
            ("[webhook_triggers]\ntoken_env = \"a token\"\n", "token_env"),
            ("[webhook_triggers]\ntoken_env = \"AGENTSVC_VAULT_KEY\"\n", "token_env"),
        ] {
            assert!(read(text).unwrap_err().to_string().contains(key), "{text}");
        }
    }
}
