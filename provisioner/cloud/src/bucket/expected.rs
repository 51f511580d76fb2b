//! Form of the reply to a request if a store has sent it: another program at its address, such as a proxy with a login page,
//! may reply with success to anything.

use http::{HeaderMap, Method, header};
use object_store::client::HttpRequest;

use super::reply::element;

/// Maximum length of the name of an element that a message shows.
const MAX_NAME: usize = 40;

/// Request to a store, by what its reply contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedReply {
    /// The content of an object.
    Object,
    /// A page of a listing.
    Listing,
    /// A page of a listing of Azure.
    BlobListing,
    /// A description of the copy.
    Copy,
    /// Content that is not read.
    Confirmation,
    /// No content.
    Absent,
}

/// Verdict on a reply with success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Reply of a store.
    Store,
    /// Error of a store, which S3 sends with success if a copy fails late.
    Failure,
    /// Reply of another program, with the reason.
    Other(String),
}

impl ExpectedReply {
    /// Returns what a request asks for.
    pub(super) fn to(request: &HttpRequest) -> Self {
        // The confirmations of Google and of Azure have no content.
        let is_copy = request.headers().contains_key("x-amz-copy-source");
        let asks_for = |parameter: &str| request.uri().query().is_some_and(|query| query.contains(parameter));
        match *request.method() {
            Method::GET if asks_for("list-type=") => Self::Listing,
            Method::GET if asks_for("comp=list") => Self::BlobListing,
            Method::GET => Self::Object,
            Method::PUT if is_copy => Self::Copy,
            Method::DELETE => Self::Absent,
            _ => Self::Confirmation,
        }
    }

    /// Judges the headers of a reply with success to a request for an object, whose content is received later.
    pub(super) fn judge_headers(headers: &HeaderMap) -> Verdict {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.trim_start().to_ascii_lowercase().starts_with("text/html") {
            return Verdict::Other(format!("it sent a web page ({kind})"));
        }
        Verdict::Store
    }

    /// Judges the content of a reply with success.
    pub(super) fn judge(self, content: &[u8]) -> Verdict {
        let text = String::from_utf8_lossy(content);
        let root = root_element(&text);
        if root.is_some_and(|root| root == "Error") {
            return Verdict::Failure;
        }
        let is_page = root.is_some_and(|root| root.eq_ignore_ascii_case("html"));
        let other = |what: &str| Verdict::Other(format!("it sent {what} ({})", shape(&text, root)));
        match self {
            Self::Listing if root != Some("ListBucketResult") => other("no list of objects"),
            Self::Listing => {
                let is_cut = element(&text, "IsTruncated").is_some_and(|value| value == "true");
                if is_cut && element(&text, "NextContinuationToken").is_none() {
                    Verdict::Other("it sent a part of a list, and not how to get the rest".to_owned())
                } else {
                    Verdict::Store
                }
            }
            Self::BlobListing if root != Some("EnumerationResults") => other("no list of objects"),
            Self::BlobListing if !text.contains("<NextMarker") => {
                Verdict::Other("it sent a part of a list, and not how to get the rest".to_owned())
            }
            Self::Copy if root != Some("CopyObjectResult") => other("no confirmation of the copy"),
            Self::Absent if !text.trim().is_empty() => other("a content where none belongs"),
            Self::Confirmation if is_page => other("a web page"),
            Self::BlobListing | Self::Object | Self::Copy | Self::Confirmation | Self::Absent => Verdict::Store,
        }
    }
}

/// Returns the name of the root element of a document, without the prefix of a namespace.
fn root_element(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let (open, end) = match rest {
            _ if rest.starts_with("<?") => ("<?", "?>"),
            _ if rest.starts_with("<!--") => ("<!--", "-->"),
            _ if rest.starts_with("<!") => ("<!", ">"),
            _ => break,
        };
        let (_, after) = rest[open.len()..].split_once(end)?;
        rest = after.trim_start();
    }
    let name = rest.strip_prefix('<')?;
    let name = &name[..name.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?];
    Some(name.rsplit_once(':').map_or(name, |(_, name)| name)).filter(|name| !name.is_empty())
}

