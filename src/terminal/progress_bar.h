// One line on stderr that shows how far long work has come, or a new line every five seconds where
// stderr is no terminal: such lines stay, so that the last one says where the work ended, and none
// says what the one before did. Silent for work that ends within half a second, or within those
// five.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace pagoda::terminal {

class ProgressBar {
 public:
  ProgressBar(std::string label, std::string unit, const Clock& clock);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::uint64_t done, std::uint64_t total);
  void clear();  // removes the line, or says where the work ended

 private:
  void print_line();

  std::string label_;
  std::string unit_;
  const Clock& clock_;
  std::int64_t start_ns_;
  bool terminal_;
  bool shown_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t printed_ = 0;  // in the last line, where there is no terminal
};

}  // namespace pagoda::terminal
