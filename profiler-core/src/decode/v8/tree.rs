//! The JSON of V8's CPU and heap profiles, of every age: nodes in a list or as a tree, with
//! their function in a `callFrame` or right in the node. One reader for all, without
//! recursion, since a tree is as deep as the program's stacks.

use crate::decode::DecodeError;
use crate::decode::json::{Token, Tokens};

/// A function, as V8 names it.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFrame {
    pub(super) name: String,
    pub(super) url: String,
    /// Where the function starts, 0-based; −1 and less mean unknown.
    pub(super) line: i64,
    pub(super) column: i64,
}

/// A function in a context of callers.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) id: i64,
    pub(super) frame: CallFrame,
    pub(super) hit_count: i64,
    pub(super) self_size: f64,
    /// Executing line, 1-based, and number of samples there.
    pub(super) ticks: Vec<(i64, i64)>,
    /// Index of the caller.
    pub(super) parent: Option<usize>,
    /// Ids of callers and callees, in the forms that refer by id.
    pub(super) parent_id: Option<i64>,
    pub(super) children: Vec<i64>,
}

/// Everything in the file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) nodes: Vec<Node>,
    /// Whether nodes hold each other, which is the older form.
    pub(super) is_tree: bool,
    /// Whether functions stood in a `callFrame`, with lines counted from 0.
    pub(super) has_call_frames: bool,
    /// Node of each sample.
    pub(super) samples: Vec<i64>,
    /// Microseconds before each sample.
    pub(super) deltas: Vec<i64>,
    pub(super) start: f64,
    pub(super) end: f64,
}

/// What a value that comes next belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Top,
    /// `nodes`.
    Nodes,
    Node(usize),
    CallFrame(usize),
    Children(usize),
    Ticks(usize),
    Tick(usize),
    Samples,
    Deltas,
    Other,
}

#[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
fn whole(number: f64) -> i64 {
    number as i64
}

pub(super) fn read(text: &str) -> Result<File, DecodeError> {
    let mut tokens = Tokens::new(text);
    let mut file = File::default();
    let mut places: Vec<Place> = Vec::new();
    let mut key = String::new();
    while let Some(token) = tokens.next()? {
        let place = places.last().copied();
        match token {
            Token::Key(name) => {
                key.clear();
                key.push_str(&name);
            }
            Token::Object => places.push(file.object(place, &key)),
            Token::Array => places.push(match (place, &*key) {
                (Some(Place::Top), "nodes") => Place::Nodes,
                (Some(Place::Top), "samples") => Place::Samples,
                (Some(Place::Top), "timeDeltas") => Place::Deltas,
                (Some(Place::Node(node)), "children") => Place::Children(node),
                (Some(Place::Node(node)), "positionTicks" | "lineTicks") => Place::Ticks(node),
                _ => Place::Other,
            }),
            Token::End => {
                places.pop();
            }
            Token::Text(value) => file.text(place, &key, &value),
            Token::Number(value) => file.number(place, &key, value),
            Token::Word => {}
        }
    }
    Ok(file)
}

impl File {
    /// What an object that begins is.
    fn object(&mut self, place: Option<Place>, key: &str) -> Place {
        let parent = match (place, key) {
            (None, _) => return Place::Top,
            (Some(Place::Top), "head") | (Some(Place::Nodes), _) => None,
            (Some(Place::Children(parent)), _) => Some(parent),
            (Some(Place::Node(node)), "callFrame") => {
                self.has_call_frames = true;
                return Place::CallFrame(node);
            }
            (Some(Place::Ticks(node)), _) => {
                self.nodes[node].ticks.push((0, 0));
                return Place::Tick(node);
            }
            _ => return Place::Other,
        };
        self.is_tree |= place != Some(Place::Nodes);
        self.nodes.push(Node { parent, ..Node::default() });
        Place::Node(self.nodes.len() - 1)
    }

    fn text(&mut self, place: Option<Place>, key: &str, value: &str) {
        if let Some(Place::Node(node) | Place::CallFrame(node)) = place {
            match key {
                "functionName" => value.clone_into(&mut self.nodes[node].frame.name),
                "url" => value.clone_into(&mut self.nodes[node].frame.url),
                _ => {}
            }
        }
    }

    fn number(&mut self, place: Option<Place>, key: &str, value: f64) {
        match (place, key) {
            (Some(Place::Samples), _) => self.samples.push(whole(value)),
            (Some(Place::Deltas), _) => self.deltas.push(whole(value)),
            (Some(Place::Children(node)), _) => self.nodes[node].children.push(whole(value)),
            (Some(Place::Top), "startTime") => self.start = value,
            (Some(Place::Top), "endTime") => self.end = value,
            (Some(Place::Node(node) | Place::CallFrame(node)), _) => {
                let node = &mut self.nodes[node];
                match key {
                    "id" => node.id = whole(value),
                    "parent" => node.parent_id = Some(whole(value)),
                    "hitCount" => node.hit_count = whole(value),
                    "selfSize" => node.self_size = value,
                    "lineNumber" => node.frame.line = whole(value),
                    "columnNumber" => node.frame.column = whole(value),
                    _ => {}
                }
            }
            (Some(Place::Tick(node)), _) => {
                if let Some(tick) = self.nodes[node].ticks.last_mut() {
                    match key {
                        "line" => tick.0 = whole(value),
                        "ticks" | "hitCount" => tick.1 = whole(value),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
