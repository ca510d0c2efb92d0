//! Small answers that clients do not read, over all addresses.

use super::*;

const MOST: usize = limit::ANSWERS_SMALL_BYTES_MAX;

#[tokio::test]
async fn small_answers_of_all_addresses_count_and_keep_no_reader_out() {
    let server = Running::with(Limits::default()).await;
    let (http, reads) = (server.http2(0).await, server.http2(1 << 16).await);
    let elsewhere = server.api.peers.connect([10, 0, 0, 1].into(), true);
    let bytes = || server.api.peers.unread_bytes();
    let unread = http.get("/api/health", "").await.unwrap();
    while bytes() == 0 {
        tokio::task::yield_now().await;
    }
    let one = bytes();
    assert!(server.api.render_metrics().contains(&format!("\nagentsvc_answers_bytes {one}\n")));
    elsewhere.hold(MOST - one);
    assert_eq!(reason(&http.get("/api/health", "").await.unwrap_err()), Some(Reason::REFUSED_STREAM));
    for _ in 0..3 {
        let answer = reads.get("/api/health", "").await.expect("a stream for one that reads");
        assert!(answer.into_body().collect().await.is_ok());
    }
    drop(unread);
    while bytes() > MOST - one {
        tokio::task::yield_now().await;
    }
    assert_eq!(http.get("/api/health", "").await.unwrap().status(), StatusCode::OK, "it leaves nothing unread");
}
