// No error inside the server makes a client, or the server, wait for ever: the client gets an error
// or sees its connection close, the request's memory is released, and other requests are served.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "counted_allocations.h"
#include "server/story_server.h"

namespace pagoda::server {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class StandStill : public testing::Test, protected StoryServer {
 protected:
  // Other requests are served, nothing runs, and both budgets are free.
  void expect_all_well() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
    const auto is_busy = [&] {
      const engine::Snapshot now = fixture().engine().snapshot();
      return now.sequences_running + now.requests_waiting > 0;
    };
    while (is_busy() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_FALSE(is_busy()) << "a request that nobody waits for goes on";
    const auto healthy = ask(got("/health"));
    ASSERT_TRUE(healthy.has_value()) << "the server answers nobody";
    EXPECT_THAT(*healthy, StartsWith("HTTP/1.1 200"));
  }
};

struct NamedRequest {
  const char* name;
  std::string request;
};

std::vector<NamedRequest> every_kind() {
  const std::string whole = R"({"prompt":"Once upon","max_tokens":4,"temperature":0)";
  const std::string chat = R"({"max_tokens":4,"messages":[{"role":"user","content":"Once"}])";
  const std::string text(100'000, 'a');
  return {{"health", got("/health")},
          {"nothing there", got("/none")},
          {"whole", posted("/v1/completions", whole + "}")},
          {"stream", posted("/v1/completions", whole + R"(,"stream":true})")},
          {"chat", posted("/v1/chat/completions", chat + "}")},
          {"chat stream", posted("/v1/chat/completions", chat + R"(,"stream":true})")},
          {"on a worker", posted("/tokenize", R"({"prompt":")" + text + "\"}")},
          {"chunked", chunked("/tokenize", R"({"prompt":")" + text + "\"}")},
          {"deferred", got("/cache/tree")},
          {"map", got("/cache/map")},
          {"metrics", got("/metrics")}};
}

// Out of memory is an exception that any allocation can throw: each one fails once, in the accept
// loop, in reading, routing, producing and sending.
TEST_F(StandStill, NoAllocationThatFailsLeavesAnyoneWaiting) {
  for (const NamedRequest& asked : every_kind()) {
    for (const char* const thread : {"http", "text"}) {
      int told = 0;
      int ended = 0;
      for (std::uint64_t passed = 0;; ++passed) {
        bool happened = false;
        std::optional<std::string> answer;
        {
          const FailedAllocation failed(thread, passed);
          answer = ask(asked.request);
          happened = failed.happened();
        }
        const std::string where =
            std::string(asked.name) + ", " + thread + ", allocation " + std::to_string(passed);
        ASSERT_TRUE(answer.has_value()) << where << ": the client waits for ever";
        EXPECT_THAT(*answer, AnyOf("", StartsWith("HTTP/1.1 "))) << where;
        if (answer->starts_with("HTTP/1.1 500")) {
          EXPECT_THAT(*answer, HasSubstr(R"("code":"internal_error")")) << where;
          EXPECT_THAT(*answer, HasSubstr("X-Request-Id: ")) << where;
          ++told;
        }
        ended += answer->empty() ? 1 : 0;
        SCOPED_TRACE(where);
        expect_all_well();
        if (HasFatalFailure() || !happened) break;
      }
      if (HasFatalFailure()) return;
      if (std::string(thread) == "http" && std::string(asked.name) != "health") {
        EXPECT_GT(told, ended) << asked.name << ": most clients are told";
      }
    }
  }
  const std::string text(900'000, 'a');
  const auto last = ask(posted("/tokenize", R"({"prompt":"a","padding":")" + text + "\"}"));
  EXPECT_THAT(last.value_or(""), StartsWith("HTTP/1.1 200")) << "bodies have their memory again";
}

