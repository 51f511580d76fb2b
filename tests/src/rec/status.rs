//! Scripted statuses: a code, a message, and the details of google.rpc.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::Any;
use pulumi_proto::google_rpc::{
    self, BadRequest, ErrorInfo, Help, QuotaFailure, RetryInfo, bad_request, help, quota_failure,
};
use serde::Deserialize;
use tonic::{Code, Status};

/// Status that a call fails with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedStatus {
    /// Status code as a number.
    pub code: i32,
    /// Message.
    pub message: String,
    /// Number of calls that fail; 0: all.
    pub times: u32,
    /// Delay of RetryInfo in seconds.
    pub retry_after: Option<f64>,
    /// Descriptions of BadRequest by field.
    pub bad_request: BTreeMap<String, String>,
    /// Descriptions of QuotaFailure by subject.
    pub quota: BTreeMap<String, String>,
    /// Reason of ErrorInfo.
    pub reason: Option<String>,
    /// Descriptions of Help by URL.
    pub help: BTreeMap<String, String>,
}

impl ScriptedStatus {
    /// Returns the status with its details.
    pub fn status(&self) -> Status {
        let any =
            |name: &str, value: Vec<u8>| Any { type_url: format!("type.googleapis.com/google.rpc.{name}"), value };
        let mut details = Vec::new();
        if let Some(seconds) = self.retry_after {
            let delay = std::time::Duration::from_secs_f64(seconds);
            let retry_delay = prost_types::Duration::try_from(delay).ok();
            details.push(any("RetryInfo", RetryInfo { retry_delay }.encode_to_vec()));
        }
        if !self.bad_request.is_empty() {
            let violation = |(field, description): (&String, &String)| bad_request::FieldViolation {
                field: field.clone(),
                description: description.clone(),
            };
            let field_violations = self.bad_request.iter().map(violation).collect();
            details.push(any("BadRequest", BadRequest { field_violations }.encode_to_vec()));
        }
        if !self.quota.is_empty() {
            let violation = |(subject, description): (&String, &String)| quota_failure::Violation {
                subject: subject.clone(),
                description: description.clone(),
            };
            let violations = self.quota.iter().map(violation).collect();
            details.push(any("QuotaFailure", QuotaFailure { violations }.encode_to_vec()));
        }
        if let Some(reason) = &self.reason {
            let info = ErrorInfo { reason: reason.clone(), domain: "rec".to_owned() };
            details.push(any("ErrorInfo", info.encode_to_vec()));
        }
        if !self.help.is_empty() {
            let link = |(url, description): (&String, &String)| help::Link {
                url: url.clone(),
                description: description.clone(),
            };
            details.push(any("Help", Help { links: self.help.iter().map(link).collect() }.encode_to_vec()));
        }
        let status = google_rpc::Status { code: self.code, message: self.message.clone(), details };
        Status::with_details(Code::from(self.code), &self.message, status.encode_to_vec().into())
    }
}
