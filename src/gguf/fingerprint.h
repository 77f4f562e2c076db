// What makes two model files the same model: the SHA-256 of all their bytes, metadata, tensor table
// and tensors.
//
// Reading gigabytes takes seconds, so that a small text file remembers digests by the states of the
// files (file_state.h). Only states that tell every later change are remembered, and what was
// remembered is a claim that confirm_fingerprint() checks by reading.
//
// A digest names what was computed with the bytes. Those may have been read at any time since the
// files were opened: a model has a fingerprint only while all its files are as they were then.
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

// An open file of a model: what is hashed is what is open, whatever has its path by now.
struct OpenedPart {
  std::string path;  // for messages
  int descriptor = -1;
  FileState state = {};  // before anything of it was read
};

struct Fingerprint {
  std::string digest;          // 64 hexadecimal digits, of the parts in this order
  bool is_remembered = false;  // no byte was read: to be confirmed
};

struct FingerprintOptions {
  std::string memory_path;  // empty: nothing is remembered
  // What the system says; tests say otherwise.
  std::function<Result<FileState>(const OpenedPart&)> state_of = [](const OpenedPart& part) {
    return file_state(part.descriptor, part.path);
  };
  std::function<std::int64_t()> now_ns = {};  // since 1970; empty: the system's
};

// From memory where that can be trusted, else by reading. An error when a part's state is not, or
// does not stay, that of its opening, and when `stop` becomes true.
Result<Fingerprint> fingerprint(std::span<const OpenedPart> parts,
                                const FingerprintOptions& options, const std::atomic<bool>& stop);

// Reads every byte. False: `digest` is not theirs, and is remembered no more. Errors as above.
Result<bool> confirm_fingerprint(std::span<const OpenedPart> parts, const std::string& digest,
                                 const FingerprintOptions& options, const std::atomic<bool>& stop);

}  // namespace pagoda::gguf
