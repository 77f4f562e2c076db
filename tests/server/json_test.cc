// Strict JSON: what is refused, and why.
#include "server/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_json(text);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.message;
  }
  return "";
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, ValuesAreReadAsTheyAre) {
  const std::string text =
      R"({"b":[1,-2,3.5,true,false,null,"\u00e9"],"a":{"z":18446744073709551615}})";
  EXPECT_EQ(parse_json(text).dump(),
            R"({"b":[1,-2,3.5,true,false,null,"é"],"a":{"z":18446744073709551615}})");
}

TEST(Json, WhatIsNoJsonIsRefused) {
  for (const char* const text :
       {"", "{", "[1,]", "{\"a\":}", "NaN", "[Infinity]", "[1e999]", "{'a':1}", "[1] 2", "\"\x80\"",
        "\"\xed\xa0\x80\"", "[\"\xc3\"]", "// comment\n1"}) {
    EXPECT_THAT(refusal(text), HasSubstr("not acceptable JSON")) << text;
  }
}

TEST(Json, AKeyThatComesTwiceInOneObjectIsRefusedByName) {
  EXPECT_THAT(refusal(R"({"a":1,"b":{"a":2},"a":3})"), HasSubstr("\"a\""));
  EXPECT_EQ(refusal(R"({"a":1,"b":{"a":2}})"), "");
  EXPECT_EQ(refusal(R"([{"a":1},{"a":2}])"), "");
}

TEST(Json, DepthIsBounded) {
  EXPECT_EQ(refusal(nested(kJsonDepthMax)), "");
  EXPECT_THAT(refusal(nested(kJsonDepthMax + 1)), HasSubstr("64"));
  EXPECT_THAT(refusal(std::string(1 << 20, '[')), HasSubstr("64"));
}

TEST(Json, ValuesAreBounded) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kJsonValuesMax; ++i) text += ",0";
  EXPECT_THAT(refusal(text + "]"), HasSubstr("values"));
}

// The object's own insertion would compare each key with all before it: hours, here.
TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 300'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text + "}").size(), 300'001u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Json, HalfCharactersAreWrittenAsReplacements) {
  EXPECT_EQ(dump_json(Json("a\xc3")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace pagoda::server
