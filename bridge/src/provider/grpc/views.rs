//! Views on the wire: which call a token stands for, and what is published under it (provider protocol, section 2.2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulumi_proto::property::PropertyValue;
use pulumi_proto::rpc::view_step::{Op, Status as Wire};
use pulumi_proto::rpc::{self, PublishViewStepsRequest};
use tonic::Status;
use uuid::Uuid;

use super::bags::{Decoder, Encoder};
use super::replies::property_diff;
use crate::provider::{Method, ProviderError, View, ViewFailure, ViewListener, ViewOp, ViewStep};

const METHOD: Method = Method::PublishViewSteps;

/// The calls under way during which a plugin may publish views, each by its token.
#[derive(Debug, Default)]
pub struct ViewDesk(Mutex<HashMap<String, Caller>>);

/// Who hears what is published during a call.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) listener: Arc<dyn ViewListener>,
    /// Unknowns are kept.
    pub(super) preview: bool,
    /// The plugin was sent secrets plain: any of them may be in what it publishes.
    pub(super) secret: bool,
}

impl ViewDesk {
    /// A token for one call; it means nothing any more once the ticket is dropped.
    pub(super) fn ticket(self: &Arc<Self>, caller: Caller) -> Ticket {
        let token = Uuid::new_v4().to_string();
        self.callers().insert(token.clone(), caller);
        Ticket { desk: Arc::clone(self), token }
    }

    /// Hands what a plugin publishes to whom it concerns.
    ///
    /// # Errors
    /// A token of no call that is under way, and steps that make no sense.
    pub fn publish(&self, request: PublishViewStepsRequest) -> Result<(), Status> {
        let caller = self.callers().get(&request.token).cloned();
        let Some(caller) = caller else {
            return Err(Status::not_found("no call with this token is under way; views end with the call's answer"));
        };
        let steps: Result<Vec<_>, _> = request.steps.into_iter().map(|step| self::step(step, &caller)).collect();
        let steps = steps.map_err(|error| Status::invalid_argument(error.to_string()))?;
        caller.listener.publish(steps);
        Ok(())
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<String, Caller>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to publish views, for the time of a call.
pub(super) struct Ticket {
    desk: Arc<ViewDesk>,
    token: String,
}

impl Ticket {
    pub(super) fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.desk.callers().remove(&self.token);
    }
}

/// Recorded views, as calls send them.
pub(super) fn known(encoder: &Encoder, views: &[View]) -> Result<Vec<rpc::View>, ProviderError> {
    let view = |view: &View| {
        Ok(rpc::View {
            r#type: view.type_token.clone(),
            name: view.name.clone(),
            parent_type: view.within.as_ref().map(|(of, _)| of.clone()).unwrap_or_default(),
            parent_name: view.within.as_ref().map(|(_, name)| name.clone()).unwrap_or_default(),
            inputs: encoder.recorded(&view.inputs, false)?,
            outputs: encoder.recorded(&view.outputs, false)?,
        })
    };
    views.iter().map(view).collect()
}

fn step(step: rpc::ViewStep, caller: &Caller) -> Result<ViewStep, ProviderError> {
    let (partial, indeterminate) = match Wire::try_from(step.status) {
        Ok(Wire::Ok) => (false, false),
        Ok(Wire::PartialFailure) => (true, false),
        Ok(Wire::Unknown) => (false, true),
        Err(_) => return Err(invalid(format!("{} is no status of a step", step.status))),
    };
    let detailed_diff = step.detailed_diff.into_iter().map(|(path, diff)| (path, property_diff(diff)));
    let step = ViewStep {
        op: op(step.op)?,
        old: step.old.map(|state| view(state, caller)).transpose()?,
        new: step.new.map(|state| view(state, caller)).transpose()?,
        failure: (!step.error.is_empty()).then_some(ViewFailure { message: step.error, partial, indeterminate }),
        replace_keys: step.keys,
        diffs: step.diffs,
        detailed_diff: step.has_detailed_diff.then(|| detailed_diff.collect()),
    };
    let ends = matches!(
        step.op,
        ViewOp::Delete
            | ViewOp::DeleteReplaced
            | ViewOp::ReadDiscard
            | ViewOp::DiscardReplaced
            | ViewOp::RemovePendingReplace
    );
    let (missing, there) = if ends { ("old", step.old.is_some()) } else { ("new", step.new.is_some()) };
    if there { Ok(step) } else { Err(invalid(format!("a step {:?} has no {missing} view", step.op))) }
}

fn view(state: rpc::ViewStepState, caller: &Caller) -> Result<View, ProviderError> {
    if state.r#type.is_empty() || state.name.is_empty() {
        return Err(invalid("a view has a type and a name".to_owned()));
    }
    let decoder = Decoder::of_view(METHOD, caller.preview);
    let bag = |bag| {
        let bag = decoder.bag(bag)?;
        let seal = |(key, value)| (key, if caller.secret { PropertyValue::secret(value) } else { value });
        Ok(Arc::new(bag.into_iter().map(seal).collect()))
    };
    let within = (!state.parent_name.is_empty()).then_some((state.parent_type, state.parent_name));
    Ok(View {
        type_token: state.r#type,
        name: state.name,
        within,
        inputs: bag(state.inputs)?,
        outputs: bag(state.outputs)?,
    })
}

