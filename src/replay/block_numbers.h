// The different blocks of a trace, numbered from 0 in order of first use. A block is its id and all
// ids before it: an id below another prefix is another block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "replay/trace.h"

namespace pagoda::replay {

class BlockNumbers {
 public:
  explicit BlockNumbers(const Trace& trace);

  // The number of a touch: an entry of Trace::ids that ends no request.
  std::uint32_t of(std::uint64_t touch) const { return numbers_[touch]; }
  // Those of a request's blocks.
  std::span<const std::uint32_t> of(const TraceRequest& request) const {
    return std::span(numbers_).subspan(request.first, request.blocks);
  }
  // How many of a request's blocks an earlier one touched: they are its first.
  std::uint64_t known(std::size_t request) const { return known_[request]; }
  std::uint64_t unique() const { return unique_; }

 private:
  std::vector<std::uint32_t> numbers_;  // [entry of Trace::ids]
  std::vector<std::uint64_t> known_;    // [request]
  std::uint64_t unique_ = 0;
};

}  // namespace pagoda::replay
