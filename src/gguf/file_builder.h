// Describes a model of another container in GGUF's words, so that whoever reads a File does not
// know where its weights come from.
//
// The builder takes over mapped files, whose bytes tensors may view, and owns what is written for
// the description: keys, names, texts, arrays and tensors that had to be changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/mapped_file.h"

namespace pagoda::gguf {

class FileBuilder {
 public:
  // `source` is the model's path, for messages.
  explicit FileBuilder(std::string source);
  // Changes keys of a file that was opened.
  explicit FileBuilder(File file);

  // Maps a file that the model is made of. Its bytes are part of the model's fingerprint, in the
  // order of the calls, and stay mapped as long as the File lives.
  Result<const MappedFile*> open(const std::string& path);

  // Removes a key that may be there.
  void remove(std::string_view key);
  // A key is set once, or again after it was removed.
  void set_unsigned(std::string_view key, std::uint64_t value);
  void set_number(std::string_view key, double value);
  void set_flag(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void set_texts(std::string_view key, std::span<const std::string_view> values);
  void set_integers(std::string_view key, std::span<const std::int32_t> values);
  void set_numbers(std::string_view key, std::span<const double> values);
  void set_flags(std::string_view key, const std::vector<bool>& values);
  bool has_key(std::string_view key) const { return file_.metadata().contains(key); }

  // Returns memory that the File will own, aligned to 16 bytes and not set to any value.
  std::span<std::byte> allocate(std::size_t bytes);
  // Adds a tensor whose bytes lie in an opened file or in allocated memory, 8-byte aligned.
  // `extents` begins with the row length. An error when the name is taken.
  Status add_tensor(std::string_view name, TensorType type, std::span<const std::uint64_t> extents,
                    std::span<const std::byte> bytes);
  bool has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  const std::string& source() const { return file_.path(); }
  File build() && { return std::move(file_); }

 private:
  std::string_view keep(std::string_view text);
  std::span<const std::byte> keep_bytes(const void* data, std::size_t bytes);
  void set(std::string_view key, const MetadataValue& value);

  File file_;
};

}  // namespace pagoda::gguf
