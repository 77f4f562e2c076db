// Files that must be refused. Every message names the source, the offset and the limit broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "gguf/file.h"
#include "gguf/gguf_writer.h"

namespace pagoda::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of(std::span<const std::byte> bytes) {
  const Result<File> file = File::parse(bytes, "memory");
  return file.ok() ? "no error" : file.error().message;
}
std::string error_of(const GgufWriter& writer) { return error_of(writer.bytes()); }

GgufWriter with_tensor(GgufWriter::TensorEntry tensor) {
  GgufWriter writer;
  writer.add_tensor(std::move(tensor));
  return writer;
}

template <class T>
Bytes payload_of(std::initializer_list<T> numbers) {
  Bytes bytes;
  for (const T number : numbers) append_number(bytes, number);
  return bytes;
}

// An array's header without elements.
Bytes array_header(std::uint32_t type, std::uint64_t count) {
  Bytes bytes;
  append_number(bytes, type);
  append_number(bytes, count);
  return bytes;
}

TEST(Malformed, EveryTruncationIsAnErrorAndNothingElse) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add<std::uint32_t>("llama.block_count", 2);
  writer.add_array<std::string>("tokens", {"a", "bc"});
  writer.add_array<bool>("flags", {true, false});
  writer.add_tensor<float>("a", TensorType::kF32, {8}, std::vector<float>(8, 1.0f));
  writer.add_tensor<float>("b", TensorType::kF32, {8}, std::vector<float>(8, 2.0f));
  const Bytes whole = writer.bytes();
  ASSERT_EQ(error_of(whole), "no error");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end.
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(error_of(cut), StartsWith("memory: at offset ")) << size;
  }
}

TEST(Malformed, AnotherMagicNumberIsNotGguf) {
  EXPECT_THAT(error_of(bytes_of("PK\x03\x04 and more")),
              HasSubstr("not a GGUF file: it starts with 'PK\\x03\\x04'"));
  EXPECT_THAT(error_of(bytes_of("GG")), HasSubstr("the magic number needs 4 bytes, 2 are left"));
}

TEST(Malformed, BigEndianFilesAreNamedAsSuch) {
  GgufWriter writer;
  writer.version = 0x03000000;
  EXPECT_THAT(error_of(writer), AllOf(HasSubstr("at offset 4"), HasSubstr("big-endian")));
}

TEST(Malformed, OtherVersionsAreUnsupported) {
  for (const std::uint32_t version : {1u, 4u, 0x12345u}) {
    GgufWriter writer;
    writer.version = version;
    const Bytes bytes = writer.bytes();
    const Result<File> file = File::parse(bytes, "memory");
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(file.error().message, HasSubstr("version " + std::to_string(version)));
  }
}

TEST(Malformed, CountsBeyondTheFileAreRefusedBeforeMemoryIsTaken) {
  for (const std::int64_t count : {std::int64_t{1000}, std::numeric_limits<std::int64_t>::max()}) {
    GgufWriter keys;
    keys.key_count = count;
    EXPECT_THAT(error_of(keys), AllOf(HasSubstr("the key count is"), HasSubstr("at most 0")));
    GgufWriter tensors;
    tensors.tensor_count = count;
    EXPECT_THAT(error_of(tensors), AllOf(HasSubstr("the tensor count is"), HasSubstr("at most")));
  }
}

TEST(Malformed, NegativeCountsAreRefused) {
  GgufWriter keys;
  keys.key_count = -1;
  EXPECT_THAT(error_of(keys), HasSubstr("at offset 16: the key count is -1, below 0"));
  GgufWriter tensors;
  tensors.tensor_count = -5;
  EXPECT_THAT(error_of(tensors), HasSubstr("at offset 8: the tensor count is -5, below 0"));
}

TEST(Malformed, KeysAreUniqueNotEmptyAndNotTooLong) {
  GgufWriter twice;
  twice.add<bool>("key", true);
  twice.add<bool>("key", true);
  EXPECT_THAT(error_of(twice), HasSubstr("at offset 40: key 'key' is there twice"));
  GgufWriter empty;
  empty.add<std::uint64_t>("", 1);
  EXPECT_THAT(error_of(empty), HasSubstr("at offset 24: key 0 of 1 is empty"));
  GgufWriter lengthy;
  lengthy.add<bool>(std::string(65536, 'k'), true);
  EXPECT_THAT(error_of(lengthy), HasSubstr("a key has 65536 bytes, the limit is 65535"));
}

