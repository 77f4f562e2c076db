// A regular expression that cuts a text into pieces: its matches, and the text between them.
//
// Unicode throughout: \s is the White_Space property, \p{..} are general categories. Immutable
// after compilation; any number of threads may split at once, each with its own MatchState.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::text {

// Buffers of the matcher, owned by one thread at a time.
class MatchState {
 public:
  MatchState();
  ~MatchState();
  MatchState(const MatchState&) = delete;
  MatchState& operator=(const MatchState&) = delete;

  // Frees the memory that a long text needed.
  void reset();

 private:
  friend class SplitPattern;
  struct Data;
  std::unique_ptr<Data> data_;
};

class SplitPattern {
 public:
  static Result<SplitPattern> compile(std::string_view pattern);
  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  // Appends the end of each piece of `text`, plus `base`. `text` must be well-formed UTF-8 of less
  // than 4 GiB.
  void split(std::string_view text, std::uint32_t base, MatchState& state,
             std::vector<std::uint32_t>& ends) const;

 private:
  struct Code;
  explicit SplitPattern(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

}  // namespace pagoda::text
