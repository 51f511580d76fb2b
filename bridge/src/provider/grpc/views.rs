//! Views on the wire: resource status tokens of calls, and view steps that plugins publish
//! (docs/spec/provider-protocol.md#2.2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulumi_proto::property::PropertyValue;
use pulumi_proto::rpc::view_step::{Op, Status as Wire};
use pulumi_proto::rpc::{self, PublishViewStepsRequest};
use tonic::Status;
use uuid::Uuid;

use super::bags::{Decoder, Encoder};
use super::replies::property_diff;
use crate::provider::{LostReply, Method, ProviderError, View, ViewFailure, ViewListener, ViewOp, ViewStep};

const METHOD: Method = Method::PublishViewSteps;

/// Resource status tokens of the calls in flight during which a plugin may publish view steps.
#[derive(Debug, Default)]
pub struct ResourceStatusTokens(Mutex<HashMap<String, CallContext>>);

/// Call in flight, for the view steps that are published during it.
#[derive(Clone, Debug)]
pub(super) struct CallContext {
    pub(super) listener: Arc<dyn ViewListener>,
    /// True in a preview: unknown values are kept.
    pub(super) preview: bool,
    /// True if the request held secrets in plain text. All published values are marked as secret then.
    pub(super) has_plain_secrets: bool,
}

impl ResourceStatusTokens {
    /// Issues a token for a call. Dropping the token revokes it.
    pub(super) fn issue(self: &Arc<Self>, call: CallContext) -> ResourceStatusToken {
        let token = Uuid::new_v4().to_string();
        self.calls().insert(token.clone(), call);
        ResourceStatusToken { tokens: Arc::clone(self), token }
    }

