//! Record of the requests, and their order.

/// Request to the store, and its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Method of HTTP; `query` for a database.
    pub method: String,
    /// Path with its query; the statement for a database.
    pub path: String,
    /// Headers with conditions (`if-match`, `if-none-match`, `x-goog-if-generation-match`) and their values.
    pub conditions: Vec<(String, String)>,
    /// Position of its begin among all begins and ends.
    pub begun: usize,
    /// Position of its end among all begins and ends; `None` if the client got no whole reply.
    pub ended: Option<usize>,
    /// Status of the reply, for HTTP.
    pub status: Option<u16>,
}

/// Returns the number of round trips that a client waits for: the length of the longest chain of requests, each of which began
/// after the end of the one before.
pub fn round_trips(requests: &[Exchange]) -> usize {
    let mut lengths: Vec<(usize, usize)> = Vec::new();
    let mut longest = 0;
    for request in requests {
        let before = lengths.iter().filter(|(ended, _)| *ended < request.begun).map(|(_, length)| *length).max();
        let length = before.unwrap_or_default() + 1;
        if let Some(ended) = request.ended {
            lengths.push((ended, length));
            longest = longest.max(length);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_those_of_the_longest_chain() {
        let request = |begun, ended| Exchange {
            method: "GET".to_owned(),
            path: String::new(),
            conditions: Vec::new(),
            begun,
            ended,
            status: None,
        };
        // Positions of the begin and the end of each request; 0: no reply.
        let table: [(&[[usize; 2]], usize); 5] = [
            (&[], 0),
            (&[[1, 2], [3, 4]], 2),
            (&[[1, 3], [2, 4]], 1),
            // Two at a time, then one after both.
            (&[[1, 4], [2, 3], [5, 6]], 2),
            (&[[1, 2], [3, 0]], 1),
        ];
        for (requests, expected) in table {
            let requests: Vec<_> = requests
                .iter()
                .map(|[begun, ended]| request(*begun, Some(*ended).filter(|ended| *ended > 0)))
                .collect();
            assert_eq!(round_trips(&requests), expected, "{requests:?}");
        }
    }
}
