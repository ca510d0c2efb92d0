//! Where and for what to sign in at a server: its own word, that of its authorization server, and the settings.

use agentsvc_api::mcp::servers::sign_in::SignInError;
use agentsvc_systems::mcp::McpOauth;
use reqwest::Url;

use super::challenge::Challenge;
use super::metadata::{Issuer, Resource, canonical, is_scope, issuer_urls, resource_urls};
use crate::kernel::oauth::{Reach, secure};

/// The scope that asks for a refresh token (OpenID Connect, 11).
const OFFLINE: &str = "offline_access";

/// A sign-in as it is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// What tokens are asked for.
    pub(super) resource: String,
    /// The authorization server, where its name is known.
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    /// The scopes that are asked for.
    pub(super) scopes: Vec<String>,
    /// How clients may authenticate at the token endpoint; `None` where that is not known.
    pub(super) methods: Option<Vec<String>>,
    /// Answers name the authorization server.
    pub(super) names_itself: bool,
}

/// What is looked at.
pub(super) struct Looking<'a> {
    pub(super) reach: &'a Reach,
    pub(super) server: &'a Url,
    pub(super) settings: &'a McpOauth,
    /// What the server said last, if it asked for a sign-in.
    pub(super) challenge: Option<&'a Challenge>,
    /// The scopes of the token that there is.
    pub(super) granted: Option<&'a str>,
}

fn failed(why: impl Into<String>) -> SignInError {
    SignInError::Failed(why.into())
}

