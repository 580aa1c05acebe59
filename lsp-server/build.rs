//! Compiles the messages of profiling servers, `proto/`, to Rust. No compiler of protocol
//! buffers needs to be installed: it is a library.
//!
//! They are compiled with every build, so that there is no second copy that could disagree.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let files = [
        "proto/parca/query.proto",
        "proto/parca/profilestore.proto",
        "proto/polarsignals/project.proto",
        "proto/pyroscope/querier.proto",
        "proto/pyroscope/push.proto",
    ];
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    prost_build::Config::new()
        .out_dir(out)
        .bytes(["."])
        .include_file("messages.rs")
        .extern_path(".google.protobuf.Timestamp", "crate::source::wire::Timestamp")
        .extern_path(".google.protobuf.Duration", "crate::source::wire::Duration")
        .compile_fds(descriptors)?;
    Ok(())
}
