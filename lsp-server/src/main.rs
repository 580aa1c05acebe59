//! The `perflens` program.

fn main() {}
