//! `[clawhub]`, `[clawhub_cn]`, `[registry]` and `[skill_sources]`: where skills are looked for.

use crate::kernel::config::table;
use crate::kernel::config::text::base_url;

/// Where ClawHub is.
const CLAWHUB: &str = "https://clawhub.ai/api/v1";
/// Where its mirror is.
const CLAWHUB_CN: &str = "https://mirror-cn.clawhub.com/api/v1";
/// Where the registry is.
const REGISTRY: &str = "https://github.com/librefang/librefang-registry";
/// Where skills.sh is.
const SKILLS_SH: &str = "https://skills.sh";
/// Where repositories named `owner/repo` are.
const GITHUB: &str = "https://github.com";

table! {
    /// `[clawhub]`.
    pub struct ClawHub {
        /// URL of the API of ClawHub. A private host must be in `[web.fetch] ssrf_allowed_hosts`.
        url: Box<str> = CLAWHUB.into() => url(base_url).protected(),
    }
}

table! {
    /// `[clawhub_cn]`.
    pub struct ClawHubCn {
        /// URL of the API of the mirror of ClawHub. A private host must be in `[web.fetch] ssrf_allowed_hosts`.
        url: Box<str> = CLAWHUB_CN.into() => url(base_url).protected(),
    }
}

table! {
    /// `[registry]`.
    pub struct Registry {
        /// Registry of skills: the absolute path of a directory that has `skills/`, the URL of a repository of GitHub, or that of a
        /// tar.gz or zip archive. A private host must be in `[web.fetch] ssrf_allowed_hosts`.
        url: Box<str> = REGISTRY.into() => text(registry).protected(),
    }
}

table! {
    /// `[skill_sources]`.
    pub struct SkillSources {
        /// URL of skills.sh. A private host must be in `[web.fetch] ssrf_allowed_hosts`.
        skills_sh_url: Box<str> = SKILLS_SH.into() => url(base_url).protected(),
        /// URL of the server of repositories named `owner/repo`. A private host must be in `[web.fetch] ssrf_allowed_hosts`.
        github_url: Box<str> = GITHUB.into() => url(base_url).protected(),
    }
}

fn registry(text: &str) -> Result<Box<str>, String> {
    if text.starts_with('/') {
        return Ok(text.into());
    }
    base_url(text).map_err(|_| "must be an absolute path or an http or https URL".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{ClawHub, Registry};
    use crate::kernel::config::read_table;

    #[test]
    fn urls_are_checked() {
        let hub = |text: &str| read_table::<ClawHub>("clawhub", text).map(|loaded| loaded.config.url);
        assert_eq!(&*hub("").unwrap(), super::CLAWHUB);
        assert_eq!(&*hub("[clawhub]\nurl = \"http://127.0.0.1:1/api/v1/\"\n").unwrap(), "http://127.0.0.1:1/api/v1");
        assert!(hub("[clawhub]\nurl = \"clawhub.ai\"\n").is_err());
        let registry = |text: &str| read_table::<Registry>("registry", text).map(|loaded| loaded.config.url);
        assert_eq!(&*registry("[registry]\nurl = \"/srv/registry\"\n").unwrap(), "/srv/registry");
        let error = registry("[registry]\nurl = \"registry\"\n").unwrap_err().to_string();
        assert!(error.contains("must be an absolute path or an http or https URL"), "{error}");
    }
}
