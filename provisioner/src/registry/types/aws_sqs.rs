//! Type for the `config` of `aws-sqs-queue`, an own type of `sc`.

use config::diagnostics::{Code, Diagnostic, Span};
use config::tree::Node;
use config::types::{CoreConfig, Decoded, TypeOrigin};
use schemars::JsonSchema;
use serde::Deserialize;

use super::aws::{AwsAccountConfig, check_account};

const UNKNOWN_VALUE: Code = Code("unknown-value");
const DEAD_LETTER_QUEUE: &str = "deadLetterQueue";

/// `config` of `aws-sqs-queue`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(description = "A queue on SQS, and a queue for the messages that its receivers do not process.")]
pub struct AwsSqsQueueConfig {
    /// The account.
    #[serde(rename = "$sc::Flattened")]
    #[schemars(flatten)]
    pub account: AwsAccountConfig,
    /// Name of the queue without the environment suffix, which is added. Defaults to the name of the resource.
    #[schemars(extend("not" = { "type": "string", "pattern": "[^A-Za-z0-9_-]" }))]
    pub name: String,
    /// Deliver messages once, in their order. The name of the queue on AWS ends with `.fifo` then, which is added.
    pub fifo: bool,
    /// Drop a message whose content equals that of one of the last five minutes. Needs `fifo`.
    pub content_based_deduplication: bool,
    /// Seconds for which a received message is hidden from other receivers.
    #[schemars(range(min = 0, max = 43_200), extend("default" = 30))]
    pub visibility_timeout_seconds: Option<i64>,
    /// Seconds for which a message is kept.
    #[schemars(range(min = 60, max = 1_209_600), extend("default" = 345_600))]
    pub message_retention_seconds: Option<i64>,
    /// Seconds before a new message can be received.
    #[schemars(range(min = 0, max = 900), extend("default" = 0))]
    pub delay_seconds: Option<i64>,
    /// Seconds for which a receiver waits for a message.
    #[schemars(range(min = 0, max = 20), extend("default" = 0))]
    pub receive_wait_time_seconds: Option<i64>,
    /// Queue for the messages that receivers do not process.
    pub dead_letter_queue: Option<DeadLetterQueue>,
}

/// Queue for the messages that the receivers of another queue do not process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["maxReceiveCount"]))]
pub struct DeadLetterQueue {
    /// Number of times that a message is received before it moves to this queue.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_receive_count: Option<i64>,
    /// Seconds for which a message is kept, counted from its arrival in the first queue.
    #[schemars(range(min = 60, max = 1_209_600), extend("default" = DeadLetterQueue::RETENTION_SECONDS))]
    pub message_retention_seconds: Option<i64>,
}

impl DeadLetterQueue {
    /// Default of `messageRetentionSeconds`: 14 days, the longest time that SQS offers.
    pub const RETENTION_SECONDS: i64 = 1_209_600;
}

impl CoreConfig for AwsSqsQueueConfig {
    const TYPE: &'static str = "aws-sqs-queue";
    const ORIGIN: TypeOrigin = TypeOrigin::Own;
    const PROVIDER: &'static str = "aws";
    const OUTPUTS: &'static [&'static str] = &["url", "arn", "name", "dead-letter-url", "dead-letter-arn"];

    fn validate(decoded: &Decoded<Self>, node: &Node, diagnostics: &mut Vec<Diagnostic>) {
        let config = &decoded.config;
        diagnostics.extend(check_account(decoded, &config.account, node));
        let span = |path: &[&str]| node.get_path(path.iter().copied()).unwrap_or(node).span;
        diagnostics.extend(check_name(&config.name, span(&["name"])));
        if config.content_based_deduplication && !config.fifo {
            let summary = "`contentBasedDeduplication` needs `fifo: true`";
            diagnostics.push(Diagnostic::error(UNKNOWN_VALUE, span(&["contentBasedDeduplication"]), summary));
        }
        let dead_letters = config.dead_letter_queue.as_ref();
        if dead_letters.is_some_and(|queue| queue.max_receive_count.is_none()) {
            let error = "`maxReceiveCount` is missing";
            let error = Diagnostic::error(Code("missing-key"), span(&[DEAD_LETTER_QUEUE]), error);
            diagnostics
                .push(error.help("add the number of times that a message is received, such as `maxReceiveCount: 5`"));
        }
    }
}

/// Returns the error for a name that SQS refuses.
fn check_name(name: &str, span: Span) -> Option<Diagnostic> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    (!name.chars().all(is_allowed)).then(|| {
        let summary = "the name of a queue consists of letters, digits, `-` and `_`";
        let error = Diagnostic::error(UNKNOWN_VALUE, span, summary);
        if name.ends_with(".fifo") { error.help("leave `.fifo` out: `fifo: true` adds it") } else { error }
    })
}
