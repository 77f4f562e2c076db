#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf/file.h"
#include "gguf/gguf_writer.h"

namespace pagoda::gguf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MetadataTest : public ::testing::Test {
 protected:
  const Metadata& parsed() {
    bytes_ = writer_.bytes();
    Result<File> file = File::parse(bytes_, "memory");
    if (!file.ok()) throw std::runtime_error(file.error().message);
    file_.emplace(std::move(file).value());
    return file_->metadata();
  }

  GgufWriter writer_;

 private:
  Bytes bytes_;
  std::optional<File> file_;
};

TEST_F(MetadataTest, EveryScalarTypeComesBackAsWritten) {
  writer_.add<std::uint8_t>("u8", 255);
  writer_.add<std::int8_t>("i8", -128);
  writer_.add<std::uint16_t>("u16", 65535);
  writer_.add<std::int16_t>("i16", -32768);
  writer_.add<std::uint32_t>("u32", 4294967295u);
  writer_.add<std::int32_t>("i32", -2147483648);
  writer_.add<float>("f32", 0.1f);
  writer_.add<bool>("bool", true);
  writer_.add("string", "tea");
  writer_.add<std::uint64_t>("u64", std::numeric_limits<std::uint64_t>::max());
  writer_.add<std::int64_t>("i64", std::numeric_limits<std::int64_t>::min());
  writer_.add<double>("f64", 0.1);
  const Metadata& metadata = parsed();
  const auto is = [&](std::string_view key, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    const MetadataValue* const found = metadata.find(key);
    return found != nullptr && std::holds_alternative<T>(found->data) &&
           std::get<T>(found->data) == value && value_type_name(found->type) == key;
  };
  EXPECT_TRUE(is("u8", std::uint64_t{255}));
  EXPECT_TRUE(is("i8", std::int64_t{-128}));
  EXPECT_TRUE(is("u16", std::uint64_t{65535}));
  EXPECT_TRUE(is("i16", std::int64_t{-32768}));
  EXPECT_TRUE(is("u32", std::uint64_t{4294967295}));
  EXPECT_TRUE(is("i32", std::int64_t{-2147483648}));
  EXPECT_TRUE(is("f32", double{0.1f}));
  EXPECT_TRUE(is("bool", true));
  EXPECT_TRUE(is("string", std::string_view("tea")));
  EXPECT_TRUE(is("u64", std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(is("i64", std::numeric_limits<std::int64_t>::min()));
  EXPECT_TRUE(is("f64", 0.1));
  EXPECT_EQ(metadata.entries().size(), 12u);
}

TEST_F(MetadataTest, UnsignedValueTakesAnyIntegerThatIsNotNegative) {
  writer_.add<std::uint16_t>("small", 7);
  writer_.add<std::int64_t>("signed", 9);
  writer_.add<std::int32_t>("negative", -3);
  writer_.add<float>("float", 4.0f);
  const Metadata& metadata = parsed();
  EXPECT_EQ(metadata.unsigned_value("small").value(), 7u);
  EXPECT_EQ(metadata.unsigned_value("signed").value(), 9u);
  EXPECT_THAT(metadata.unsigned_value("negative").error().message,
              AllOf(HasSubstr("memory"), HasSubstr("'negative' is -3"), HasSubstr("0 or more")));
  EXPECT_THAT(metadata.unsigned_value("float").error().message,
              HasSubstr("has type f32, expected an integer"));
}

TEST_F(MetadataTest, AbsentKeysAreErrorsThatNameThemAndFallbacksOtherwise) {
  const Metadata& metadata = parsed();
  EXPECT_EQ(metadata.unsigned_value("a.b").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(metadata.text("a.b").error().message, HasSubstr("key 'a.b' is missing"));
  EXPECT_EQ(metadata.texts("a.b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(metadata.integers("a.b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(metadata.floats("a.b").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(metadata.unsigned_value_or("a.b", 5).value(), 5u);
  EXPECT_EQ(metadata.number_or("a.b", 0.5).value(), 0.5);
  EXPECT_EQ(metadata.flag_or("a.b", true).value(), true);
  EXPECT_EQ(metadata.text_or("a.b", "none").value(), "none");
}

TEST_F(MetadataTest, AFallbackNeverHidesAWrongType) {
  writer_.add("text", "1");
  writer_.add<std::uint32_t>("number", 1);
  const Metadata& metadata = parsed();
  EXPECT_EQ(metadata.unsigned_value_or("text", 5).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(metadata.number_or("text", 5).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(metadata.flag_or("number", true).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(metadata.text_or("number", "x").error().code, ErrorCode::kCorrupt);
}

TEST_F(MetadataTest, NumbersMayBeFloatsOrIntegers) {
  writer_.add<float>("f32", 0.25f);
  writer_.add<double>("f64", -1e300);
  writer_.add<std::uint32_t>("u32", 10000);
  writer_.add<std::int8_t>("i8", -1);
  const Metadata& metadata = parsed();
  EXPECT_EQ(metadata.number_or("f32", 0).value(), 0.25);
  EXPECT_EQ(metadata.number_or("f64", 0).value(), -1e300);
  EXPECT_EQ(metadata.number_or("u32", 0).value(), 10000);
  EXPECT_EQ(metadata.number_or("i8", 0).value(), -1);
}

TEST_F(MetadataTest, ArraysOfTextKeepEmptyTextsAndBytesThatAreNotText) {
  writer_.add_array<std::string>("tokens", {"<unk>", "", std::string("\0\xff", 2)});
  writer_.add_array<std::string>("none", {});
  writer_.add_array<std::int32_t>("numbers", {1});
  const Metadata& metadata = parsed();
  EXPECT_THAT(metadata.texts("tokens").value(),
              ElementsAre("<unk>", "", std::string_view("\0\xff", 2)));
  EXPECT_THAT(metadata.texts("none").value(), IsEmpty());
  EXPECT_THAT(metadata.texts("numbers").error().message,
              HasSubstr("has type array of 1 i32, expected an array of strings"));
}

TEST_F(MetadataTest, IntegersTakeAnyIntegerArrayOrOneInteger) {
  writer_.add_array<std::uint8_t>("u8", {0, 255});
  writer_.add_array<std::int16_t>("i16", {-1, 300});
  writer_.add_array<std::uint64_t>("u64", {std::uint64_t{1} << 63});
  writer_.add<std::uint32_t>("one", 4);
  writer_.add_array<float>("floats", {1});
  writer_.add<bool>("flag", true);
  const Metadata& metadata = parsed();
  EXPECT_THAT(metadata.integers("u8").value(), ElementsAre(0, 255));
  EXPECT_THAT(metadata.integers("i16").value(), ElementsAre(-1, 300));
  EXPECT_THAT(metadata.integers("one").value(), ElementsAre(4));
  EXPECT_EQ(metadata.integers("u64").error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(metadata.integers("floats").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(metadata.integers("flag").error().code, ErrorCode::kCorrupt);
}

TEST_F(MetadataTest, FloatsTakeBothWidthsAndNothingElse) {
  writer_.add_array<float>("f32", {0.5f, -0.0f});
  writer_.add_array<double>("f64", {0.1});
  writer_.add_array<std::int32_t>("i32", {1});
  writer_.add<float>("scalar", 1);
  const Metadata& metadata = parsed();
  EXPECT_THAT(metadata.floats("f32").value(), ElementsAre(0.5f, -0.0f));
  EXPECT_THAT(metadata.floats("f64").value(), ElementsAre(0.1f));
  EXPECT_EQ(metadata.floats("i32").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(metadata.floats("scalar").error().code, ErrorCode::kCorrupt);
}

TEST_F(MetadataTest, FlagsTakeArraysOfBools) {
  writer_.add_array<bool>("pattern", {true, false, true});
  writer_.add_array<std::uint8_t>("bytes", {1});
  const Metadata& metadata = parsed();
  EXPECT_THAT(metadata.flags("pattern").value(), ElementsAre(true, false, true));
  EXPECT_EQ(metadata.flags("bytes").error().code, ErrorCode::kCorrupt);
}

TEST_F(MetadataTest, ElementsStopAtTheLimit) {
  writer_.add_array<std::string>("texts", {"a", "bc", "def"});
  const Metadata& metadata = parsed();
  const Array& array = std::get<Array>(metadata.find("texts")->data);
  const std::vector<MetadataValue> two = elements(array, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(std::get<std::string_view>(two[1].data), "bc");
  EXPECT_EQ(elements(array, 100).size(), 3u);
}

TEST(Metadata, ASecondInsertOfAKeyIsRefusedAndChangesNothing) {
  Metadata metadata("memory");
  EXPECT_TRUE(metadata.insert("key", {ValueType::kBool, true}));
  EXPECT_FALSE(metadata.insert("key", {ValueType::kBool, false}));
  EXPECT_TRUE(metadata.flag_or("key", false).value());
}

}  // namespace
}  // namespace pagoda::gguf
