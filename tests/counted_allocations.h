// Counts every operator new of the program that links it, and makes chosen ones fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace pagoda {

std::uint64_t allocations_so_far();
// As asked for; nothing is taken off for what was given back.
std::uint64_t bytes_allocated_so_far();

// While it lives: the most bytes that were held at once beyond those held when it began. One at a
// time.
class HeldBytes {
 public:
  HeldBytes();
  std::uint64_t most() const;
  std::uint64_t now() const;

 private:
  std::int64_t before_;
};

// While it lives, one allocation on threads of this name throws std::bad_alloc: the one after
// `passed` others. Some never fail, known by their size: libraries ask for them where they cannot
// bear it. nlohmann's JSON asks for 16 bytes a value while it is destroyed, Asio for a mutex while
// it makes a strand; where none of these is at work, any size may fail. One at a time.
class FailedAllocation {
 public:
  FailedAllocation(const std::string& thread_name, std::uint64_t passed, bool of_any_size = false);
  ~FailedAllocation();
  FailedAllocation(const FailedAllocation&) = delete;
  FailedAllocation& operator=(const FailedAllocation&) = delete;

  bool happened() const;
};

}  // namespace pagoda
