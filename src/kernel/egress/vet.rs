//! Whether a URL that an operator sets over the API may be used (decisions, Money and trust). Unlike those of the
//! configuration it must not reach private hosts, unless `[web.fetch] ssrf_allowed_hosts` names them.

use super::policy::Policy;
use super::target::Target;
use super::{Error, Web};

impl Web {
    /// Looks at `url` and, for a name, at all its addresses. With `to_this_machine` loopback is good too.
    /// Gives it in its one spelling.
    pub(crate) async fn vet(&self, url: &str, to_this_machine: bool) -> Result<String, Error> {
        let target = Target::parse(url)?;
        let is_this_machine =
            target.host == "localhost" || target.address.is_some_and(|address| address.to_canonical().is_loopback());
        if to_this_machine && is_this_machine {
            return Ok(target.url.into());
        }
        let anywhere: [Box<str>; 1] = ["*".into()];
        let settings = self.settings();
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted: None };
        policy.permit(&target)?;
        let addresses = tokio::time::timeout(settings.timeout, self.inner.addresses(&target)).await;
        let addresses = addresses.unwrap_or_else(|_| Err(Error::Timeout(settings.timeout.as_secs())))?;
        policy.pin(&target, &addresses)?;
        Ok(target.url.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::egress::{AllowedHosts, WebSettings};

    #[tokio::test]
    async fn private_hosts_need_the_operators_list() {
        let web = Web::default();
        for url in [
            "http://10.0.0.1/v1",
            "http://169.254.169.254/latest",
            "http://localhost:1/v1",
            "http://0x7f.1/v1",
            "http://[::ffff:10.0.0.1]/v1",
            "http://printer.local/v1",
            "ftp://h/",
        ] {
            assert!(web.vet(url, false).await.is_err(), "{url}");
        }
        assert!(web.vet("http://93.184.216.34/v1", false).await.is_ok());
        for (url, is_good) in
            [("http://127.0.0.1:1/v1", true), ("http://localhost:1", true), ("http://10.0.0.1", false)]
        {
            assert_eq!(web.vet(url, true).await.is_ok(), is_good, "{url}");
        }
        let allowed = AllowedHosts::parse(&["10.0.0.0/8", "127.0.0.1"]).unwrap();
        let web = Web::new(WebSettings { allowed, ..WebSettings::default() });
        assert!(web.vet("http://10.0.0.1/v1", false).await.is_ok());
        assert!(web.vet("http://192.168.0.1/v1", false).await.is_err());
    }
}
