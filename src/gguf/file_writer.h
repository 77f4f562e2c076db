// Writes GGUF files, version 3: a head that describes all tensors, then their bytes in order.
//
// A file has its name only when it is complete and on disk: it is written under another one, and
// what was not committed is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/sha256.h"

namespace pagoda::gguf {

// Tensors begin at multiples of this.
inline constexpr std::uint64_t kWrittenAlignment = 32;

// Returns the bytes of a tensor of this type and these extents; its `bytes` are not looked at.
std::uint64_t tensor_bytes(const Tensor& tensor);

// Returns all that stands before the tensors' bytes, padded. Keys about the container of the model
// that is written (its alignment, its split) are left out.
std::string file_head(const Metadata& keys, std::span<const Tensor> tensors);
// Returns the size of a file with this head.
std::uint64_t file_bytes(const std::string& head, std::span<const Tensor> tensors);

class FileWriter {
 public:
  // A file is called PATH.tmp until it is committed.
  static constexpr const char* kTemporaryEnd = ".tmp";

  // Begins a file; one that was left at the temporary name is overwritten.
  static Result<FileWriter> create(const std::string& path);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Status append(std::span<const std::byte> bytes);
  // Appends zeros up to a multiple of kWrittenAlignment.
  Status pad();
  // Waits until the bytes are on disk and gives the file its name, replacing a file that has it.
  // Returns the SHA-256 of what was appended.
  Result<std::string> commit();

 private:
  FileWriter(std::string path, int descriptor);

  Error failed(std::string_view action, int code) const;

  std::string path_;
  int descriptor_;  // -1: committed, or moved from
  std::uint64_t bytes_ = 0;
  Sha256 hash_;
};

}  // namespace pagoda::gguf
