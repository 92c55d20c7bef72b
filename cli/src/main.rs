//! The `regretta` command.

fn main() {}
