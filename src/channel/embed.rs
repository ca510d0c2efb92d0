//! Files that go out. An adapter that would fetch them itself gets their bytes, in a `data:` URL: the daemon connects to the
//! addresses that it has checked, and an adapter looks a name up again.

use std::time::Duration;

use agentsvc_components::channel::send::SendOrder;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::instance::Instance;
use super::ledger::Handled;
use super::registry::Registry;
use super::takes::Takes;
use super::wire::Content;
use super::wire::bytes::FILE_BYTES_MAX;
use crate::kernel::egress::Download;

/// Adapters of the SDK that fetch files themselves, without looking at the address. They take `data:` URLs as well.
const FETCHING: &[&str] = &["matrix"];
/// The capability of other adapters that do.
const CAPABILITY: &str = "data_urls";
/// How long a file may take.
const FETCH_TIME_MAX: Duration = Duration::from_secs(20);
/// Files of all channels that are on their way out at once: each is in memory several times.
static FILES: Semaphore = Semaphore::const_new(8);
/// How long a file waits for its place until it is tried again later.
const PLACE_WAIT: Duration = Duration::from_secs(20);

/// What goes out, and the places that its file has until it did.
pub(super) struct Outgoing<'i> {
    pub(super) content: Option<Content>,
    /// The content as text, without the bytes of its file.
    pub(super) text: String,
    pub(super) places: Option<(SemaphorePermit<'i>, SemaphorePermit<'static>)>,
}

/// The content of a message, with the bytes of its file where the adapter would fetch it.
///
/// # Errors
/// What becomes of the message whose file cannot be had.
pub(super) async fn content<'i>(
    registry: &Registry,
    instance: &'i Instance,
    order: &SendOrder,
) -> Result<Outgoing<'i>, Handled> {
    let content = order.what.content.as_deref().and_then(|content| serde_json::from_str::<Content>(content).ok());
    let fitted = content.map(|content| Takes::of(&instance.definition).fitted(content)).transpose();
    let mut content = fitted.map_err(Handled::Refused)?;
    let text = content.as_ref().map_or_else(|| order.what.text.clone(), Content::flattened);
    let url = match &mut content {
        Some(Content::Image { url, .. } | Content::File { url, .. }) => Some(url),
        _ => None,
    };
    let mut places = None;
    if let Some(url) = url {
        instance.ready().await?;
        if is_fetching(instance) {
            // That of the channel first: one that is slow must not keep the places of the others.
            let both = async { (instance.files.acquire().await.ok(), FILES.acquire().await.ok()) };
            let Ok((Some(own), Some(of_all))) = timeout(PLACE_WAIT, both).await else {
                return Err(Handled::Unwritten("other files are on their way".to_owned()));
            };
            let got = fetched(registry, url).await;
            *url = got.map_err(|why| Handled::Refused(format!("the file cannot be sent: {why}")))?;
            places = Some((own, of_all));
        }
    }
    Ok(Outgoing { content, text, places })
}

/// Does the adapter fetch files itself, and take `data:` URLs?
pub(super) fn is_fetching(instance: &Instance) -> bool {
    let adapter = instance.definition.adapter();
    adapter.is_some_and(|adapter| FETCHING.contains(&&*adapter)) || instance.can(CAPABILITY)
}

/// The file as a `data:` URL.
async fn fetched(registry: &Registry, url: &str) -> Result<String, String> {
    let bytes_max = FILE_BYTES_MAX as u64;
    let request = Download { url, accept: "*/*", bytes_max, timeout: FETCH_TIME_MAX, only_for: None };
    let got = registry.web.download(request).await.map_err(|error| error.to_string())?;
    if !got.status.is_success() {
        return Err(format!("{} responded with {}", got.url.host_str().unwrap_or_default(), got.status));
    }
    // Megabytes to encode: not on the runtime's threads.
    let encoded = tokio::task::spawn_blocking(move || data_url(&got.content_type, &got.body)).await;
    encoded.map_err(|error| error.to_string())
}

pub(super) fn data_url(content_type: &str, bytes: &[u8]) -> String {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+.-".contains(c);
    let is_type = essence.contains('/') && essence.chars().all(is_plain);
    let mut url = format!("data:{};base64,", if is_type { essence } else { "application/octet-stream" });
    STANDARD.encode_string(bytes, &mut url);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_that_is_none_does_not_reach_the_url() {
        assert_eq!(data_url("image/png; charset=x", b"hi"), "data:image/png;base64,aGk=");
        for wrong in ["", "image", "a/b,c", "a/b\nc"] {
            assert!(data_url(wrong, b"").starts_with("data:application/octet-stream;base64,"), "{wrong:?}");
        }
    }
}