impl Looking<'_> {
    /// Finds out how to sign in.
    ///
    /// # Errors
    /// The server, its authorization server or the settings do not allow it; why.
    pub(super) async fn plan(&self) -> Result<Plan, SignInError> {
        secure(self.server.as_str()).map_err(|_| {
            SignInError::Unsupported("only servers at https URLs or on this machine support sign-in".to_owned())
        })?;
        if self.settings.client_id.is_some()
            && let Some(plan) = self.configured()?
        {
            return Ok(plan);
        }
        let resource = self.resource().await.map_err(failed)?;
        // Servers of before 2025-06-18 are their own authorization servers.
        let name =
            resource.as_ref().map_or_else(|| self.server.origin().ascii_serialization(), |found| found.issuer.clone());
        let Some(issuer) = self.issuer(&name).await.map_err(failed)? else {
            if let Some(plan) = self.configured()? {
                return Ok(plan);
            }
            return Err(match (&resource, self.challenge) {
                (Some(_), _) => failed(format!(
                    "the authorization server {name} has no metadata; set auth_url, token_url and client_id"
                )),
                (None, Some(_)) => {
                    failed("the server does not say where to sign in; set auth_url, token_url and client_id")
                }
                (None, None) => SignInError::Unsupported("the server has not asked for a sign-in".to_owned()),
            });
        };
        let scopes = self.scopes(resource.as_ref(), Some(&issuer));
        Ok(Plan {
            resource: resource.map_or_else(|| canonical(self.server), |found| found.resource),
            issuer: Some(issuer.issuer),
            authorization_endpoint: issuer.authorization_endpoint,
            token_endpoint: issuer.token_endpoint,
            registration_endpoint: issuer.registration_endpoint,
            revocation_endpoint: issuer.revocation_endpoint,
            scopes,
            methods: issuer.methods,
            names_itself: issuer.names_itself,
        })
    }

    /// What the settings say, where that is enough.
    fn configured(&self) -> Result<Option<Plan>, SignInError> {
        let (Some(auth_url), Some(token_url)) = (&self.settings.auth_url, &self.settings.token_url) else {
            return Ok(None);
        };
        let checked =
            |name: &str, url: &str| secure(url).map_err(|why| failed(format!("`{name}` of its settings {why}")));
        Ok(Some(Plan {
            resource: canonical(self.server),
            issuer: None,
            authorization_endpoint: checked("auth_url", auth_url)?,
            token_endpoint: checked("token_url", token_url)?,
            registration_endpoint: None,
            revocation_endpoint: None,
            scopes: self.scopes(None, None),
            methods: None,
            names_itself: false,
        }))
    }

    /// The metadata of the server, where there are some. Those that it points at are its own, or not used at all.
    async fn resource(&self) -> Result<Option<Resource>, String> {
        let named = self.challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
        let named =
            named.map(|text| secure(text).map_err(|why| format!("the URL of its metadata {why}"))).transpose()?;
        if named.as_ref().is_some_and(|url| url.origin() != self.server.origin()) {
            return Err("the URL of its metadata is of another origin than the server".to_owned());
        }
        for place in named.into_iter().chain(resource_urls(self.server)) {
            if let Some(body) = self.reach.document(&place).await? {
                return Resource::read(&body, self.server).map(Some);
            }
        }
        Ok(None)
    }

    /// The metadata of the authorization server of this name, where there are some.
    async fn issuer(&self, name: &str) -> Result<Option<Issuer>, String> {
        let url = secure(name).map_err(|why| format!("the name of its authorization server {why}"))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the name of its authorization server has a query or a fragment".to_owned());
        }
        for place in issuer_urls(&url) {
            if let Some(body) = self.reach.document(&place).await? {
                return Issuer::read(&body, name).map(Some);
            }
        }
        Ok(None)
    }

    /// The scopes to ask for: those of the settings, else those that the server wants, else all that it knows.
    fn scopes(&self, resource: Option<&Resource>, issuer: Option<&Issuer>) -> Vec<String> {
        let set: Vec<String> = self.settings.scopes.iter().chain(&self.settings.user_scopes).cloned().collect();
        let wanted = self.challenge.and_then(|challenge| challenge.scope.as_deref());
        let mut scopes: Vec<String> = match wanted {
            _ if !set.is_empty() => set,
            Some(wanted) => {
                // More than the token has is asked for beside what it has.
                let is_more = self.challenge.is_some_and(|it| it.error.as_deref() == Some("insufficient_scope"));
                let granted = self.granted.filter(|_| is_more).unwrap_or_default();
                granted.split(' ').chain(wanted.split(' ')).map(str::to_owned).collect()
            }
            None => resource.map(|found| found.scopes.clone()).unwrap_or_default(),
        };
        let is_known = issuer.is_some_and(|issuer| issuer.scopes.iter().any(|scope| scope == OFFLINE));
        if is_known && !scopes.is_empty() {
            scopes.push(OFFLINE.to_owned());
        }
        let mut unique: Vec<String> = Vec::new();
        for scope in scopes.into_iter().filter(|scope| is_scope(scope)) {
            if !unique.contains(&scope) {
                unique.push(scope);
            }
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kernel::egress::Web;

    fn looking<T>(settings: &McpOauth, challenge: Option<Challenge>, test: impl FnOnce(&Looking<'_>) -> T) -> T {
        let reach = Reach { web: Web::default(), named: Vec::new(), own_port: 4545, answer_bytes_max: 1_024 };
        let server = Url::parse("https://h.example/mcp").unwrap();
        let challenge = challenge.as_ref();
        test(&Looking { reach: &reach, server: &server, settings, challenge, granted: Some("a b") })
    }

    #[test]
    fn scopes_are_those_that_are_needed() {
        let body = json!({ "resource": "https://h.example", "authorization_servers": ["https://as.example"], "scopes_supported": ["r", "w"] });
        let resource = Resource::read(&body, &Url::parse("https://h.example/mcp").unwrap()).unwrap();
        let issuer = json!({ "issuer": "https://as.example", "authorization_endpoint": "https://as.example/a",
            "token_endpoint": "https://as.example/t", "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["offline_access"] });
        let issuer = Issuer::read(&issuer, "https://as.example").unwrap();
        let challenge = |error: Option<&str>| Challenge {
            scope: Some("b  c c \"x\"".to_owned()),
            error: error.map(str::to_owned),
            ..Challenge::default()
        };
        let none = McpOauth::default();
        let of = |settings: &McpOauth, challenge| looking(settings, challenge, |it| it.scopes(Some(&resource), None));
        assert_eq!(of(&none, None), ["r", "w"]);
        assert_eq!(of(&none, Some(challenge(None))), ["b", "c"]);
        assert_eq!(of(&none, Some(challenge(Some("insufficient_scope")))), ["a", "b", "c"]);
        let set = McpOauth { scopes: vec!["s".to_owned()], user_scopes: vec!["u".to_owned()], ..none.clone() };
        assert_eq!(of(&set, Some(challenge(None))), ["s", "u"]);
        let with_issuer = |resource| looking(&none, None, |it| it.scopes(resource, Some(&issuer)));
        assert_eq!(with_issuer(Some(&resource)), ["r", "w", "offline_access"]);
        assert!(with_issuer(None).is_empty(), "all that there is by default");
    }

    #[tokio::test]
    async fn settings_that_are_complete_need_no_metadata() {
        let text = |text: &str| Some(text.to_owned());
        let settings = McpOauth {
            auth_url: text("https://as.example/authorize"),
            token_url: text("https://as.example/token"),
            client_id: text("c"),
            ..McpOauth::default()
        };
        let reach = Reach { web: Web::default(), named: Vec::new(), own_port: 4545, answer_bytes_max: 1_024 };
        let plan = |server: &str, settings: McpOauth| {
            let (server, reach) = (Url::parse(server).unwrap(), &reach);
            async move {
                Looking { reach, server: &server, settings: &settings, challenge: None, granted: None }.plan().await
            }
        };
        let found = plan("https://h.example/mcp?key=x", settings.clone()).await.unwrap();
        assert_eq!((&*found.resource, found.issuer), ("https://h.example/mcp", None));
        let open = McpOauth { token_url: text("http://as.example/token"), ..settings.clone() };
        assert!(plan("https://h.example/mcp", open).await.unwrap_err().to_string().contains("`token_url`"));
        assert!(matches!(plan("http://h.example/mcp", settings).await, Err(SignInError::Unsupported(_))));
    }

    #[tokio::test]
    async fn metadata_of_another_origin_are_not_fetched() {
        for (place, why) in [
            ("https://other.example/.well-known/x", "another origin"),
            ("http://h.example/.well-known/x", "is not an https URL"),
            ("https://h.example:8443/x", "another origin"),
            ("file:///etc/passwd", "is not an https URL"),
        ] {
            let challenge = Challenge { resource_metadata: Some(place.to_owned()), ..Challenge::default() };
            let reach = Reach { web: Web::default(), named: Vec::new(), own_port: 4545, answer_bytes_max: 1_024 };
            let server = Url::parse("https://h.example/mcp").unwrap();
            let settings = &McpOauth::default();
            let looking =
                Looking { reach: &reach, server: &server, settings, challenge: Some(&challenge), granted: None };
            let said = looking.plan().await.unwrap_err().to_string();
            assert!(said.contains(why), "{place}: {said}");
        }
    }
}
