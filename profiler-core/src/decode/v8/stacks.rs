//! From V8's nodes to stacks.

use rustc_hash::FxHashMap;

use super::tree::{CallFrame, Node};
use crate::decode::sink::Sink;
use crate::decode::{DecodeError, DecodeErrorKind};
use crate::profile::{BuildError, FuncId, Function, Line, LineNo, LocId, MapId};

/// Turns functions and lines of V8 into rows. Functions are told apart by where they start,
/// since in a minified file many have one name and one line.
#[derive(Default)]
pub(super) struct Functions {
    known: FxHashMap<(Box<str>, Box<str>, i64, i64), FuncId>,
}

impl Functions {
    /// The row of a function that starts at a 1-based line and column.
    fn row(&mut self, frame: &CallFrame, sink: &mut Sink<'_>) -> Result<FuncId, BuildError> {
        let key = (Box::from(&*frame.name), Box::from(&*frame.url), frame.line, frame.column);
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let name = match &*frame.name {
            "" if frame.url.is_empty() => "(evaluated)",
            "" => "(anonymous)",
            name => name,
        };
        let builder = &mut sink.builder;
        let function = Function {
            name: builder.string(name)?,
            system_name: builder.string("")?,
            file: builder.file(&frame.url)?,
            start_line: LineNo::from_pprof(frame.line, 0).0,
        };
        let row = builder.push_function(function)?;
        builder.set_start_column(row, LineNo::from_pprof(1, frame.column).1);
        self.known.insert(key, row);
        Ok(row)
    }

    /// The rows of all nodes, without lines.
    pub(super) fn locations(&mut self, nodes: &[Node], sink: &mut Sink<'_>) -> Result<Vec<LocId>, BuildError> {
        nodes.iter().map(|node| self.location(&node.frame, 0, sink)).collect()
    }

    /// The row of a place in a function; line 0 when only the function is known.
    pub(super) fn location(&mut self, frame: &CallFrame, line: i64, sink: &mut Sink<'_>) -> Result<LocId, BuildError> {
        let function = self.row(frame, sink)?;
        let (line, column) = LineNo::from_pprof(line, 0);
        sink.builder.location(MapId::NONE, 0, &[Line { function, line, column }])
    }
}

/// Callers of nodes that refer to each other by id. Of a cycle, one link is cut.
pub(super) fn link_parents(nodes: &mut [Node]) -> FxHashMap<i64, usize> {
    let by_id: FxHashMap<i64, usize> = nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    for index in 0..nodes.len() {
        if let Some(parent) = nodes[index].parent_id.and_then(|id| by_id.get(&id)) {
            nodes[index].parent = Some(*parent);
        }
        for child in std::mem::take(&mut nodes[index].children) {
            if let Some(&child) = by_id.get(&child) {
                nodes[child].parent = Some(index);
            }
        }
    }
    cut_cycles(nodes);
    by_id
}

fn cut_cycles(nodes: &mut [Node]) {
    // 0 = not seen, 1 = on the way up now, 2 = known to end at a root.
    let mut state = vec![0u8; nodes.len()];
    let mut way = Vec::new();
    for start in 0..nodes.len() {
        let mut at = start;
        while state[at] == 0 {
            state[at] = 1;
            way.push(at);
            match nodes[at].parent {
                Some(parent) if state[parent] == 1 => nodes[at].parent = None,
                Some(parent) => at = parent,
                None => {}
            }
        }
        for seen in way.drain(..) {
            state[seen] = 2;
        }
    }
}

/// The nodes from one up to its root, itself first. The root says nothing and is left out.
pub(super) fn path(nodes: &[Node], from: usize) -> impl Iterator<Item = usize> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let index = next?;
        next = nodes[index].parent;
        Some(index)
    })
    .filter(|&index| !is_root(&nodes[index]))
}

/// Whether a node is what all stacks end in.
pub(super) fn is_root(node: &Node) -> bool {
    node.frame.name == "(root)" && node.frame.url.is_empty()
}

/// Whether V8 means no function of the program.
pub(super) fn is_idle(frame: &CallFrame) -> bool {
    frame.name == "(idle)" && frame.url.is_empty()
}

pub(super) fn not_v8(what: &str) -> DecodeError {
    DecodeError::new(DecodeErrorKind::NotAProfile, format!("it is JSON, but no {what}"))
}
