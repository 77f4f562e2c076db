// Automaton runs a Program on bytes. A state is a set of configurations (an instruction and a
// stack), so that grammars may be ambiguous; states and their transitions are made when they are
// first needed and kept, which makes an automaton a deterministic one that grows.
//
// Stacks share their frames. A counter on a stack counts down; in a canonical state, counters that
// no single token can bring to their end are written as kUnbounded, so that the states of a long
// string or list are one state. Configurations that differ in one counter alone are joined where
// what they may still count is one interval, so that an ambiguous list does not hold every count.
//
// Thread rule: one thread at a time. Copies are independent.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "structured/intern_index.h"
#include "structured/program.h"

namespace pagoda::structured {

using StateId = std::uint32_t;
inline constexpr StateId kDeadState = 0;

// Limits of one automaton. What a limit refuses depends on the grammar and the text alone.
inline constexpr std::uint32_t kStackDepthMax = 256;     // deeper texts do not match
inline constexpr std::size_t kConfigurationsMax = 2048;  // of one state
inline constexpr std::size_t kStatesMax = 30000;         // between two calls of forget()
// Bytes of one automaton's states, and those from which on forget() is worth it.
inline constexpr std::size_t kAutomatonBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kAutomatonBytesKept = std::size_t{1} << 20;
inline constexpr std::uint32_t kJoinedLevels = 4;   // counters deeper in a stack stay apart
inline constexpr std::uint64_t kWorkMax = 200'000;  // configurations visited for one token

struct Configuration {
  Pc pc = 0;
  std::uint32_t frame = 0;

  friend bool operator==(const Configuration&, const Configuration&) = default;
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};

class Automaton {
 public:
  // `token_bytes_max` is the longest token: nothing counts further within one token.
  Automaton(std::shared_ptr<const Program> program, std::uint32_t token_bytes_max);

  StateId start();
  // Returns kDeadState where no text goes on so.
  StateId step(StateId state, std::uint8_t byte) {
    const State& at = states_[state];
    if (at.row != kNoRow) {
      const std::uint16_t known = rows_[at.row][byte];
      return known != kUnknown ? known : compute_step(state, byte);
    }
    for (std::uint32_t i = 0; i < at.edges; ++i) {
      if (at.edge_bytes[i] == byte) return at.edge_targets[i];
    }
    return compute_step(state, byte);
  }
  bool accepts(StateId state) const { return states_[state].accepts; }
  std::span<const Configuration> configurations(StateId state) const {
    return std::span(configurations_).subspan(states_[state].first, states_[state].count);
  }
  const Instruction& instruction(const Configuration& configuration) const {
    return program_->code[configuration.pc];
  }
  // The set of a kSet or kWide.
  const ByteSet& set(std::uint32_t number) const { return program_->sets[number]; }
  // The bytes that the configuration reads next.
  ByteSet bytes_of(const Configuration& configuration) const;
  // The counter of a configuration at kCountedString.
  CountBounds counter(const Configuration& configuration) const {
    return {frames_[configuration.frame].missing, frames_[configuration.frame].room};
  }

  StateId canonical(StateId state);
  // May a configuration of the state come to a kCommit, which would end the others? Then what may
  // follow is known of all configurations together only.
  bool may_commit(StateId state) const;
  bool has_commits() const { return !program_->before_commit.empty(); }
  // Returns the state of these configurations alone, which ascend.
  StateId state_of(std::span<const Configuration> configurations);
  // Returns the state after the closing quote of a configuration at kString or kCountedString.
  StateId after_string(const Configuration& configuration);

  // Begins the work for another token.
  void begin_token() { work_ = 0; }
  // Configurations visited since.
  std::uint64_t work() const { return work_; }
  // True: a limit was reached, and kDeadState says nothing any more.
  bool is_exhausted() const { return exhausted_; }
  // The memory of its states.
  std::size_t bytes() const;
  // Forgets all states but `kept`, whose new number is returned.
  StateId forget(StateId kept);