    /// Passes published view steps to the listener of the call.
    ///
    /// # Errors
    /// `NotFound` if no call in flight has the token; `InvalidArgument` if a step is invalid.
    pub fn publish(&self, request: PublishViewStepsRequest) -> Result<(), Status> {
        let call = self.calls().get(&request.token).cloned();
        let Some(call) = call else {
            return Err(Status::not_found(
                "no call in flight has this token; view steps end with the reply of the call",
            ));
        };
        let steps: Result<Vec<_>, _> = request.steps.into_iter().map(|step| decode_step(step, &call)).collect();
        let steps = steps.map_err(|error| Status::invalid_argument(error.to_string()))?;
        call.listener.publish(steps);
        Ok(())
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, CallContext>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Token with which a plugin publishes view steps during a call. Dropping it revokes it.
pub(super) struct ResourceStatusToken {
    tokens: Arc<ResourceStatusTokens>,
    token: String,
}

impl ResourceStatusToken {
    pub(super) fn as_str(&self) -> &str {
        &self.token
    }
}

impl Drop for ResourceStatusToken {
    fn drop(&mut self) {
        self.tokens.calls().remove(&self.token);
    }
}

/// Encodes recorded views for a request.
pub(super) fn encode_recorded_views(encoder: &Encoder, views: &[View]) -> Result<Vec<rpc::View>, ProviderError> {
    let view = |view: &View| {
        Ok(rpc::View {
            r#type: view.type_token.clone(),
            name: view.name.clone(),
            parent_type: view.parent.as_ref().map(|(type_token, _)| type_token.clone()).unwrap_or_default(),
            parent_name: view.parent.as_ref().map(|(_, name)| name.clone()).unwrap_or_default(),
            inputs: encoder.encode_recorded(&view.inputs, false)?,
            outputs: encoder.encode_recorded(&view.outputs, false)?,
        })
    };
    views.iter().map(view).collect()
}

fn decode_step(step: rpc::ViewStep, call: &CallContext) -> Result<ViewStep, ProviderError> {
    let (partial, indeterminate) = match Wire::try_from(step.status) {
        Ok(Wire::Ok) => (false, false),
        Ok(Wire::PartialFailure) => (true, false),
        Ok(Wire::Unknown) => (false, true),
        Err(_) => return Err(invalid(format!("{} is not a status of a step", step.status))),
    };
    let detailed_diff = step.detailed_diff.into_iter().map(|(path, diff)| (path, property_diff(diff)));
    let step = ViewStep {
        op: decode_op(step.op)?,
        old: step.old.map(|state| decode_view(state, call)).transpose()?,
        new: step.new.map(|state| decode_view(state, call)).transpose()?,
        failure: (!step.error.is_empty()).then_some(ViewFailure { message: step.error, partial, indeterminate }),
        replace_keys: step.keys,
        diffs: step.diffs,
        detailed_diff: step.has_detailed_diff.then(|| detailed_diff.collect()),
    };
    let is_removal = matches!(
        step.op,
        ViewOp::Delete
            | ViewOp::DeleteReplaced
            | ViewOp::ReadDiscard
            | ViewOp::DiscardReplaced
            | ViewOp::RemovePendingReplace
    );
    let (required, is_present) = if is_removal { ("old", step.old.is_some()) } else { ("new", step.new.is_some()) };
    if is_present { Ok(step) } else { Err(invalid(format!("a step {:?} has no {required} view", step.op))) }
}

fn decode_view(state: rpc::ViewStepState, call: &CallContext) -> Result<View, ProviderError> {
    if state.r#type.is_empty() || state.name.is_empty() {
        return Err(invalid("a view must have a type and a name".to_owned()));
    }
    let decoder = Decoder::for_view(METHOD, call.preview);
    let bag = |bag| {
        let bag = decoder.decode_bag(bag)?;
        let mark = |(key, value)| (key, if call.has_plain_secrets { PropertyValue::secret(value) } else { value });
        Ok(Arc::new(bag.into_iter().map(mark).collect()))
    };
    let parent = (!state.parent_name.is_empty()).then_some((state.parent_type, state.parent_name));
    Ok(View {
        type_token: state.r#type,
        name: state.name,
        parent,
        inputs: bag(state.inputs)?,
        outputs: bag(state.outputs)?,
    })
}

fn decode_op(op: i32) -> Result<ViewOp, ProviderError> {
    Ok(match Op::try_from(op) {
        Ok(Op::Same) => ViewOp::Same,
        Ok(Op::Create) => ViewOp::Create,
        Ok(Op::Update) => ViewOp::Update,
        Ok(Op::Delete) => ViewOp::Delete,
        Ok(Op::Replace) => ViewOp::Replace,
        Ok(Op::CreateReplacement) => ViewOp::CreateReplacement,
        Ok(Op::DeleteReplaced) => ViewOp::DeleteReplaced,
        Ok(Op::Read) => ViewOp::Read,
        Ok(Op::ReadReplacement) => ViewOp::ReadReplacement,
        Ok(Op::Refresh) => ViewOp::Refresh,
        Ok(Op::ReadDiscard) => ViewOp::ReadDiscard,
        Ok(Op::DiscardReplaced) => ViewOp::DiscardReplaced,
        Ok(Op::RemovePendingReplace) => ViewOp::RemovePendingReplace,
        Ok(Op::Import) => ViewOp::Import,
        Ok(Op::ImportReplacement) => ViewOp::ImportReplacement,
        Ok(Op::Unspecified) | Err(_) => return Err(invalid(format!("{op} is not an operation on a view"))),
    })
}

fn invalid(reason: String) -> ProviderError {
    ProviderError::invalid_reply(METHOD, LostReply::InvalidField, reason)
}

#[cfg(test)]
mod tests {
    use pulumi_proto::property::PropertyMap;
    use pulumi_proto::property::wire::{EncodeOptions, encode};
    use pulumi_proto::rpc::ViewStepState;
    use tonic::Code;

    use super::*;

    #[derive(Debug, Default)]
    struct RecordingListener(Mutex<Vec<String>>);

    impl ViewListener for RecordingListener {
        fn publish(&self, steps: Vec<ViewStep>) {
            let published = steps.iter().map(|step| {
                let name = |view: &Option<View>| view.as_ref().map(|view| view.name.clone()).unwrap_or_default();
                format!("{:?} {}>{} {:?}", step.op, name(&step.old), name(&step.new), step.failure)
            });
            self.0.lock().unwrap().extend(published);
        }
    }

