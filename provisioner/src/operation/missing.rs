//! Guard of refreshes: decides whether resources that their providers did not find leave the state. Credentials without rights,
//! another account and another region look like resources that were deleted, and the next update would create them again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bridge::message_text::MessageText;
use engine::events::{Event, EventSink, Message, Severity};
use engine::{MissingApproval, ProviderReadings};
use pulumi_proto::urn::{TypeToken, Urn};

use super::approval::Approval;
use super::error::names;

/// Question to the user after a warning, such as whether missing resources leave the state.
#[async_trait]
pub trait WarningQuestion: std::fmt::Debug + Send + Sync {
    /// Shows the warning, and asks the question. No reply declines it.
    async fn ask(&self, warning: &MessageText, question: &MessageText) -> Approval;
}

/// Limit on the resources that a run deletes, replaces or no longer finds.
#[derive(Clone, Debug)]
pub struct MissingLimit {
    /// Number of resources.
    pub count: u64,
    /// Name of the setting, with its value.
    pub setting: String,
}

/// Guard of the refreshes of a stack.
pub struct MissingGuard {
    /// Name of the stack.
    pub stack: String,
    /// True if missing resources leave the state without a question (`--accept-missing`, `acceptMissing`).
    pub accepts: bool,
    /// Limit that holds even if missing resources are accepted.
    pub limit: Option<MissingLimit>,
    /// Question that decides; without one, the refresh is refused.
    pub question: Option<Arc<dyn WarningQuestion>>,
    /// Receiver of warnings.
    pub events: Arc<dyn EventSink>,
    /// Number of resources that the last refresh did not find.
    pub count: AtomicUsize,
}

impl fmt::Debug for MissingGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stack, accepts, limit, .. } = self;
        f.debug_struct("MissingGuard")
            .field("stack", stack)
            .field("accepts", accepts)
            .field("limit", limit)
            .finish_non_exhaustive()
    }
}

impl MissingGuard {
    /// Warns of missing resources that need an agreement, and returns their description; `None` if there are none.
    pub(super) fn warn(&self, readings: &[ProviderReadings]) -> Option<MessageText> {
        let suspicious: Vec<String> = suspicious(readings).iter().map(described).collect();
        if suspicious.is_empty() {
            return None;
        }
        let text = MessageText::new(format_args!(
            "the refresh of stack {} did not find {}",
            self.stack,
            suspicious.join(", and ")
        ));
        let hint = "check the credentials, the account and the region of the provider: resources may seem to be gone to \
                    credentials without rights, and in another account or region";
        let message =
            Message { hint: Some(hint.into()), repeated: true, ..Message::new(Severity::Warning, text.clone()) };
        self.events.emit(Event::Message(message));
        Some(text)
    }

    /// Returns the refusal of more missing resources than the limit allows.
    fn above_limit(&self, count: usize) -> Option<Message> {
        let limit = self.limit.as_ref().filter(|limit| count as u64 > limit.count)?;
        let resources = if count == 1 { "1 resource".to_owned() } else { format!("{count} resources") };
        let text = MessageText::new(format_args!(
            "the refresh of stack {} did not find {resources}, more than {} allows; nothing was changed",
            self.stack, limit.setting
        ));
        let hint = Some(MessageText::new(format_args!(
            "if they are gone, and this is what you want, give --max-deletes {count}"
        )));
        Some(Message { hint, ..Message::new(Severity::Error, text) })
    }
}

#[async_trait]
impl MissingApproval for MissingGuard {
    async fn approve(&self, readings: &[ProviderReadings]) -> Result<(), Message> {
        let count = readings.iter().map(|found| found.missing.len()).sum();
        self.count.store(count, Ordering::Relaxed);
        let suspicious = self.warn(readings);
        if let Some(refusal) = self.above_limit(count) {
            return Err(refusal);
        }
        let Some(missing) = suspicious.filter(|_| !self.accepts) else { return Ok(()) };
        let Some(question) = &self.question else {
            let text = MessageText::new(format_args!(
                "missing resources of stack {} would leave the state; nothing was changed",
                self.stack
            ));
            let hint = "if they are gone, give --accept-missing to remove them from the state";
            return Err(Message { hint: Some(hint.into()), ..Message::new(Severity::Error, text) });
        };
        let text =
            MessageText::new(format_args!("Remove the missing resources from the state of stack {}?", self.stack));
        match question.ask(&missing, &text).await {
            Approval::Granted => Ok(()),
            Approval::Declined => {
                Err(Message::new(Severity::Error, "the missing resources stay in the state; nothing was changed"))
            }
        }
    }
}

