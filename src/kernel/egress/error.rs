//! Why a fetch did not come to an end. The texts are sentences for the model.

/// Why a fetch did not come to an end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The URL cannot be used.
    #[error("The URL {0}.")]
    Url(String),
    /// The manifest does not name the host.
    #[error(
        "This agent is not allowed to reach {0}: [capabilities] network of its manifest does not include that \
        host."
    )]
    NotGranted(String),
    /// An address that is not public.
    #[error("{host} is refused: its address is not public ({class}). Only the operator can allow private hosts.")]
    Private {
        /// The host as the URL names it.
        host: String,
        /// The class of the address.
        class: &'static str,
    },
    /// A name that means this machine or its network.
    #[error("{0} is refused: the name belongs to this machine or its network. Only the operator can allow it.")]
    LocalName(String),
    /// A port of another protocol.
    #[error("Port {0} is refused: it belongs to a protocol other than HTTP.")]
    Port(u16),
    /// The name has no address.
    #[error("{host} could not be resolved: {why}.")]
    Lookup {
        /// The host.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No connection, no answer, or one that broke off.
    #[error("{host} could not be fetched: {why}.")]
    Exchange {
        /// The host.
        host: String,
        /// What went wrong, innermost cause last.
        why: String,
    },
    /// Too many names of strangers are being looked up.
    #[error("Too many names are being looked up; try again later.")]
    Busy,
    /// Too slow, all in all.
    #[error("The fetch timed out after {0} seconds.")]
    Timeout(u64),
    /// One redirect after the other.
    #[error("The fetch was redirected more than {0} times.")]
    Redirects(usize),
    /// A redirect that says no place to go to.
    #[error("The response is a redirect without a valid location.")]
    Location,
    /// A redirect where none is followed.
    #[error("The response is a redirect to {0}, which is not followed.")]
    Redirected(String),
    /// A redirect from https to http.
    #[error("The redirect from https to {0} is refused: it is not encrypted.")]
    Downgrade(String),
    /// A redirect to a place that may not be fetched.
    #[error("Redirected to {url}. {cause}")]
    Hop {
        /// Where the redirect leads.
        url: String,
        /// Why it is not followed.
        cause: Box<Error>,
    },
    /// The body cannot be unpacked.
    #[error("The body cannot be decompressed: {0}.")]
    Packed(String),
    /// A body that is longer than the caller takes.
    #[error("The response is larger than {0} bytes.")]
    TooLarge(u64),
    /// http to a host that the operator did not open.
    #[error("{0} is refused: the connection would not be encrypted; use https.")]
    Unencrypted(String),
    /// What came could not be written.
    #[error("The response could not be written: {0}.")]
    Disk(std::io::ErrorKind),
    /// Not text.
    #[error("The content type {0} is not text. Only HTML, plain text, JSON, XML and similar types can be read.")]
    Binary(String),
    /// A fault of the daemon or its machine.
    #[error("The HTTP client could not be built: {0}.")]
    Client(String),
}

impl Error {
    /// What `error` and its causes say, each once. The URL is left out: it may hold what must not be repeated.
    pub(crate) fn exchange(host: &str, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            let said = inner.to_string();
            if !why.contains(&said) {
                why = format!("{why}: {said}");
            }
            cause = inner.source();
        }
        Self::Exchange { host: host.to_owned(), why }
    }
}
