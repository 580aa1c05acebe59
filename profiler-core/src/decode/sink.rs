//! What most decoders need on the way from their frames to samples: bounds, labels, rounding.

use super::fraction::Rounding;
use super::{Context, DecodeError, DecodeErrorKind};
use crate::profile::{
    BuildError, Label, LabelValue, Line, LineNo, LocId, MapId, Profile, ProfileBuilder, StrId, ValueType,
};

/// A profile under construction, within the limits of the context.
pub(super) struct Sink<'a> {
    pub(super) builder: ProfileBuilder,
    pub(super) rounding: Rounding,
    context: &'a Context<'a>,
    frame_count: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(format: &'static str, value_types: Vec<ValueType>, context: &'a Context<'a>) -> Self {
        Self {
            builder: ProfileBuilder::new(format, value_types),
            rounding: Rounding::default(),
            context,
            frame_count: 0,
        }
    }

    /// The row of a frame that is known by name, file and position only.
    pub(super) fn frame(&mut self, name: &str, file: &str, line: i64, column: i64) -> Result<LocId, BuildError> {
        self.frame_in(name, file, LineNo::UNKNOWN, line, column)
    }

    /// The same, where it is also known on which line the function starts.
    pub(super) fn frame_in(
        &mut self,
        name: &str,
        file: &str,
        start_line: LineNo,
        line: i64,
        column: i64,
    ) -> Result<LocId, BuildError> {
        let function = self.builder.function(name, "", file, start_line)?;
        let (line, column) = LineNo::from_pprof(line, column);
        self.builder.location(MapId::NONE, 0, &[Line { function, line, column }])
    }

    /// A label with a text; nothing for an empty one.
    pub(super) fn label(&mut self, key: &str, value: &str) -> Result<Option<Label>, BuildError> {
        let value = self.builder.string(value)?;
        let key = self.builder.string(key)?;
        Ok((value != StrId::NONE).then_some(Label { key, value: LabelValue::Text(value) }))
    }

    /// Adds a sample, leaf first, if it has any value.
    pub(super) fn sample(&mut self, stack: &[LocId], values: &[i64], labels: &[Label]) -> Result<(), DecodeError> {
        if values.iter().all(|&value| value == 0) {
            return Ok(());
        }
        self.count_frames(stack.len())?;
        if self.builder.sample_count().is_multiple_of(4096) {
            self.context.cancel.check()?;
        }
        Ok(self.builder.push_sample(stack, values, labels)?)
    }

    fn count_frames(&mut self, more: usize) -> Result<(), DecodeError> {
        self.frame_count += more;
        if self.frame_count > self.context.limits.max_frames {
            let message = format!("it holds more than {} frames", self.context.limits.max_frames);
            return Err(DecodeError::new(DecodeErrorKind::Limit, message));
        }
        Ok(())
    }

    /// Says that a number of things were odd, unless there were none.
    pub(super) fn note_count(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.builder.note(format!("{count} {what}"));
        }
    }

    /// Says that the file ends too early, if it does.
    pub(super) fn note_cut(&mut self, cut: Option<&DecodeError>) {
        if let Some(cut) = cut {
            self.builder.note(format!("the file is incomplete: {cut}; what came before was kept"));
        }
    }

    pub(super) fn finish(mut self) -> Result<Profile, DecodeError> {
        if let Some(note) = self.rounding.note() {
            self.builder.note(note);
        }
        if self.builder.sample_count() == 0 {
            self.builder.note("the profile holds 0 samples");
        }
        Ok(self.builder.finish()?)
    }
}