TEST_F(StandStill, AHandlerOfSignalsThatThrowsIsAskedAgain) {
  std::atomic<int> calls{0};
  set_signal_handler([&](int) {
    if (++calls == 1) throw std::runtime_error("keys: a folder is no file");
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  for (int wanted = 1; wanted <= 2; ++wanted) {
    kill(getpid(), SIGHUP);
    while (calls < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(calls, wanted);
  }
  expect_all_well();
}

// Destructors cancel requests, and they must not throw.
TEST_F(StandStill, ACancellationNeedsNoMemory) {
  std::promise<void> go_on;
  fixture().engine().post([held = go_on.get_future().share()](kv::Cache&) { held.wait(); });
  const FailedAllocation failed("client", 0, true);
  std::thread client([&] {
    pthread_setname_np(pthread_self(), "client");
    for (std::uint64_t i = 0; i < 10'000; ++i)
      fixture().engine().cancel(engine::RequestId(1 << 30));
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  while (!failed.happened() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  go_on.set_value();
  client.join();
  EXPECT_TRUE(failed.happened());
  expect_all_well();
}

// The memory is freed later, on another thread; the engine is free at once.
TEST_F(StandStill, ACancelledCompletionRunsNoMore) {
  ServerState& state = fixture().state();
  HttpRequest request = {
      .method = "POST",
      .path = "/v1/completions",
      .content_type = "application/json",
      .body = R"({"prompt":["Once","Twice"],"n":4,"max_tokens":400,"ignore_eos":true})"};
  request.caller = identify({}, state.keys());
  const auto completion = std::get<std::unique_ptr<Completion>>(route(request, state));
  completion->start([] {});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kTimeoutSeconds);
  const auto is_late = [&] { return std::chrono::steady_clock::now() > end; };
  while (fixture().engine().snapshot().sequences_running == 0 && !is_late())
    std::this_thread::yield();
  EXPECT_GT(fixture().engine().snapshot().sequences_running, 0u);
  completion->cancel();
  expect_all_well();
}

// One thread serves connections, so that a request which waits for the engine must not block it.
TEST_F(StandStill, AnEngineThatIsBusyHoldsNoThreadOfConnections) {
  for (const std::string& request : {got("/cache/tree"), posted("/reset_prefix_cache", "{}")}) {
    std::promise<void> go_on;
    fixture().engine().post([held = go_on.get_future().share()](kv::Cache&) { held.wait(); });
    auto asked = std::async(std::launch::async, [&] { return ask(request); });
    // The request has most likely arrived.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    auto other = std::async(std::launch::async, [&] { return ask(got("/version")); });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(5)), std::future_status::ready) << request;
    go_on.set_value();
    EXPECT_THAT(other.get().value_or(""), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(asked.get().value_or(""), StartsWith("HTTP/1.1 200")) << request;
  }
  expect_all_well();
}

// A template comes with a model's file, and may take ten million steps for a few words.
TEST_F(StandStill, ATemplateThatTakesLongDoesSoElsewhere) {
  constexpr const char* kLong =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
      "{% if messages[0].content == 'long' %}"
      "{% for i in range(2000) %}{% for j in range(300) %}{% if i == j + 5000 %}x{% endif %}"
      "{% endfor %}{% endfor %}{% endif %}";
  set_template(kLong);
  const auto request = [](const std::string& content) {
    return posted("/v1/chat/completions/render",
                  R"({"messages":[{"role":"user","content":")" + content + R"("}]})");
  };
  const double text_before = cpu_seconds_of("text");
  const auto quick = ask(request("short"));
  EXPECT_THAT(quick.value_or(""), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(cpu_seconds_of("text") - text_before, 0.01) << "a short one is rendered where it came";
  const double http_before = cpu_seconds_of("http");
  const auto slow = ask(request("long"));
  EXPECT_THAT(slow.value_or(""), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(slow.value_or(""), HasSubstr("user: long"));
  const double http = cpu_seconds_of("http") - http_before;
  EXPECT_LT(http, 0.3 * (cpu_seconds_of("text") - text_before)) << http << " s";
}

}  // namespace
}  // namespace pagoda::server