/// Returns the readings whose missing resources need an agreement: of single providers, or else of all providers of a package with
/// equal configurations together, as each plugin of server.yaml and each core type has a provider of its own.
fn suspicious(readings: &[ProviderReadings]) -> Vec<ProviderReadings> {
    let mut by_configuration: BTreeMap<usize, Vec<&ProviderReadings>> = BTreeMap::new();
    for found in readings {
        by_configuration.entry(found.configuration).or_default().push(found);
    }
    let mut suspicious = Vec::new();
    for group in by_configuration.into_values() {
        let single: Vec<_> = group.iter().filter(|found| is_suspicious(found)).map(|found| (*found).clone()).collect();
        let together = group.into_iter().cloned().reduce(|mut sum, found| {
            sum.add(found);
            sum
        });
        if single.is_empty() {
            suspicious.extend(together.filter(is_suspicious));
        } else {
            suspicious.extend(single);
        }
    }
    suspicious
}

/// Returns whether the missing resources of a provider need an agreement: if all of at least two are missing, at least three and
/// half of them, or a protected one.
fn is_suspicious(found: &ProviderReadings) -> bool {
    let missing = found.missing.len();
    let all = missing == found.read && missing >= 2;
    let many = missing >= 3 && missing * 2 >= found.read;
    all || many || found.missing.iter().any(|resource| resource.protect)
}

/// Returns the missing resources of a provider, and the likely cause: `2 of the 3 resources of provider lab: a--prod, b--prod`.
fn described(found: &ProviderReadings) -> String {
    let missing = found.missing.len();
    let urns: Vec<Urn> = found.missing.iter().map(|resource| resource.urn.clone()).collect();
    let protected: Vec<Urn> =
        found.missing.iter().filter(|resource| resource.protect).map(|resource| resource.urn.clone()).collect();
    let providers: Vec<String> = found.providers.iter().map(provider_text).collect();
    let provider = match &providers[..] {
        [provider] => format!("provider {provider}"),
        providers => format!("providers {}", providers.join(", ")),
    };
    let count = match found.read {
        1 => "the only resource".to_owned(),
        read if read == missing => format!("any of the {read} resources"),
        read => format!("{missing} of the {read} resources"),
    };
    let mut text = format!("{count} of {provider}: {}", names(&urns));
    if !protected.is_empty() {
        text.push_str(&format!(" (protected: {})", names(&protected)));
    }
    if found.is_reconfigured && missing == found.read {
        text.push_str(
            "; the likely cause is the configuration of this provider, which was changed after these resources: it may be \
             that of another account or region",
        );
    }
    text
}

