//! Whether a URL that an operator sets over the API may be used (decisions, Money and trust). Unlike those of the
//! configuration it must not reach private hosts, unless `[web.fetch] ssrf_allowed_hosts` names them.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::policy::Policy;
use super::target::Target;
use super::{Error, Web};

/// Names of strangers that are looked up at once; others are refused.
static STRANGERS: Semaphore = Semaphore::const_new(4);

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
        self.vet_target(&target, self.inner.addresses(&target)).await?;
        Ok(target.url.into())
    }

    /// As [`vet`](Self::vet), for a URL of a client without a key: names of strangers take few of the places in which names are
    /// looked up, however long their name servers are silent.
    pub(crate) async fn vet_for_stranger(&self, url: &str) -> Result<String, Error> {
        let target = Target::parse(url)?;
        let place = STRANGERS.try_acquire().map_err(|_| Error::Busy)?;
        let (inner, asked) = (Arc::clone(&self.inner), target.clone());
        // Ends with the lookup, not with the wait for it, or the place would be free while a thread is still taken.
        let looked_up = tokio::spawn(async move {
            let _place = place;
            inner.addresses(&asked).await
        });
        self.vet_target(&target, async { looked_up.await.unwrap_or(Err(Error::Busy)) }).await?;
        Ok(target.url.into())
    }

    async fn vet_target(
        &self,
        target: &Target,
        addresses: impl Future<Output = Result<Vec<IpAddr>, Error>>,
    ) -> Result<(), Error> {
        let anywhere: [Box<str>; 1] = ["*".into()];
        let settings = self.settings();
        let policy = Policy { allowed: &settings.allowed, network: &anywhere, trusted: None };
        policy.permit(target)?;
        let addresses = tokio::time::timeout(settings.timeout, addresses).await;
        let addresses = addresses.unwrap_or_else(|_| Err(Error::Timeout(settings.timeout.as_secs())))?;
        policy.pin(target, &addresses).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::{BoxFuture, pending};

    use super::*;
    use crate::kernel::egress::dns::Lookup;
    use crate::kernel::egress::{AllowedHosts, WebSettings};

    struct Silent;

    impl Lookup for Silent {
        fn lookup(&self, _: String) -> BoxFuture<'static, Result<Vec<IpAddr>, String>> {
            Box::pin(pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn names_of_strangers_that_nobody_answers_take_few_places_also_when_their_clients_leave() {
        let web = Web::with_lookup(WebSettings::default(), Box::new(Silent));
        let ask = || web.vet_for_stranger("https://a.slow.example/");
        for _ in 0..4 {
            assert!(ask().now_or_never().is_none(), "it waits for the name server");
        }
        for _ in 0..100 {
            assert!(matches!(ask().now_or_never(), Some(Err(Error::Busy))));
        }
        tokio::time::sleep(web.settings().timeout * 2).await;
        assert!(matches!(ask().now_or_never(), Some(Err(Error::Busy))), "the name server still does not answer");
    }

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
