//! One function for each column of the table.

use crate::peer::Call;

/// Fifty Creates of 100 ms each: by the provider's own log many were under way at once, and all took less than half of
/// what they would take one after the other.
pub(crate) fn assert_overlap(creates: &[Call]) {
    assert_eq!(creates.len(), 50);
    assert!(creates.iter().all(|call| call.end - call.begin >= 99.0), "{creates:?}");
    let under_way = |at: f64| creates.iter().filter(|call| call.begin <= at && at < call.end).count();
    let most = creates.iter().map(|call| under_way(call.begin)).max().unwrap_or_default();
    let first = creates.iter().map(|call| call.begin).fold(f64::INFINITY, f64::min);
    let last = creates.iter().map(|call| call.end).fold(0.0, f64::max);
    assert!(most >= 10, "at most {most} were under way at once");
    assert!(last - first < 2500.0, "they took {} ms", last - first);
}
