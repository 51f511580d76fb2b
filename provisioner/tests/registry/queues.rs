//! Tests of the `config` of `aws-sqs-queue`.

use config::types::CoreType;
use provisioner::registry::types::aws_sqs::AwsSqsQueueConfig;

use crate::sections;

/// Returns the messages about a queue with these lines in its `config`.
fn messages(config: &str) -> String {
    let config: String =
        ["region: sea"].into_iter().chain(config.lines()).map(|line| format!("            {line}\n")).collect();
    sections(&format!(
        "resources:\n  resources:\n    e:\n      resources:\n        jobs:\n          type: aws-sqs-queue\n          config:\n{config}"
    ))
    .messages()
}

#[test]
fn limits_of_sqs_are_accepted() {
    let lowest = "visibilityTimeoutSeconds: 0\nmessageRetentionSeconds: 60\ndelaySeconds: 0\nreceiveWaitTimeSeconds: 0\n\
                  deadLetterQueue: { maxReceiveCount: 1, messageRetentionSeconds: 60 }";
    let highest = "visibilityTimeoutSeconds: 43200\nmessageRetentionSeconds: 1209600\ndelaySeconds: 900\n\
                   receiveWaitTimeSeconds: 20\ndeadLetterQueue: { maxReceiveCount: 1000, messageRetentionSeconds: 1209600 }\n\
                   name: Jobs_1-a\nfifo: true\ncontentBasedDeduplication: true";
    for config in [lowest, highest, "deadLetterQueue:", ""] {
        assert_eq!(messages(config), "", "{config}");
    }
}

/// Shows: server-yaml.md#serveryaml "reports their errors together, each with its line"
#[test]
fn mistakes_in_a_queue_are_reported_at_their_lines() {
    let numbers = messages(
        "name: jobs.fifo
contentBasedDeduplication: true
visibilityTimeoutSeconds: 43201
messageRetentionSeconds: 59
delaySeconds: -1
receiveWaitTimeSeconds: 21
deadLetterQueue:
  maxReceiveCount: 0
  messageRetentionSeconds: 1209601",
    );
    insta::assert_snapshot!(numbers, @"
    error[unknown-value]: the name of a queue consists of letters, digits, `-` and `_`
      --> .sc/stacks/s/server.yaml:14:19
       |
    14 |             name: jobs.fifo
       |                   ^^^^^^^^^
       |
       = hint: leave `.fifo` out: `fifo: true` adds it

    error[unknown-value]: `contentBasedDeduplication` needs `fifo: true`
      --> .sc/stacks/s/server.yaml:15:40
       |
    15 |             contentBasedDeduplication: true
       |                                        ^^^^

    error[unknown-value]: `visibilityTimeoutSeconds` must be a number from 0 to 43200
      --> .sc/stacks/s/server.yaml:16:39
       |
    16 |             visibilityTimeoutSeconds: 43201
       |                                       ^^^^^

    error[unknown-value]: `messageRetentionSeconds` must be a number from 60 to 1209600
      --> .sc/stacks/s/server.yaml:17:38
       |
    17 |             messageRetentionSeconds: 59
       |                                      ^^

    error[unknown-value]: `delaySeconds` must be a number from 0 to 900
      --> .sc/stacks/s/server.yaml:18:27
       |
    18 |             delaySeconds: -1
       |                           ^^

    error[unknown-value]: `receiveWaitTimeSeconds` must be a number from 0 to 20
      --> .sc/stacks/s/server.yaml:19:37
       |
    19 |             receiveWaitTimeSeconds: 21
       |                                     ^^

    error[unknown-value]: `deadLetterQueue.maxReceiveCount` must be a number from 1 to 1000
      --> .sc/stacks/s/server.yaml:21:32
       |
    21 |               maxReceiveCount: 0
       |                                ^

    error[unknown-value]: `deadLetterQueue.messageRetentionSeconds` must be a number from 60 to 1209600
      --> .sc/stacks/s/server.yaml:22:40
       |
    22 |               messageRetentionSeconds: 1209601
       |                                        ^^^^^^^
    ");
    insta::assert_snapshot!(messages("deadLetterQueue: {}\ndelaySecond: 1"), @"
    error[missing-key]: `maxReceiveCount` is missing
      --> .sc/stacks/s/server.yaml:14:30
       |
    14 |             deadLetterQueue: {}
       |                              ^^
       |
       = hint: add the number of times that a message is received, such as `maxReceiveCount: 5`

    warning[unknown-key]: the key `delaySecond` is ignored
      --> .sc/stacks/s/server.yaml:15:13
       |
    15 |             delaySecond: 1
       |             ^^^^^^^^^^^
       |
       = hint: did you mean `delaySeconds`?
       = hint: the keys are credentials, account, accessKey, secretAccessKey, region, name, fifo, contentBasedDeduplication, visibilityTimeoutSeconds, messageRetentionSeconds, delaySeconds, receiveWaitTimeSeconds, deadLetterQueue
    ");
}

#[test]
fn schema_says_that_the_type_is_not_in_simple_container() {
    let schema = CoreType::of::<AwsSqsQueueConfig>().schema().to_value();
    let description = schema["description"].as_str().unwrap();
    assert!(description.ends_with(" do not process. Not in Simple Container."), "{description}");
    assert_eq!(schema["$defs"]["DeadLetterQueue"]["properties"]["maxReceiveCount"]["maximum"], 1_000);
}
