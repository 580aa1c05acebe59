//! perf's own recording, `perf.data`, as a file or as it comes through a pipe.
//!
//! Samples are addresses. Which binary an address belongs to follows from the records of
//! mappings, in the order of time and per process ([`maps`]); their build ids are at the end of
//! the file. Naming the addresses takes the binaries, and is not done here.
//!
//! Lengths in the file are claims: nothing is set aside for them before the bytes are there.
//!
//! What is not here: stacks that were recorded as memory (`--call-graph dwarf`), which take an
//! unwinder; their innermost frame is kept and a note says so. Branch stacks, auxiliary
//! traces.

mod file;
mod maps;
mod records;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::sink::Sink;
use super::{Confidence, Context, DecodeError, DecodeErrorKind, Format, Input};
use crate::profile::{Label, LocId, MapId, Mapping, Profile, ValueType};
use file::{Event, File};
use maps::{Map, Processes};
use records::{Record, Sample};

pub(super) const FORMAT: Format = Format { name: "perf.data", sniff, decode };

fn sniff(prefix: &[u8]) -> Confidence {
    if prefix.starts_with(b"PERFILE2") || prefix.starts_with(b"2ELIFREP") {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

/// From here on a value in a stack is no address but says whose the next ones are.
const CONTEXTS: u64 = 0xffff_ffff_ffff_f001;
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();

fn decode(input: &mut Input<'_>, context: &Context<'_>) -> Result<Profile, DecodeError> {
    let (bytes, cut) = input.read_available()?;
    let mut file = File::read(&bytes, context)?;
    if file.events.is_empty() {
        return Err(DecodeError::invalid("it does not say what was recorded"));
    }
    // Records of different processors are in order each, but not together.
    file.records.sort_by_key(|record| record.time);
    let types = file.events.iter().map(Event::value_type).collect();
    let mut sink = Sink::new(FORMAT.name, types, context);
    sink.builder.meta().default_value_type = 0;
    let mut rows = Rows {
        processes: Processes::default(),
        commands: FxHashMap::default(),
        build_ids: std::mem::take(&mut file.build_ids),
        mappings: FxHashMap::default(),
        labels: FxHashMap::default(),
        sink,
        lost: 0,
        memory_stacks: 0,
    };
    let (mut start, mut end) = (u64::MAX, 0);
    for timed in &file.records {
        match &timed.record {
            Record::Sample(sample) => {
                start = start.min(timed.time);
                end = end.max(timed.time);
                rows.add(sample, &file.events)?;
            }
            Record::Map { pid, map } => rows.processes.add(*pid, map.clone()),
            Record::Command { pid, tid, name, is_exec } => {
                if *is_exec {
                    rows.processes.forget(*pid);
                }
                rows.commands.insert(*tid, Rc::clone(name));
            }
            Record::Fork { pid, parent, tid, parent_tid } => {
                rows.processes.fork(*pid, *parent);
                if let Some(name) = rows.commands.get(parent_tid).cloned() {
                    rows.commands.entry(*tid).or_insert(name);
                }
            }
            Record::Lost(count) => rows.lost += count,
        }
    }
    let Rows { mut sink, lost, memory_stacks, .. } = rows;
    sink.builder.meta().duration_ns = i64::try_from(end.saturating_sub(start)).ok().filter(|&duration| duration > 0);
    sink.note_count(lost, "records were lost while recording");
    sink.note_count(
        memory_stacks,
        "stacks were recorded as memory (--call-graph dwarf) and have their innermost frame only; \
         `perf script -F +srcline` walks them, and its output can be read",
    );
    sink.note_count(file.unread, "records can't be read; they were left out");
    let cut = cut.or_else(|| file.is_cut.then(|| DecodeError::truncated("it ends inside its records")));
    sink.note_cut(cut.as_ref());
    sink.finish()
}

/// What is known as time passes.
struct Rows<'c> {
    processes: Processes,
    /// By thread.
    commands: FxHashMap<i32, Rc<str>>,
    /// By path.
    build_ids: FxHashMap<Rc<str>, String>,
    mappings: FxHashMap<Map, MapId>,
    labels: FxHashMap<(i32, i32, Rc<str>), Vec<Label>>,
    sink: Sink<'c>,
    lost: u64,
    memory_stacks: u64,
}

impl Rows<'_> {
    fn add(&mut self, sample: &Sample, events: &[Event]) -> Result<(), DecodeError> {
        let mut is_kernel = sample.is_kernel;
        let mut stack = Vec::with_capacity(sample.chain.len().max(1));
        let mut is_leaf = true;
        for &address in &sample.chain {
            if address >= CONTEXTS {
                match address {
                    CONTEXT_KERNEL => is_kernel = true,
                    CONTEXT_USER => is_kernel = false,
                    _ => {}
                }
                continue;
            }
            // Callers are where their call returns to.
            let address = if is_leaf { address } else { address.saturating_sub(1) };
            is_leaf = false;
            stack.push(self.location(sample.pid, address, is_kernel)?);
        }
        if stack.is_empty() && sample.address != 0 {
            stack.push(self.location(sample.pid, sample.address, sample.is_kernel)?);
        }
        self.memory_stacks += u64::from(sample.has_memory_stack);
        let event = sample.event.min(events.len() - 1);
        let mut values = vec![0; events.len()];
        values[event] = sample.period.map_or(events[event].fixed_period, |period| i64::try_from(period).unwrap_or(0));
        let labels = self.labels(sample)?;
        self.sink.sample(&stack, &values, &labels)
    }

    fn location(&mut self, pid: i32, address: u64, is_kernel: bool) -> Result<LocId, DecodeError> {
        let map = self.processes.find(if is_kernel { maps::KERNEL } else { pid }, address);
        let mapping = match map {
            None => MapId::NONE,
            Some(map) => {
                if let Some(&known) = self.mappings.get(&map) {
                    known
                } else {
                    let build_id =
                        map.build_id.as_deref().or_else(|| self.build_ids.get(&map.path).map(String::as_str));
                    let builder = &mut self.sink.builder;
                    let (file, build_id) = (builder.string(&map.path)?, builder.string(build_id.unwrap_or(""))?);
                    let (memory_start, memory_limit, file_offset) = (map.start, map.end, map.offset);
                    let row =
                        builder.push_mapping(Mapping { memory_start, memory_limit, file_offset, file, build_id })?;
                    self.mappings.insert(map, row);
                    row
                }
            }
        };
        Ok(self.sink.builder.location(mapping, address, &[])?)
    }

    fn labels(&mut self, sample: &Sample) -> Result<Vec<Label>, DecodeError> {
        let name = self.commands.get(&sample.tid).or_else(|| self.commands.get(&sample.pid));
        let name = name.cloned().unwrap_or_else(|| Rc::from(""));
        let key = (sample.pid, sample.tid, name);
        if let Some(known) = self.labels.get(&key) {
            return Ok(known.clone());
        }
        let labels = [
            self.sink.label("process", &key.2)?,
            self.sink.label("pid", &sample.pid.to_string())?,
            self.sink.label("tid", &sample.tid.to_string())?,
        ];
        let labels: Vec<Label> = labels.into_iter().flatten().collect();
        self.labels.insert(key, labels.clone());
        Ok(labels)
    }
}

impl Event {
    fn value_type(&self) -> ValueType {
        let unit = if matches!(self.name.split(':').next(), Some("cpu-clock" | "task-clock")) {
            "nanoseconds"
        } else {
            "count"
        };
        ValueType::new(&*self.name, unit)
    }
}

fn damaged(what: &str) -> DecodeError {
    DecodeError::new(DecodeErrorKind::Invalid, format!("{what} is damaged"))
}
