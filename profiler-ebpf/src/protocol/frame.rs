//! Frames of a stream: a length, then that many bytes. Nothing here knows what they mean.

use std::io::{self, Read, Write};

use prost::Message;

use super::MAGIC;

/// Longest message in bytes: more than the deepest stack, less than anything worth stealing memory with.
pub const MAX_FRAME: usize = 1 << 20;

/// What can be wrong with a stream.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is not a recording.
    #[error("it does not begin like a recording")]
    NotAStream,
    /// It ends inside a frame.
    #[error("it ends in the middle of a message, at byte {at}")]
    Truncated {
        /// Where the frame began.
        at: u64,
    },
    /// A frame is longer than [`MAX_FRAME`].
    #[error("a message at byte {at} is longer than allowed")]
    TooLong {
        /// Where the frame began.
        at: u64,
    },
    /// A frame is no message.
    #[error("the message at byte {at} is broken")]
    Invalid {
        /// Where the frame began.
        at: u64,
    },
    /// The reader failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes [`MAGIC`].
pub fn write_magic(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&MAGIC)
}

/// Writes one message as a frame.
pub fn write_frame(message: &impl Message, buffer: &mut Vec<u8>, to: &mut impl Write) -> io::Result<()> {
    buffer.clear();
    // A growing buffer takes any message.
    message.encode_length_delimited(buffer).map_err(io::Error::other)?;
    to.write_all(buffer)
}

/// Reads messages of one kind from a stream.
///
/// It reads a byte at a time for lengths: hand in something that buffers.
pub struct Reader<R> {
    from: R,
    at: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// A stream that begins with [`MAGIC`].
    pub fn with_magic(mut from: R) -> Result<Self, FrameError> {
        let mut magic = [0; MAGIC.len()];
        match from.read_exact(&mut magic) {
            Ok(()) if magic == MAGIC => Ok(Self { from, at: MAGIC.len() as u64, buffer: Vec::new() }),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error.into()),
            _ => Err(FrameError::NotAStream),
        }
    }

    /// A stream that begins with its first frame.
    pub fn new(from: R) -> Self {
        Self { from, at: 0, buffer: Vec::new() }
    }

    /// The next message; `None` at the end of the stream.
    pub fn read<M: Message + Default>(&mut self) -> Result<Option<M>, FrameError> {
        let start = self.at;
        let Some(length) = self.length(start)? else { return Ok(None) };
        self.buffer.resize(length, 0);
        self.from.read_exact(&mut self.buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Truncated { at: start },
            _ => error.into(),
        })?;
        self.at += length as u64;
        M::decode(self.buffer.as_slice()).map(Some).map_err(|_| FrameError::Invalid { at: start })
    }

    /// The length of the frame that begins at `start`; `None` when there is none.
    fn length(&mut self, start: u64) -> Result<Option<usize>, FrameError> {
        let mut length = 0_usize;
        for shift in [0, 7, 14] {
            let mut byte = [0];
            match self.from.read_exact(&mut byte) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && shift == 0 => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(FrameError::Truncated { at: start });
                }
                other => other?,
            }
            self.at += 1;
            length |= usize::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return if length <= MAX_FRAME { Ok(Some(length)) } else { Err(FrameError::TooLong { at: start }) };
            }
        }
        Err(FrameError::TooLong { at: start })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Event, Sample, Thread, event};
    use super::*;

    fn thread(name: &str) -> Event {
        Event { kind: Some(event::Kind::Thread(Thread { pid: 1, tid: 2, name: name.into() })) }
    }

    fn stream(events: &[Event]) -> Vec<u8> {
        let (mut out, mut buffer) = (Vec::new(), Vec::new());
        write_magic(&mut out).expect("memory takes bytes");
        for event in events {
            write_frame(event, &mut buffer, &mut out).expect("memory takes bytes");
        }
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let deep =
            Event { kind: Some(event::Kind::Sample(Sample { user: (0..10_000).collect(), ..Sample::default() })) };
        let events = [thread("main"), deep, thread(""), Event { kind: None }];
        let bytes = stream(&events);
        let mut reader = Reader::with_magic(bytes.as_slice()).expect("it has its magic");
        for event in events {
            assert_eq!(reader.read::<Event>().expect("it is whole"), Some(event));
        }
        assert_eq!(reader.read::<Event>().expect("it is whole"), None);
    }

    #[test]
    fn a_stream_cut_anywhere_is_said_to_be_cut() {
        let bytes = stream(&[thread("a-name-of-some-length")]);
        for length in 0..bytes.len() {
            let read = Reader::with_magic(&bytes[..length]).and_then(|mut reader| reader.read::<Event>());
            match read {
                Err(FrameError::NotAStream) => assert!(length < MAGIC.len()),
                Ok(None) => assert_eq!(length, MAGIC.len()),
                Err(FrameError::Truncated { at: 8 }) => assert!(length > MAGIC.len()),
                other => panic!("{length} bytes: {other:?}"),
            }
        }
    }

    #[test]
    fn a_long_frame_is_refused_before_memory_is_taken() {
        for length in [&[0x81, 0x80, 0x40][..], &[0xff, 0xff, 0xff, 0x01], &[0xff; 10]] {
            let error = Reader::new(length).read::<Event>().expect_err("it is too long");
            assert!(matches!(error, FrameError::TooLong { at: 0 }), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_messages_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Reader::new(bytes.as_slice());
            while let Ok(Some(_)) = reader.read::<Event>() {}
        }
    }
}
