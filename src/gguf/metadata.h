// The key-value part of a GGUF file, checked once when the file is parsed, so that every accessor
// is safe. Strings and arrays are views into the mapped file and live as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace pagoda::gguf {

// The numbers are those in the file.
enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

std::string_view value_type_name(ValueType type);

// Elements of one scalar type, in file form.
struct Array {
  ValueType element_type;
  std::uint64_t count;
  std::span<const std::byte> bytes;  // the elements' bytes in the file
};

struct MetadataValue {
  ValueType type;
  // Unsigned types are held as uint64, signed ones as int64, both floats as double.
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, Array> data;
};

// Returns the bytes of a value of this type in the file; 0 for strings and arrays, whose length
// varies.
std::uint64_t scalar_bytes(ValueType type);
// Loads the scalar at `bytes`, which holds scalar_bytes(type) bytes and need not be aligned.
MetadataValue load_scalar(ValueType type, const std::byte* bytes);
// Returns the first elements, at most `limit`, of an array that the parser has checked.
std::vector<MetadataValue> elements(const Array& array, std::uint64_t limit);

// Maps keys to values, in key order. Getters fail with the key, the expected type and the actual
// type; the `_or` forms accept an absent key, never a wrong type.
class Metadata {
 public:
  explicit Metadata(std::string source) : source_(std::move(source)) {}

  // Returns false when the key is already there.
  bool insert(std::string_view key, MetadataValue value);
  void remove(std::string_view key) { entries_.erase(key); }

  const MetadataValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const std::map<std::string_view, MetadataValue>& entries() const { return entries_; }
  const std::string& source() const { return source_; }  // the file, for messages

  // Accepts any integer type whose value is not negative.
  Result<std::uint64_t> unsigned_value(std::string_view key) const;
  Result<std::uint64_t> unsigned_value_or(std::string_view key, std::uint64_t fallback) const;
  // Accepts any float or integer type.
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> flag_or(std::string_view key, bool fallback) const;
  Result<std::string_view> text(std::string_view key) const;
  Result<std::string_view> text_or(std::string_view key, std::string_view fallback) const;

  Result<std::vector<std::string_view>> texts(std::string_view key) const;
  // Accepts an array of any integer type; a scalar counts as one element.
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  // Accepts an array of any float type.
  Result<std::vector<float>> floats(std::string_view key) const;
  // Accepts an array of bools.
  Result<std::vector<bool>> flags(std::string_view key) const;

 private:
  // Returns the array under `key`; fails when it is absent or of another type.
  Result<Array> array(std::string_view key, std::string_view expected) const;
  Error missing(std::string_view key) const;
  Error wrong_type(std::string_view key, const MetadataValue& found,
                   std::string_view expected) const;

  std::string source_;
  std::map<std::string_view, MetadataValue> entries_;
};

}  // namespace pagoda::gguf
