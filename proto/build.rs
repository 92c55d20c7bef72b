//! Compiles the `.proto` files without protoc, and keeps their descriptors for reflection.

use std::path::PathBuf;
use std::{env, error, fs};

use protox::prost::Message;

const FILES: [&str; 2] = ["regretta/v1/worker.proto", "regretta/v1/client.proto"];

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("regretta.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
