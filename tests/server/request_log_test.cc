#include "server/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>

#include "server/api/completion_fields.h"
#include "server/story_fixture.h"
#include "test_data.h"

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

// A misspelt field would be silent.
TEST(RequestLog, FieldsThatNobodyKnowsAreNamed) {
  const Json body = {{"prompt", "Once"},        {"max_token", 3},     {"n_predict", 3},
                     {"temperature", 0.5},      {"suffix", ""},       {"typical_p", 1},
                     {"not \n a name", "text"}, {"metadata", nullptr}};
  EXPECT_THAT(ignored_fields(body), testing::ElementsAre("max_token", "n_predict"));
  EXPECT_THAT(ignored_fields({{"grammar", ""}, {"guided_choice", Json::array()}, {"stop", ""}}),
              testing::ElementsAre("grammar", "guided_choice"))
      << "which clients send for none";
  Json many = Json::object();
  for (int i = 0; i < 20; ++i) many["field_" + std::to_string(i)] = i;
  EXPECT_EQ(ignored_fields(many).size(), 8u);
  LogEntry entry = whole_entry();
  entry.ignored = {"max_token", "n_predict"};
  EXPECT_THAT(format_entry(entry, LogFormat::kText, kTime),
              testing::EndsWith(" e2e_s=1.5 ignored_fields=max_token,n_predict"));
}

// Every field that a reader of bodies asks for, by its name or by a constant that has it, is known.
TEST(RequestLog, FieldsThatAreReadAreNotCalledIgnored) {
  const std::string folder = test_data() + "/../../src/server/api/";
  const std::regex read(R"re(\bfields\.\w+\(\s*(?:"(\w+)"|(k[A-Z]\w*)))re");
  const std::regex constant(R"re(constexpr [^=;]*\b(k[A-Z]\w*) = "(\w+)";)re");
  std::size_t found = 0;
  for (const char* const name :
       {"cache_diagnostics.cc", "cache_fields.cc", "chat_prompt.cc", "chat_request.cc",
        "completion_fields.cc", "retain.cc", "structured_fields.cc", "text_request.cc",
        "tool_choice.cc", "truncation.cc", "unsupported_fields.cc"}) {
    std::ifstream file(folder + name);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::map<std::string, std::string> constants;
    for (std::sregex_iterator at(text.begin(), text.end(), constant), end; at != end; ++at) {
      constants[(*at)[1].str()] = (*at)[2].str();
    }
    std::size_t here = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), read), end; at != end; ++at) {
      const bool is_literal = (*at)[1].matched;
      const std::string field = is_literal ? (*at)[1].str() : constants[(*at)[2].str()];
      if (field.empty()) continue;  // the constant is another file's
      EXPECT_THAT(ignored_fields({{field, 1}}), testing::IsEmpty()) << name;
      ++here;
    }
    EXPECT_GT(here, 0u) << name;
    found += here;
  }
  EXPECT_GT(found, 60u);
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
