// Builds GGUF files in memory for tests: good ones by default, bad ones on request.
//
//   GgufWriter writer;
//   writer.add("general.architecture", "llama");
//   writer.add_array<std::uint32_t>("llama.attention.head_count_kv", {4, 2});
//   writer.add_tensor<float>("token_embd.weight", TensorType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
//   const std::vector<std::byte> bytes = writer.bytes();
//
// Tensors follow each other in the order they were added, each padded to the alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor_type.h"

namespace pagoda::gguf {

using Bytes = std::vector<std::byte>;

// Byte by byte: gcc 12 sees overflows that are not there in insert(), and in resize() and memcpy.
inline void append_bytes(Bytes& bytes, const void* data, std::size_t size) {
  const auto* const from = static_cast<const std::byte*>(data);
  for (std::size_t at = 0; at < size; ++at) bytes.push_back(from[at]);
}

template <class T>
void append_number(Bytes& bytes, T value) {
  static_assert(std::is_arithmetic_v<T>);
  append_bytes(bytes, &value, sizeof(T));
}

inline void append_text(Bytes& bytes, std::string_view text) {
  append_number<std::uint64_t>(bytes, text.size());
  append_bytes(bytes, text.data(), text.size());
}

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  append_bytes(bytes, text.data(), text.size());
  return bytes;
}

inline void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

template <class T>
constexpr ValueType value_type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return ValueType::kU8;
  if constexpr (std::is_same_v<T, std::int8_t>) return ValueType::kI8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return ValueType::kU16;
  if constexpr (std::is_same_v<T, std::int16_t>) return ValueType::kI16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ValueType::kU32;
  if constexpr (std::is_same_v<T, std::int32_t>) return ValueType::kI32;
  if constexpr (std::is_same_v<T, float>) return ValueType::kF32;
  if constexpr (std::is_same_v<T, bool>) return ValueType::kBool;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ValueType::kU64;
  if constexpr (std::is_same_v<T, std::int64_t>) return ValueType::kI64;
  if constexpr (std::is_same_v<T, double>) return ValueType::kF64;
  if constexpr (std::is_same_v<T, std::string>) return ValueType::kString;
}

class GgufWriter {
 public:
  struct TensorEntry {
    std::string name;
    std::vector<std::int64_t> extents;  // extents[0] is the row length
    std::uint32_t type;
    Bytes data;
    std::optional<std::uint64_t> offset;  // when set, written instead of the true one
  };

  // What the header says; the true values unless set.
  std::uint32_t version = 3;
  std::optional<std::int64_t> tensor_count;
  std::optional<std::int64_t> key_count;