/// Returns the name of a provider with that of its package: `lab`, or `lab (blue)`.
fn provider_text(provider: &Urn) -> String {
    let (name, token) = (provider.name(), TypeToken::new(provider.type_token()));
    let package = token.provider_package().unwrap_or_default();
    if name == package { name.to_owned() } else { format!("{package} ({name})") }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use engine::MissingResource;

    use super::*;

    #[derive(Default)]
    struct Texts(Mutex<Vec<String>>);

    impl EventSink for Texts {
        fn emit(&self, event: Event) {
            if let Event::Message(message) = event {
                self.0.lock().unwrap().push(message.text.into_string());
            }
        }
    }

    #[derive(Debug)]
    struct Reply(Approval);

    #[async_trait]
    impl WarningQuestion for Reply {
        async fn ask(&self, missing: &MessageText, question: &MessageText) -> Approval {
            assert_eq!(missing, "the refresh of stack dev did not find any of the 2 resources of provider lab: a, b");
            assert_eq!(question, "Remove the missing resources from the state of stack dev?");
            self.0
        }
    }

    fn readings(read: usize, missing: &[(&str, bool)]) -> ProviderReadings {
        let urn = |name: &str| format!("urn:pulumi:dev::cove::lab:index:Vm::{name}").parse().unwrap();
        ProviderReadings {
            providers: vec!["urn:pulumi:dev::cove::pulumi:providers:lab::lab".parse().unwrap()],
            configuration: 0,
            read,
            missing: missing
                .iter()
                .map(|(name, protect)| MissingResource { urn: urn(name), protect: *protect })
                .collect(),
            is_reconfigured: false,
        }
    }

    fn guard(events: &Arc<Texts>) -> MissingGuard {
        MissingGuard {
            stack: "dev".to_owned(),
            accepts: false,
            limit: None,
            question: None,
            events: Arc::clone(events) as _,
            count: AtomicUsize::default(),
        }
    }

    #[test]
    fn many_missing_resources_of_a_provider_and_protected_ones_need_an_agreement() {
        let (a, b, c) = (("a", false), ("b", false), ("c", false));
        type Missing<'m> = &'m [(&'m str, bool)];
        let table: [(usize, Missing<'_>, bool); 9] = [
            (5, &[], false),
            (1, &[a], false),
            (2, &[a], false),
            (2, &[a, b], true),
            (3, &[a, b], false),
            (6, &[a, b, c], true),
            (7, &[a, b, c], false),
            (1, &[("a", true)], true),
            (9, &[("a", true)], true),
        ];
        for (read, missing, expected) in table {
            assert_eq!(is_suspicious(&readings(read, missing)), expected, "{missing:?} of {read}");
        }
    }

    #[test]
    fn providers_with_equal_configurations_are_judged_together_unless_one_alone_is_suspicious() {
        let of = |configuration, read, missing: &[(&str, bool)]| ProviderReadings {
            configuration,
            ..readings(read, missing)
        };
        let (a, b, c) = (("a", false), ("b", false), ("c", false));
        type Expected<'e> = &'e [(usize, usize)];
        let table: [(&[ProviderReadings], Expected<'_>); 6] = [
            (&[of(0, 1, &[a]), of(0, 1, &[b])], &[(2, 2)]),
            (&[of(0, 1, &[a]), of(1, 1, &[b])], &[]),
            (&[of(0, 1, &[a]), of(0, 1, &[])], &[]),
            // What one provider shows is not diluted by another one.
            (&[of(0, 2, &[a, b]), of(0, 1, &[])], &[(2, 2)]),
            (&[of(0, 1, &[a]), of(0, 1, &[b]), of(0, 4, &[c])], &[(6, 3)]),
            (&[of(0, 1, &[a]), of(1, 2, &[b, c]), of(0, 1, &[b])], &[(2, 2), (2, 2)]),
        ];
        for (readings, expected) in table {
            let found: Vec<_> = suspicious(readings).iter().map(|found| (found.read, found.missing.len())).collect();
            assert_eq!(found, expected, "{readings:?}");
        }
    }

    #[test]
    fn missing_resources_are_named_with_the_likely_cause() {
        let both = readings(2, &[("a", false), ("b", true)]);
        assert_eq!(described(&both), "any of the 2 resources of provider lab: a, b (protected: b)");
        assert_eq!(described(&readings(1, &[("a", false)])), "the only resource of provider lab: a");
        let of_two =
            ["urn:pulumi:dev::cove::pulumi:providers:lab::lab", "urn:pulumi:dev::cove::pulumi:providers:lab::blue"];
        let providers = of_two.iter().map(|urn| urn.parse().unwrap()).collect();
        let of_two = ProviderReadings { providers, ..readings(2, &[("a", false), ("b", false)]) };
        assert_eq!(described(&of_two), "any of the 2 resources of providers lab, lab (blue): a, b");
        let some = ProviderReadings { is_reconfigured: true, ..readings(9, &[("a", true)]) };
        assert_eq!(described(&some), "1 of the 9 resources of provider lab: a (protected: a)");
        let reconfigured = described(&ProviderReadings { is_reconfigured: true, ..both });
        assert!(reconfigured.contains("the likely cause is the configuration of this provider"), "{reconfigured}");
    }

    #[tokio::test]
    async fn agreement_is_a_reply_or_the_setting_and_the_limit_holds_with_it() {
        let gone = [readings(2, &[("a", false), ("b", false)])];
        let ask = |approval| Some(Arc::new(Reply(approval)) as Arc<dyn WarningQuestion>);
        let limit = |count| Some(MissingLimit { count, setting: format!("--max-deletes {count}") });
        let stays = "the missing resources stay in the state; nothing was changed";
        let refused = "missing resources of stack dev would leave the state; nothing was changed";
        let above =
            "the refresh of stack dev did not find 2 resources, more than --max-deletes 1 allows; nothing was changed";
        let table = [
            (false, None, None, Some(refused)),
            (true, None, None, None),
            (false, ask(Approval::Granted), None, None),
            (false, ask(Approval::Declined), None, Some(stays)),
            (true, None, limit(2), None),
            (true, None, limit(1), Some(above)),
            (false, ask(Approval::Granted), limit(1), Some(above)),
        ];
        for (accepts, question, limit, expected) in table {
            let events = Arc::new(Texts::default());
            let guard = MissingGuard { accepts, question, limit, ..guard(&events) };
            let refusal = guard.approve(&gone).await.err().map(|message| message.text);
            assert_eq!(refusal.as_deref(), expected, "{guard:?}");
            assert_eq!(guard.count.load(Ordering::Relaxed), 2);
            let warnings = events.0.lock().unwrap().join("\n");
            assert_eq!(warnings, "the refresh of stack dev did not find any of the 2 resources of provider lab: a, b");
        }
    }

    #[tokio::test]
    async fn few_missing_resources_need_no_agreement_but_count() {
        let events = Arc::new(Texts::default());
        let one = [readings(3, &[("a", false)])];
        let guard = MissingGuard { limit: Some(MissingLimit { count: 1, setting: String::new() }), ..guard(&events) };
        assert_eq!(guard.approve(&one).await.map_err(|message| message.text), Ok(()));
        assert_eq!((guard.count.load(Ordering::Relaxed), events.0.lock().unwrap().len()), (1, 0));
        let strict = MissingGuard { limit: Some(MissingLimit { count: 0, setting: String::new() }), ..guard };
        assert!(strict.approve(&one).await.is_err());
    }
}
