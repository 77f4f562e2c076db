// Reading traces: what a line may look like, and what a file.
#include "replay/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "replay/replay_command.h"

namespace pagoda::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::uint32_t> numbers(const Trace& trace, std::size_t request) {
  std::vector<std::uint32_t> result;
  for (const TokenId id : trace.prompt(trace.requests[request])) result.push_back(id.value());
  result.pop_back();  // the entry that stands for nothing
  return result;
}

Trace read_text(const std::string& text) {
  Result<Trace> trace = read_trace(write_file("trace", text), {});
  EXPECT_TRUE(trace.ok());
  return std::move(trace).value();
}

std::string gzip(const std::string& text) {
  const std::string path = write_file("packed", "");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(ReplayTraceTest, IdsAreNumberedInOrderOfAppearance) {
  const Trace trace =
      read_text(trace_line(1000, "18446744073709551615, 0, 9007199254740993, 9007199254740992") +
                trace_line(7, "0, 18446744073709551615") + trace_line(0, ""));
  ASSERT_EQ(trace.requests.size(), 3U);
  EXPECT_THAT(numbers(trace, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(numbers(trace, 1), ElementsAre(1, 0));
  EXPECT_THAT(numbers(trace, 2), IsEmpty());
  EXPECT_EQ(trace.requests[0].input_tokens, 1000U);
  EXPECT_EQ(trace.touches(), 6U);
}

TEST(ReplayTraceTest, BlankLinesFieldsInAnyOrderAndMissingLineEndsAreFine) {
  const Trace trace = read_text(
      "\n  \r\n{\"hash_ids\":[5],\"more\":{\"a\":[]},\"input_length\":3}\r\n\n"
      "{\"timestamp\":1.5,\"hash_ids\":[5],\"output_length\":0,\"input_length\":4}");
  EXPECT_EQ(trace.lines_malformed, 0U);
  ASSERT_EQ(trace.requests.size(), 2U);
  EXPECT_EQ(trace.requests[1].input_tokens, 4U);
}

TEST(ReplayTraceTest, MalformedLinesAreReportedByNumber) {
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"oops", "not a JSON value"},
      {"{\"input_length\": 1, \"hash_ids\": [1]", "not a JSON value"},
      {trace_line(1, "1") + " ", ""},
      {"[1, 2]", "not a JSON object"},
      {"{\"hash_ids\": [1]}", "no input_length"},
      {"{\"input_length\": 1}", "no hash_ids"},
      {"{\"input_length\": -1, \"hash_ids\": [1]}", "input_length is not a whole number"},
      {"{\"input_length\": 1.5, \"hash_ids\": [1]}", "input_length is not a whole number"},
      {"{\"input_length\": \"1\", \"hash_ids\": [1]}", "input_length is not a whole number"},
      {"{\"input_length\": 1, \"hash_ids\": 1}", "hash_ids is not an array"},
      {"{\"input_length\": 1, \"hash_ids\": [1, -2]}", "hash_ids[1] is not a whole number"},
      {"{\"input_length\": 1, \"hash_ids\": [1, 2, 3.0]}", "hash_ids[2] is not a whole number"},
      {"{\"input_length\": 1, \"hash_ids\": [\"1\"]}", "hash_ids[0] is not a whole number"},
      {"{\"input_length\": 1, \"hash_ids\": [18446744073709551616]}", "hash_ids[0] is not"},
      {"{\"timestamp\": \"x\", \"input_length\": 1, \"hash_ids\": []}",
       "timestamp is not a number"},
      {"{\"output_length\": -1, \"input_length\": 1, \"hash_ids\": []}", "output_length is not"},
      {"\xff\xfe", "not a JSON value"},
      {"{\"input_length\": 1, \"hash_ids\": [1]} x", "not a JSON value"},
      {std::string(100000, '['), "not a JSON value"},
  };
  for (const auto& [line, reason] : lines) {
    std::vector<std::string> reports;
    const TraceEvents events = {.on_malformed =
                                    [&](std::uint64_t number, const std::string& why) {
                                      reports.push_back(std::to_string(number) + " " + why);
                                    },
                                .on_progress = {}};
    const std::string text = trace_line(1, "7") + "\n" + line + "\n" + trace_line(1, "8");
    const Result<Trace> trace = read_trace(write_file("trace", text), events);
    ASSERT_TRUE(trace.ok());
    const std::size_t bad = reason.empty() ? 0 : 1;
    EXPECT_EQ(trace.value().requests.size(), 3 - bad) << line;
    EXPECT_EQ(trace.value().lines_malformed, bad) << line;
    ASSERT_EQ(reports.size(), bad) << line;
    if (bad != 0) {
      EXPECT_THAT(reports[0], HasSubstr("3 " + reason)) << line;
    }
  }
}

TEST(ReplayTraceTest, GzipIsReadLikePlainText) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += trace_line(1, std::to_string(i) + ", 77777777777");
  const std::string packed = gzip(text);
  ASSERT_LT(packed.size(), text.size() / 4);
  const Trace plain = read_text(text);
  EXPECT_EQ(plain.requests.size(), 20000U);
  EXPECT_EQ(plain.lines_malformed, 0U) << "also where a line lies across two reads";
  EXPECT_EQ(read_text(packed).ids, plain.ids);
  EXPECT_EQ(read_text(packed + packed).requests.size(), 40000U) << "gzip files put together";
}

TEST(ReplayTraceTest, BrokenGzipIsAnError) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += trace_line(1, std::to_string(i));
  const std::string packed = gzip(text);
  std::string changed = packed;
  changed[packed.size() / 2] = static_cast<char>(changed[packed.size() / 2] ^ 0x55);
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] = static_cast<char>(wrong_sum[packed.size() - 8] ^ 1);
  for (const std::string& bytes : {packed.substr(0, packed.size() / 2),
                                   packed.substr(0, packed.size() - 1), changed, wrong_sum}) {
    const std::string path = write_file("broken.gz", bytes);
    const Result<Trace> trace = read_trace(path, {});
    ASSERT_FALSE(trace.ok());
    EXPECT_THAT(trace.error().message, HasSubstr("cannot read '" + path + "': "));
  }
}

TEST(ReplayTraceTest, ProgressEndsWithTheWholeFile) {
  std::string text;
  for (std::uint64_t i = 0; i < 20000; ++i) text += trace_line(1, std::to_string(i * 1234567));
  for (const std::string& bytes : {text, gzip(text)}) {
    std::uint64_t done = 0;
    std::uint64_t calls = 0;
    const TraceEvents events = {.on_malformed = {},
                                .on_progress = [&](std::uint64_t now, std::uint64_t total) {
                                  EXPECT_GT(now, done);
                                  EXPECT_EQ(total, bytes.size());
                                  done = now;
                                  ++calls;
                                }};
    ASSERT_TRUE(read_trace(write_file("trace", bytes), events).ok());
    EXPECT_EQ(done, bytes.size());
    EXPECT_LT(calls, 100U) << "not once a line";
  }
}

}  // namespace
}  // namespace pagoda::replay
