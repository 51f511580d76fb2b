//! Table of the procedures of a plugin: path, request message and reply message.

use pulumi_proto::{plugin_v1, rpc};

use crate::launch::Procedure;
use crate::provider::Method;

/// Procedure with the name that errors contain.
pub(super) trait Rpc: Procedure {
    /// Name of the procedure.
    const METHOD: Method;
}

macro_rules! procedures {
    ($service:literal: $($name:ident($request:ty) -> $reply:ty;)*) => {
        $(
            pub(super) struct $name;

            impl Procedure for $name {
                const PATH: &'static str = concat!("/", $service, "/", stringify!($name));
                type Request = $request;
                type Reply = $reply;
            }

            impl Rpc for $name {
                const METHOD: Method = Method::$name;
            }
        )*
    };
}

procedures! { "pulumirpc.ResourceProvider":
    Handshake(rpc::ProviderHandshakeRequest) -> rpc::ProviderHandshakeResponse;
    Attach(rpc::PluginAttach) -> ();
    Parameterize(rpc::ParameterizeRequest) -> rpc::ParameterizeResponse;
    GetSchema(rpc::GetSchemaRequest) -> rpc::GetSchemaResponse;
    CheckConfig(rpc::CheckRequest) -> rpc::CheckResponse;
    DiffConfig(rpc::DiffRequest) -> rpc::DiffResponse;
    Configure(rpc::ConfigureRequest) -> rpc::ConfigureResponse;
    Invoke(rpc::InvokeRequest) -> rpc::InvokeResponse;
    Call(rpc::CallRequest) -> rpc::CallResponse;
    Check(rpc::CheckRequest) -> rpc::CheckResponse;
    Diff(rpc::DiffRequest) -> rpc::DiffResponse;
    Create(rpc::CreateRequest) -> rpc::CreateResponse;
    Read(rpc::ReadRequest) -> rpc::ReadResponse;
    Update(rpc::UpdateRequest) -> rpc::UpdateResponse;
    Delete(rpc::DeleteRequest) -> ();
    List(rpc::ListRequest) -> rpc::ListResponse;
    Construct(rpc::ConstructRequest) -> rpc::ConstructResponse;
    Cancel(()) -> ();
    GetPluginInfo(()) -> rpc::PluginInfo;
    GetMapping(rpc::GetMappingRequest) -> rpc::GetMappingResponse;
    GetMappings(rpc::GetMappingsRequest) -> rpc::GetMappingsResponse;
}

procedures! { "simplecontainer.plugin.v1.Plugin":
    Initialize(plugin_v1::InitializeRequest) -> plugin_v1::InitializeResponse;
    HealthCheck(plugin_v1::HealthCheckRequest) -> plugin_v1::HealthCheckResponse;
    Cleanup(plugin_v1::CleanupRequest) -> plugin_v1::CleanupResponse;
}

#[cfg(test)]
mod tests {
    use std::any::type_name;

    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// Returns path, request and reply of each method in the interface definitions.
    fn defined_procedures() -> Vec<(String, String, String)> {
        let set = FileDescriptorSet::decode(pulumi_proto::FILE_DESCRIPTOR_SET).unwrap();
        let last = |name: &str| name.rsplit('.').next().unwrap().to_owned();
        let mut defined = Vec::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                    defined.push((path, last(method.input_type()), last(method.output_type())));
                }
            }
        }
        defined
    }

    fn procedure<P: Rpc>() -> (String, String, String) {
        assert!(P::PATH.ends_with(&format!("/{}", P::METHOD)), "{} is not {}", P::PATH, P::METHOD);
        let last = |name: &str| if name == "()" { "Empty" } else { name.rsplit("::").next().unwrap() }.to_owned();
        (P::PATH.to_owned(), last(type_name::<P::Request>()), last(type_name::<P::Reply>()))
    }

    #[test]
    fn procedures_match_the_interface_definitions() {
        let defined = defined_procedures();
        assert!(defined.iter().any(|(path, ..)| path.ends_with(&format!("/{}", Method::PublishViewSteps))));
        macro_rules! assert_defined {
            ($($name:ident)*) => {
                $(assert!(defined.contains(&procedure::<$name>()), "{:?}", procedure::<$name>());)*
            };
        }
        assert_defined! {
            Handshake Attach Parameterize GetSchema CheckConfig DiffConfig Configure Invoke Call Check Diff Create Read Update
            Delete List Construct Cancel GetPluginInfo GetMapping GetMappings Initialize HealthCheck Cleanup
        }
    }
}
