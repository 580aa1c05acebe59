//! From stacks and names to a profile.
//!
//! Frames of an interpreter take the place of the native frames that run it: each native evaluation
//! loop on the stack stands for one run of the interpreter's frames, so what native code was called
//! from stays in between, and its cost lands on the line of the script that called it.

use std::sync::Arc;

use profiler_core::demangle::demangle;
use profiler_core::profile::{
    BuildError, FuncId, Label, LabelValue, Line, LineNo, LocId, MapId, Mapping, Profile, ProfileBuilder, ValueType,
    Work,
};
use profiler_core::symbolize::Frame as Named;
use profiler_ebpf::protocol::EventKind;
use rustc_hash::FxHashMap;

use super::names::{Frames, Names};
use super::stacks::{Column, Frame, ScriptFrame, Stack, Stacks, lost_in_words};

/// The native function that runs Python code.
const PYTHON_LOOP: &str = "_PyEval_EvalFrameDefault";

/// What a recording is of, for its header.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) events: Vec<EventKind>,
    /// The program's name, without its arguments.
    pub(crate) program: String,
    /// How it was recorded, in one line.
    pub(crate) how: String,
    /// How much was done, where that is known.
    pub(crate) work: Option<Work>,
}

/// The value types for what was sampled, with their columns; the last of them is shown first.
fn columns(events: &[EventKind]) -> Vec<(Column, ValueType)> {
    let mut columns = Vec::new();
    let mut add = |column, kind: &str, unit: &str| columns.push((column, ValueType::new(kind, unit)));
    for event in events {
        match event {
            EventKind::Cpu => {
                add(Column::Samples, "samples", "count");
                add(Column::CpuNs, "cpu", "nanoseconds");
            }
            EventKind::Preempted => add(Column::PreemptedNs, "preempted", "nanoseconds"),
            EventKind::Blocked => {
                add(Column::Waits, "waits", "count");
                add(Column::BlockedNs, "off_cpu", "nanoseconds");
            }
            EventKind::Alloc => {
                add(Column::InuseObjects, "inuse_objects", "count");
                add(Column::InuseBytes, "inuse_space", "bytes");
                add(Column::AllocObjects, "alloc_objects", "count");
                add(Column::AllocBytes, "alloc_space", "bytes");
            }
            EventKind::PageFault => {
                add(Column::Samples, "samples", "count");
                add(Column::PageFaults, "page_faults", "count");
            }
            EventKind::Free | EventKind::Unknown => {}
        }
    }
    columns
}

/// Makes the profile of everything so far.
pub(crate) fn profile(stacks: &Stacks, names: &Names, head: &Head) -> Result<Profile, BuildError> {
    let columns = columns(&head.events);
    let types = columns.iter().map(|(_, value_type)| value_type.clone()).collect();
    let mut builder = ProfileBuilder::new("pprof", types);
    let hello = stacks.hello.clone().unwrap_or_default();
    let meta = builder.meta();
    let before_attached = stacks.attached_ns.unwrap_or(0).saturating_sub(hello.monotonic_ns);
    meta.time_ns = Some(hello.realtime_ns.saturating_add(i64::try_from(before_attached).unwrap_or(0)));
    meta.duration_ns = i64::try_from(stacks.duration_ns()).ok().filter(|&ns| ns > 0);
    if head.events.contains(&EventKind::Cpu) && hello.frequency > 0 {
        meta.period = 1_000_000_000 / i64::from(hello.frequency);
        meta.period_type = Some(ValueType::new("cpu", "nanoseconds"));
    }
    meta.comments = comments(stacks, head);

    let mut building = Building {
        stacks,
        names,
        builder,
        functions: FxHashMap::default(),
        mappings: FxHashMap::default(),
        known: FxHashMap::default(),
        codes: FxHashMap::default(),
    };
    let thread_key = building.builder.string("thread")?;
    let program_key = building.builder.string("process")?;
    let has_programs = stacks.rows.iter().any(|(stack, _)| stack.process != stacks.rows[0].0.process);
    for (stack, values) in &stacks.rows {
        let values: Vec<i64> = columns.iter().map(|(column, _)| values[*column as usize]).collect();
        if values.iter().all(|&value| value == 0) {
            continue;
        }
        let locations = building.stack(stack)?;
        let mut labels = Vec::new();
        if !stack.thread.is_empty() {
            let name = building.builder.string(&stack.thread)?;
            labels.push(Label { key: thread_key, value: LabelValue::Text(name) });
        }
        if has_programs {
            let name = building.builder.string(&stack.process)?;
            labels.push(Label { key: program_key, value: LabelValue::Text(name) });
        }
        building.builder.push_sample(&locations, &values, &labels)?;
    }
    building.builder.finish()
}

