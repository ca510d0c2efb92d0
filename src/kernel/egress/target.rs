//! What a URL asks to connect to, before any name is looked up.
//!
//! The URL is read once, by the parser whose result is also what the client connects with, so that no second reading
//! can disagree. That parser (WHATWG) turns every spelling of an IPv4 address into the address: `0x7f.1`,
//! `2130706433`, `017700000001`, full-width digits, percent-encoded ones.

use std::net::IpAddr;

use reqwest::Url;

use super::Error;

/// Bytes of a URL. Longer ones are refused.
const URL_BYTES_MAX: usize = 8 << 10;

/// Ports of other protocols, which a web server never uses and which some servers would obey a request on. The list of
/// bad ports of the Fetch standard.
const BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Names that never leave the machine or its network (RFC 6761, 6762, 8375, and `internal`).
const LOCAL_NAMES: &[&str] = &["localhost", "local", "internal", "home.arpa", "localdomain"];

/// One place to connect to, read from a URL.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The URL as it will be asked, without its fragment.
    pub(crate) url: Url,
    /// The host: a name in lower case (punycode) without its last dot, or an address without brackets.
    pub(crate) host: String,
    /// The address, when the host is one.
    pub(crate) address: Option<IpAddr>,
    /// The port.
    pub(crate) port: u16,
}

impl Target {
    /// Reads `text`.
    ///
    /// # Errors
    /// [`Error::Url`] with what is wrong: not a URL, another scheme than http and https, a user or password in it,
    /// characters that are ignored by some readers, too long.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim_matches(' ');
        if text.len() > URL_BYTES_MAX {
            return Err(Error::Url(format!("is longer than {URL_BYTES_MAX} bytes")));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(Error::Url("contains a space, a backslash or a control character; encode it".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| {
            let missing = matches!(error.to_string().as_str(), "relative URL without a base");
            let hint = if missing { "; begin with https://" } else { "" };
            Error::Url(format!("is not a URL: {error}{hint}"))
        })?;
        Self::of(url)
    }

    /// Reads a URL that was parsed already, such as a redirect's.
    pub(crate) fn of(mut url: Url) -> Result<Self, Error> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::Url(format!("has the scheme {:?}; only http and https can be fetched", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Url("must not contain a user or a password".to_owned()));
        }
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(Error::Url(format!("is longer than {URL_BYTES_MAX} bytes")));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(Error::Url("has no host".to_owned()));
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>().ok();
        let host = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
        if address.is_none() && !is_name(&host) {
            return Err(Error::Url("has a host that is neither a name nor an address".to_owned()));
        }
        url.set_fragment(None);
        Ok(Self { url, host, address, port })
    }

    /// True when the port belongs to another protocol than HTTP.
    pub(crate) fn port_is_bad(&self) -> bool {
        BAD_PORTS.contains(&self.port)
    }

    /// True when the name is one that means this machine or its network whatever a resolver says.
    pub(crate) fn name_is_local(&self) -> bool {
        let ends =
            |local: &str| self.host.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        LOCAL_NAMES.iter().any(|local| ends(local))
    }
}

/// A host name as resolvers take it. What is all digits and dots, or ends in a number, is an address in disguise.
fn is_name(host: &str) -> bool {
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let last = host.rsplit('.').next().unwrap_or_default();
    let number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    !host.is_empty() && host.len() <= 253 && host.bytes().all(sound) && !host.contains("..") && !number
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn every_spelling_of_an_address_is_the_address() {
        for (url, address) in [
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://0x7F000001/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://017700000001/", "127.0.0.1"),
            ("http://0177.0.0.01/", "127.0.0.1"),
            ("http://127.0.0.1./", "127.0.0.1"),
            ("http://%31%32%37.0.0.1/", "127.0.0.1"),
            ("http://１２７.0.0.1/", "127.0.0.1"),
            ("http://127。0。0。1/", "127.0.0.1"),
            ("http://0/", "0.0.0.0"),
            ("http://[::1]/", "::1"),
            ("http://[0:0:0:0:0:0:0:1]/", "::1"),
            ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
            ("http://[::FFFF:7F00:1]/", "::ffff:127.0.0.1"),
            ("HTTP:127.0.0.1", "127.0.0.1"),
            ("https:///127.0.0.1:80", "127.0.0.1"),
        ] {
            let target = Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(target.address, Some(address.parse().unwrap()), "{url}");
        }
    }

    #[test]
    fn names_are_normalised() {
        for (url, host, port) in [
            ("https://Example.COM", "example.com", 443),
            ("http://example.com.:8080/x#y", "example.com", 8080),
            ("https://bücher.example/", "xn--bcher-kva.example", 443),
            ("http://ＬＯＣＡＬＨＯＳＴ/", "localhost", 80),
            ("http://ex\u{ad}ample.com/", "example.com", 80),
        ] {
            let target = Target::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!((target.host.as_str(), target.port, target.address), (host, port, None), "{url}");
            assert!(!target.url.as_str().contains('#'));
        }
    }

    #[test]
    fn what_is_no_plain_web_address_is_refused() {
        for url in [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com",
            "file:///etc/passwd",
            "gopher://127.0.0.1:6379/_x",
            "data:text/plain,x",
            "javascript:alert(1)",
            "http://",
            "http://user@example.com",
            "http://user:pass@example.com",
            "http://good.example\\@evil.example",
            "http://example.com/a b",
            "http://exa\tmple.com",
            "http://example.com\r\nx: y",
            "http://example.com:99999",
            "http://1.2.3.4.5/",
            "http://256.256.256.256/",
            "http://0x7f.0x0.0x0.0x1.example.0x1/",
            "http://[fe80::1%25eth0]/",
            "http://a..b/",
            "http://./",
            "http://exa*mple.com/",
        ] {
            assert!(Target::parse(url).is_err(), "{url}");
        }
        assert!(Target::parse(&format!("http://x/{}", "a".repeat(9_000))).is_err());
    }

    #[test]
    fn local_names_and_ports_of_others_are_known() {
        let target = |url: &str| Target::parse(url).unwrap();
        for url in
            ["http://localhost./", "http://a.localhost/", "http://printer.local", "http://metadata.google.internal"]
        {
            assert!(target(url).name_is_local(), "{url}");
        }
        assert!(!target("http://notlocalhost/").name_is_local() && !target("http://local.example").name_is_local());
        assert!(target("http://example.com:25").port_is_bad() && target("http://example.com:0").port_is_bad());
        assert!(!target("http://example.com:8080").port_is_bad());
    }
}
