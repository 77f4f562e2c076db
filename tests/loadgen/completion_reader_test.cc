#include "loadgen/completion_reader.h"

#include <gtest/gtest.h>

namespace pagoda::loadgen {
namespace {

// As OpenAI's servers write them; what is no answer is among it.
const std::string kChat =
    ": a comment\n\n"
    "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
    "\"\"},\"finish_reason\":null}]}\n\n"
    "event: x\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hel\\u00e9\"}}]}\r\n\r\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"logprobs\":{\"content\":[{\"token\":"
    "\"lo\",\"text\":\"no\"}]},\"finish_reason\":\"length\"}],\"usage\":null}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,"
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
    "data: [DONE]\n\n";

void expect_chat(const CompletionReader& answer, std::uint32_t pieces) {
  EXPECT_EQ(pieces, 2U) << "an opening without text is none";
  EXPECT_EQ(answer.text(), "Hel\xc3\xa9lo");
  EXPECT_TRUE(answer.is_complete());
  EXPECT_EQ(answer.finish_reason(), "length");
  EXPECT_EQ(answer.prompt_tokens(), 7U);
  EXPECT_EQ(answer.completion_tokens(), 5U);
  EXPECT_EQ(answer.cached_tokens(), 4U);
  EXPECT_TRUE(answer.error().empty());
  EXPECT_FALSE(answer.is_malformed());
}

TEST(CompletionReaderTest, AStreamIsTheSameWhereverItIsCut) {
  for (std::size_t cut = 0; cut <= kChat.size(); ++cut) {
    CompletionReader answer(true);
    const std::string_view bytes = kChat;
    const std::uint32_t pieces = answer.put(bytes.substr(0, cut)) + answer.put(bytes.substr(cut));
    answer.end();
    expect_chat(answer, pieces);
  }
}

TEST(CompletionReaderTest, ByteByByte) {
  CompletionReader answer(true);
  std::uint32_t pieces = 0;
  for (const char byte : kChat) pieces += answer.put({&byte, 1});
  expect_chat(answer, pieces);
}

TEST(CompletionReaderTest, CompletionsAndReasoningAreText) {
  CompletionReader completion(true);
  EXPECT_EQ(completion.put("data: {\"choices\":[{\"text\":\" a\",\"finish_reason\":null}]}\n\n"),
            1U);
  EXPECT_EQ(completion.text(), " a");
  CompletionReader reasoning(true);
  EXPECT_EQ(reasoning.put("data:{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"),
            1U);
  EXPECT_EQ(reasoning.text(), "hm");
}

TEST(CompletionReaderTest, EveryChoiceIsRead) {
  CompletionReader answer(true);
  answer.put(
      "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}},{\"delta\":{\"content\":\"b\"},"
      "\"finish_reason\":\"stop\"}]}\n\n");
  EXPECT_EQ(answer.text(), "ab");
  EXPECT_EQ(answer.finish_reason(), "stop");
}

TEST(CompletionReaderTest, AStreamIsCompleteWithItsReasonAndItsEndAlone) {
  const std::string reason =
      "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n";
  CompletionReader cut(true);
  cut.put(reason);
  EXPECT_FALSE(cut.is_complete());
  cut.put("data: [DONE]\n\n");
  EXPECT_TRUE(cut.is_complete());
  CompletionReader bare(true);
  bare.put("data: [DONE]\n\n");
  EXPECT_FALSE(bare.is_complete());
}

TEST(CompletionReaderTest, AWholeReplyIsReadAtItsEnd) {
  CompletionReader answer(false);
  EXPECT_EQ(answer.put("{\"choices\":[{\"message\":{\"content\":\"Hi\"},"), 0U);
  EXPECT_EQ(answer.put("\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":2}}"), 0U);
  answer.end();
  EXPECT_EQ(answer.text(), "Hi");
  EXPECT_TRUE(answer.is_complete());
  EXPECT_EQ(answer.completion_tokens(), 2U);
  EXPECT_FALSE(answer.cached_tokens().has_value());
}

TEST(CompletionReaderTest, ErrorsAndNonsenseAreSeen) {
  CompletionReader failed(true);
  failed.put("data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n");
  EXPECT_EQ(failed.error(), "out of memory");
  CompletionReader nameless(true);
  nameless.put("data: {\"error\":{\"code\":500}}\n\n");
  EXPECT_FALSE(nameless.error().empty());
  CompletionReader nonsense(true);
  nonsense.put("data: {\"choices\":[\n\n");
  EXPECT_TRUE(nonsense.is_malformed());
}

}  // namespace
}  // namespace pagoda::loadgen