/// What is worth keeping with the profile: it is all that a reader of the file has.
fn comments(stacks: &Stacks, head: &Head) -> Vec<String> {
    let mut comments = vec![format!("{}: {}", head.program, head.how)];
    comments.extend(head.work.as_ref().map(ToString::to_string));
    let (all, complete) = (stacks.samples, stacks.complete);
    if all > 0 && complete < all {
        let reasons: Vec<String> = stacks.ends.iter().map(|(why, count)| format!("{why}: {count}")).collect();
        comments.push(format!("{complete} of {all} stacks are complete; {}", reasons.join(", ")));
    }
    comments.extend(stacks.lost.iter().map(|(why, count)| lost_in_words(*count, why)));
    comments.extend(stacks.notes.iter().cloned());
    comments
}

struct Building<'a> {
    stacks: &'a Stacks,
    names: &'a Names,
    builder: ProfileBuilder,
    functions: FxHashMap<(Arc<str>, Arc<str>, LineNo), FuncId>,
    /// By module; the kernel's at `u32::MAX`.
    mappings: FxHashMap<u32, MapId>,
    known: FxHashMap<Frame, (LocId, bool)>,
    codes: FxHashMap<ScriptFrame, LocId>,
}

impl Building<'_> {
    /// The locations of a stack, leaf first.
    fn stack(&mut self, stack: &Stack) -> Result<Vec<LocId>, BuildError> {
        let mut locations = Vec::with_capacity(stack.frames.len() + stack.script.len());
        let mut script = stack.script.iter().copied().peekable();
        for &frame in stack.frames.iter() {
            let (location, is_loop) = self.native(frame)?;
            if !is_loop || script.peek().is_none() {
                locations.push(location);
                continue;
            }
            // The run of frames that this loop executes, up to where it was entered.
            for frame in script.by_ref() {
                locations.push(self.script(frame)?);
                if frame.entry {
                    break;
                }
            }
        }
        // Loops that are missing: the stack has no root, or the interpreter is built in another way.
        for frame in script {
            locations.push(self.script(frame)?);
        }
        Ok(locations)
    }

    fn native(&mut self, frame: Frame) -> Result<(LocId, bool), BuildError> {
        if let Some(&known) = self.known.get(&frame) {
            return Ok(known);
        }
        let frames: Frames = self.names.frames(self.stacks, frame);
        let is_loop = frames.iter().any(|named| named.name.starts_with(PYTHON_LOOP));
        let lines = frames.iter().map(|named| self.line(named)).collect::<Result<Vec<_>, _>>()?;
        let (mapping, address) = match frame {
            Frame::Kernel(_) => (self.kernel()?, 0),
            Frame::Native { module, address } => (self.module(module)?, address),
            Frame::Jit { address, .. } => (MapId::NONE, address),
            Frame::Unknown => (MapId::NONE, 0),
        };
        let location = self.builder.location(mapping, address, &lines)?;
        self.known.insert(frame, (location, is_loop));
        Ok((location, is_loop))
    }

    fn script(&mut self, frame: ScriptFrame) -> Result<LocId, BuildError> {
        if let Some(&known) = self.codes.get(&frame) {
            return Ok(known);
        }
        let code = self.stacks.codes.get(&frame.code);
        let (name, file, first) =
            code.map_or(("", "", 0), |code| (code.name.as_str(), code.file.as_str(), code.first_line));
        let function = self.builder.function(name, "", file, line_number(first))?;
        let line = Line { function, line: line_number(frame.line), column: 0 };
        let location = self.builder.location(MapId::NONE, 0, &[line])?;
        self.codes.insert(frame, location);
        Ok(location)
    }

    fn line(&mut self, named: &Named) -> Result<Line, BuildError> {
        let key = (Arc::clone(&named.name), Arc::clone(&named.file), named.start_line);
        let function = if let Some(&known) = self.functions.get(&key) {
            known
        } else {
            let name = demangle(&named.name);
            let system_name = if *name == *named.name { "" } else { &*named.name };
            let function = self.builder.function(&name, system_name, &named.file, named.start_line)?;
            self.functions.insert(key, function);
            function
        };
        Ok(Line { function, line: named.line, column: named.column })
    }

    fn module(&mut self, row: u32) -> Result<MapId, BuildError> {
        if let Some(&known) = self.mappings.get(&row) {
            return Ok(known);
        }
        let module = &self.stacks.modules[row as usize];
        let (start, length, file_offset) = module.first;
        let mapping = Mapping {
            memory_start: start,
            memory_limit: start.saturating_add(length),
            file_offset,
            file: self.builder.string(&module.key.path)?,
            build_id: self.builder.string(&module.key.build_id)?,
        };
        let id = self.builder.push_mapping(mapping)?;
        self.mappings.insert(row, id);
        Ok(id)
    }

    fn kernel(&mut self) -> Result<MapId, BuildError> {
        if let Some(&known) = self.mappings.get(&u32::MAX) {
            return Ok(known);
        }
        let file = self.builder.string("[kernel.kallsyms]")?;
        let id = self.builder.push_mapping(Mapping { file, ..Mapping::default() })?;
        self.mappings.insert(u32::MAX, id);
        Ok(id)
    }
}

fn line_number(number: u32) -> LineNo {
    LineNo::from_pprof(i64::from(number), 0).0
}
