#include "gguf/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/gguf_writer.h"

namespace pagoda::gguf {
namespace {

using ::testing::HasSubstr;

const std::string kSource = "memory";

TEST(ByteReader, ReadsInOrderAndKnowsWhereItIs) {
  Bytes bytes;
  append_number<std::uint16_t>(bytes, 0x0201);
  append_text(bytes, "tea");
  append_number<float>(bytes, -2.5f);
  ByteReader reader(bytes, kSource);
  EXPECT_EQ(reader.number<std::uint16_t>("x").value(), 0x0201);
  EXPECT_EQ(reader.offset(), 2u);
  EXPECT_EQ(reader.text(3, "x").value(), "tea");
  EXPECT_EQ(reader.number<float>("x").value(), -2.5f);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(reader.since(2).size(), 15u);
}

TEST(ByteReader, ASizeThatWrapsAroundIsRefusedAndNothingIsConsumed) {
  const Bytes bytes(16);
  ByteReader reader(bytes, kSource);
  ASSERT_TRUE(reader.take(8, "x").ok());
  const auto wrapped = reader.take(~std::uint64_t{0} - 3, "the thing");
  ASSERT_FALSE(wrapped.ok());
  EXPECT_THAT(wrapped.error().message,
              HasSubstr("memory: at offset 8: the thing needs 18446744073709551612 bytes, 8 are "
                        "left of 16"));
  EXPECT_EQ(reader.remaining(), 8u);
}

TEST(ByteReader, ACountIsHeldAgainstTheBytesLeft) {
  const Bytes bytes(20);
  const ByteReader reader(bytes, kSource);
  EXPECT_TRUE(reader.check_count(5, 4, 0, "the count").ok());
  EXPECT_FALSE(reader.check_count(6, 4, 0, "the count").ok());
  EXPECT_FALSE(reader.check_count(~std::uint64_t{0}, 4, 0, "the count").ok());
}

}  // namespace
}  // namespace pagoda::gguf
