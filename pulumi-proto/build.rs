//! Compiles `proto/` to Rust, without `protoc`, and keeps the descriptors beside it for those who want to compare.

#![allow(clippy::disallowed_methods, reason = "a build script is told by its environment")]

use std::error::Error;
use std::path::PathBuf;

/// The interface definitions; what they import comes with them.
const PROTOS: [&str; 11] = [
    "google/rpc/status.proto",
    "pulumi/alias.proto",
    "pulumi/callback.proto",
    "pulumi/engine.proto",
    "pulumi/errors.proto",
    "pulumi/plugin.proto",
    "pulumi/provider.proto",
    "pulumi/resource.proto",
    "pulumi/resource_status.proto",
    "pulumi/source.proto",
    "simplecontainer/plugin/v1/plugin.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?);

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_files(PROTOS)?;
    tonic_prost_build::configure()
        // Sorted maps: the same message is the same bytes, every time.
        .btree_map(".")
        // Properties stay bytes until somebody wants to know them.
        .extern_path(".google.protobuf.Struct", "crate::property::wire::Bag")
        .extern_path(".google.protobuf.Value", "crate::property::wire::Value")
        // A provider serves what it has; the protocol foresees UNIMPLEMENTED for the rest.
        .generate_default_stubs(true)
        // Holds credentials; `plugin_v1` writes it by hand.
        .skip_debug([
            ".simplecontainer.plugin.v1.InitializeRequest",
            ".simplecontainer.plugin.v1.AuthConfig",
            ".simplecontainer.plugin.v1.Variable",
        ])
        .compile_fds(compiler.file_descriptor_set())?;

    std::fs::write(out.join("descriptors.bin"), compiler.include_source_info(false).encode_file_descriptor_set())?;
    Ok(())
}
