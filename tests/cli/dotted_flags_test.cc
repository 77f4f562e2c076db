// Flags of vLLM whose fields are flags of their own.
#include "cli/dotted_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace pagoda::cli {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// As if every word could be a flag.
std::vector<std::string> joined(const std::vector<std::string>& words) {
  CommandLine::Place place = {.command = "serve",
                              .possible = {"--speculative-config", "--hf-overrides", "--port"},
                              .flags = std::vector<std::size_t>(words.size())};
  std::iota(place.flags.begin(), place.flags.end(), 0u);
  return with_joined_fields(words, place);
}

TEST(DottedFlags, OneValueHoldsTheFieldsOfAFlag) {
  EXPECT_THAT(joined({"serve", "--speculative-config.method", "ngram", "--port", "8",
                      "--speculative_config.num_speculative_tokens=4"}),
              ElementsAre("serve", "--speculative-config",
                          R"({"method":"ngram","num_speculative_tokens":4})", "--port", "8"));
  EXPECT_THAT(joined({"--hf-overrides.rope.factor", "2.5", "--speculative-config.method", "suffix",
                      "--hf-overrides.rope.type", "yarn"}),
              ElementsAre("--hf-overrides", R"({"rope":{"factor":2.5,"type":"yarn"}})",
                          "--speculative-config", R"({"method":"suffix"})"));
}

TEST(DottedFlags, AValueIsJsonWhereItIsJson) {
  EXPECT_THAT(joined({"--speculative-config.method", R"(["tree", "suffix"])"}),
              ElementsAre("--speculative-config", R"({"method":["tree","suffix"]})"));
  EXPECT_THAT(joined({"--hf-overrides.a=true", "--hf-overrides.b={\"c\":1}", "--hf-overrides.d=x y",
                      "--hf-overrides.e="}),
              ElementsAre("--hf-overrides", R"({"a":true,"b":{"c":1},"d":"x y","e":""})"));
  EXPECT_THAT(joined({"--hf-overrides.a", "-1"}), ElementsAre("--hf-overrides", R"({"a":-1})"));
}

TEST(DottedFlags, APlusAddsToAList) {
  EXPECT_THAT(joined({"--speculative-config.method+", "tree",
                      "--speculative-config.method+=suffix,ngram", "--hf-overrides.a.b+", "1"}),
              ElementsAre("--speculative-config", R"({"method":["tree","suffix","ngram"]})",
                          "--hf-overrides", R"({"a":{"b":[1]}})"));
}

TEST(DottedFlags, WhatIsNoFieldStaysAsItIs) {
  const std::vector<std::vector<std::string>> all = {
      {"--port.x", "3"},                   // no JSON
      {"--kv-events-config.topic", "a"},   // not of this command
      {"--speculative-config.method"},     // no value
      {"--speculative-config.", "ngram"},  // no field
      {"--speculative-config", R"({"method": "a.b"})"},
      {"--hf-overrides={\"a.b\": 1}"},
      {"--speculative-config.method", "--port", "8"}};
  for (const std::vector<std::string>& words : all) {
    EXPECT_THAT(joined(words), ElementsAreArray(words));
  }
}

TEST(DottedFlags, AFieldWithinAValueTakesItsPlace) {
  EXPECT_THAT(joined({"--hf-overrides.a", "1", "--hf-overrides.a.b", "2"}),
              ElementsAre("--hf-overrides", R"({"a":{"b":2}})"));
}

}  // namespace
}  // namespace pagoda::cli
