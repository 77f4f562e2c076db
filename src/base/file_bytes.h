// Reads a small file as bytes, whatever stands at its path: a folder, a pipe that nobody writes to
// and a device without end are errors like a file that does not exist.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace pagoda {

struct FileBytes {
  std::string bytes;
  unsigned mode = 0;  // the file's permission bits: 0644

  // True: somebody besides the file's owner may read or write the file.
  bool is_open_to_others() const { return (mode & 0077) != 0; }
};

// An error begins with the path. A pipe may keep the caller waiting for five seconds.
Result<FileBytes> read_file_bytes(const std::string& path, std::size_t bytes_max);

}  // namespace pagoda
