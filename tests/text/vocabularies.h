// Vocabularies for tests: those in tests/data/vocab, and small ones made in a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "gguf/gguf_writer.h"
#include "test_data.h"
#include "text/tokenizer.h"

namespace pagoda::text {

using TokenizerPointer = std::unique_ptr<Tokenizer>;

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.good()) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline TokenizerPointer load_tokenizer(const std::string& path) {
  auto file = gguf::File::open(path);
  if (!file.ok()) {
    ADD_FAILURE() << file.error().message;
    return nullptr;
  }
  auto tokenizer = Tokenizer::load(file.value().metadata());
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }
  return std::move(tokenizer).value();
}

inline std::string vocabulary_path(std::string_view name) {
  return test_data() + "/vocab/ggml-vocab-" + std::string(name) + ".gguf";
}

inline std::vector<std::uint32_t> numbers(const std::vector<TokenId>& ids) {
  std::vector<std::uint32_t> values;
  for (const TokenId id : ids) values.push_back(id.value());
  return values;
}

inline std::vector<TokenId> ids(const std::vector<std::uint32_t>& values) {
  std::vector<TokenId> tokens;
  for (const std::uint32_t value : values) tokens.emplace_back(value);
  return tokens;
}

// Returns the text of each token as the file writes it.
inline std::vector<std::string> texts(const Tokenizer& tokenizer,
                                      const std::vector<TokenId>& tokens) {
  std::vector<std::string> result;
  for (const TokenId id : tokens) result.emplace_back(tokenizer.text_of(id));
  return result;
}

// A vocabulary made in a test. Empty arrays are left out of the file.
struct MadeVocabulary {
  std::string model = "gpt2";
  std::string pretokenizer = "gpt-2";
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  bool write_merges = true;
  gguf::GgufWriter more;  // further keys

  Result<TokenizerPointer> load() const {
    gguf::GgufWriter writer = more;
    writer.add("tokenizer.ggml.model", model);
    if (!pretokenizer.empty()) writer.add("tokenizer.ggml.pre", pretokenizer);
    if (!tokens.empty()) writer.add_array("tokenizer.ggml.tokens", tokens);
    if (!types.empty()) writer.add_array("tokenizer.ggml.token_type", types);
    if (!scores.empty()) writer.add_array("tokenizer.ggml.scores", scores);
    if (write_merges) writer.add_array("tokenizer.ggml.merges", merges);
    const std::vector<std::byte> bytes = writer.bytes();
    const auto file = gguf::File::parse(bytes, "made.gguf");
    if (!file.ok()) return file.error();
    return Tokenizer::load(file.value().metadata());
  }

  TokenizerPointer load_or_fail() const {
    auto tokenizer = load();
    if (tokenizer.ok()) return std::move(tokenizer).value();
    ADD_FAILURE() << tokenizer.error().message;
    return nullptr;
  }

  void add(std::string text, std::int32_t type = 1, float score = 0) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(score);
  }
};

inline constexpr std::int32_t kNormal = 1;
inline constexpr std::int32_t kUnknown = 2;
inline constexpr std::int32_t kControl = 3;
inline constexpr std::int32_t kUserDefined = 4;
inline constexpr std::int32_t kUnused = 5;
inline constexpr std::int32_t kByte = 6;

}  // namespace pagoda::text
