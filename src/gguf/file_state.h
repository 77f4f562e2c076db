// What the system says of a file without reading it: equal states are equal bytes, as far as the
// change time can be trusted.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace pagoda::gguf {

struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // since 1970; anyone may set it
  std::int64_t changed_ns = 0;   // the same, of bytes or attributes; the system alone sets it
  std::uint64_t filesystem = 0;  // f_type of statfs(2)
  bool operator==(const FileState&) const = default;
};

// Of an open file; `path` names it in messages.
Result<FileState> file_state(int descriptor, const std::string& path);

// Does a file system of this type set the change time by itself, at every change, by the clock of
// this machine? File systems of networks and in user space need not, and neither do those that are
// not known here.
bool keeps_change_times(std::uint64_t filesystem);

// Can the state tell the bytes from any that are written later? Not while the file changed less
// than 2 s ago: a change in the same tick of the file system's clock would look the same.
bool tells_changes(const FileState& state, std::int64_t now_ns);

}  // namespace pagoda::gguf
