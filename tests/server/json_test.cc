// Strict JSON: the refusals and their reasons.
#include "server/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

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

TEST(Json, WhatIsTooDeepIsRefusedWithItsPath) {
  std::string text = R"({"a":1,"tools":[{},{"parameters":{"b c":)";
  for (std::size_t i = 0; i < kJsonDepthMax; ++i) text += R"({"x":[)";
  try {
    parse_json(text);
    ADD_FAILURE() << "it is taken";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param, "tools[1].parameters.b c.x[0].x[0]");
    EXPECT_EQ(error.message, error.param + ": is nested deeper than 64 levels");
    EXPECT_EQ(error.code, "invalid_json");
  }
}

TEST(Json, ValuesAreBounded) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kJsonValuesMax; ++i) text += ",0";
  EXPECT_THAT(refusal(text + "]"), HasSubstr("values"));
}

// The object's own insertion compares each key with all before it, which would take hours here.
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

// Keys of 16 printable characters that std::hash of libstdc++ (MurmurHash64A) all maps to one
// value: the first eight are free, the others follow from them.
std::vector<std::string> colliding_keys(std::size_t count) {
  constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995;
  std::uint64_t inverse = kFactor;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kFactor * inverse;
  const auto shift = [](std::uint64_t value) { return value ^ (value >> 47); };
  const auto mix = [&](std::uint64_t block) { return shift(block * kFactor) * kFactor; };
  const auto unmix = [&](std::uint64_t mixed) { return shift(mixed * inverse) * inverse; };
  constexpr std::uint64_t kSeed = 0xc70f6907;
  std::vector<std::string> keys;
  for (std::uint64_t number = 0; keys.size() < count; ++number) {
    std::string key = fmt::format("{:08x}", number);
    std::uint64_t block = 0;
    std::memcpy(&block, key.data(), 8);
    const std::uint64_t state = ((kSeed ^ (16 * kFactor)) ^ mix(block)) * kFactor;
    block = unmix(state ^ 0x123456789abcdef);
    key.resize(16);
    std::memcpy(key.data() + 8, &block, 8);
    const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
      return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
    });
    if (plain) keys.push_back(std::move(key));
  }
  return keys;
}

// Counts this thread alone.
double cpu_seconds_to_parse(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "{\"" : ",\"") + key + "\":1";
  text += "}";
  timespec begin = {};
  timespec end = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  EXPECT_EQ(parse_json(text).size(), keys.size());
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return static_cast<double>(end.tv_sec - begin.tv_sec) +
         static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

TEST(Json, KeysThatWereChosenToCollideCostWhatOthersDo) {
  const std::vector<std::string> chosen = colliding_keys(20'000);
  std::vector<std::string> others;
  for (std::size_t i = 0; i < chosen.size(); ++i) others.push_back(fmt::format("{:016x}", i));
  EXPECT_LT(cpu_seconds_to_parse(chosen), 20 * cpu_seconds_to_parse(others));
}

}  // namespace
}  // namespace pagoda::server
