//! OpenTelemetry's profiles: export requests, alone or as the collector's file exporter
//! writes them.
//!
//! ```text
//! request = { resource_profiles*: { resource, scope_profiles*: { scope, profiles* } }, dictionary }
//! file    = request | (length request)* | (JSON request '\n')*
//! ```
//!
//! The protocol is not stable: [`layout`] tells its versions apart, [`request`] reads all of
//! them the same way, [`parts`] makes profiles. The newest version is read with the types of
//! the protocol's own crate, older ones with those of [`messages`].
//!
//! A request holds one profile per process and thing measured. Here all that measure the same
//! become one, and what their resource says (`service.name`, `process.pid`, …) labels of the
//! samples, but for environment and command lines, which may hold secrets. Profiles with the
//! very same samples are one profile that was taken apart, and are put together again.

mod json;
mod layout;
mod messages;
mod parts;
mod payload;
mod request;
mod wire;

use std::borrow::Cow;
use std::io::Read;

use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input, Limits, container};
use crate::cancel::CancelFlag;
use crate::profile::{Profile, combine::combine};
use parts::Parts;
use wire::{Value, checked};

pub(super) const FORMAT: Format = Format { name: "otlp", sniff, decode };

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

fn sniff(prefix: &[u8]) -> Confidence {
    match prefix {
        [0, a, b, c, rest @ ..] => {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let message = &rest[..rest.len().min(length)];
            match message {
                [b'{', ..] if is_json(message) => Confidence::Certain,
                _ if message.starts_with(&ZSTD) => Confidence::Likely,
                _ if length > 0 => sniff_request(message),
                _ => Confidence::No,
            }
        }
        _ if is_json(prefix) => Confidence::Certain,
        _ => sniff_request(prefix),
    }
}

fn is_json(prefix: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&prefix[..prefix.len().min(4096)]);
    let is_message = |word: &str| text.contains(&format!("\"{word}\""));
    text.trim_start().starts_with('{')
        && (is_message("resourceProfiles") || (is_message("dictionary") && is_message("stringTable")))
}

/// Whether the beginning of a message has the shape of a request, three levels deep.
fn sniff_request(prefix: &[u8]) -> Confidence {
    let (mut resources, mut tables) = (0, 0);
    for (number, value) in checked(prefix) {
        match (number, value) {
            (1, Value::Bytes(resource)) if is_resource_profiles(resource) => resources += 1,
            (2, Value::Bytes(table)) if is_dictionary(table) => tables += 1,
            _ => return Confidence::No,
        }
    }
    if resources + tables > 0 {
        return Confidence::Likely;
    }
    // The first resource or the tables are longer than what is seen here.
    let Some(body) = cut_body(prefix) else { return Confidence::No };
    let first = checked(body).next();
    match (prefix[0], first) {
        (0x0a, Some((1..=3, Value::Bytes(_)))) | (0x12, Some((1..=7, Value::Bytes(_)))) => Confidence::Possible,
        (0x0a, None) => match cut_body(body) {
            Some(_) if matches!(body[0], 0x0a | 0x12) => Confidence::Possible,
            _ => Confidence::No,
        },
        _ => Confidence::No,
    }
}

/// What there is of a first field whose end is missing.
fn cut_body(message: &[u8]) -> Option<&[u8]> {
    let mut rest = message;
    let (_, wire_type) = prost::encoding::decode_key(&mut rest).ok()?;
    if wire_type != prost::encoding::WireType::LengthDelimited {
        return None;
    }
    let length = prost::encoding::decode_varint(&mut rest).ok()?;
    (length > rest.len() as u64 && !rest.is_empty()).then_some(rest)
}

fn is_resource_profiles(body: &[u8]) -> bool {
    let mut fields = checked(body).peekable();
    fields.peek().is_some()
        && fields.all(|(number, value)| match (number, value) {
            (1 | 3, Value::Bytes(_)) => true,
            (2, Value::Bytes(scope)) => {
                checked(scope).all(|(number, value)| (1..=3).contains(&number) && value.is_bytes())
            }
            _ => false,
        })
}