TEST(Malformed, UnknownValueTypesAndNestedArraysAreRefused) {
  GgufWriter unknown;
  unknown.add_raw("key", 13, payload_of<std::uint64_t>({1}));
  EXPECT_THAT(error_of(unknown), HasSubstr("key 'key' has value type 13, known are 0 to 12"));
  GgufWriter element;
  element.add_raw("key", 9, array_header(0xFFFFFFFF, 1));
  EXPECT_THAT(error_of(element), HasSubstr("has value type 4294967295"));
  GgufWriter nested;
  nested.add_raw("key", 9, array_header(9, 0));
  EXPECT_THAT(error_of(nested), HasSubstr("key 'key' is an array of arrays"));
}

TEST(Malformed, BoolsAreZeroOrOne) {
  GgufWriter scalar;
  scalar.add_raw("key", 7, payload_of<std::uint8_t>({2}));
  EXPECT_THAT(error_of(scalar), HasSubstr("key 'key' holds 2 where a bool is 0 or 1"));
  GgufWriter array;
  Bytes payload = array_header(7, 3);
  for (const int flag : {1, 0, 255}) payload.push_back(static_cast<std::byte>(flag));
  array.add_raw("key", 9, payload);
  EXPECT_THAT(error_of(array), HasSubstr("at offset 53: key 'key' holds 255"));
}

TEST(Malformed, LengthsBeyondTheFileAreRefused) {
  GgufWriter text;
  text.add_raw("key", 8, payload_of<std::uint64_t>({100}));
  EXPECT_THAT(error_of(text), HasSubstr("a text value needs 100 bytes, 0 are left of 47"));
  GgufWriter huge;
  huge.add_raw("key", 8, payload_of<std::uint64_t>({~std::uint64_t{0}}));
  EXPECT_THAT(error_of(huge), HasSubstr("the limit is 1073741824"));
  GgufWriter array;
  array.add_raw("key", 9, array_header(12, 1000000));
  EXPECT_THAT(error_of(array),
              AllOf(HasSubstr("the array length of key 'key' is 1000000"), HasSubstr("at most 0")));
  GgufWriter wraps;  // 2^61 + 1 elements of 8 bytes are 8 bytes modulo 2^64
  Bytes payload = array_header(10, (std::uint64_t{1} << 61) + 1);
  append_number<std::uint64_t>(payload, 1);
  wraps.add_raw("key", 9, payload);
  EXPECT_THAT(error_of(wraps), HasSubstr("the limit is 1073741824"));
  GgufWriter texts;
  Bytes two = array_header(8, 2);
  append_text(two, "fine");
  append_number<std::uint64_t>(two, 9);
  texts.add_raw("key", 9, two);
  EXPECT_THAT(error_of(texts), HasSubstr("a text in an array needs 9 bytes"));
}

TEST(Malformed, AlignmentIsAPowerOfTwoFrom8) {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 0xFFFFFFFFu}) {
    GgufWriter writer;
    writer.add("general.alignment", alignment);
    EXPECT_THAT(error_of(writer), AllOf(HasSubstr("general.alignment is"), HasSubstr("from 8")));
  }
  GgufWriter text;
  text.add("general.alignment", "32");
  EXPECT_THAT(error_of(text), HasSubstr("'general.alignment' has type string"));
  GgufWriter wide;
  wide.add("general.alignment", std::uint64_t{1} << 63);
  EXPECT_THAT(error_of(wide), HasSubstr("general.alignment is 9223372036854775808"));
}

TEST(Malformed, TensorNamesAreUniqueNotEmptyAndShort) {
  GgufWriter twice;
  twice.add_tensor<float>("a", TensorType::kF32, {1}, {1});
  twice.add_tensor<float>("a", TensorType::kF32, {1}, {1});
  EXPECT_THAT(error_of(twice), HasSubstr("at offset 57: tensor 'a' is there twice"));
  EXPECT_THAT(error_of(with_tensor({"", {1}, 0, Bytes(8), {}})), HasSubstr("name is empty"));
  EXPECT_THAT(error_of(with_tensor({std::string(64, 'n'), {1}, 0, Bytes(4), {}})),
              HasSubstr("a tensor's name has 64 bytes, the limit is 63"));
  EXPECT_EQ(error_of(with_tensor({std::string(63, 'n'), {1}, 0, Bytes(4), {}})), "no error");
}

