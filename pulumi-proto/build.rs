//! Compiles `proto/` to Rust without `protoc`, and writes the file descriptors beside the generated code.

#![expect(clippy::disallowed_methods, reason = "Cargo passes input to build scripts in the environment")]

use std::error::Error;
use std::path::PathBuf;

/// Files with interface definitions. Their imports are compiled too.
const PROTOS: [&str; 14] = [
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
    "hashicorp/go_plugin.proto",
    "pulumi/alias.proto",
    "pulumi/callback.proto",
    "pulumi/engine.proto",
    "pulumi/errors.proto",
    "pulumi/plugin.proto",
    "pulumi/provider.proto",
    "pulumi/resource.proto",
    "pulumi/resource_status.proto",
    "pulumi/source.proto",
    "simplecontainer/host/v1/host.proto",
    "simplecontainer/plugin/v1/plugin.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?);

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(PROTOS)?;
    tonic_prost_build::configure()
        // Sorted maps make the encoding of a message deterministic.
        .btree_map(".")
        // Properties stay encoded until they are decoded explicitly.
        .extern_path(".google.protobuf.Struct", "crate::property::wire::Bag")
        .extern_path(".google.protobuf.Value", "crate::property::wire::Value")
        // Calls that a provider does not implement return UNIMPLEMENTED.
        .generate_default_stubs(true)
        // `host_v1` and `plugin_v1` implement Debug for messages with credentials.
        .skip_debug([
            ".simplecontainer.host.v1.RegisterRequest",
            ".simplecontainer.host.v1.RegisterResponse",
            ".simplecontainer.host.v1.DeregisterRequest",
            ".simplecontainer.plugin.v1.InitializeRequest",
            ".simplecontainer.plugin.v1.AuthConfig",
            ".simplecontainer.plugin.v1.Variable",
        ])
        .compile_fds(compiler.file_descriptor_set())?;

    std::fs::write(out.join("descriptors.bin"), compiler.include_source_info(false).encode_file_descriptor_set())?;
    Ok(())
}