 private:
  static constexpr std::uint16_t kUnknown = 0xFFFF;
  static constexpr std::uint32_t kCounterFrame = 0xFFFFFFFF;  // in place of a return
  // Likewise. What may follow depends on the count to the end: it is never written as kUnbounded.
  static constexpr std::uint32_t kMeasureFrame = 0xFFFFFFFE;
  static constexpr std::uint32_t kNotComputed = 0xFFFFFFFF;

  struct Frame {
    std::uint32_t returns_to = 0;  // or kCounterFrame
    std::uint32_t missing = 0;
    std::uint32_t room = 0;
    std::uint32_t parent = 0;
    std::uint32_t depth = 0;
    std::uint32_t canonical = kNotComputed;
  };
  // A configuration whose stack is `rest`, but for the bounds of one counter.
  struct Counted {
    Pc pc = 0;
    std::uint32_t rest = 0;
    CountBounds bounds = {};
    std::uint32_t frame = 0;
  };
  static constexpr std::uint32_t kNoRow = 0xFFFFFFFF;
  static constexpr std::uint32_t kEdgesMax = 4;

  // Most states are left by few bytes: transitions get a row of their own when there are more.
  struct State {
    std::uint32_t first = 0;  // into configurations_
    std::uint32_t count = 0;
    StateId canonical = kNotComputed;
    std::uint32_t row = kNoRow;  // into rows_
    bool accepts = false;
    std::uint8_t edges = 0;  // that are known, where there is no row
    std::array<std::uint8_t, kEdgesMax> edge_bytes = {};
    std::array<std::uint16_t, kEdgesMax> edge_targets = {};
  };

  void clear();
  StateId compute_step(StateId state, std::uint8_t byte);
  void keep_step(StateId state, std::uint8_t byte, StateId next);
  void step_configuration(const Configuration& from, std::uint8_t byte);
  void step_counted_string(const Configuration& from, const Instruction& at, std::uint8_t byte);
  // Adds a configuration to the closure, unless it is there.
  void visit(Pc pc, std::uint32_t frame);
  void follow(Pc pc, std::uint32_t frame);
  void follow_open();
  // Drops all that was found, but for what came through a kCommit.
  void keep_committed();
  StateId take_closure();
  // Joins the configurations of reading_ by their counters at `level` frames from the top.
  void join_counters(std::uint32_t level);
  // The frame `level` below this one; 0, the empty stack, where there are fewer.
  std::uint32_t frame_below(std::uint32_t frame, std::uint32_t level) const;
  // Returns this stack with other bounds in the counter at `level`.
  std::uint32_t with_bounds(std::uint32_t frame, std::uint32_t level, CountBounds bounds);
  StateId intern_state(std::span<const Configuration> sorted, bool accepts);
  std::uint32_t push(std::uint32_t returns_to, CountBounds bounds, std::uint32_t parent);
  std::uint32_t counted(std::uint32_t frame);
  std::uint32_t canonical_frame(std::uint32_t frame);
  std::uint32_t copy_frame(std::span<const Frame> from, std::uint32_t frame);
  std::uint64_t hash_of_frame(std::uint32_t frame) const;
  std::uint64_t hash_of_state(StateId state) const;

  std::shared_ptr<const Program> program_;
  std::uint32_t token_bytes_max_;
  std::vector<Frame> frames_;  // frames_[0] is the empty stack
  InternIndex frame_index_;
  std::vector<State> states_;  // states_[0] is dead
  InternIndex state_index_;
  std::vector<Configuration> configurations_;
  std::vector<std::array<std::uint16_t, 256>> rows_;
  std::uint64_t work_ = 0;
  bool exhausted_ = false;

  // The closure that is being built.
  std::vector<Configuration> open_;  // to be followed
  std::vector<Configuration> seen_;  // all of them
  InternIndex seen_index_;
  std::vector<Configuration> reading_;    // those that read a byte
  std::vector<Configuration> committed_;  // those behind a kCommit
  bool is_committed_ = false;             // all that is followed came through one
  std::vector<Counted> counted_;          // those that are being joined
  bool closure_accepts_ = false;
};

}  // namespace pagoda::structured
