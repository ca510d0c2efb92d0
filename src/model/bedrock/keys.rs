//! The key of Bedrock, put together from the variables that AWS's own tools read.

use crate::model::provider::{DriverKind, Environment, Provider, Secret};

/// A key for Bedrock alone; it comes first.
const BEARER: &str = "AWS_BEARER_TOKEN_BEDROCK";
/// The variable of the id of an access key.
const ID: &str = "AWS_ACCESS_KEY_ID";
/// The variable of its secret.
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
/// The variable of the token of a session.
const TOKEN: &str = "AWS_SESSION_TOKEN";

/// The key of `provider`, where `own` is what `variable` holds: for Bedrock whole, if that is the provider's own
/// variable.
pub(crate) fn whole(
    provider: &Provider,
    variable: Option<&str>,
    own: Option<Secret>,
    environment: Environment,
) -> Option<Secret> {
    let is_own = variable.is_some() && variable == provider.api_key_env.as_deref();
    if provider.driver == DriverKind::Bedrock && is_own { assembled(own, environment) } else { own }
}

/// The whole key, where `own` is the one that the provider's variable holds: a Bedrock API key, or `id:secret[:token]`
/// with what belongs to the id beside it. `None` when there is no key, or an id without its secret.
fn assembled(own: Option<Secret>, environment: Environment) -> Option<Secret> {
    let read = |name| environment(name).map(|text: String| text.trim().to_owned()).filter(|text| !text.is_empty());
    let id = read(ID);
    match own {
        // A key of its own, from another variable or a store of keys.
        Some(own) if id.as_deref() != Some(own.expose()) => return Some(own),
        _ => {}
    }
    if let Some(bearer) = read(BEARER) {
        return Some(Secret::new(&bearer));
    }
    let (id, secret) = (id?, read(SECRET)?);
    let token = read(TOKEN).map(|token| format!(":{token}")).unwrap_or_default();
    Some(Secret::new(&format!("{id}:{secret}{token}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> Option<String> {
        match name {
            ID => Some(" AKID ".to_owned()),
            SECRET => Some("s/+".to_owned()),
            TOKEN => Some("t==".to_owned()),
            _ => None,
        }
    }

    fn long_lived(name: &str) -> Option<String> {
        session(name).filter(|_| name != TOKEN)
    }

    fn half(name: &str) -> Option<String> {
        session(name).filter(|_| name == ID)
    }

    fn bearer(name: &str) -> Option<String> {
        if name == BEARER { Some("bedrock-api-key-x".to_owned()) } else { session(name) }
    }

    #[test]
    fn keys_in_one_text() {
        let of = |own: Option<&str>, environment: Environment| {
            assembled(own.map(Secret::new), environment).map(|key| key.expose().to_owned())
        };
        assert_eq!(of(Some("AKID"), session).as_deref(), Some("AKID:s/+:t=="));
        assert_eq!(of(None, session).as_deref(), Some("AKID:s/+:t=="));
        assert_eq!(of(Some("AKID"), long_lived).as_deref(), Some("AKID:s/+"));
        assert_eq!(of(Some("AKID"), half), None);
        assert_eq!(of(None, bearer).as_deref(), Some("bedrock-api-key-x"));
        assert_eq!(of(Some("AKID"), bearer).as_deref(), Some("bedrock-api-key-x"));
        assert_eq!(of(Some("own"), bearer).as_deref(), Some("own"));
        assert_eq!(of(Some("other:s"), session).as_deref(), Some("other:s"));
        assert_eq!(of(None, |_| None), None);
    }

    #[test]
    fn only_the_own_variable_of_bedrock_brings_the_others_along() {
        let provider = |driver| Provider {
            name: "aws".into(),
            driver,
            base_url: "".into(),
            api_key_env: Some(ID.into()),
            needs_key: true,
            default_model: "".into(),
            context_tokens: 1,
            bounds_completion: false,
            context_is_set: false,
            is_local: false,
        };
        let of = |driver, variable| {
            let own = Some(Secret::new("AKID"));
            whole(&provider(driver), variable, own, session).map(|key| key.expose().to_owned())
        };
        assert_eq!(of(DriverKind::Bedrock, Some(ID)).as_deref(), Some("AKID:s/+:t=="));
        assert_eq!(of(DriverKind::Bedrock, Some("OTHER")).as_deref(), Some("AKID"));
        assert_eq!(of(DriverKind::Bedrock, None).as_deref(), Some("AKID"));
        assert_eq!(of(DriverKind::OpenAi, Some(ID)).as_deref(), Some("AKID"));
    }
}
