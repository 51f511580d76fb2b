//! Messages of Construct and Call (docs/spec/provider-protocol.md#3.10 and #3.16).

use std::collections::BTreeMap;

use pulumi_proto::duration;
use pulumi_proto::rpc::{self, alias, call_request, construct_request};
use pulumi_proto::urn::Urn;

use super::bags::{Decoder, Encoder};
use super::replies::failures;
use crate::provider::{
    Alias, AliasParent, CallReply, CallRequest, ConstructReply, ConstructRequest, LostReply, ProviderError,
};

pub(super) fn call_message(encoder: &Encoder, request: CallRequest) -> Result<rpc::CallRequest, ProviderError> {
    let dependencies = |(name, urns)| (name, call_request::ArgumentDependencies { urns: texts(urns) });
    Ok(rpc::CallRequest {
        tok: request.token,
        args: encoder.encode_call_arguments(&request.arguments)?,
        arg_dependencies: request.argument_dependencies.into_iter().map(dependencies).collect(),
        project: request.run.project,
        stack: request.run.stack,
        config: request.run.config,
        // Pulumi's engine sends neither the secret keys nor the organization in Call.
        config_secret_keys: Vec::new(),
        organization: String::new(),
        dry_run: request.run.dry_run,
        parallel: request.run.parallel,
        monitor_endpoint: request.run.monitor_endpoint.unwrap_or_default(),
        // Go providers require it.
        accepts_output_values: true,
        stack_trace_handle: String::new(),
    })
}

pub(super) fn call_reply(decoder: &Decoder, reply: rpc::CallResponse) -> Result<CallReply, ProviderError> {
    let dependencies = reply.return_dependencies.into_iter();
    let dependencies = dependencies.map(|(name, of_it)| Ok((name, urns(decoder, of_it.urns)?)));
    Ok(CallReply {
        dependencies: dependencies.collect::<Result<_, ProviderError>>()?,
        result: decoder.decode_bag(reply.r#return)?,
        failures: failures(reply.failures),
    })
}

pub(super) fn construct_message(
    encoder: &Encoder,
    request: ConstructRequest,
) -> Result<rpc::ConstructRequest, ProviderError> {
    if !encoder.capabilities.accept_secrets {
        let message = "a provider that does not accept secrets cannot construct components".to_owned();
        return Err(ProviderError::Failed {
            method: encoder.method,
            message,
            indeterminate: false,
            source: None,
            details: None,
        });
    }
    let dependencies = |(name, urns)| (name, construct_request::PropertyDependencies { urns: texts(urns) });
    let (run, options) = (request.run, request.options);
    let timeouts = construct_request::CustomTimeouts {
        create: duration::format(options.custom_timeouts.create),
        update: duration::format(options.custom_timeouts.update),
        delete: duration::format(options.custom_timeouts.delete),
        read: duration::format(options.custom_timeouts.read),
    };
    let trigger = options.replacement_trigger.as_ref();
    Ok(rpc::ConstructRequest {
        project: run.project,
        stack: run.stack,
        config: run.config,
        config_secret_keys: run.config_secret_keys,
        organization: run.organization,
        dry_run: run.dry_run,
        parallel: run.parallel,
        monitor_endpoint: run.monitor_endpoint.unwrap_or_default(),
        r#type: request.type_token,
        name: request.name,
        parent: request.parent.as_ref().map(Urn::to_string).unwrap_or_default(),
        inputs: encoder.encode_construct_inputs(&request.inputs)?,
        input_dependencies: request.input_dependencies.into_iter().map(dependencies).collect(),
        providers: request.providers,
        dependencies: texts(request.dependencies),
        protect: options.protect,
        additional_secret_outputs: options.additional_secret_outputs,
        custom_timeouts: (timeouts != construct_request::CustomTimeouts::default()).then_some(timeouts),
        deleted_with: options.deleted_with.as_ref().map(Urn::to_string).unwrap_or_default(),
        delete_before_replace: options.delete_before_replace,
        ignore_changes: options.ignore_changes,
        replace_on_changes: options.replace_on_changes,
        retain_on_delete: options.retain_on_delete,
        accepts_output_values: true,
        resource_hooks: None,
        stack_trace_handle: String::new(),
        replace_with: texts(options.replace_with),
        aliases: options.aliases.into_iter().map(alias_message).collect(),
        replacement_trigger: trigger.map(|value| encoder.encode_trigger(value, run.dry_run)).transpose()?.flatten(),
    })
}

pub(super) fn construct_reply(
    decoder: &Decoder,
    reply: rpc::ConstructResponse,
) -> Result<ConstructReply, ProviderError> {
    let dependencies = reply.state_dependencies.into_iter();
    let dependencies = dependencies.map(|(name, of_it)| Ok((name, urns(decoder, of_it.urns)?)));
    Ok(ConstructReply {
        urn: urn(decoder, &reply.urn)?,
        state_dependencies: dependencies.collect::<Result<BTreeMap<_, _>, ProviderError>>()?,
        state: decoder.decode_bag(reply.state)?,
    })
}

fn alias_message(alias: Alias) -> rpc::Alias {
    let message = match alias {
        Alias::Urn(urn) => alias::Alias::Urn(urn.to_string()),
        Alias::Spec { name, type_token, stack, project, parent } => alias::Alias::Spec(alias::Spec {
            name: name.unwrap_or_default(),
            r#type: type_token.unwrap_or_default(),
            stack: stack.unwrap_or_default(),
            project: project.unwrap_or_default(),
            parent: match parent {
                AliasParent::Same => None,
                AliasParent::None => Some(alias::spec::Parent::NoParent(true)),
                AliasParent::Urn(urn) => Some(alias::spec::Parent::ParentUrn(urn.to_string())),
            },
        }),
    };
    rpc::Alias { alias: Some(message) }
}

fn texts(urns: Vec<Urn>) -> Vec<String> {
    urns.iter().map(Urn::to_string).collect()
}

fn urns(decoder: &Decoder, texts: Vec<String>) -> Result<Vec<Urn>, ProviderError> {
    texts.iter().map(|text| urn(decoder, text)).collect()
}

fn urn(decoder: &Decoder, text: &str) -> Result<Urn, ProviderError> {
    text.parse().map_err(|error: pulumi_proto::urn::NameError| {
        ProviderError::invalid_reply(decoder.method, LostReply::InvalidField, error)
    })
}
