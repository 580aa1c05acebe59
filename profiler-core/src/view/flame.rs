//! A flame graph as plain data: boxes with their texts, for whoever draws them.
//!
//! What is not here: pixels and colours, and where on disk a file is.

use super::data;
use super::summary::Numbers;
use crate::attribute::analysis::Analysis;
use crate::attribute::tree::{CallTree, TreeFunction, TreeNode};
use crate::attribute::{GroupId, Place};
use crate::cancel::{CancelFlag, Cancelled};

/// The boxes of a profile. All texts are harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flame {
    /// What everything is: `3.52s cpu`.
    pub title: String,
    /// Σ|v| of the kept samples: the width of everything.
    pub total: i64,
    /// What the boxes are of.
    pub functions: Vec<FlameFunction>,
    /// Callers before callees.
    pub boxes: Vec<FlameBox>,
    /// Boxes too narrow to be listed.
    pub omitted: usize,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameFunction {
    /// Its name as it is shown.
    pub name: String,
    /// Its file as it is shown; empty when unknown.
    pub place: String,
    /// Its file.
    pub file: GroupId,
    /// Where it starts, a line of the profile, 1-based; `None` when unknown.
    pub line: Option<u32>,
    /// Whether it is hand-written code of the workspace.
    pub is_own: bool,
}

/// A function under a chain of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameBox {
    /// Its caller in [`Flame::boxes`].
    pub parent: Option<usize>,
    /// In [`Flame::functions`].
    pub function: usize,
    /// Its width.
    pub value: i64,
    /// Share and value: `34.0% 1.20s`.
    pub label: String,
}

/// The flame graph of what is selected, of its `top` widest boxes.
pub fn flame(analysis: &Analysis, top: usize, cancel: &CancelFlag) -> Result<Flame, Cancelled> {
    let CallTree { total, nodes, functions, omitted } =
        analysis.stacks.tree(&analysis.profile, analysis.value_type, top, cancel)?;
    let numbers = Numbers::of(analysis);
    let boxed = |node: TreeNode| FlameBox {
        parent: node.parent,
        function: node.function,
        value: node.value,
        label: format!("{} {}", numbers.share(node.value), numbers.value(node.value)),
    };
    Ok(Flame {
        title: format!("{} {}", numbers.value(total), data::shown(numbers.kind())),
        total,
        functions: functions.iter().map(|function| named(analysis, function)).collect(),
        boxes: nodes.into_iter().map(boxed).collect(),
        omitted,
    })
}

fn named(analysis: &Analysis, function: &TreeFunction) -> FlameFunction {
    let group = analysis.groups.get(function.file);
    let is_own = group.placement.as_ref().is_some_and(|placement| placement.place == Place::Workspace);
    let file = data::shown(analysis.groups.display(&analysis.profile, function.file)).into_owned();
    let line = function.start_line.is_known().then_some(function.start_line.0);
    FlameFunction {
        name: if function.name.is_empty() { "unknown".to_owned() } else { data::shown(&function.name).into_owned() },
        place: match line {
            Some(line) if !file.is_empty() => format!("{file}:{line}"),
            _ => file,
        },
        file: function.file,
        line,
        is_own,
    }
}
