// Context classes group requests by prompt length. The requests of one class share a bounded part
// of the sequence slots and of the KV blocks, so that long contexts cannot crowd out short ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::sched {

struct ContextClass {
  std::uint64_t tokens_max = 0;  // longest prompt of the class
  double share = 1.0;            // of the sequence slots and of the KV blocks, in (0, 1]
};

// The classes ascend by tokens_max. Prompts longer than every tokens_max belong to the last class.
class ContextClasses {
 public:
  // Makes one class that may take all slots and blocks.
  ContextClasses() : classes_{{UINT64_MAX, 1.0}} {}
  // Parses text such as "4096:1,32768:0.5,max:0.25" (tokens_max:share, tokens ascending). The error
  // names the class that is wrong.
  static Result<ContextClasses> parse(std::string_view text);

  std::size_t size() const { return classes_.size(); }
  const ContextClass& operator[](std::size_t index) const { return classes_[index]; }
  std::size_t class_of(std::uint64_t prompt_tokens) const;

  // Returns how many of `all` slots or blocks the class may take, at least 1.
  static std::uint64_t part(const ContextClass& context_class, std::uint64_t all);

 private:
  std::vector<ContextClass> classes_;
};

}  // namespace pagoda::sched
