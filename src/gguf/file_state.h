// The system's metadata of a file: equal states mean equal bytes, as far as the change time can be
// trusted.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pagoda::gguf {

struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Unix time; anyone may set it
  // Unix time of the last change of bytes or attributes; only the system sets it.
  std::int64_t changed_ns = 0;
  std::uint64_t filesystem = 0;  // f_type of statfs(2)
  bool operator==(const FileState&) const = default;
  // The states differ at most in the change time, which a change of attributes or of links moves.
  bool differs_in_change_time_alone(const FileState& other) const;
};

// Reads the state of an open file; `path` names it in messages.
Result<FileState> file_state(int descriptor, const std::string& path);
// Reads the state of an open file whose file system is known.
Result<FileState> file_state(int descriptor, const std::string& path, std::uint64_t filesystem);

// Returns whether a file system of this type sets the change time itself, at every change, by this
// machine's clock. Network and user-space file systems need not, and unknown types are not trusted.
bool keeps_change_times(std::uint64_t filesystem);

// Returns whether the state distinguishes these bytes from any written later. A file that changed
// less than 2 s ago does not qualify: a change in the same tick of the file system's clock would
// look the same.
bool tells_changes(const FileState& state, std::int64_t now_ns);

}  // namespace pagoda::gguf
