// A GGUF model: one file or a set of splits, mapped read-only.
//
//   "GGUF" | version | tensor count | key count | keys | tensor infos | pad | tensor data
//
// Every length, offset and count is checked against the bytes that are there before it is used,
// so that views handed out are always inside the mapping. Memory spent is a small multiple of the
// header's own size; tensor data is never copied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "gguf/fingerprint.h"
#include "gguf/metadata.h"
#include "gguf/tensor_type.h"

namespace pagoda::gguf {

class FileBuilder;
class MappedFile;

struct Tensor {
  std::string_view name;
  TensorType type;
  std::uint32_t dimensions;              // 1 to 4
  std::array<std::uint64_t, 4> extents;  // extents[0] is the row length; unused ones are 1
  std::span<const std::byte> bytes;      // in an opened File at least 8-byte aligned

  std::uint64_t elements() const { return extents[0] * extents[1] * extents[2] * extents[3]; }
  std::uint64_t rows() const { return extents[1] * extents[2] * extents[3]; }
};

class File {
 public:
  // Opens `path`; for a part of a split set (name-00001-of-0000N.gguf), all parts beside it.
  static Result<File> open(const std::string& path);
  // Makes the same checks over bytes in memory, which must outlive the File. `source` names them in
  // messages. A part of a split set is refused, because it is no whole model.
  static Result<File> parse(std::span<const std::byte> bytes, const std::string& source);

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  // Returns the model's files, open for as long as the File lives, with their states before any
  // byte was read; empty for bytes in memory.
  std::vector<OpenedPart> opened_parts() const;
  const std::string& path() const { return metadata_.source(); }
  // Returns 2 or 3, or 0 for a model that was described in GGUF's words but is in no GGUF file.
  std::uint32_t version() const { return version_; }
  std::uint64_t bytes() const { return bytes_; }  // over all parts
  const Metadata& metadata() const { return metadata_; }
  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor* find_tensor(std::string_view name) const;
  // Returns the memory of all tensors to the system; they stay readable from the file.
  void release_pages() const;

 private:
  friend class FileBuilder;

  // Owns keys, names and tensors made by a builder, which no mapped file holds as they are needed.
  struct Storage;

  explicit File(std::string source);

  // Takes over the tensors of a part; `source` names it in messages.
  Status add_tensors(std::span<const Tensor> tensors, const std::string& source);
  // Compares the split.tensors.count of the file with the tensors taken over.
  Status check_tensor_count() const;

  std::vector<std::unique_ptr<MappedFile>> parts_;
  std::vector<std::string> part_paths_;
  std::unique_ptr<Storage> storage_;  // null for GGUF files
  Metadata metadata_;
  std::uint32_t version_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> tensor_by_name_;
};

}  // namespace pagoda::gguf
