//! What servers say of themselves: metadata of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID
//! Connect Discovery). All of it is untrusted until it is checked here.

use reqwest::Url;
use serde_json::Value;

use crate::kernel::oauth::{URL_BYTES_MAX, secure};

/// Values of one list that are looked at.
const LISTED_MAX: usize = 256;
/// Bytes of a scope, and of other words.
const WORD_BYTES_MAX: usize = 256;

/// The MCP server as a protected resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// What tokens are asked for (RFC 8707).
    pub(super) resource: String,
    /// Its authorization server.
    pub(super) issuer: String,
    /// The scopes that it knows.
    pub(super) scopes: Vec<String>,
}

/// An authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issuer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    /// The scopes that it knows.
    pub(super) scopes: Vec<String>,
    /// How clients authenticate at the token endpoint; `None` where it does not say.
    pub(super) methods: Option<Vec<String>>,
    /// Its answers name it (RFC 9207).
    pub(super) names_itself: bool,
}

/// What tokens of the server at `url` are asked for: the URL without its query, which may hold a key, and its fragment.
pub(super) fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.as_str();
    if url.path() == "/" { text.trim_end_matches('/') } else { text }.to_owned()
}

/// Where the metadata of a resource are, most special first (RFC 9728, 3.1).
pub(super) fn resource_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let own = (!path.is_empty()).then(|| format!("/.well-known/oauth-protected-resource{path}"));
    let paths = own.into_iter().chain(["/.well-known/oauth-protected-resource".to_owned()]);
    paths.map(|path| at(server, &path)).collect()
}

/// Where the metadata of an authorization server are, in the order in which they are looked for.
pub(super) fn issuer_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    paths.iter().map(|path| at(issuer, path)).collect()
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Are two issuers the same? A slash alone as the path means nothing.
pub(super) fn is_same_issuer(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.strip_suffix('/') {
        Some(rest) if rest.matches('/').count() == 2 => rest.to_owned(),
        _ => text.to_owned(),
    };
    plain(one) == plain(other)
}

impl Resource {
    /// Reads the metadata of the server at `server`.
    ///
    /// # Errors
    /// A sentence: they are of another resource, or name no authorization server.
    pub(super) fn read(body: &Value, server: &Url) -> Result<Self, String> {
        let resource = text(body, "resource").ok_or("its metadata have no `resource`")?;
        if !covers(resource, server) {
            return Err("its metadata are those of another resource".to_owned());
        }
        let issuer = words(body, "authorization_servers", URL_BYTES_MAX).into_iter().next();
        let issuer = issuer.ok_or("its metadata name no authorization server")?;
        Ok(Self { resource: resource.to_owned(), issuer, scopes: scopes(body) })
    }
}

/// Is `server` the resource, or below it?
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (above, below) = (resource.path().trim_end_matches('/'), server.path());
    let is_below = below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_below && resource.query().is_none() && resource.fragment().is_none()
}

impl Issuer {
    /// Reads the metadata of the authorization server `issuer`.
    ///
    /// # Errors
    /// A sentence: they are of another server, or of one that cannot be used.
    pub(super) fn read(body: &Value, issuer: &str) -> Result<Self, String> {
        let named = text(body, "issuer").ok_or("the metadata of the authorization server have no `issuer`")?;
        if !is_same_issuer(named, issuer) {
            return Err(format!("the metadata of the authorization server {issuer} name another issuer"));
        }
        let endpoint = |key: &str| {
            let found = text(body, key).map(secure).transpose();
            found.map_err(|why| format!("`{key}` of the authorization server {why}"))
        };
        let needed = |key: &str| endpoint(key)?.ok_or(format!("the authorization server has no `{key}`"));
        if !words(body, "code_challenge_methods_supported", WORD_BYTES_MAX).iter().any(|method| method == "S256") {
            return Err("the authorization server does not support PKCE with S256".to_owned());
        }
        let methods = body.get("token_endpoint_auth_methods_supported").is_some_and(Value::is_array);
        Ok(Self {
            issuer: named.to_owned(),
            authorization_endpoint: needed("authorization_endpoint")?,
            token_endpoint: needed("token_endpoint")?,
            registration_endpoint: endpoint("registration_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            scopes: scopes(body),
            methods: methods.then(|| words(body, "token_endpoint_auth_methods_supported", WORD_BYTES_MAX)),
            names_itself: body["authorization_response_iss_parameter_supported"] == true,
        })
    }
}

fn text<'a>(body: &'a Value, key: &str) -> Option<&'a str> {
    body.get(key)?.as_str().filter(|text| !text.is_empty() && text.len() <= URL_BYTES_MAX)
}

/// The texts of a list; what is too long or none is left out.
fn words(body: &Value, key: &str, bytes_max: usize) -> Vec<String> {
    let list = body.get(key).and_then(Value::as_array).into_iter().flatten();
    let texts =
        list.take(LISTED_MAX).filter_map(Value::as_str).filter(|text| !text.is_empty() && text.len() <= bytes_max);
    texts.map(str::to_owned).collect()
}

fn scopes(body: &Value) -> Vec<String> {
    words(body, "scopes_supported", WORD_BYTES_MAX).into_iter().filter(|scope| is_scope(scope)).collect()
}

