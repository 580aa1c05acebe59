//! The profile that was converted, where a request brings it along.

use super::{Context, DecodeError};
use crate::decode::{input, pprof};
use crate::profile::Profile;

/// Reads the original; `None` when it is of a format that is not read here. Only formats that
/// can't hold a request again.
pub(super) fn decode(format: &str, bytes: &[u8], context: &Context<'_>) -> Result<Option<Profile>, DecodeError> {
    let format = format.to_ascii_lowercase();
    if !format.contains("pprof") {
        return Ok(None);
    }
    input::with_input(bytes, context.limits, context.cancel, |input| (pprof::FORMAT.decode)(input, context)).map(Some)
}