  // Scalars; the type in the file is that of the argument: add("llama.block_count", 5u) is u32.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, T value) {
    Bytes payload;
    append_number(payload, value);
    add_raw(key, static_cast<std::uint32_t>(value_type_of<T>()), payload);
  }
  void add(std::string_view key, std::string_view text) {
    Bytes payload;
    append_text(payload, text);
    add_raw(key, static_cast<std::uint32_t>(ValueType::kString), payload);
  }
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }

  // T is an arithmetic type or std::string.
  template <class T>
  void add_array(std::string_view key, const std::vector<T>& values) {
    Bytes payload;
    append_number(payload, static_cast<std::uint32_t>(value_type_of<T>()));
    append_number<std::uint64_t>(payload, values.size());
    for (const auto& value : values) {
      if constexpr (std::is_same_v<T, std::string>) {
        append_text(payload, value);
      } else {
        append_number<T>(payload, value);
      }
    }
    add_raw(key, static_cast<std::uint32_t>(ValueType::kArray), payload);
  }

  // Any type id with any bytes behind it.
  void add_raw(std::string_view key, std::uint32_t type, std::span<const std::byte> payload) {
    Bytes entry;
    append_text(entry, key);
    append_number(entry, type);
    append_bytes(entry, payload.data(), payload.size());
    keys_.push_back(std::move(entry));
  }

  // Writes general.alignment and pads by it.
  void set_alignment(std::uint32_t alignment) {
    alignment_ = alignment;
    add("general.alignment", alignment);
  }

  void add_tensor(std::string name, TensorType type, std::vector<std::int64_t> extents,
                  Bytes data) {
    add_tensor(TensorEntry{std::move(name), std::move(extents), static_cast<std::uint32_t>(type),
                           std::move(data), std::nullopt});
  }
  // Elements as they stand in the file: float for F32, std::uint16_t for F16, and so on.
  template <class T>
  void add_tensor(std::string name, TensorType type, std::vector<std::int64_t> extents,
                  const std::vector<T>& elements) {
    Bytes data;
    append_bytes(data, elements.data(), elements.size() * sizeof(T));
    add_tensor(std::move(name), type, std::move(extents), std::move(data));
  }
  void add_tensor(TensorEntry tensor) { tensors_.push_back(std::move(tensor)); }

  Bytes bytes() const { return write(keys_, tensors_); }

  void save(const std::string& path) const { write_file(path, bytes()); }

  // The same model in parts: tensors are dealt out in order, metadata goes to the first part, all
  // parts get split.no, split.count and split.tensors.count.
  std::vector<Bytes> split(std::size_t parts) const {
    std::vector<Bytes> files;
    const std::size_t share = (tensors_.size() + parts - 1) / parts;
    for (std::size_t part = 0; part < parts; ++part) {
      GgufWriter one;
      one.version = version;
      one.alignment_ = part == 0 ? alignment_ : 32;
      if (part == 0) one.keys_ = keys_;
      one.add("split.no", static_cast<std::uint16_t>(part));
      one.add("split.count", static_cast<std::uint16_t>(parts));
      one.add("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
      for (std::size_t at = part * share; at < tensors_.size() && at < (part + 1) * share; ++at) {
        one.tensors_.push_back(tensors_[at]);
      }
      files.push_back(one.bytes());
    }
    return files;
  }

  // Writes prefix-00001-of-0000N.gguf and so on; returns the paths.
  std::vector<std::string> save_split(const std::string& prefix, std::size_t parts) const {
    std::vector<std::string> paths;
    for (const Bytes& file : split(parts)) {
      char suffix[64];
      std::snprintf(suffix, sizeof(suffix), "-%05zu-of-%05zu.gguf", paths.size() + 1, parts);
      paths.push_back(prefix + suffix);
      write_file(paths.back(), file);
    }
    return paths;
  }

 private:
  void pad(Bytes& bytes) const {
    while (alignment_ > 1 && bytes.size() % alignment_ != 0) bytes.push_back(std::byte{0});
  }

  Bytes write(const std::vector<Bytes>& keys, const std::vector<TensorEntry>& tensors) const {
    Bytes file = bytes_of("GGUF");
    append_number(file, version);
    append_number(file, tensor_count.value_or(static_cast<std::int64_t>(tensors.size())));
    append_number(file, key_count.value_or(static_cast<std::int64_t>(keys.size())));
    for (const Bytes& key : keys) append_bytes(file, key.data(), key.size());
    Bytes data;
    for (const TensorEntry& tensor : tensors) {
      append_text(file, tensor.name);
      append_number(file, static_cast<std::uint32_t>(tensor.extents.size()));
      for (const std::int64_t extent : tensor.extents) append_number(file, extent);
      append_number(file, tensor.type);
      append_number<std::uint64_t>(file, tensor.offset.value_or(data.size()));
      append_bytes(data, tensor.data.data(), tensor.data.size());
      pad(data);
    }
    if (tensors.empty()) return file;
    pad(file);
    append_bytes(file, data.data(), data.size());
    return file;
  }

  std::uint32_t alignment_ = 32;
  std::vector<Bytes> keys_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace pagoda::gguf
