#include "gguf/file_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "gguf/file_storage.h"
#include "gguf/printable.h"

namespace pagoda::gguf {

static_assert(std::endian::native == std::endian::little, "arrays are written in file form");

FileBuilder::FileBuilder(std::string source) : file_(std::move(source)) {
  file_.storage_ = std::make_unique<File::Storage>();
}

FileBuilder::FileBuilder(File file) : file_(std::move(file)) {
  if (!file_.storage_) file_.storage_ = std::make_unique<File::Storage>();
}

Result<const MappedFile*> FileBuilder::open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapping, MappedFile::open(path));
  file_.bytes_ += mapping->bytes().size();
  file_.parts_.push_back(std::move(mapping));
  file_.part_paths_.push_back(path);
  return const_cast<const MappedFile*>(file_.parts_.back().get());
}

std::string_view FileBuilder::keep(std::string_view text) {
  return file_.storage_->texts.emplace_back(text);
}

std::span<std::byte> FileBuilder::allocate(std::size_t bytes) {
  // operator new[] aligns to 16 bytes; at least one byte, so that no view is null.
  std::unique_ptr<std::byte[]> block(new std::byte[std::max<std::size_t>(bytes, 1)]);
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);
  return {file_.storage_->blocks.emplace_back(std::move(block)).get(), bytes};
}

std::span<const std::byte> FileBuilder::keep_bytes(const void* data, std::size_t bytes) {
  const std::span<std::byte> kept = allocate(bytes);
  if (bytes > 0) std::memcpy(kept.data(), data, bytes);
  return kept;
}

void FileBuilder::remove(std::string_view key) { file_.metadata_.remove(key); }

void FileBuilder::set(std::string_view key, const MetadataValue& value) {
  const bool is_new = file_.metadata_.insert(keep(key), value);
  ASSERT(is_new, "a key is set once");
}

void FileBuilder::set_unsigned(std::string_view key, std::uint64_t value) {
  set(key, {ValueType::kU64, value});
}

void FileBuilder::set_number(std::string_view key, double value) {
  set(key, {ValueType::kF64, value});
}

void FileBuilder::set_flag(std::string_view key, bool value) {
  set(key, {ValueType::kBool, value});
}

void FileBuilder::set_text(std::string_view key, std::string_view value) {
  set(key, {ValueType::kString, keep(value)});
}

void FileBuilder::set_texts(std::string_view key, std::span<const std::string_view> values) {
  std::size_t bytes = 0;
  for (const std::string_view value : values) bytes += sizeof(std::uint64_t) + value.size();
  const std::span<std::byte> kept = allocate(bytes);
  std::byte* at = kept.data();
  for (const std::string_view value : values) {
    const std::uint64_t size = value.size();
    std::memcpy(at, &size, sizeof(size));
    if (size > 0) std::memcpy(at + sizeof(size), value.data(), size);
    at += sizeof(size) + size;
  }
  set(key, {ValueType::kArray, Array{ValueType::kString, values.size(), kept}});
}

void FileBuilder::set_integers(std::string_view key, std::span<const std::int32_t> values) {
  set(key, {ValueType::kArray,
            Array{ValueType::kI32, values.size(), keep_bytes(values.data(), values.size_bytes())}});
}

void FileBuilder::set_numbers(std::string_view key, std::span<const double> values) {
  set(key, {ValueType::kArray,
            Array{ValueType::kF64, values.size(), keep_bytes(values.data(), values.size_bytes())}});
}

void FileBuilder::set_flags(std::string_view key, const std::vector<bool>& values) {
  const std::span<std::byte> kept = allocate(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) kept[i] = values[i] ? std::byte{1} : std::byte{0};
  set(key, {ValueType::kArray, Array{ValueType::kBool, values.size(), kept}});
}

Status FileBuilder::add_tensor(std::string_view name, TensorType type,
                               std::span<const std::uint64_t> extents,
                               std::span<const std::byte> bytes) {
  ASSERT(!extents.empty() && extents.size() <= 4, "tensors have 1 to 4 dimensions");
  ASSERT(std::bit_cast<std::uintptr_t>(bytes.data()) % 8 == 0, "tensors are 8-byte aligned");
  if (has_tensor(name)) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: two tensors would be '{}'", source(),
                                                  printable(name, name.size()))};
  }
  Tensor tensor{keep(name), type, static_cast<std::uint32_t>(extents.size()), {1, 1, 1, 1}, bytes};
  std::copy(extents.begin(), extents.end(), tensor.extents.begin());
  return file_.add_tensors({&tensor, 1}, source());
}

}  // namespace pagoda::gguf
