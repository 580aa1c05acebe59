//! The types of a chunk, which it describes itself: a tree of elements with attributes, whose
//! words are indexes into a list of texts.

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::bytes::{Bytes, Text};

/// Types refer to each other, and a damaged chunk's may do so in a circle.
const MAX_DEPTH: usize = 16;

/// What types a chunk has.
pub(super) struct Metadata {
    classes: FxHashMap<u64, Class>,
    is_compressed: bool,
}

#[derive(Default)]
struct Class {
    name: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    class: u64,
    is_reference: bool,
    is_array: bool,
}

/// A value of a field, as far as anyone asks for it.
pub(super) enum Scalar {
    Number(i64),
    Text(String),
    /// A key in the pool of the field's type.
    Reference(u64),
    /// An element of an array begins.
    Element,
}

/// An element of the tree.
struct Element {
    name: usize,
    attributes: Vec<(usize, usize)>,
    children: Vec<Element>,
}

impl Metadata {
    pub(super) fn read(chunk: &[u8], offset: u64, is_compressed: bool) -> Result<Self, DecodeError> {
        let damaged = || DecodeError::invalid("the description of its types is damaged");
        let event = usize::try_from(offset).ok().and_then(|offset| chunk.get(offset..)).ok_or_else(damaged)?;
        let mut bytes = Bytes::new(event, is_compressed);
        let (_size, kind) = (bytes.int()?, bytes.long()?);
        if kind != 0 {
            return Err(damaged());
        }
        let (_start, _duration, _id) = (bytes.long()?, bytes.long()?, bytes.long()?);
        let mut texts = Vec::new();
        for _ in 0..bytes.count()? {
            match bytes.text()? {
                Text::Here(text) => texts.push(text),
                Text::Pool => texts.push(String::new()),
            }
        }
        let root = element(&mut bytes, 0)?;
        let mut metadata = Self { classes: FxHashMap::default(), is_compressed };
        let text = |index: usize| texts.get(index).map_or("", String::as_str);
        for class in root.children.iter().flat_map(|child| &child.children) {
            if text(class.name) == "class" {
                metadata.add(class, &text);
            }
        }
        Ok(metadata)
    }

    fn add<'t>(&mut self, class: &Element, text: &impl Fn(usize) -> &'t str) {
        let attribute = |element: &Element, wanted: &str| {
            element.attributes.iter().find(|(key, _)| text(*key) == wanted).map_or("", |(_, value)| text(*value))
        };
        let Ok(id) = attribute(class, "id").parse::<u64>() else { return };
        let fields = class.children.iter().filter(|child| text(child.name) == "field").map(|field| Field {
            name: attribute(field, "name").to_owned(),
            class: attribute(field, "class").parse().unwrap_or(0),
            is_reference: attribute(field, "constantPool") == "true",
            is_array: !matches!(attribute(field, "dimension"), "" | "0"),
        });
        let fields = fields.collect();
        self.classes.insert(id, Class { name: attribute(class, "name").to_owned(), fields });
    }

    /// The name of a type; empty when there is none.
    pub(super) fn name(&self, id: u64) -> &str {
        self.classes.get(&id).map_or("", |class| class.name.as_str())
    }

    /// The id of a type.
    pub(super) fn id(&self, name: &str) -> Option<u64> {
        self.classes.iter().find(|(_, class)| class.name == name).map(|(id, _)| *id)
    }

    pub(super) fn bytes<'a>(&self, bytes: &'a [u8]) -> Bytes<'a> {
        Bytes::new(bytes, self.is_compressed)
    }

    /// Reads a value of a type, field by field; fields of what is inside are handed out alike.
    pub(super) fn read_fields(
        &self,
        id: u64,
        bytes: &mut Bytes<'_>,
        use_field: &mut dyn FnMut(&str, Scalar),
    ) -> Result<(), DecodeError> {
        self.read_class("", id, bytes, use_field, 0)
    }

    fn read_class(
        &self,
        field: &str,
        id: u64,
        bytes: &mut Bytes<'_>,
        use_field: &mut dyn FnMut(&str, Scalar),
        depth: usize,
    ) -> Result<(), DecodeError> {
        let class = self.classes.get(&id).filter(|_| depth < MAX_DEPTH);
        let class = class.ok_or_else(|| DecodeError::invalid("a value is of a type that is not described"))?;
        match &*class.name {
            "boolean" | "byte" => use_field(field, Scalar::Number(bytes.byte()?.cast_signed().into())),
            "short" | "char" => use_field(field, Scalar::Number(bytes.short()?)),
            "int" => use_field(field, Scalar::Number(bytes.int()?)),
            "long" => use_field(field, Scalar::Number(bytes.long()?)),
            "float" => bytes.skip(4)?,
            "double" => bytes.skip(8)?,
            "java.lang.String" => match bytes.text()? {
                Text::Here(text) => use_field(field, Scalar::Text(text)),
                // Names in the pool of texts are none that anyone asks for.
                Text::Pool => {}
            },
            _ => {
                for field in &class.fields {
                    let count = if field.is_array { bytes.count()? } else { 1 };
                    for _ in 0..count {
                        if field.is_array {
                            use_field(&field.name, Scalar::Element);
                        }
                        if field.is_reference {
                            use_field(&field.name, Scalar::Reference(bytes.long()?.cast_unsigned()));
                        } else {
                            self.read_class(&field.name, field.class, bytes, use_field, depth + 1)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn element(bytes: &mut Bytes<'_>, depth: usize) -> Result<Element, DecodeError> {
    if depth == MAX_DEPTH {
        return Err(DecodeError::invalid("the description of its types is nested too deeply"));
    }
    let index = |bytes: &mut Bytes<'_>| Ok::<_, DecodeError>(usize::try_from(bytes.int()?).unwrap_or(usize::MAX));
    let mut element = Element { name: index(bytes)?, attributes: Vec::new(), children: Vec::new() };
    for _ in 0..bytes.count()? {
        element.attributes.push((index(bytes)?, index(bytes)?));
    }
    for _ in 0..bytes.count()? {
        element.children.push(self::element(bytes, depth + 1)?);
    }
    Ok(element)
}
