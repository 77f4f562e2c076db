// A text that knows who wrote each of its bytes.
//
//   bytes   <|im_start|>user\nHello<|im_end|>
//   runs    |---- template -----|user-|template-|
//
// Runs cover every byte, are never empty, and neighbours differ.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/origin.h"

namespace pagoda::text {

class OriginText {
 public:
  struct Run {
    std::size_t end;  // in bytes; a run begins where the one before it ends
    Origin origin;
    bool operator==(const Run&) const = default;
  };

  OriginText() = default;
  OriginText(std::string bytes, Origin origin);

  std::string_view bytes() const { return bytes_; }
  std::span<const Run> runs() const { return runs_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // `at` is the offset of a byte of the text.
  Origin origin_at(std::size_t at) const;

  void append(std::string_view bytes, Origin origin);
  void append(const OriginText& other) { append(other, 0, other.size()); }
  void append(const OriginText& other, std::size_t begin, std::size_t end);
  OriginText slice(std::size_t begin, std::size_t end) const;
  // Keeps the first `bytes` bytes.
  void truncate(std::size_t bytes);

 private:
  std::size_t run_at(std::size_t at) const;
  void extend_runs(Origin origin);

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace pagoda::text