fn op(op: i32) -> Result<ViewOp, ProviderError> {
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
        Ok(Op::Unspecified) | Err(_) => return Err(invalid(format!("{op} is no operation on a view"))),
    })
}

fn invalid(reason: String) -> ProviderError {
    ProviderError::Protocol { method: METHOD, reason }
}

#[cfg(test)]
mod tests {
    use pulumi_proto::property::PropertyMap;
    use pulumi_proto::property::wire::{EncodeOptions, encode};
    use pulumi_proto::rpc::ViewStepState;
    use tonic::Code;

    use super::*;

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl ViewListener for Heard {
        fn publish(&self, steps: Vec<ViewStep>) {
            let said = steps.iter().map(|step| {
                let name = |view: &Option<View>| view.as_ref().map(|view| view.name.clone()).unwrap_or_default();
                format!("{:?} {}>{} {:?}", step.op, name(&step.old), name(&step.new), step.failure)
            });
            self.0.lock().unwrap().extend(said);
        }
    }

    fn state(name: &str) -> Option<ViewStepState> {
        let v = PropertyMap::from([("v".to_owned(), "1".into()), ("u".to_owned(), PropertyValue::UNKNOWN)]);
        let outputs = Some(encode(&v, &EncodeOptions::EVERYTHING).unwrap());
        Some(ViewStepState { r#type: "x:index:Part".into(), name: name.into(), outputs, ..ViewStepState::default() })
    }

    fn caller(listener: Arc<dyn ViewListener>) -> Caller {
        Caller { listener, preview: false, secret: false }
    }

    fn request(token: &str, steps: Vec<rpc::ViewStep>) -> PublishViewStepsRequest {
        PublishViewStepsRequest { token: token.into(), steps }
    }

    fn made(name: &str) -> rpc::ViewStep {
        rpc::ViewStep { op: Op::Create.into(), new: state(name), ..rpc::ViewStep::default() }
    }

    #[test]
    fn views_are_taken_during_a_call_and_by_its_token_alone() {
        let (desk, heard) = (Arc::new(ViewDesk::default()), Arc::new(Heard::default()));
        let ticket = desk.ticket(caller(heard.clone()));
        let other = desk.ticket(caller(Arc::new(Heard::default())));
        assert_ne!(ticket.token(), other.token());
        let lost = rpc::ViewStep {
            op: Op::Delete.into(),
            old: state("b"),
            status: Wire::Unknown.into(),
            error: "no answer".into(),
            ..rpc::ViewStep::default()
        };
        desk.publish(request(ticket.token(), vec![made("a"), lost])).unwrap();
        let failure = r#"Some(ViewFailure { message: "no answer", partial: false, indeterminate: true })"#;
        assert_eq!(*heard.0.lock().unwrap(), ["Create >a None".to_owned(), format!("Delete b> {failure}")]);

        let token = ticket.token().to_owned();
        drop(ticket);
        let refused = desk.publish(request(&token, vec![made("late")])).unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
        assert_eq!(heard.0.lock().unwrap().len(), 2);
    }

    #[test]
    fn unknowns_are_for_previews_and_what_may_hold_plain_secrets_is_secret() {
        #[derive(Debug, Default)]
        struct Outputs(Mutex<Vec<PropertyMap>>);
        impl ViewListener for Outputs {
            fn publish(&self, steps: Vec<ViewStep>) {
                let outputs = steps.into_iter().filter_map(|step| Some((*step.new?.outputs).clone()));
                self.0.lock().unwrap().extend(outputs);
            }
        }
        let (desk, heard) = (Arc::new(ViewDesk::default()), Arc::new(Outputs::default()));
        for (preview, secret) in [(false, false), (true, false), (false, true)] {
            let ticket = desk.ticket(Caller { listener: heard.clone(), preview, secret });
            desk.publish(request(ticket.token(), vec![made("a")])).unwrap();
        }
        let known = |value: PropertyValue| PropertyMap::from([("v".to_owned(), value)]);
        let mut previewed = known("1".into());
        previewed.insert("u".to_owned(), PropertyValue::UNKNOWN);
        let expected = [known("1".into()), previewed, known(PropertyValue::secret("1".into()))];
        assert_eq!(*heard.0.lock().unwrap(), expected);
    }

    #[test]
    fn steps_that_make_no_sense_are_refused_as_a_whole() {
        let (desk, heard) = (Arc::new(ViewDesk::default()), Arc::new(Heard::default()));
        let ticket = desk.ticket(caller(heard.clone()));
        let without = |op: Op| rpc::ViewStep { op: op.into(), ..rpc::ViewStep::default() };
        let nameless = rpc::ViewStep { op: Op::Create.into(), new: state(""), ..rpc::ViewStep::default() };
        let of_nothing = rpc::ViewStep { new: state("a"), ..rpc::ViewStep::default() };
        let of_no_status = rpc::ViewStep { status: 9, ..made("a") };
        for (step, words) in [
            (without(Op::Update), "a step Update has no new view"),
            (without(Op::Delete), "a step Delete has no old view"),
            (nameless, "a view has a type and a name"),
            (of_nothing, "0 is no operation on a view"),
            (of_no_status, "9 is no status of a step"),
        ] {
            let refused = desk.publish(request(ticket.token(), vec![made("b"), step])).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains(words), "{refused:?}");
        }
        assert_eq!(heard.0.lock().unwrap().len(), 0);
    }
}
