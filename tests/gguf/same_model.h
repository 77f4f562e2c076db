// Compares what two Files hold, whatever they are read from.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "gguf/file.h"

namespace pagoda::gguf {

inline bool is_same(const MetadataValue& a, const MetadataValue& b) {
  if (a.type != b.type || a.data.index() != b.data.index()) return false;
  const Array* const array = std::get_if<Array>(&a.data);
  if (array == nullptr) {
    return std::visit(
        [&](const auto& value) {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, Array>) {
            return false;
          } else {
            return value == std::get<Value>(b.data);
          }
        },
        a.data);
  }
  const Array& other = std::get<Array>(b.data);
  return array->element_type == other.element_type && array->count == other.count &&
         std::equal(array->bytes.begin(), array->bytes.end(), other.bytes.begin(),
                    other.bytes.end());
}

// Every key of `expected` is in `file` as it is there.
inline void expect_keys_of(const File& file, const Metadata& expected) {
  for (const auto& [key, value] : expected.entries()) {
    const MetadataValue* const found = file.metadata().find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_TRUE(is_same(*found, value)) << key;
  }
}

inline bool is_same_shape(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.dimensions == b.dimensions && a.extents == b.extents;
}

inline bool is_same_tensor(const Tensor& a, const Tensor& b) {
  return is_same_shape(a, b) && a.type == b.type &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

}  // namespace pagoda::gguf
