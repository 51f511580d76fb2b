//! Recipe of `aws-sqs-queue`, an own type of `sc`.

use serde_json::{Value, json};

use super::aws::provider;
use crate::registry::recipe::{Recipe, ResourceNames};
use crate::registry::types::aws_sqs::{AwsSqsQueueConfig, DeadLetterQueue};

/// `aws-sqs-queue`: a queue, and a queue for its dead letters that no other queue can use.
pub(super) fn aws_sqs_queue(config: &AwsSqsQueueConfig, at: &ResourceNames<'_>, r: &mut Recipe<'_>) {
    let base = at.qualified(if config.name.is_empty() { at.name } else { &config.name });
    let (aws, _) = provider(&config.account, r);
    let inputs = |name: &str, retention: Option<i64>| {
        json!({
            // SQS requires the suffix.
            "name": if config.fifo { format!("{name}.fifo") } else { name.to_owned() },
            "fifoQueue": config.fifo.then_some(true),
            "messageRetentionSeconds": retention,
            "tags": at.tags(),
        })
    };
    let queue_type = "aws:sqs/queue:Queue";

    let dead_letters = config.dead_letter_queue.as_ref().map(|dead_letters| {
        let name = format!("{base}-dead-letters");
        let retention = dead_letters.message_retention_seconds.unwrap_or(DeadLetterQueue::RETENTION_SECONDS);
        let queue = r.add(aws.resource(queue_type, &name, inputs(&name, Some(retention))));
        (name, queue, dead_letters.max_receive_count)
    });
    let redrive_policy = dead_letters.as_ref().map(|(_, queue, max_receive_count)| {
        let max_receive_count = *max_receive_count;
        r.text([queue.out("arn")], move |[arn]| {
            json!({ "deadLetterTargetArn": arn, "maxReceiveCount": max_receive_count }).to_string()
        })
    });
    let mut queue = inputs(&base, config.message_retention_seconds);
    let settings = json!({
        "contentBasedDeduplication": config.content_based_deduplication.then_some(true),
        "visibilityTimeoutSeconds": config.visibility_timeout_seconds,
        "delaySeconds": config.delay_seconds,
        "receiveWaitTimeSeconds": config.receive_wait_time_seconds,
        "redrivePolicy": redrive_policy,
    });
    if let (Value::Object(queue), Value::Object(settings)) = (&mut queue, settings) {
        queue.extend(settings);
    }
    let queue = r.add(aws.resource(queue_type, &base, queue));
    if let Some((name, dead_letters, _)) = &dead_letters {
        let policy = r.text([queue.out("arn")], |[arn]| {
            json!({ "redrivePermission": "byQueue", "sourceQueueArns": [arn] }).to_string()
        });
        let inputs = json!({ "queueUrl": dead_letters.out("url"), "redriveAllowPolicy": policy });
        let token = "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy";
        r.add(aws.resource(token, &format!("{name}-allow"), inputs));
    }

    let of_dead_letters = |output| dead_letters.as_ref().map(|(_, queue, _)| queue.out(output));
    r.publish(json!({
        "url": queue.out("url"),
        "arn": queue.out("arn"),
        "name": queue.out("name"),
        "dead-letter-url": of_dead_letters("url"),
        "dead-letter-arn": of_dead_letters("arn"),
    }));
}
