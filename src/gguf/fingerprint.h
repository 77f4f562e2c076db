// What makes two model files the same model: the SHA-256 of all their bytes, metadata, tensor table
// and tensors.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::gguf {

// 64 hexadecimal digits, of the files in this order. Reads them through, in seconds for gigabytes,
// unless `memory_path` (a small text file; empty: none) remembers them by path, size and time of
// change. An error, too, when `stop` becomes true.
Result<std::string> fingerprint(const std::vector<std::string>& paths,
                                const std::string& memory_path, const std::atomic<bool>& stop);

}  // namespace pagoda::gguf
