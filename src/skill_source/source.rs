//! What a client writes as the source of a skill.

use std::path::PathBuf;

use agentsvc_api::skill_source::sources::Hub;
use reqwest::Url;

/// Where a skill comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A folder or an archive on this machine.
    Path(PathBuf),
    /// An archive of the web, and the skill in it.
    Archive { url: Url, inner: Option<String> },
    /// A Git repository, and the skill in it.
    Git { url: Url, inner: Option<String> },
    /// A repository of GitHub at a branch, tag or commit, and the skill in it.
    GitHub { owner: String, repo: String, reference: String, inner: Option<String> },
    /// A skill of a hub, of an owner where several have one of this name.
    Hub { hub: Hub, owner: Option<String>, slug: String, version: Option<String> },
    /// A skill of a site that lists its skills.
    Site { index: Url, name: Option<String> },
    /// A skill of the registry.
    Registry(String),
}

/// Where a site lists its skills.
pub(super) const WELL_KNOWN: &str = "/.well-known/skills/";
/// Bytes of a slug.
const SLUG_BYTES_MAX: usize = 200;

impl Source {
    /// Reads what a client wrote.
    ///
    /// # Errors
    /// Why it is no source.
    pub(super) fn parse(text: &str, version: Option<&str>) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        for (prefix, hub) in [("clawhub:", Hub::ClawHub), ("clawhub-cn:", Hub::ClawHubCn)] {
            if let Some(slug) = text.strip_prefix(prefix) {
                return Self::of_hub(hub, slug, version);
            }
        }
        if let Some(url) = text.strip_prefix("git+") {
            return Self::git(url);
        }
        if text.contains("://") {
            return Self::of_url(text);
        }
        let text = text.strip_prefix("skills.sh:").or_else(|| text.strip_prefix("github:")).unwrap_or(text);
        match text.split_once('/') {
            Some(_) => Self::of_repository(text),
            None => {
                super::folders::check_name(text).map_err(|error| error.to_string())?;
                Ok(Self::Registry(text.to_owned()))
            }
        }
    }

    /// A skill of a hub: `slug`, `@owner/slug`, with `@version` behind it perhaps.
    pub(super) fn of_hub(hub: Hub, text: &str, version: Option<&str>) -> Result<Self, String> {
        let (owner, rest) = match text.strip_prefix('@') {
            Some(owned) => {
                let (owner, slug) = owned.split_once('/').ok_or("must be `slug` or `@owner/slug`")?;
                (Some(owner), slug)
            }
            None => (None, text),
        };
        let (slug, behind) = match rest.split_once('@') {
            Some((slug, version)) => (slug, Some(version)),
            None => (rest, None),
        };
        for part in [Some(slug), owner].into_iter().flatten() {
            if !is_slug(part) {
                let part: String = part.chars().take(80).collect();
                return Err(format!("{part:?} must be up to 200 of A-Z, a-z, 0-9, `.`, `_` and `-`"));
            }
        }
        let version = version.or(behind).map(str::to_owned);
        if let Some(version) = version.as_deref().filter(|version| !is_version(version)) {
            let version: String = version.chars().take(80).collect();
            return Err(format!("{version:?} is not a version, such as 1.2.3"));
        }
        Ok(Self::Hub { hub, owner: owner.map(str::to_owned), slug: slug.to_owned(), version })
    }

    fn of_url(text: &str) -> Result<Self, String> {
        let url = web_url(text)?;
        let host = url.host_str().unwrap_or_default().trim_start_matches("www.");
        if matches!(host, "github.com" | "skills.sh") && !is_archive(&url) && !has_git_end(&url) {
            return Self::of_repository(url.path().trim_matches('/'));
        }
        if has_git_end(&url) {
            return Self::git(text);
        }
        if let Some((site, rest)) = url.path().split_once(WELL_KNOWN) {
            let name =
                rest.trim_end_matches('/').split('/').next().filter(|name| !name.is_empty() && *name != "index.json");
            let name = name.map(str::to_owned).or_else(|| inner(&url));
            return Ok(Self::site(&url, site, name));
        }
        if url.path() == "/" {
            return Ok(Self::site(&url, "", inner(&url)));
        }
        let (inner, mut url) = (inner(&url), url);
        url.set_fragment(None);
        Ok(Self::Archive { url, inner })
    }

    fn site(url: &Url, above: &str, name: Option<String>) -> Self {
        let mut index = url.clone();
        index.set_fragment(None);
        index.set_query(None);
        index.set_path(&format!("{above}{WELL_KNOWN}index.json"));
        Self::Site { index, name }
    }

    fn git(text: &str) -> Result<Self, String> {
        let mut url = web_url(text)?;
        let inner = inner(&url);
        url.set_fragment(None);
        Ok(Self::Git { url, inner })
    }

    /// `owner/repo`, `owner/repo/path` or `owner/repo/tree/branch/path`.
    fn of_repository(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.trim_end_matches('/').split('/').collect();
        let wrong = || Err("must be `owner/repo` or `owner/repo/path`".to_owned());
        let [owner, repo, rest @ ..] = parts.as_slice() else { return wrong() };
        let repo = repo.strip_suffix(".git").unwrap_or(repo);
        if !is_slug(owner) || !is_slug(repo) {
            return wrong();
        }
        let (reference, rest) = match rest {
            ["tree" | "blob", reference, rest @ ..] => (*reference, rest),
            rest => ("HEAD", rest),
        };
        if !is_slug(reference) {
            return Err("the branch must be of A-Z, a-z, 0-9, `.`, `_` and `-`".to_owned());
        }
        let rest = if rest.last().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md")) {
            &rest[..rest.len() - 1]
        } else {
            rest
        };
        let inner = if rest.is_empty() { None } else { Some(super::entry::checked(&rest.join("/"))?) };
        let (owner, repo, reference) = ((*owner).to_owned(), repo.to_owned(), reference.to_owned());
        Ok(Self::GitHub { owner, repo, reference, inner })
    }
}

