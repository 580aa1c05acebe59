//! What events refer to: stacks, methods, classes, threads.

use rustc_hash::{FxHashMap, FxHashSet};

use super::metadata::{Metadata, Scalar};
use super::{Context, DecodeError, DecodeErrorKind, for_each_event};

/// The type of the events that hold pools.
const CHECKPOINT: u64 = 1;

/// A method and the line that was executing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    pub(super) method: u64,
    pub(super) line: i64,
}

#[derive(Clone, Copy, Default)]
struct Method {
    class: u64,
    name: u64,
}

/// The pools of a chunk that are of interest.
#[derive(Default)]
pub(super) struct Pools {
    frames: Vec<Frame>,
    stacks: FxHashMap<u64, std::ops::Range<usize>>,
    pub(super) truncated: FxHashSet<u64>,
    methods: FxHashMap<u64, Method>,
    /// Names of classes, as keys of symbols.
    classes: FxHashMap<u64, u64>,
    symbols: FxHashMap<u64, String>,
    texts: FxHashMap<u64, String>,
    pub(super) threads: FxHashMap<u64, String>,
}

impl Pools {
    pub(super) fn read(chunk: &[u8], metadata: &Metadata, context: &Context<'_>) -> Result<Self, DecodeError> {
        let mut pools = Self::default();
        for_each_event(chunk, |id, body| {
            if id != CHECKPOINT {
                return Ok(());
            }
            context.cancel.check()?;
            let mut bytes = metadata.bytes(body);
            let (_start, _duration, _delta, _flush) = (bytes.long()?, bytes.long()?, bytes.long()?, bytes.byte()?);
            for _ in 0..bytes.count()? {
                let class = bytes.long()?.cast_unsigned();
                for _ in 0..bytes.count()? {
                    let key = bytes.long()?.cast_unsigned();
                    pools.add(metadata, class, key, &mut bytes)?;
                }
                if pools.frames.len() > context.limits.max_frames {
                    let message = format!("it holds more than {} frames", context.limits.max_frames);
                    return Err(DecodeError::new(DecodeErrorKind::Limit, message));
                }
            }
            Ok(())
        })?;
        Ok(pools)
    }

    fn add(
        &mut self,
        metadata: &Metadata,
        class: u64,
        key: u64,
        bytes: &mut super::Bytes<'_>,
    ) -> Result<(), DecodeError> {
        match metadata.name(class) {
            "jdk.types.StackTrace" => {
                let start = self.frames.len();
                let frames = &mut self.frames;
                let mut is_truncated = false;
                metadata.read_fields(class, bytes, &mut |field, value| match (field, value) {
                    ("truncated", Scalar::Number(flag)) => is_truncated = flag != 0,
                    ("frames", Scalar::Element) => frames.push(Frame::default()),
                    ("method", Scalar::Reference(method)) => {
                        if let Some(last) = frames.last_mut() {
                            last.method = method;
                        }
                    }
                    ("lineNumber", Scalar::Number(line)) => {
                        if let Some(last) = frames.last_mut() {
                            last.line = line;
                        }
                    }
                    _ => {}
                })?;
                self.stacks.insert(key, start..self.frames.len());
                if is_truncated {
                    self.truncated.insert(key);
                }
            }
            "jdk.types.Method" => {
                let mut method = Method::default();
                metadata.read_fields(class, bytes, &mut |field, value| match (field, value) {
                    ("type", Scalar::Reference(key)) => method.class = key,
                    ("name", Scalar::Reference(key)) => method.name = key,
                    _ => {}
                })?;
                self.methods.insert(key, method);
            }
            "java.lang.Class" => {
                let mut name = 0;
                metadata.read_fields(class, bytes, &mut |field, value| {
                    if let ("name", Scalar::Reference(key)) = (field, value) {
                        name = key;
                    }
                })?;
                self.classes.insert(key, name);
            }
            "jdk.types.Symbol" | "java.lang.String" => {
                let mut text = String::new();
                metadata.read_fields(class, bytes, &mut |_, value| {
                    if let Scalar::Text(value) = value {
                        text = value;
                    }
                })?;
                let pool = if metadata.name(class) == "java.lang.String" { &mut self.texts } else { &mut self.symbols };
                pool.insert(key, text);
            }
            "java.lang.Thread" => {
                let (mut java, mut system) = (String::new(), String::new());
                metadata.read_fields(class, bytes, &mut |field, value| match (field, value) {
                    ("javaName", Scalar::Text(name)) => java = name,
                    ("osName", Scalar::Text(name)) => system = name,
                    _ => {}
                })?;
                self.threads.insert(key, if java.is_empty() { system } else { java });
            }
            _ => metadata.read_fields(class, bytes, &mut |_, _| {})?,
        }
        Ok(())
    }

    /// The frames of a stack, leaf first.
    pub(super) fn stack(&self, key: u64) -> Option<&[Frame]> {
        self.frames.get(self.stacks.get(&key)?.clone())
    }

    /// The class of a method, with slashes, and its name.
    pub(super) fn method(&self, key: u64) -> (String, String) {
        let method = self.methods.get(&key).copied().unwrap_or_default();
        let class = self.classes.get(&method.class).copied().unwrap_or(0);
        let symbol = |key| self.symbols.get(&key).or_else(|| self.texts.get(&key)).cloned().unwrap_or_default();
        (symbol(class), symbol(method.name))
    }
}