TEST(Malformed, ExtentsArePositiveAndTheirProductFits) {
  EXPECT_THAT(error_of(with_tensor({"a", {}, 0, Bytes(64), {}})),
              HasSubstr("has 0 dimensions, expected 1 to 4"));
  EXPECT_THAT(error_of(with_tensor({"a", {1, 1, 1, 1, 1}, 0, Bytes(4), {}})),
              HasSubstr("has 5 dimensions, expected 1 to 4"));
  EXPECT_THAT(error_of(with_tensor({"a", {4, 0}, 0, Bytes(4), {}})),
              HasSubstr("extent 0 in dimension 1, expected 1 or more"));
  EXPECT_THAT(error_of(with_tensor({"a", {-4}, 0, Bytes(4), {}})), HasSubstr("extent -4"));
  const std::int64_t wide = std::int64_t{1} << 32;
  EXPECT_THAT(error_of(with_tensor({"a", {wide, wide}, 0, Bytes(4), {}})),
              HasSubstr("more than 2^63 - 1 elements"));
  EXPECT_THAT(error_of(with_tensor({"a", {wide, wide, 4, 4}, 24, Bytes(4), {}})),
              HasSubstr("more than 2^63 - 1 elements"));
}

TEST(Malformed, ASizeThatOverflowsIsRefused) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(error_of(with_tensor({"a", {most}, 27, Bytes(8), {}})),
              HasSubstr("more than 2^64 - 1 bytes"));
  // 2^62 elements of 4 bytes are 0 bytes modulo 2^64.
  EXPECT_THAT(error_of(with_tensor({"a", {std::int64_t{1} << 62}, 0, Bytes(8), {}})),
              HasSubstr("more than 2^64 - 1 bytes"));
}

TEST(Malformed, RowsAreWholeBlocks) {
  EXPECT_THAT(error_of(with_tensor({"a", {48, 2}, 2, Bytes(54), {}})),
              HasSubstr("tensor 'a' has rows of 48 elements, Q4_0 needs a multiple of 32"));
}

TEST(Malformed, UnknownAndRetiredTypesNameTheTensorAndTheId) {
  for (const std::uint32_t id : {4u, 9u, 15u, 31u, 43u, 0x80000000u}) {
    const Bytes bytes = with_tensor({"blk.0.w", {256}, id, Bytes(512), {}}).bytes();
    const Result<File> file = File::parse(bytes, "memory");
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(file.error().message,
                HasSubstr("tensor 'blk.0.w' has type " + std::to_string(id) + ","));
  }
}

TEST(Malformed, OffsetsAreAlignedAndInsideTheFile) {
  EXPECT_THAT(error_of(with_tensor({"a", {1}, 0, Bytes(64), 16})),
              HasSubstr("offset 16, not a multiple of the alignment 32"));
  EXPECT_THAT(error_of(with_tensor({"a", {16}, 0, Bytes(64), 32})),
              HasSubstr("tensor 'a' needs 64 bytes at offset 32 of the tensor data, which has 64"));
  const std::uint64_t last = ~std::uint64_t{31};  // offset + size wraps
  EXPECT_THAT(error_of(with_tensor({"a", {16}, 0, Bytes(64), last})),
              HasSubstr("at offset 18446744073709551584"));
}

TEST(Malformed, TensorsDoNotOverlap) {
  GgufWriter writer;
  writer.add_tensor({"first", {16}, 0, Bytes(64), 0});
  writer.add_tensor({"second", {16}, 0, Bytes(64), 32});
  EXPECT_THAT(error_of(writer), HasSubstr("tensor 'second' at offset 32 of the tensor data "
                                          "overlaps tensor 'first', which ends at 64"));
  GgufWriter same;
  same.add_tensor({"first", {1}, 0, Bytes(32), 0});
  same.add_tensor({"second", {1}, 0, Bytes(32), 0});
  EXPECT_THAT(error_of(same), HasSubstr("overlaps"));
}

TEST(Malformed, NamesInMessagesAreFitForATerminal) {
  EXPECT_THAT(error_of(with_tensor({"\x1b[2J\xff", {1}, 99, Bytes(4), {}})),
              HasSubstr("tensor '\\x1b[2J\\xff' has type 99"));
}

TEST(Malformed, EverySingleByteChangeIsReadOrRefusedButNeverACrash) {
  GgufWriter writer;
  writer.add("a", "text");
  writer.add_array<std::string>("b", {"x", "yz"});
  writer.add_array<std::uint16_t>("c", {1, 2, 3});
  writer.add_tensor("t", TensorType::kQ8_0, {32}, Bytes(34, std::byte{1}));
  const Bytes whole = writer.bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x20, 0x7F, 0x80, 0xFF}) {
      Bytes changed = whole;
      changed[at] = static_cast<std::byte>(value);
      const Result<File> file = File::parse(changed, "memory");
      if (!file.ok()) continue;
      for (const Tensor& tensor : file.value().tensors()) {
        EXPECT_GE(tensor.bytes.data(), changed.data());
        EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(), changed.data() + changed.size());
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::gguf