/// The word for a hub in `[source]` of a `skill.toml`.
pub(super) const fn kind_of(hub: Hub) -> &'static str {
    match hub {
        Hub::ClawHub => "claw_hub",
        Hub::ClawHubCn => "claw_hub_cn",
    }
}

/// A URL of the web without a user or a password.
fn web_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme {:?}; use https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or a password".to_owned());
    }
    if url.host_str().is_none() {
        return Err("has no host".to_owned());
    }
    Ok(url)
}

/// What stands behind `#`: the skill in an archive, a repository or a site.
fn inner(url: &Url) -> Option<String> {
    url.fragment().map(|inner| inner.trim_matches('/').to_owned()).filter(|inner| !inner.is_empty())
}

fn has_git_end(url: &Url) -> bool {
    url.path().trim_end_matches('/').ends_with(".git")
}

fn is_archive(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    [".zip", ".tar.gz", ".tgz", ".tar"].into_iter().any(|end| path.ends_with(end))
}

/// Slugs of hubs, owners and repositories.
fn is_slug(text: &str) -> bool {
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    begins && text.len() <= SLUG_BYTES_MAX && text.bytes().all(is_sound)
}

fn is_version(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    !text.is_empty() && text.len() <= 80 && text.bytes().all(is_sound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Source {
        Source::parse(text, None).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn every_form_is_told_apart() {
        assert_eq!(parsed("/srv/skill"), Source::Path("/srv/skill".into()));
        let archive =
            |text: &str, inner: Option<&str>| Source::Archive { url: url(text), inner: inner.map(str::to_owned) };
        assert_eq!(parsed("https://x.example/a.zip?v=1"), archive("https://x.example/a.zip?v=1", None));
        assert_eq!(parsed("https://x.example/a.tar.gz#b/c"), archive("https://x.example/a.tar.gz", Some("b/c")));
        assert_eq!(parsed("https://x.example/download"), archive("https://x.example/download", None));
        let git = |text: &str, inner: Option<&str>| Source::Git { url: url(text), inner: inner.map(str::to_owned) };
        assert_eq!(parsed("https://x.example/r.git"), git("https://x.example/r.git", None));
        assert_eq!(parsed("git+https://x.example/r#s"), git("https://x.example/r", Some("s")));
        assert_eq!(parsed("https://github.com/o/r.git"), git("https://github.com/o/r.git", None));
        let hub = |inner: Option<&str>, reference: &str| Source::GitHub {
            owner: "o".into(),
            repo: "r".into(),
            reference: reference.into(),
            inner: inner.map(str::to_owned),
        };
        assert_eq!(parsed("o/r"), hub(None, "HEAD"));
        assert_eq!(parsed("o/r/skills/a"), hub(Some("skills/a"), "HEAD"));
        assert_eq!(parsed("https://github.com/o/r/tree/v1/skills/a"), hub(Some("skills/a"), "v1"));
        assert_eq!(parsed("https://github.com/o/r/blob/main/a/SKILL.md"), hub(Some("a"), "main"));
        assert_eq!(parsed("https://skills.sh/o/r/a"), hub(Some("a"), "HEAD"));
        assert_eq!(parsed("skills.sh:o/r/a"), hub(Some("a"), "HEAD"));
        let site = |name: Option<&str>| Source::Site {
            index: url("https://x.example/.well-known/skills/index.json"),
            name: name.map(str::to_owned),
        };
        assert_eq!(parsed("https://x.example"), site(None));
        assert_eq!(parsed("https://x.example/#a"), site(Some("a")));
        assert_eq!(parsed("https://x.example/.well-known/skills/index.json"), site(None));
        assert_eq!(parsed("https://x.example/.well-known/skills/a/"), site(Some("a")));
        assert_eq!(parsed("gh-weather"), Source::Registry("gh-weather".into()));
    }

    #[test]
    fn slugs_have_owners_and_versions() {
        let hub = |text: &str| Source::of_hub(Hub::ClawHub, text, None);
        let of = |owner: Option<&str>, slug: &str, version: Option<&str>| Source::Hub {
            hub: Hub::ClawHub,
            owner: owner.map(str::to_owned),
            slug: slug.into(),
            version: version.map(str::to_owned),
        };
        assert_eq!(parsed("clawhub:a.b-c_1"), of(None, "a.b-c_1", None));
        assert_eq!(hub("@me/a@1.2.0-rc.1").unwrap(), of(Some("me"), "a", Some("1.2.0-rc.1")));
        assert_eq!(Source::parse("clawhub:a", Some("2")).unwrap(), of(None, "a", Some("2")));
        for text in ["", ".a", "a/b", "@me", "@/a", "a b", "a@", "a@1/2", &"x".repeat(201)] {
            assert!(hub(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for text in [
            "ftp://x/a.zip",
            "file:///etc",
            "https://u:p@x.example/a.zip",
            "git+ssh://x/r",
            "../skill",
            "o/../etc",
            "o/r/../..",
            "https://",
            "git+file:///r",
            "~/skill",
            "a b",
            "-rf",
        ] {
            assert!(Source::parse(text, None).is_err(), "{text}");
        }
    }
}
