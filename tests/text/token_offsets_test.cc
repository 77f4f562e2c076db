#include "text/token_offsets.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

using Places = std::vector<std::size_t>;

void add_bytes(MadeVocabulary& made, const std::vector<std::string>& names) {
  for (const std::string& name : names) made.add("<0x" + name + ">", kByte);
}

MadeVocabulary sentence_piece(bool add_space_prefix) {
  MadeVocabulary made;
  made.model = "llama";
  made.pretokenizer = "";
  made.write_merges = false;
  made.more.add("tokenizer.ggml.add_space_prefix", add_space_prefix);
  made.add("<unk>", kUnknown);
  return made;
}

// Makes a vocabulary of letters without a space mark, so that a space becomes the bytes E2 96 81.
MadeVocabulary without_marks(const std::string& model, bool add_space_prefix) {
  MadeVocabulary made = sentence_piece(add_space_prefix);
  made.model = model;
  made.write_merges = model != "llama";
  made.add("a");
  made.add("b");
  add_bytes(made, {"E2", "96", "81", "82", "AC"});
  return made;
}

Places places_of(const MadeVocabulary& made, const std::string& text) {
  const auto tokenizer = made.load_or_fail();
  return tokenizer->encode_with_offsets_within(text, {}, SIZE_MAX).value().begins;
}

// The euro sign is E2 82 AC: its first byte is not that of a space's mark.
TEST(TokenOffsets, BytesOfASpacesMarkStandAtTheSpace) {
  const Places expected = {0, 1, 1, 1, 2, 3, 4, 5};
  EXPECT_EQ(places_of(without_marks("llama", false), "a b\xE2\x82\xAC"), expected);
  EXPECT_EQ(places_of(without_marks("gemma4", false), "a b\xE2\x82\xAC"), expected);
  EXPECT_EQ(places_of(without_marks("llama", true), "a b\xE2\x82\xAC"),
            (Places{0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5}));
  EXPECT_EQ(places_of(without_marks("llama", false), " \xE2\x96\x81 "),
            (Places{0, 0, 0, 1, 2, 3, 4, 4, 4}));
}

