//! Replies to failed requests, without credentials.

use http::StatusCode;
use object_store::client::{HttpError, HttpResponse};

/// Maximum number of characters of a store's own words.
const MAX_WORDS: usize = 400;

/// Characters around and between the parts of a reply in the text of an error.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// Elements of a reply that a message may show. The others may be credentials: the reply to a wrong signature repeats the
/// request, that to an expired token the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Status code.
    pub(crate) status: u16,
    /// Code of the error, such as `NoSuchBucket`.
    pub(crate) code: Option<String>,
    /// Region of the bucket.
    pub(crate) region: Option<String>,
    /// Words of the store.
    pub(crate) message: Option<String>,
}

impl Reply {
    /// Replaces the content of a response that is no success. The status of a redirection becomes 400, because the client
    /// reports it without its content, and that of a missing function too, because the client repeats the request.
    pub(super) async fn put_in(response: HttpResponse) -> Result<HttpResponse, HttpError> {
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(response);
        }
        let (mut parts, body) = response.into_parts();
        let region = parts.headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok());
        let mut reply = Self::parse(status.as_u16(), region, &String::from_utf8_lossy(&body.bytes().await?));
        // The reply to a HEAD has no content.
        let of_azure = || Some(one_line(parts.headers.get("x-ms-error-code")?.to_str().ok()?));
        reply.code = reply.code.or_else(of_azure);
        if status.is_redirection() || status == StatusCode::NOT_IMPLEMENTED {
            parts.status = StatusCode::BAD_REQUEST;
        }
        parts.headers.remove(http::header::CONTENT_LENGTH);
        Ok(HttpResponse::from_parts(parts, reply.encode().into()))
    }

    fn parse(status: u16, region: Option<&str>, content: &str) -> Self {
        let region = region.map(str::to_owned).or_else(|| element(content, "Region"));
        Self { status, code: element(content, "Code"), region, message: element(content, "Message") }
    }

    fn encode(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let parts = [self.status.to_string(), part(&self.code), part(&self.region), part(&self.message)];
        format!("{BEGIN}{}{END}", parts.join(&BEGIN.to_string()))
    }

    /// Returns the reply in the text of an error.
    pub(super) fn find(text: &str) -> Option<Self> {
        let (_, text) = text.split_once(BEGIN)?;
        let (text, _) = text.split_once(END)?;
        let mut parts = text.split(BEGIN);
        let status = parts.next()?.parse().ok()?;
        let mut part = || parts.next().filter(|part| !part.is_empty()).map(str::to_owned);
        Some(Self { status, code: part(), region: part(), message: part() })
    }

    /// Returns the code and the words of the store, else the status.
    pub(crate) fn words(&self) -> String {
        let status = || {
            let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
            reason.map_or_else(|| self.status.to_string(), |reason| format!("{} {reason}", self.status))
        };
        match (&self.code, &self.message) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => format!("{code} ({})", status()),
            (None, _) => format!("the reply is {}, without a code of the store", status()),
        }
    }
}

/// Returns the text of the first XML element with a name, on one line.
pub(super) fn element(content: &str, name: &str) -> Option<String> {
    let (_, rest) = content.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let mut text = text.to_owned();
    for (entity, character) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")] {
        text = text.replace(entity, character);
    }
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

/// Returns a text on one line, without control characters, shortened.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|character| !character.is_control()).take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_keep_only_code_region_and_words() {
        let content = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>User &quot;ada&quot; is\n not \
             allowed</Message><Token-0>hidden</Token-0><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        let reply = Reply::parse(403, None, content);
        let encoded = reply.encode();
        assert_eq!(Reply::find(&format!("Error performing GET: {encoded} in 3 ms")), Some(reply.clone()));
        assert_eq!(reply.words(), "AccessDenied: User \"ada\" is not allowed");
        assert!(!encoded.contains("hidden") && !encoded.contains("AKIA"), "{encoded}");
    }

    #[test]
    fn words_name_the_status_where_there_is_no_code() {
        let cases = [
            ("<html>Bad Gateway</html>", 502, "the reply is 502 Bad Gateway, without a code of the store"),
            ("", 599, "the reply is 599, without a code of the store"),
            ("<Error><Code>SlowDown</Code></Error>", 503, "SlowDown (503 Service Unavailable)"),
        ];
        for (content, status, words) in cases {
            let reply = Reply::parse(status, None, content);
            assert_eq!(reply.words(), words);
            assert_eq!(Reply::find(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn region_comes_from_the_header_or_the_content() {
        let content = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>";
        assert_eq!(Reply::parse(400, None, content).region.as_deref(), Some("eu-west-1"));
        assert_eq!(Reply::parse(301, Some("eu-north-1"), "").region.as_deref(), Some("eu-north-1"));
    }
}
