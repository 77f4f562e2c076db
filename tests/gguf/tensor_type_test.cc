#include "gguf/tensor_type.h"

#include <gtest/gtest.h>

#include <string>

namespace pagoda::gguf {
namespace {

TEST(TensorType, IdsThatAreUnknownRetiredOrRunTimeOnlyAreNotFound) {
  for (const std::uint32_t id : {4u, 5u, 9u, 15u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 0xFFFFFFFFu}) {
    EXPECT_FALSE(find_tensor_type(id).has_value()) << id;
  }
}

TEST(TensorType, EveryOtherIdUpTo42IsFoundUnderItsOwnNumber) {
  int found = 0;
  for (std::uint32_t id = 0; id <= 42; ++id) {
    const auto info = find_tensor_type(id);
    if (!info) continue;
    ++found;
    EXPECT_EQ(static_cast<std::uint32_t>(info->type), id);
    EXPECT_EQ(tensor_type_info(info->type).name, info->name);
  }
  EXPECT_EQ(found, 33);
}

TEST(TensorType, OnlyCodebookTypesAreUnreadable) {
  for (std::uint32_t id = 0; id <= 42; ++id) {
    const auto info = find_tensor_type(id);
    if (!info) continue;
    const std::string name(info->name);
    const bool codebook =
        name.starts_with("IQ1") || name.starts_with("IQ2") || name.starts_with("IQ3");
    EXPECT_EQ(info->readable, !codebook) << name;
  }
}

TEST(TensorType, BitsPerElementAreThoseOfTheFormat) {
  const auto bits = [](TensorType type) {
    const TensorTypeInfo& info = tensor_type_info(type);
    return 8.0 * info.block_bytes / info.block_elements;
  };
  EXPECT_DOUBLE_EQ(bits(TensorType::kF32), 32);
  EXPECT_DOUBLE_EQ(bits(TensorType::kBF16), 16);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ8_0), 8.5);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ6_K), 6.5625);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ5_K), 5.5);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ4_K), 4.5);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ3_K), 3.4375);
  EXPECT_DOUBLE_EQ(bits(TensorType::kQ2_K), 2.625);
  EXPECT_DOUBLE_EQ(bits(TensorType::kIQ4_XS), 4.25);
  EXPECT_DOUBLE_EQ(bits(TensorType::kMXFP4), 4.25);
  EXPECT_DOUBLE_EQ(bits(TensorType::kNVFP4), 4.5);
  EXPECT_DOUBLE_EQ(bits(TensorType::kTQ1_0), 1.6875);
  EXPECT_DOUBLE_EQ(bits(TensorType::kTQ2_0), 2.0625);
  EXPECT_DOUBLE_EQ(bits(TensorType::kIQ1_S), 1.5625);
}

}  // namespace
}  // namespace pagoda::gguf
