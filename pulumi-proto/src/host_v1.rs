//! Generated code of the package `simplecontainer.host.v1`: the service of `sc` for plugins that register themselves, as
//! defined in `proto/simplecontainer`. `Debug` of messages does not show tokens and numbers of registrations.

use std::fmt;

pub use generated::*;

mod generated {
    #![allow(missing_docs, unreachable_pub, rust_2018_idioms, clippy::all, reason = "generated")]
    tonic::include_proto!("simplecontainer.host.v1");
}

impl fmt::Debug for RegisterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterRequest")
            .field("name", &self.name)
            .field("version", &self.version)
            .field("protocol_versions", &self.protocol_versions)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RegisterResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterResponse").field("protocol_version", &self.protocol_version).finish_non_exhaustive()
    }
}

impl fmt::Debug for DeregisterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeregisterRequest").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_no_token_and_no_number_of_a_registration() {
        let secret = || "s3cr3t".to_owned();
        let register = RegisterRequest { token: secret(), name: "files".to_owned(), ..Default::default() };
        let registered = RegisterResponse { registration_id: secret(), protocol_version: "1.0".to_owned() };
        let deregister = DeregisterRequest { registration_id: secret() };
        let shown = format!("{register:?} {registered:?} {deregister:?}");
        assert!(shown.contains("files") && shown.contains("1.0") && !shown.contains("s3cr3t"), "{shown}");
    }
}
