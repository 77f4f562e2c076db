#include "server/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

constexpr std::string_view kTime = "2026-01-31T23:59:59.123Z";

LogEntry whole_entry() {
  LogEntry entry;
  entry.id = "cmpl-1";
  entry.path = "/v1/completions";
  entry.tenant = "the blue team";
  entry.model = "stories";
  entry.stream = true;
  entry.prompt_tokens = 7;
  entry.cached_tokens = 6;
  entry.output_tokens = 3;
  entry.first_token_s = 0.0123456;
  entry.total_s = 1.5;
  entry.finish = "length";
  entry.status = 200;
  return entry;
}

TEST(RequestLog, ATextLineHasWordsAndQuotesWhatIsNone) {
  EXPECT_EQ(format_entry(whole_entry(), LogFormat::kText, kTime),
            "2026-01-31T23:59:59.123Z id=cmpl-1 path=/v1/completions tenant=\"the blue team\" "
            "model=stories stream=true status=200 finish_reason=length prompt_tokens=7 "
            "cached_tokens=6 completion_tokens=3 ttft_s=0.012346 e2e_s=1.5");
}

TEST(RequestLog, AJsonLineIsOneObject) {
  const std::string line = format_entry(whole_entry(), LogFormat::kJson, kTime);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(line), Json({{"time", kTime},
                                     {"id", "cmpl-1"},
                                     {"path", "/v1/completions"},
                                     {"tenant", "the blue team"},
                                     {"model", "stories"},
                                     {"stream", true},
                                     {"status", 200},
                                     {"finish_reason", "length"},
                                     {"prompt_tokens", 7},
                                     {"cached_tokens", 6},
                                     {"completion_tokens", 3},
                                     {"ttft_s", 0.012346},
                                     {"e2e_s", 1.5}}));
}

TEST(RequestLog, WhatWouldBreakALineIsQuoted) {
  LogEntry entry;
  entry.status = 400;
  entry.tenant = "a\nb";
  entry.prompts = {"one\ntwo \xff"};
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = format_entry(entry, format, kTime);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
  EXPECT_EQ(format_entry(entry, LogFormat::kText, kTime),
            "2026-01-31T23:59:59.123Z tenant=\"a\\nb\" stream=false status=400 "
            "prompts=[\"one\\ntwo \xef\xbf\xbd\"]");
}

TEST(RequestLog, AFailureIsALineAlsoWhereRequestsAreNone) {
  const Failure failure = {.request_id = "7", .where = "/v1/models", .what = "std::bad_alloc"};
  EXPECT_EQ(format_failure(failure, LogFormat::kText, kTime),
            "2026-01-31T23:59:59.123Z request_id=7 where=/v1/models failure=std::bad_alloc");
  EXPECT_EQ(Json::parse(format_failure(failure, LogFormat::kJson, kTime)),
            Json({{"time", kTime},
                  {"request_id", "7"},
                  {"where", "/v1/models"},
                  {"failure", "std::bad_alloc"}}));
  std::FILE* const file = std::tmpfile();
  RequestLog log({.format = LogFormat::kNone}, file);
  log.write(whole_entry());
  log.write_thrown("7", "/v1/models", std::make_exception_ptr(std::runtime_error("no\nroom")));
  log.write_thrown({}, "a signal", std::make_exception_ptr(5));
  std::rewind(file);
  char text[1024] = {};
  const std::string written(text, std::fread(text, 1, sizeof text, file));
  std::fclose(file);
  EXPECT_THAT(written, testing::EndsWith("Z where=\"a signal\" failure=\"an exception of no known "
                                         "type\"\n"));
  EXPECT_THAT(written, testing::HasSubstr("request_id=7 where=/v1/models failure=\"no\\nroom\"\n"));
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 2);
}

}  // namespace
}  // namespace pagoda::server
