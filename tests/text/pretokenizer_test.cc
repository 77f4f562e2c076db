#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "test_data.h"
#include "text/random_text.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

Pretokenizer compile(std::string_view name) {
  const PretokenizerFamily* family = find_pretokenizer_family(name);
  EXPECT_NE(family, nullptr) << name;
  return std::move(Pretokenizer::compile(*family)).value();
}

std::vector<std::uint32_t> split(const Pretokenizer& pretokenizer, std::string_view text) {
  SplitWorkspace workspace;
  std::vector<std::uint32_t> ends;
  pretokenizer.split(text, workspace, ends);
  return ends;
}

std::vector<std::string> pieces(std::string_view text, const std::vector<std::uint32_t>& ends) {
  std::vector<std::string> result;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends) {
    result.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return result;
}

// tests/data/make_pretokenizer_fixtures.py made the fixtures with another regex engine.
TEST(Pretokenizer, CutsAsThePublishedTokenizersDo) {
  const auto fixture = nlohmann::json::parse(read_file(test_data() + "/pretokenizer/splits.json"));
  const auto texts = fixture["texts"].get<std::vector<std::string>>();
  ASSERT_GT(texts.size(), 300U);
  for (const auto& [name, splits] : fixture["families"].items()) {
    const Pretokenizer pretokenizer = compile(name);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto expected = splits[i].get<std::vector<std::uint32_t>>();
      EXPECT_EQ(pieces(texts[i], split(pretokenizer, texts[i])), pieces(texts[i], expected))
          << name;
    }
  }
}

TEST(Pretokenizer, EveryPatternHasFixtures) {
  const auto fixture = nlohmann::json::parse(read_file(test_data() + "/pretokenizer/splits.json"));
  for (const PretokenizerFamily& family : pretokenizer_families()) {
    const bool tested = std::any_of(
        fixture["families"].items().begin(), fixture["families"].items().end(),
        [&](const auto& item) {
          return find_pretokenizer_family(item.key())->patterns.data() == family.patterns.data();
        });
    EXPECT_TRUE(tested) << family.names.front();
  }
}

TEST(Pretokenizer, EveryNameBelongsToOneFamily) {
  std::set<std::string_view> names;
  for (const PretokenizerFamily& family : pretokenizer_families()) {
    for (const std::string_view name : family.names) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(find_pretokenizer_family(name), &family);
    }
  }
  for (const char* name : {"gpt-2",
                           "phi-2",
                           "mpt",
                           "olmo",
                           "jais",
                           "exaone4",
                           "modern-bert",
                           "roberta-bpe",
                           "llama-bpe",
                           "llama3",
                           "falcon3",
                           "lfm2",
                           "pixtral",
                           "dbrx",
                           "smaug",
                           "glm4",
                           "chatglm-bpe",
                           "qwen2",
                           "deepseek-r1-qwen",
                           "stablelm2",
                           "hunyuan",
                           "megrez",
                           "grok-2",
                           "solar-open",
                           "qwen35",
                           "tekken",
                           "gpt-4o",
                           "llama4",
                           "kanana2",
                           "minimax-m2",
                           "starcoder",
                           "refact",
                           "command-r",
                           "smollm",
                           "codeshell",
                           "exaone",
                           "minerva",
                           "falcon",
                           "deepseek-llm",
                           "deepseek-coder",
                           "deepseek-v3",
                           "hunyuan-dense",
                           "joyai",
                           "bloom",
                           "poro",
                           "gpt3-finnish",
                           "viking",
                           "kimi-k2",
                           "gemma4",
                           "default"}) {
    EXPECT_EQ(names.count(name), 1U) << name;
  }
  EXPECT_EQ(find_pretokenizer_family("no such family"), nullptr);
  EXPECT_EQ(find_pretokenizer_family(""), nullptr);
}

TEST(Pretokenizer, PiecesCoverAnyBytes) {
  std::mt19937 random(3);
  for (const PretokenizerFamily& family : pretokenizer_families()) {
    const Pretokenizer pretokenizer = compile(family.names.front());
    for (int i = 0; i < 200; ++i) {
      const std::string text =
          i % 2 == 0 ? random_bytes(random, random() % 50) : random_unicode(random, random() % 50);
      const auto ends = split(pretokenizer, text);
      std::uint32_t before = 0;
      for (const std::uint32_t end : ends) {
        EXPECT_GT(end, before);
        before = end;
      }
      EXPECT_EQ(before, text.size());
    }
  }
}

TEST(Pretokenizer, BytesThatAreNoTextArePiecesOfTheirOwn) {
  const Pretokenizer pretokenizer = compile("gpt-2");
  const std::string text =
      "ab\xFF\xFE"
      "cd \xE2\x82 e";
  EXPECT_EQ(pieces(text, split(pretokenizer, text)),
            (std::vector<std::string>{"ab", "\xFF\xFE", "cd", " ", "\xE2\x82", " e"}));
}

// Anything worse than linear would take hours.
TEST(Pretokenizer, LongRunsTakeLinearTime) {
  constexpr std::size_t kBytes = 200'000;
  std::vector<std::string> texts;
  for (const char* unit : {"a", "A", " ", "\n", "\t", "1", ".", "'", "\xE4\xB8\xAD", "\xCC\x81",
                           " \n", "a ", "A a", "\r", "\xC2\xA0", "\xFF", "a\xFF", "'s", "/\n"}) {
    std::string text;
    while (text.size() < kBytes) text += unit;
    texts.push_back(text);
    texts.push_back(text + "x");
    texts.push_back("x" + text + ".");
  }
  for (const PretokenizerFamily& family : pretokenizer_families()) {
    const Pretokenizer pretokenizer = compile(family.names.front());
    for (const std::string& text : texts) {
      EXPECT_EQ(split(pretokenizer, text).back(), text.size());
    }
  }
}

}  // namespace
}  // namespace pagoda::text
