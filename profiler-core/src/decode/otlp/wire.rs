//! Fields of protobuf messages, before anyone knows what they mean.

use prost::encoding::{WireType, decode_key, decode_varint};

use super::DecodeError;

/// The value of a field as the wire has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn is_varint(self) -> bool {
        matches!(self, Self::Varint(_))
    }

    pub(super) fn is_bytes(self) -> bool {
        matches!(self, Self::Bytes(_))
    }
}

/// The fields of a message, in order.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, wire_type) = decode_key(&mut self.rest).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Varint(decode_varint(&mut self.rest).ok()?),
            WireType::SixtyFourBit => {
                let (number, rest) = self.rest.split_first_chunk::<8>()?;
                self.rest = rest;
                Value::Fixed64(u64::from_le_bytes(*number))
            }
            WireType::ThirtyTwoBit => {
                self.rest = self.rest.split_first_chunk::<4>()?.1;
                Value::Fixed32
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut self.rest).ok()?).ok()?;
                let (body, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Bytes(body)
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| DecodeError::truncated("it ends inside a message")))
    }
}

/// The fields of a message that another reader has been through already.
pub(super) fn checked(message: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> + Clone {
    Fields::of(message).map_while(Result::ok)
}