/// Is it one scope (RFC 6749, 3.3)?
pub(super) fn is_scope(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= WORD_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    fn issuer() -> Value {
        json!({ "issuer": "https://as.example/t", "authorization_endpoint": "https://as.example/authorize",
            "token_endpoint": "https://as.example/token", "code_challenge_methods_supported": ["plain", "S256"] })
    }

    #[test]
    fn metadata_are_looked_for_where_they_belong() {
        assert_eq!(
            texts(resource_urls(&url("https://h:1/a/mcp?key=x#y"))),
            [
                "https://h:1/.well-known/oauth-protected-resource/a/mcp",
                "https://h:1/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(texts(resource_urls(&url("https://h"))), ["https://h/.well-known/oauth-protected-resource"]);
        assert_eq!(
            texts(issuer_urls(&url("https://h/t/"))),
            [
                "https://h/.well-known/oauth-authorization-server/t",
                "https://h/.well-known/openid-configuration/t",
                "https://h/t/.well-known/openid-configuration"
            ]
        );
        assert_eq!(issuer_urls(&url("https://h")).len(), 2);
        assert_eq!(canonical(&url("https://h:443/?key=x")), "https://h");
        assert_eq!(canonical(&url("https://h/mcp/?key=x#y")), "https://h/mcp/");
    }

    #[test]
    fn tokens_go_to_encrypted_addresses_and_this_machine() {
        for good in ["https://h/x", "http://127.0.0.1:1/", "http://localhost:1", "http://[::1]/"] {
            assert!(secure(good).is_ok(), "{good}");
        }
        for wrong in ["http://h/", "http://10.0.0.1/", "ftp://h/", "javascript:alert(1)", "https://u:p@h/", "h", ""] {
            assert!(secure(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let read = |resource: Value| {
            let body = json!({ "resource": resource, "authorization_servers": ["https://as.example", 7],
                "scopes_supported": ["a", "b c", 7, ""] });
            Resource::read(&body, &url("https://h/a/mcp"))
        };
        for good in ["https://h/a/mcp", "https://h", "https://h/", "https://H:443/a", "https://h/a/"] {
            let resource = read(json!(good)).unwrap();
            assert_eq!((&*resource.resource, &*resource.issuer), (good, "https://as.example"));
            assert_eq!(resource.scopes, ["a"]);
        }
        for wrong in ["https://other/a/mcp", "http://h/a/mcp", "https://h/a/m", "https://h/a/mcp/x", "https://h?x", "h"]
        {
            assert!(read(json!(wrong)).is_err(), "{wrong}");
        }
        assert!(read(Value::Null).unwrap_err().contains("`resource`"));
        let none = json!({ "resource": "https://h", "authorization_servers": [] });
        assert!(Resource::read(&none, &url("https://h/")).unwrap_err().contains("no authorization server"));
    }

    #[test]
    fn an_issuer_is_the_one_that_was_asked_for() {
        let read = |change: fn(&mut Value)| {
            let mut body = issuer();
            change(&mut body);
            Issuer::read(&body, "https://as.example/t")
        };
        let found = read(|_| {}).unwrap();
        assert_eq!(found.token_endpoint.as_str(), "https://as.example/token");
        assert_eq!((found.methods, found.registration_endpoint, found.names_itself), (None, None, false));
        let more = |body: &mut Value| {
            body["token_endpoint_auth_methods_supported"] = json!(["none"]);
            body["registration_endpoint"] = json!("https://as.example/register");
            body["authorization_response_iss_parameter_supported"] = json!(true);
        };
        let found = read(more).unwrap();
        assert_eq!((found.methods, found.names_itself), (Some(vec!["none".to_owned()]), true));
        for (change, message) in [
            ((|body| body["issuer"] = json!("https://evil.example/t")) as fn(&mut Value), "another issuer"),
            (|body| body["issuer"] = json!("https://as.example/t/"), "another issuer"),
            (|body| body["issuer"] = Value::Null, "no `issuer`"),
            (|body| body["code_challenge_methods_supported"] = json!(["plain"]), "PKCE"),
            (|body| body["code_challenge_methods_supported"] = Value::Null, "PKCE"),
            (|body| body["token_endpoint"] = json!("http://as.example/token"), "`token_endpoint`"),
            (|body| body["authorization_endpoint"] = json!("javascript:alert(1)"), "`authorization_endpoint`"),
            (|body| body["registration_endpoint"] = json!("http://10.0.0.1/r"), "`registration_endpoint`"),
            (|body| body["token_endpoint"] = Value::Null, "`token_endpoint`"),
        ] {
            assert!(read(change).unwrap_err().contains(message), "{message}");
        }
        assert!(is_same_issuer("https://h", "https://h/") && !is_same_issuer("https://h/a", "https://h/a/"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,20}".prop_map(Value::from),
            "https?://[a-z0-9.:/@\\[\\]]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 16, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
    }

    proptest! {
        #[test]
        fn any_metadata_are_read_or_refused(
            values in prop::collection::vec(any_json(), 6), text in ".{0,60}", path in "[a-z/.%]{0,20}"
        ) {
            let keys = ["resource", "authorization_servers", "issuer", "token_endpoint", "authorization_endpoint",
                "registration_endpoint"];
            let mut body: Value = keys.iter().zip(values).map(|(key, value)| ((*key).to_owned(), value)).collect();
            body["code_challenge_methods_supported"] = json!(["S256"]);
            let server = url(&format!("https://h.example/{path}"));
            if let Ok(resource) = Resource::read(&body, &server) {
                prop_assert_eq!(url(&resource.resource).origin(), server.origin());
            }
            if let Ok(found) = Issuer::read(&body, &text) {
                prop_assert!(secure(found.token_endpoint.as_str()).is_ok());
                prop_assert!(is_same_issuer(&found.issuer, &text));
            }
            for place in resource_urls(&server).iter().chain(&issuer_urls(&server)) {
                prop_assert_eq!(place.origin(), server.origin());
            }
            let _ = secure(&text);
        }
    }
}
