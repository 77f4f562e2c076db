// A model's identity: the SHA-256 of all bytes of its files, metadata, tensor table and tensors.
//
// Reading gigabytes takes seconds, so that a small text file remembers digests by the states of the
// files (file_state.h). Only states that reveal every later change are remembered, and a remembered
// digest is a claim that confirm_fingerprint() checks by reading.
//
// A digest identifies results computed from the bytes, which may have been read at any time since
// the files were opened: a model has a fingerprint only while all its files are as they were then.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file_state.h"

namespace pagoda::gguf {

// An open file of a model. The open file is hashed, whatever its path names by now.
struct OpenedPart {
  std::string path;  // for messages
  int descriptor = -1;
  FileState state = {};  // before any byte was read
};

struct Fingerprint {
  std::string digest;          // 64 hexadecimal digits, of the parts in this order
  bool is_remembered = false;  // no byte was read: to be confirmed
};

struct FingerprintOptions {
  std::string memory_path;  // empty: nothing is remembered
  // Reads the state from the system; tests replace it.
  std::function<Result<FileState>(const OpenedPart&)> state_of = [](const OpenedPart& part) {
    return file_state(part.descriptor, part.path);
  };
  std::function<std::int64_t()> now_ns = {};  // Unix time; empty: the system's
};

// Returns the digest from memory where that can be trusted, else by reading. An error when a part's
// state differs from that at its opening, or when `stop` becomes true.
Result<Fingerprint> fingerprint(std::span<const OpenedPart> parts,
                                const FingerprintOptions& options, const std::atomic<bool>& stop);

// Reads every byte. Returns false, and forgets the digest, when it is not that of the files. An
// error when a part has another size or modification time than at its opening, or changes while it
// is read. A change time that alone has moved, by chmod or by a link, is no error: the bytes
// decide.
Result<bool> confirm_fingerprint(std::span<const OpenedPart> parts, const std::string& digest,
                                 const FingerprintOptions& options, const std::atomic<bool>& stop);

}  // namespace pagoda::gguf
