//! What the server knows between requests.

pub mod line_map;
pub mod text;
