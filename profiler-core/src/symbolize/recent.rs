//! The answers that were given lately, so many and no more.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Answers of one generation: what was not asked for during a whole one is forgotten.
const GENERATION: usize = 1 << 16;

/// Answers by question. What is asked for again stays; of the rest the oldest goes first, a
/// generation at a time, which takes no list of who was used when.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Recent<K, V> {
    /// What was answered, if it is not forgotten.
    #[inline]
    pub(super) fn get(&mut self, question: &K) -> Option<V> {
        if let Some(answer) = self.young.get(question) {
            return Some(answer.clone());
        }
        let answer = self.old.remove(question)?;
        self.insert(*question, answer.clone());
        Some(answer)
    }

    /// Keeps an answer.
    pub(super) fn insert(&mut self, question: K, answer: V) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(question, answer);
    }

    /// How many are kept: at most two generations.
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_stays() {
        let mut recent = Recent::default();
        recent.insert(0, 0);
        for question in 1..10 * GENERATION {
            assert_eq!(recent.get(&question), None);
            recent.insert(question, question);
            if question % (GENERATION / 2) == 0 {
                assert_eq!(recent.get(&0), Some(0), "after {question}");
            }
        }
        assert_eq!(recent.get(&1), None, "long forgotten");
        assert!(recent.len() <= 2 * GENERATION, "{}", recent.len());
    }
}
