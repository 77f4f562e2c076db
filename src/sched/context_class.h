// Length classes: requests of one class share what the class may take of the sequences and of the
// cache, so that long contexts cannot crowd out short ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::sched {

struct ContextClass {
  std::uint64_t tokens_max = 0;  // of a prompt in this class
  double share = 1.0;            // of the sequences and of the blocks; above 0, to 1
};

// Ascending by tokens_max; prompts longer than all belong to the last.
class ContextClasses {
 public:
  // One class that may take everything.
  ContextClasses() : classes_{{UINT64_MAX, 1.0}} {}
  // `text`: "4096:1,32768:0.5,max:0.25", tokens ascending. The error names what is wrong.
  static Result<ContextClasses> parse(std::string_view text);

  std::size_t size() const { return classes_.size(); }
  const ContextClass& operator[](std::size_t index) const { return classes_[index]; }
  std::size_t class_of(std::uint64_t prompt_tokens) const;

  // What a class may take of `all`, at least 1.
  static std::uint64_t part(const ContextClass& context_class, std::uint64_t all);

 private:
  std::vector<ContextClass> classes_;
};

}  // namespace pagoda::sched