    fn state(name: &str) -> Option<ViewStepState> {
        let v = PropertyMap::from([("v".to_owned(), "1".into()), ("u".to_owned(), PropertyValue::UNKNOWN)]);
        let outputs = Some(encode(&v, &EncodeOptions::EVERYTHING).unwrap());
        Some(ViewStepState { r#type: "x:index:Part".into(), name: name.into(), outputs, ..ViewStepState::default() })
    }

    fn call(listener: Arc<dyn ViewListener>) -> CallContext {
        CallContext { listener, preview: false, has_plain_secrets: false }
    }

    fn request(token: &str, steps: Vec<rpc::ViewStep>) -> PublishViewStepsRequest {
        PublishViewStepsRequest { token: token.into(), steps }
    }

    fn create_step(name: &str) -> rpc::ViewStep {
        rpc::ViewStep { op: Op::Create.into(), new: state(name), ..rpc::ViewStep::default() }
    }

    #[test]
    fn view_steps_are_accepted_during_a_call_with_its_token_only() {
        let (tokens, listener) = (Arc::new(ResourceStatusTokens::default()), Arc::new(RecordingListener::default()));
        let token = tokens.issue(call(listener.clone()));
        let other = tokens.issue(call(Arc::new(RecordingListener::default())));
        assert_ne!(token.as_str(), other.as_str());
        let failed = rpc::ViewStep {
            op: Op::Delete.into(),
            old: state("b"),
            status: Wire::Unknown.into(),
            error: "connection reset".into(),
            ..rpc::ViewStep::default()
        };
        tokens.publish(request(token.as_str(), vec![create_step("a"), failed])).unwrap();
        let failure = r#"Some(ViewFailure { message: "connection reset", partial: false, indeterminate: true })"#;
        assert_eq!(*listener.0.lock().unwrap(), ["Create >a None".to_owned(), format!("Delete b> {failure}")]);

        let revoked = token.as_str().to_owned();
        drop(token);
        let rejected = tokens.publish(request(&revoked, vec![create_step("late")])).unwrap_err();
        assert_eq!(rejected.code(), Code::NotFound);
        assert_eq!(listener.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn view_unknowns_are_kept_in_previews_only_and_plain_secrets_are_marked_secret() {
        #[derive(Debug, Default)]
        struct Outputs(Mutex<Vec<PropertyMap>>);
        impl ViewListener for Outputs {
            fn publish(&self, steps: Vec<ViewStep>) {
                let outputs = steps.into_iter().filter_map(|step| Some((*step.new?.outputs).clone()));
                self.0.lock().unwrap().extend(outputs);
            }
        }
        let (tokens, listener) = (Arc::new(ResourceStatusTokens::default()), Arc::new(Outputs::default()));
        for (preview, has_plain_secrets) in [(false, false), (true, false), (false, true)] {
            let token = tokens.issue(CallContext { listener: listener.clone(), preview, has_plain_secrets });
            tokens.publish(request(token.as_str(), vec![create_step("a")])).unwrap();
        }
        let known = |value: PropertyValue| PropertyMap::from([("v".to_owned(), value)]);
        let mut previewed = known("1".into());
        previewed.insert("u".to_owned(), PropertyValue::UNKNOWN);
        let expected = [known("1".into()), previewed, known(PropertyValue::secret("1".into()))];
        assert_eq!(*listener.0.lock().unwrap(), expected);
    }

    #[test]
    fn invalid_view_step_rejects_the_whole_request() {
        let (tokens, listener) = (Arc::new(ResourceStatusTokens::default()), Arc::new(RecordingListener::default()));
        let token = tokens.issue(call(listener.clone()));
        let without = |op: Op| rpc::ViewStep { op: op.into(), ..rpc::ViewStep::default() };
        let without_name = rpc::ViewStep { op: Op::Create.into(), new: state(""), ..rpc::ViewStep::default() };
        let without_op = rpc::ViewStep { new: state("a"), ..rpc::ViewStep::default() };
        let invalid_status = rpc::ViewStep { status: 9, ..create_step("a") };
        for (step, words) in [
            (without(Op::Update), "a step Update has no new view"),
            (without(Op::Delete), "a step Delete has no old view"),
            (without_name, "a view must have a type and a name"),
            (without_op, "0 is not an operation on a view"),
            (invalid_status, "9 is not a status of a step"),
        ] {
            let rejected = tokens.publish(request(token.as_str(), vec![create_step("b"), step])).unwrap_err();
            assert_eq!(rejected.code(), Code::InvalidArgument);
            assert!(rejected.message().contains(words), "{rejected:?}");
        }
        assert_eq!(listener.0.lock().unwrap().len(), 0);
    }
}
