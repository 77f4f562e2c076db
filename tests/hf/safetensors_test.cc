#include "hf/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace pagoda::hf {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A file of a header and this many bytes of data.
std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) {
    file[8 + header.size() + i] = static_cast<std::byte>(i);
  }
  return file;
}

std::string error_of(const std::string& header, std::size_t data_bytes) {
  const std::vector<std::byte> file = file_of(header, data_bytes);
  const auto tensors = parse_safetensors(file, "x.safetensors");
  return tensors.ok() ? "no error" : tensors.error().message;
}

constexpr const char* kTwo = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"F16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )";

TEST(Safetensors, HaveTheirBytesInTheOrderOfTheFile) {
  const std::vector<std::byte> file = file_of(kTwo, 20);
  const auto parsed = parse_safetensors(file, "x.safetensors");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const std::vector<SafeTensor>& tensors = parsed.value();
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].dtype, Dtype::kF32);
  EXPECT_EQ(tensors[0].bytes.size(), 8U);
  EXPECT_EQ(tensors[0].offset, 8 + std::strlen(kTwo));
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_EQ(tensors[1].shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(tensors[1].bytes[0], std::byte{8});
  EXPECT_EQ(tensors[1].elements(), 6U);
}

TEST(Safetensors, AnElementTypeThatIsUnknownIsNoErrorUntilItIsNeeded) {
  const std::vector<std::byte> file =
      file_of(R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})", 4);
  const auto parsed = parse_safetensors(file, "x.safetensors");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value()[0].dtype, Dtype::kOther);
  EXPECT_EQ(parsed.value()[0].dtype_name, "F4");
}

TEST(Safetensors, EveryCutOfAFileIsRefused) {
  const std::vector<std::byte> file = file_of(kTwo, 20);
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    const auto parsed = parse_safetensors(std::span(file).first(bytes), "x.safetensors");
    ASSERT_FALSE(parsed.ok()) << bytes;
    EXPECT_THAT(parsed.error().message, HasSubstr("x.safetensors: "));
  }
}

struct Damage {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  std::vector<const char*> says;
};

std::string deep_json() { return std::string(100'000, '[') + std::string(100'000, ']'); }

class DamagedSafetensors : public testing::TestWithParam<Damage> {};

TEST_P(DamagedSafetensors, IsRefusedWithTheTensorAndTheOffset) {
  const std::string error = error_of(GetParam().header, GetParam().data_bytes);
  EXPECT_THAT(error, HasSubstr("x.safetensors: "));
  for (const char* const part : GetParam().says) EXPECT_THAT(error, HasSubstr(part));
}

const Damage kDamages[] = {
    {"NotJson", "{", 0, {"offset 8"}},
    {"NotAnObject", "[]", 0, {"offset 8", "object"}},
    {"Deep", deep_json(), 0, {"offset 8", "deeper"}},
    {"DeepInside", R"({"a":)" + deep_json() + "}", 0, {"offset 8", "deeper"}},
    {"TwoOfOneName",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
     R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
     2,
     {"\"a\"", "twice"}},
    {"NoDtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, {"tensor 'a'", "dtype"}},
    {"NoShape", R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1, {"tensor 'a'", "shape"}},
    {"NoOffsets", R"({"a":{"dtype":"U8","shape":[1]}})", 1, {"tensor 'a'", "data_offsets"}},
    {"NotATensor", R"({"a":3})", 0, {"tensor 'a'"}},
    {"NegativeExtent",
     R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
     1,
     {"tensor 'a'", "-1"}},
    {"FractionOfAnOffset",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1.5]}})",
     1,
     {"tensor 'a'", "1.5"}},
    {"OffsetOf2To63",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775808,9223372036854775809]}})",
     1,
     {"tensor 'a'", "9223372036854775808"}},
    {"OffsetOf2To64",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551616]}})",
     1,
     {"tensor 'a'", "data_offsets"}},
    {"EndBeforeBegin",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
     1,
     {"tensor 'a'", "[1,0]"}},
    {"BeyondTheFile",
     R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
     1,
     {"tensor 'a'", "[0,2]"}},
    {"ThreeOffsets",
     R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})",
     1,
     {"tensor 'a'", "[0,1,1]"}},
    {"OtherLength",
     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,7]}})",
     7,
     {"tensor 'a'", "7 bytes at offset", "needs 8"}},
    {"ShapeOverflows",
     R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
     0,
     {"tensor 'a'", "2^63"}},
    {"BytesOverflow",
     R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
     0,
     {"tensor 'a'", "2^63"}},
    {"Overlap",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
     7,
     {"tensor 'b'", "inside the tensor before it"}},
    {"SamePlace",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
     4,
     {"inside the tensor before it"}},
    {"Hole",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
     9,
     {"tensor 'b'", "hole"}},
    {"HoleAtTheBeginning",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})",
     5,
     {"tensor 'a'", "hole"}},
    {"BytesAfterTheEnd",
     R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
     5,
     {"tensor data ends at offset"}},
    {"NoName", R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1, {"empty name"}},
};

INSTANTIATE_TEST_SUITE_P(Table, DamagedSafetensors, testing::ValuesIn(kDamages),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Safetensors, AHeaderBeyondTheFileOrTheLimitIsRefusedBeforeItIsRead) {
  for (const std::uint64_t length :
       {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100}}) {
    std::vector<std::byte> file = file_of("{}", 0);
    std::memcpy(file.data(), &length, 8);
    const auto parsed = parse_safetensors(file, "x.safetensors");
    ASSERT_FALSE(parsed.ok());
    EXPECT_THAT(parsed.error().message,
                AllOf(HasSubstr(std::to_string(length)), HasSubstr("offset 0")));
  }
  // The limit holds although the file is that long.
  std::vector<std::byte> file(8 + 100'000'001);
  const std::uint64_t length = 100'000'001;
  std::memcpy(file.data(), &length, 8);
  const auto parsed = parse_safetensors(file, "x.safetensors");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, HasSubstr("the limit is 100000000"));
}

}  // namespace
}  // namespace pagoda::hf