TEST(TokenOffsets, TheUnknownTokenTakesOneByteAlsoWhereItsTextStands) {
  MadeVocabulary made = sentence_piece(false);
  made.add("a");
  made.add("k");
  EXPECT_EQ(places_of(made, "<unk>a"), (Places{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(places_of(made, "a a"), (Places{0, 1, 1, 1, 2})) << "and one of a mark";
}

TEST(TokenOffsets, BytesThatNoTokenStandsForArePassedOver) {
  MadeVocabulary made;
  made.add("a");
  made.add("ddx");  // part of "dx", which is no token
  made.merges = {"d x", "d dx"};
  EXPECT_EQ(places_of(made, "ddddxaqqa"), (Places{2, 5, 8}));
  EXPECT_EQ(places_of(made, "qaq"), (Places{1}));
  EXPECT_EQ(places_of(made, "qq"), Places{});
}

Vocabulary vocabulary_of(const MadeVocabulary& made) {
  gguf::GgufWriter writer = made.more;
  writer.add("tokenizer.ggml.model", made.model);
  writer.add_array("tokenizer.ggml.tokens", made.tokens);
  writer.add_array("tokenizer.ggml.token_type", made.types);
  const std::vector<std::byte> bytes = writer.bytes();
  const auto file = gguf::File::parse(bytes, "made.gguf");
  return load_vocabulary(file.value().metadata()).value();
}

// The tokens of a text, as an encoder gives them, and the cost of finding them.
struct Found {
  std::vector<TokenId> ids;
  Places places;
  std::size_t bytes_read = 0;
};

Found find_all(const MadeVocabulary& made, const Vocabulary& vocabulary, const std::string& text) {
  const auto tokenizer = made.load_or_fail();
  TokenOffsets offsets(vocabulary, text, true);
  Found found;
  found.ids = tokenizer->encode(text, {.add_bos_eos = false});
  for (const TokenId id : found.ids) found.places.push_back(offsets.next(id));
  found.bytes_read = offsets.bytes_read();
  return found;
}

// Returns whether the tokens, at their offsets, cover the text with its marks from one end to the
// other, except for bytes without a token.
testing::AssertionResult cover(const Found& found, const Vocabulary& vocabulary,
                               const std::string& text) {
  const bool has_marks = vocabulary.family != TokenizerFamily::kBytePair;
  std::string marked = vocabulary.add_space_prefix && !text.empty() ? std::string(kSpaceMark) : "";
  // For each byte of the text, its offset in `marked`; a mark in front belongs to the first.
  Places starts = {0};
  for (const char byte : text) {
    marked += has_marks && byte == ' ' ? kSpaceMark : std::string_view(&byte, 1);
    starts.push_back(marked.size());
  }
  std::size_t at = 0;
  const auto skip_to = [&](std::size_t end) {
    for (; at < end; ++at) {
      const auto byte = static_cast<std::uint8_t>(marked[at]);
      if (vocabulary.unknown || vocabulary.byte_tokens[byte]) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < found.ids.size(); ++i) {
    const std::size_t place = found.places[i];
    if (place >= text.size() || at >= starts[place + 1] || !skip_to(starts[place])) {
      return testing::AssertionFailure() << "token " << i << " is not at " << place;
    }
    const std::uint32_t id = found.ids[i].value();
    const bool one_byte = found.ids[i] == vocabulary.unknown;
    const bool as_read = !has_marks || vocabulary.types[id] == TokenType::kByte;
    const std::string_view bytes = as_read ? vocabulary.bytes[id] : vocabulary.texts[id];
    // Bytes of a mark may have been dropped before it.
    while (!one_byte && marked.compare(at, bytes.size(), bytes) != 0 &&
           at + 1 < starts[place + 1] && skip_to(at + 1)) {
    }
    if (!one_byte && marked.compare(at, bytes.size(), bytes) != 0) {
      return testing::AssertionFailure() << "token " << i << " is not spelt at " << place;
    }
    at += one_byte ? 1 : bytes.size();
  }
  if (skip_to(marked.size())) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "nothing covers byte " << at << " of the marked text";
}

// The pieces have few letters, so that many are alike; some letters, bytes and marks have no token.
MadeVocabulary random_vocabulary(std::mt19937& random, const std::string& model) {
  const std::vector<std::string> letters = {"a", "b", "d", "x", "\xC3\xA9"};
  const auto has = [&] { return random() % 2 == 0; };
  MadeVocabulary made = sentence_piece(has());
  made.model = model;
  made.types[0] = has() ? kUnknown : kControl;
  made.more.add("tokenizer.ggml.unknown_token_id", std::uint32_t{0});
  made.write_merges = model != "llama";
  std::vector<std::string> pieces;
  for (const std::string& letter : letters) {
    // The alphabet of byte-level vocabularies writes byte C3 as U+00C3.
    pieces.push_back(model == "gpt2" && letter.size() == 2 ? "\xC3\x83" : letter);
  }
  pieces.push_back(model == "gpt2" ? "\xC4\xA0" : std::string(kSpaceMark));
  for (const std::string& piece : pieces) {
    if (has()) made.add(piece);
  }
  for (int i = 0; i < 12; ++i) {
    const std::string left = pieces[random() % pieces.size()];
    const std::string right = pieces[random() % pieces.size()];
    made.merges.push_back(left + " " + right);
    pieces.push_back(left + right);
    if (has())
      made.add(pieces.back(), random() % 4 == 0 ? kUnused : kNormal,
               static_cast<float>(random() % 5));
  }
  for (const std::string name : {"E2", "96", "81", "C3", "A9", "61", "64"}) {
    if (random() % 3 == 0) add_bytes(made, {name});
  }
  return made;
}

TEST(TokenOffsets, CoverTheTextWhateverTheVocabulary) {
  std::mt19937 random(19);
  for (const std::string model : {"gpt2", "gemma4", "llama"}) {
    std::size_t tokens = 0;
    for (int round = 0; round < 400; ++round) {
      const MadeVocabulary made = random_vocabulary(random, model);
      const Vocabulary vocabulary = vocabulary_of(made);
      for (int i = 0; i < 5; ++i) {
        std::string text;
        for (std::size_t left = random() % 24; left > 0; --left) {
          const std::vector<std::string> parts = {
              "a", "b", "d", "x", " ", "\xC3\xA9", std::string(kSpaceMark), "\xE2", "\x81"};
          text += parts[random() % parts.size()];
        }
        const Found found = find_all(made, vocabulary, text);
        tokens += found.ids.size();
        ASSERT_TRUE(cover(found, vocabulary, text)) << model << " " << round << ": " << text;
      }
    }
    EXPECT_GT(tokens, 1000U) << model;
  }
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Each case would take quadratic time if every token were searched in the whole rest of the text.
TEST(TokenOffsets, AreFoundInTimeLinearInTheText) {
  constexpr std::size_t kTimes = 20'000;
  struct Case {
    std::string name;
    MadeVocabulary made;
    std::string text;
    std::size_t tokens;
  };
  std::vector<Case> cases;
  cases.push_back({"spaces without a token", without_marks("llama", true), repeated(" a", kTimes),
                   4 * kTimes + 3});
  cases.push_back({"the same, of merged characters", without_marks("gemma4", false),
                   repeated("a ", kTimes), 4 * kTimes});
  MadeVocabulary unknown = sentence_piece(false);
  unknown.add("a");
  cases.push_back({"unknown bytes", unknown, repeated("a<", kTimes), 2 * kTimes});
  MadeVocabulary dropped;
  dropped.add("a");
  cases.push_back(
      {"a token at the end of bytes that have none", dropped, std::string(kTimes, 'q') + "a", 1});
  // With this token a mismatch is found late, again and again.
  MadeVocabulary late;
  late.add(std::string(512, 'd') + "x");
  std::string run = "d";
  for (int i = 0; i < 9; ++i, run += run) late.merges.push_back(run + " " + run);
  late.merges.push_back(run + " x");
  late.add(std::string(1024, 'd'));
  cases.push_back({"a beginning repeated", late,
                   std::string(511, 'd') + "q" + repeated(std::string(511, 'd') + "q", 40) +
                       std::string(512, 'd') + "x",
                   1});
  for (const Case& each : cases) {
    const Found found = find_all(each.made, vocabulary_of(each.made), each.text);
    EXPECT_EQ(found.places.size(), each.tokens) << each.name;
    const std::size_t marks = 3 * (each.text.size() + 1);
    EXPECT_LE(found.bytes_read, 4 * marks + found.places.size()) << each.name;
  }
}

}  // namespace
}  // namespace pagoda::text
