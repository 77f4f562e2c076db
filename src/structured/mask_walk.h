// MaskWalk computes one mask: which tokens lead from a state to a state that is not dead. It walks
// the vocabulary's trie, but for strings (string_slice.h) and runs of characters
// (character_runs.h), whose tokens are known, and of which it walks only what leaves them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "structured/automaton.h"
#include "structured/character_runs.h"
#include "structured/mask_vocabulary.h"

namespace pagoda::structured {

class MaskWalk {
 public:
  // Adds to `mask`. All of it outlives the walk.
  MaskWalk(Automaton& automaton, const MaskVocabulary& vocabulary, CharacterRuns& runs,
           std::span<MaskWord> mask);

  // Adds the tokens that may come in a canonical state.
  void add(StateId state);

 private:
  void add_string(const Configuration& configuration, const StringSlice& slice);
  void add_below(StateId state, const Subtree& below);
  void add_split(const SplitState& split, const Subtree& below);
  void add_inner(const CharacterRun& run, const Subtree& below);
  void add_exits(const CharacterRun& run, const Subtree& below);
  void add_leaving(const CharacterRun& run, const Subtree& below);
  void walk(StateId from, const Subtree& below);
  void walk_suffixes(StateId from, const StringSlice& slice, const CountBounds& counter);
  void add_token(const VocabularyTrie::Node& node) {
    if (node.number != VocabularyTrie::kNoNumber) set_mask_bit(mask_, node.number);
  }

  Automaton& automaton_;
  const MaskVocabulary& vocabulary_;
  CharacterRuns& runs_;
  std::span<MaskWord> mask_;
  std::span<const VocabularyTrie::Node> nodes_;
  // [depth] of the walk:
  std::vector<StateId> states_;
  std::vector<std::uint32_t> characters_;  // of a run
  std::vector<std::uint8_t> wide_;         // wide_characters() within one
  std::string bytes_;                      // [depth - 1]
};

}  // namespace pagoda::structured
