//! Numbers and texts as a recording writes them.

use super::DecodeError;

/// Reads from the front.
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    /// Whether numbers take as many bytes as they need, which all do by now.
    is_compressed: bool,
}

/// A text, or where it is.
pub(super) enum Text {
    Here(String),
    /// In the pool of texts.
    Pool,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8], is_compressed: bool) -> Self {
        Self { rest: bytes, is_compressed }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let taken = self.rest.split_at_checked(length);
        let (taken, rest) = taken.ok_or_else(|| DecodeError::invalid("an event is shorter than its fields"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(*self.take(N)?.first_chunk().unwrap_or(&[0; N]))
    }

    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn skip(&mut self, length: usize) -> Result<(), DecodeError> {
        self.take(length).map(|_| ())
    }

    /// Seven bits a byte, the least first; a ninth byte has all its bits.
    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// A number that is at home in 64 bits.
    pub(super) fn long(&mut self) -> Result<i64, DecodeError> {
        if self.is_compressed { Ok(self.varint()?.cast_signed()) } else { Ok(i64::from_be_bytes(self.array()?)) }
    }

    /// A number that is at home in 32 bits.
    #[expect(clippy::cast_possible_truncation, reason = "what a writer of 32 bits means")]
    pub(super) fn int(&mut self) -> Result<i64, DecodeError> {
        let number = if self.is_compressed { self.varint()? as i32 } else { i32::from_be_bytes(self.array()?) };
        Ok(number.into())
    }

    /// A number that is at home in 16 bits.
    #[expect(clippy::cast_possible_truncation, reason = "what a writer of 16 bits means")]
    pub(super) fn short(&mut self) -> Result<i64, DecodeError> {
        let number = if self.is_compressed { self.varint()? as i16 } else { i16::from_be_bytes(self.array()?) };
        Ok(number.into())
    }

    /// A number of things that follow, each of at least a byte.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.int()?).unwrap_or(usize::MAX);
        if count > self.rest.len() {
            return Err(DecodeError::invalid("it lists more than there is room for"));
        }
        Ok(count)
    }

    pub(super) fn text(&mut self) -> Result<Text, DecodeError> {
        Ok(match self.byte()? {
            0 | 1 => Text::Here(String::new()),
            2 => {
                self.long()?;
                Text::Pool
            }
            3 => {
                let length = self.count()?;
                Text::Here(String::from_utf8_lossy(self.take(length)?).into_owned())
            }
            4 => {
                let mut units = Vec::new();
                for _ in 0..self.count()? {
                    units.push(u16::try_from(self.short()? & 0xffff).unwrap_or(0));
                }
                Text::Here(String::from_utf16_lossy(&units))
            }
            5 => {
                let length = self.count()?;
                Text::Here(self.take(length)?.iter().map(|&byte| char::from(byte)).collect())
            }
            other => return Err(DecodeError::invalid(format!("a text has the unknown encoding {other}"))),
        })
    }
}
