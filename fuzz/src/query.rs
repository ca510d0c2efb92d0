//! Queries: any text is read or refused, and what is read is carried out within its bounds.

use agentsvc_components::kernel::limit::QUERY_LOOKED_MAX;
use agentsvc_systems::query::{Look, Scan, prepare};

use super::harness::Harness;
use super::http::furnish;

thread_local! {
    /// Queries change nothing, so that one harness does for all. It stays until the process ends.
    static HOUSE: &'static Harness = {
        let harness = Box::leak(Box::new(Harness::new()));
        furnish(harness);
        harness
    };
}

/// `input` is a query.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let plan = match prepare(text) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let scan = HOUSE.with(|harness| {
        let mut scan = Box::new(Scan::new(plan));
        while !scan.is_done() {
            scan = harness.wait(harness.api.bridge.ask(Look(scan))).expect("an answer").expect("a look");
        }
        scan
    });
    let found = scan.finish();
    assert!(found.looked_at <= QUERY_LOOKED_MAX && found.rows.len() as u64 <= found.looked_at.max(1));
    assert!(found.rows.iter().all(|row| row.len() == found.columns.len()));
}
