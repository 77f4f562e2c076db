// CharacterRuns finds in a state the repetitions of one set of characters, such as [a-z ]{5,200}:
// tokens that are made of the set's characters are known by the set and their length alone.
//
// Thread rule: one thread at a time. Copies are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "structured/automaton.h"
#include "structured/mask_vocabulary.h"
#include "structured/token_characters.h"

namespace pagoda::structured {

// A state may read character by character from one set. Behind j characters it is what goes on so,
// and `rests[j]`.
struct CharacterRun {
  StateId head = kDeadState;  // that reads the first character
  std::shared_ptr<const CharacterSet> set;
  std::uint32_t room = kUnbounded;  // the most characters
  std::vector<StateId> rests;       // [characters], the last for all that follow; [0] is dead
  ByteSet exits;                    // that the rests read
  // No character of the set begins with one of `exits`: a text leaves the run in one place.
  bool is_disjoint = false;

  StateId rest(std::uint32_t characters) const {
    return characters < rests.size() ? rests[characters] : rests.back();
  }
};

// A state is its runs and the rest.
struct SplitState {
  StateId state = kDeadState;
  std::vector<CharacterRun> runs;
  StateId rest = kDeadState;
};

class CharacterRuns {
 public:
  // The most masks that it keeps.
  static constexpr std::size_t kMasksKept = 4;

  std::shared_ptr<const SplitState> split(Automaton& automaton, const MaskVocabulary& vocabulary,
                                          StateId state);
  // The tokens that are characters of the set.
  std::span<const MaskWord> inner(const std::shared_ptr<const CharacterSet>& set,
                                  const MaskVocabulary& vocabulary);
  // The numbers of states mean nothing any more.
  void forget_states() { splits_.clear(); }
  void clear();

 private:
  struct SetKey {
    std::uint32_t number = 0;  // of the program
    bool has_wide = false;
    bool has_separators = false;

    friend bool operator==(const SetKey&, const SetKey&) = default;
  };
  struct KnownSet {
    SetKey key;
    std::shared_ptr<const CharacterSet> set;  // nothing: few tokens are in the set
    std::uint8_t example = 0;                 // one of its characters
  };
  struct KnownMask {
    std::shared_ptr<const CharacterSet> set;
    std::vector<MaskWord> mask;
  };

  static constexpr std::size_t kSplitsKept = 16;
  static constexpr std::size_t kSetsKept = 32;

  static bool reads_characters(const Instruction& at);
  static SetKey key_of(const Instruction& at);
  const KnownSet& known(const SetKey& key, const Automaton& automaton,
                        const MaskVocabulary& vocabulary);
  static bool find_rests(Automaton& automaton, const KnownSet& known, std::uint32_t characters_max,
                         CharacterRun& run);

  std::vector<std::shared_ptr<const SplitState>> splits_;
  std::size_t next_split_ = 0;
  std::vector<KnownSet> sets_;
  std::size_t next_set_ = 0;
  std::vector<KnownMask> masks_;
  std::size_t next_mask_ = 0;
};

}  // namespace pagoda::structured
