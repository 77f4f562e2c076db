// Reading a mapped file can fail: somebody truncated the file, or its disk does not give the bytes.
// The kernel says so by SIGBUS. Nothing can be computed without the bytes, so the process ends, but
// with the name of the file.
#pragma once

#include <cstddef>
#include <span>

namespace pagoda::gguf {

// From here on a SIGBUS in a mapping that is noted writes a line with its path to stderr and ends
// the process with status 1. Any other SIGBUS has its default effect.
void report_mapping_faults();

// Notes a mapping while it lives. Mappings beyond the first 1,024 are not noted.
class NotedMapping {
 public:
  // `path` must outlive the object; `descriptor` is open.
  NotedMapping(std::span<const std::byte> bytes, const char* path, int descriptor);
  ~NotedMapping();
  NotedMapping(const NotedMapping&) = delete;
  NotedMapping& operator=(const NotedMapping&) = delete;

 private:
  std::size_t slot_;
};

}  // namespace pagoda::gguf
