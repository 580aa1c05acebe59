//! Several pairs of runs of a new version and its base: what is shown is their sums, and each row is judged by all
//! pairs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use profiler_core::attribute::analysis::{Analysis, ComparedTo};
use profiler_core::cancel::CancelFlag;
use profiler_core::decode::Limits;
use profiler_core::paths::Workspace;
use profiler_core::profile::Profile;
use serde::{Deserialize, Serialize};

use super::{Failure, Input, Known, Profiles, Wish, compare, evidence_of, in_source, placed, read};
use crate::anchor::Opened;
use crate::symbols::Places;

/// A pair of recordings that were made in turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPair {
    /// Of the base.
    pub base: PathBuf,
    /// Of the new version.
    pub new: PathBuf,
}

impl RunPair {
    /// The same with the sides exchanged.
    #[must_use]
    pub fn turned(&self) -> Self {
        Self { base: self.new.clone(), new: self.base.clone() }
    }
}

/// A recording, with lines where this machine knows them.
struct Side {
    input: Input,
    profile: Arc<Profile>,
    opened: Arc<Mutex<Opened>>,
}

/// All recordings, by pair: the new version's and the base's.
pub(super) struct Runs(Vec<(Side, Side)>);

impl Runs {
    /// Reads them.
    pub(super) fn read(
        pairs: &[RunPair],
        profiles: &Profiles,
        limits: &Limits,
        places: &Places,
        cancel: &CancelFlag,
    ) -> Result<Self, Failure> {
        let side = |path: &PathBuf| {
            let input = Input::File(path.clone());
            let known = read(&input, None, profiles, limits, cancel)?;
            Ok::<_, Failure>(Side { input, profile: known.symbolised(places, cancel)?, opened: known.opened })
        };
        pairs.iter().map(|pair| Ok((side(&pair.new)?, side(&pair.base)?))).collect::<Result<_, Failure>>().map(Self)
    }

    /// Everything of the new version as one, and everything of the base.
    pub(super) fn sums(&self) -> Result<(Known, Known), Failure> {
        let sum = |pick: fn(&(Side, Side)) -> &Side| {
            let sides = self.0.iter().map(pick);
            let parts = sides.clone().map(|side| (*side.profile).clone()).collect();
            let merged = Profile::merge(parts).map_err(|error| Failure::Failed(format!("the runs: {error}")))?;
            let nothing = || Failure::Failed("there are no runs".to_owned());
            // The texts are the same for all runs of a side.
            let opened = sides.clone().next().map(|side| Arc::clone(&side.opened)).unwrap_or_default();
            Ok::<_, Failure>(Known { opened, ..Known::new(merged.ok_or_else(nothing)?, None) })
        };
        Ok((sum(|(new, _)| new)?, sum(|(_, base)| base)?))
    }

    /// Has the comparison of the sums know what each pair says.
    pub(super) fn judge(
        &self,
        wish: &Wish,
        workspace: &Workspace,
        analysis: &Analysis,
        compared: &mut ComparedTo,
        cancel: &CancelFlag,
    ) -> Result<(), Failure> {
        let terms = wish.terms();
        let groups = |side: &Side| {
            let profile = in_source(Arc::clone(&side.profile), workspace, cancel)?;
            let (groups, _) =
                placed(&profile, workspace, &evidence_of(wish, &side.input, (&side.opened, &terms)), cancel)?;
            Ok::<_, Failure>((profile, groups))
        };
        let mut judged = Vec::with_capacity(self.0.len());
        for (new, base) in &self.0 {
            let names = [new.input.name(), base.input.name()];
            let (profile, own) = groups(new)?;
            let value_type = profile.value_types().iter().position(|it| it == analysis.selected());
            let value_type =
                value_type.ok_or_else(|| Failure::Failed(format!("{}: it is of another type", names[0])))?;
            let mut run = Analysis::new(profile, own, value_type, &analysis.filters, cancel)?;
            let base = groups(base)?;
            let against = compare(&mut run, base, wish.normalize, [&names[0], &names[1]], cancel)?;
            judged.push((run, against));
        }
        analysis.judge_by(compared, &judged);
        Ok(())
    }
}