/// Describes a document without quoting it: it may repeat a credential.
fn shape(text: &str, root: Option<&str>) -> String {
    let is_name = |name: &&str| name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_alphanumeric());
    match (root.filter(is_name), text.trim_start().chars().next()) {
        (Some(root), _) => format!("`<{root}>`"),
        (None, None) => "nothing".to_owned(),
        (None, Some('{' | '[')) => "JSON".to_owned(),
        (None, Some(_)) => "another text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!DOCTYPE html>\n<!-- login --><HTML lang=en><body>Please log in</body></HTML>";

    #[test]
    fn replies_of_other_programs_are_recognised() {
        use ExpectedReply::{Absent, BlobListing, Confirmation, Copy, Listing};
        let page = "`<HTML>`";
        let truncated = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        let cases: [(ExpectedReply, &str, Result<(), String>); 17] = [
            (Listing, "<?xml version='1.0'?><ListBucketResult xmlns='s3'></ListBucketResult>", Ok(())),
            (Listing, "\u{feff}<ns:ListBucketResult/>", Ok(())),
            (Listing, PAGE, Err(format!("it sent no list of objects ({page})"))),
            (Listing, "", Err("it sent no list of objects (nothing)".to_owned())),
            (Listing, "{\"items\": []}", Err("it sent no list of objects (JSON)".to_owned())),
            (Listing, truncated, Err("it sent a part of a list, and not how to get the rest".to_owned())),
            (
                BlobListing,
                "\u{feff}<?xml version='1.0'?><EnumerationResults><NextMarker/></EnumerationResults>",
                Ok(()),
            ),
            (BlobListing, PAGE, Err(format!("it sent no list of objects ({page})"))),
            (
                BlobListing,
                "<EnumerationResults><Blobs></Blobs></EnumerationResults>",
                Err("it sent a part of a list, and not how to get the rest".to_owned()),
            ),
            (Copy, "<CopyObjectResult><ETag>1</ETag></CopyObjectResult>", Ok(())),
            (Copy, PAGE, Err(format!("it sent no confirmation of the copy ({page})"))),
            (Copy, "", Err("it sent no confirmation of the copy (nothing)".to_owned())),
            (Absent, " \n", Ok(())),
            (Absent, "ok", Err("it sent a content where none belongs (another text)".to_owned())),
            (Confirmation, "", Ok(())),
            (Confirmation, "{}", Ok(())),
            (Confirmation, PAGE, Err(format!("it sent a web page ({page})"))),
        ];
        for (expected, content, verdict) in cases {
            let verdict = verdict.map_or_else(Verdict::Other, |()| Verdict::Store);
            assert_eq!(expected.judge(content.as_bytes()), verdict, "{expected:?} {content}");
        }
        let failure = b"<?xml version='1.0'?><Error><Code>InternalError</Code></Error>";
        for expected in [Listing, BlobListing, Copy, Absent, Confirmation] {
            assert_eq!(expected.judge(failure), Verdict::Failure);
        }
        let truncated =
            format!("{}<NextContinuationToken>t</NextContinuationToken>", &truncated[..truncated.len() - 19]);
        assert_eq!(Listing.judge(truncated.as_bytes()), Verdict::Store);
    }

    #[test]
    fn web_page_is_no_object() {
        let headers = |kind: &'static str| [(header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect();
        for kind in ["application/json", "text/plain; charset=utf-8", "application/gzip"] {
            assert_eq!(ExpectedReply::judge_headers(&headers(kind)), Verdict::Store);
        }
        let page = Verdict::Other("it sent a web page (Text/HTML; charset=utf-8)".to_owned());
        assert_eq!(ExpectedReply::judge_headers(&headers("Text/HTML; charset=utf-8")), page);
        assert_eq!(ExpectedReply::judge_headers(&HeaderMap::new()), Verdict::Store);
    }
}
