#include "app/speculation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::app {
namespace {

using speculate::DraftMethod;
using speculate::MethodSet;
using speculate::SpeculationOptions;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto parsed = parse_speculation(text);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(SpeculationConfig, MethodsAreNamesOrAListOfThem) {
  const auto methods = [](std::string_view text) {
    return parse_speculation(text).value().methods;
  };
  EXPECT_EQ(methods("none"), MethodSet());
  EXPECT_EQ(methods(R"({"method": "none"})"), MethodSet());
  EXPECT_EQ(methods("tree,suffix"), MethodSet(DraftMethod::kTree, DraftMethod::kSuffix));
  EXPECT_EQ(methods(R"({"method": "ngram"})"), MethodSet(DraftMethod::kNgram));
  EXPECT_EQ(methods(R"({"method": ["tree", "prediction", "constraint"]})"),
            MethodSet(DraftMethod::kTree, DraftMethod::kPrediction, DraftMethod::kConstraint));
  EXPECT_EQ(speculation_name(default_speculation()), "prediction, tree, suffix");
  EXPECT_EQ(speculation_name({}), "off");
}

TEST(SpeculationConfig, KeysAreVllms) {
  const SpeculationOptions options =
      parse_speculation(R"({"method": "suffix", "num_speculative_tokens": 9,
                            "suffix_decoding_max_tree_depth": 32,
                            "suffix_decoding_max_cached_requests": 0,
                            "suffix_decoding_max_spec_factor": 2.5,
                            "suffix_decoding_min_token_prob": 0.25})")
          .value();
  EXPECT_EQ(options.tokens_max, 9u);
  EXPECT_EQ(options.suffix_depth, 32u);
  EXPECT_EQ(options.suffix_requests, 0u);
  EXPECT_EQ(options.suffix_factor, 2.5);
  EXPECT_EQ(options.suffix_probability_min, 0.25);
  const auto lookup = [](std::string_view more) {
    const auto parsed =
        parse_speculation(R"({"method": "ngram")" + std::string(more) + "}").value();
    return std::pair(parsed.lookup_min, parsed.lookup_max);
  };
  EXPECT_EQ(lookup(""), std::pair(5u, 5u));
  EXPECT_EQ(lookup(R"(, "prompt_lookup_max": 4)"), std::pair(4u, 4u)) << "one stands for both";
  EXPECT_EQ(lookup(R"(, "prompt_lookup_min": 2)"), std::pair(2u, 2u));
  EXPECT_EQ(lookup(R"(, "prompt_lookup_min": 2, "prompt_lookup_max": 4)"), std::pair(2u, 4u));
}

TEST(SpeculationConfig, ADraftModelIsAMethodWithItsModel) {
  for (const char* const text :
       {R"({"model": "draft.gguf"})", R"({"method": "draft_model", "model": "draft.gguf"})"}) {
    const SpeculationOptions options = parse_speculation(text).value();
    EXPECT_EQ(options.methods, MethodSet(DraftMethod::kDraftModel));
    EXPECT_EQ(options.draft_model, "draft.gguf");
  }
  const SpeculationOptions both =
      parse_speculation(R"({"method": ["tree", "draft_model"], "model": "m"})").value();
  EXPECT_EQ(speculation_name(both), "tree, draft_model m");
}

TEST(SpeculationConfig, WhatIsNotHereIsRefusedByItsName) {
  EXPECT_THAT(refusal(R"({"method": "eagle3"})"), HasSubstr("eagle3 is not supported here"));
  EXPECT_THAT(refusal("mtp"), HasSubstr("mtp is not supported here"));
  EXPECT_THAT(refusal("tree,draft_model"), HasSubstr("draft_model needs a model"));
  EXPECT_THAT(refusal(R"({"method": "draft_model", "model": 3})"), HasSubstr("model is no file"));
  EXPECT_THAT(refusal(R"({"method": "tree", "model": "draft.gguf"})"),
              HasSubstr("draft_model is not among the methods"));
  EXPECT_THAT(refusal("magic"), HasSubstr("magic is unknown, expected some of prediction, tree"));
  EXPECT_THAT(refusal("{}"), HasSubstr("method is missing"));
  EXPECT_THAT(refusal(R"({"method": 3})"), HasSubstr("method"));
  EXPECT_THAT(refusal(R"({"method": [3]})"), HasSubstr("method"));
  EXPECT_THAT(refusal(R"({"method": "ngram", "quantization": "fp8"})"), HasSubstr("quantization"));
  EXPECT_THAT(refusal(R"({"method": "ngram", "num_speculative_tokens": 64})"),
              HasSubstr("num_speculative_tokens is 64, expected 1 to 63"));
  EXPECT_THAT(refusal(R"({"method": "ngram", "prompt_lookup_min": 1.5})"),
              HasSubstr("prompt_lookup_min is 1.5"));
  EXPECT_THAT(refusal(R"({"method": "ngram", "prompt_lookup_min": 5, "prompt_lookup_max": 2})"),
              HasSubstr("prompt_lookup_min is 5, expected at most prompt_lookup_max, 2"));
  EXPECT_NE(refusal("{"), "");
}

TEST(SpeculationConfig, LlamasTypesAreMappedOrRefused) {
  for (const char* const type : {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod"}) {
    EXPECT_EQ(parse_llama_speculation(type).value().methods, MethodSet(DraftMethod::kSuffix))
        << type;
  }
  EXPECT_EQ(parse_llama_speculation("none").value().methods, MethodSet());
  EXPECT_EQ(parse_llama_speculation("draft-simple,ngram-mod").value().methods,
            MethodSet(DraftMethod::kDraftModel, DraftMethod::kSuffix));
  for (const char* const type : {"ngram-cache", "draft-mtp", "draft-eagle3", ""}) {
    const auto parsed = parse_llama_speculation(type);
    ASSERT_FALSE(parsed.ok()) << type;
    EXPECT_THAT(parsed.error().message, HasSubstr("is not supported here")) << type;
  }
}

}  // namespace
}  // namespace pagoda::app