fn is_dictionary(body: &[u8]) -> bool {
    let mut fields = checked(body).peekable();
    fields.peek().is_some() && fields.all(|(number, value)| (1..=7).contains(&number) && value.is_bytes())
}

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let mut parts = Parts::new(context);
    let mut note = cut;
    match bytes.first() {
        Some(0) => {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let Some(message) = next_message(&mut rest) else {
                    note = Some(DecodeError::truncated("it ends inside a message"));
                    break;
                };
                add(&mut parts, message, context)?;
            }
        }
        _ if is_json(&bytes) => {
            for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
                // A file that is one request may be laid out over many lines.
                match json::to_protobuf(line) {
                    Ok(message) => parts.add(&message)?,
                    Err(_) if std::ptr::eq(line.as_ptr(), bytes.as_ptr()) => {
                        parts.add(&json::to_protobuf(&bytes)?)?;
                        break;
                    }
                    Err(error) if error.kind() == DecodeErrorKind::Truncated => {
                        note = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        _ => parts.add(&bytes)?,
    }
    let profiles = parts.finish()?;
    let mut profile = match profiles.len() {
        0 => return Err(DecodeError::new(DecodeErrorKind::Empty, "it holds no profile")),
        1 => profiles.into_iter().next().ok_or_else(|| DecodeError::new(DecodeErrorKind::Empty, "it is empty"))?,
        _ => combine(FORMAT.name, &profiles)?,
    };
    if let Some(cut) = note {
        profile.notes.push(format!("the file is incomplete: {cut}; what came before was kept"));
    }
    Ok(profile)
}

/// The next message behind its length.
fn next_message<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let (message, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *rest = behind;
    Some(message)
}

/// Adds a message that may be compressed and may be JSON.
fn add(parts: &mut Parts<'_>, message: &[u8], context: &Context<'_>) -> Result<(), DecodeError> {
    let plain = if message.starts_with(&ZSTD) { Cow::Owned(inflate(message, context.limits)?) } else { message.into() };
    if is_json(&plain) { parts.add(&json::to_protobuf(&plain)?) } else { parts.add(&plain) }
}

fn inflate(message: &[u8], limits: &Limits) -> Result<Vec<u8>, DecodeError> {
    let limit = limits.max_bytes.min((message.len() as u64).saturating_mul(limits.max_ratio));
    let mut plain = Vec::new();
    let read = container::open(message)?.reader.take(limit + 1).read_to_end(&mut plain);
    read.map_err(|error| container::io_error(&error))?;
    if plain.len() as u64 > limit {
        return Err(DecodeError::new(DecodeErrorKind::Limit, "a message expands beyond all bounds"));
    }
    Ok(plain)
}

/// How a request is written. Its bytes don't always tell: some protobuf begins like JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpEncoding {
    /// Protobuf.
    Protobuf,
    /// JSON.
    Json,
}

/// Reads one export request as it comes over the network, not compressed: one profile per thing
/// measured, to be kept and [combined](combine) as a window slides.
///
/// A request without profiles is no error.
pub fn decode_otlp_request(
    bytes: &[u8],
    encoding: OtlpEncoding,
    limits: &Limits,
    cancel: &CancelFlag,
) -> Result<Vec<Profile>, DecodeError> {
    let context = Context { limits, cancel };
    let mut parts = Parts::new(&context);
    let message = match encoding {
        OtlpEncoding::Json => Cow::Owned(json::to_protobuf(bytes).map_err(|error| error.of_format(FORMAT.name))?),
        OtlpEncoding::Protobuf => Cow::Borrowed(bytes),
    };
    parts.add(&message).and_then(|()| parts.finish()).map_err(|error| error.of_format(FORMAT.name))
}
