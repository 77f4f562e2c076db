// Nothing that goes wrong inside the server makes a client, or the server, wait for ever: the
// client is told, or sees its connection end; what the request had is given back; others are
// served.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "counted_allocations.h"
#include "server/server.h"
#include "server/story_desk.h"

namespace pagoda::server {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kPatienceSeconds = 20;

ServerOptions small_server() {
  ServerOptions options;
  options.port = 0;
  options.threads = 1;
  options.text_threads = 1;
  options.connections_per_client_max = 2;  // one that is not given back is missed soon
  options.body_memory_max = 1 << 20;
  options.request_memory_max = 64 << 20;
  options.connection.body_bytes_max = 1 << 20;
  options.version = "1.2.3";
  return options;
}

std::string posted(const std::string& path, const std::string& body) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string chunked(const std::string& path, const std::string& body) {
  std::string text = "POST " + path +
                     " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  constexpr std::size_t kChunk = 1 << 12;
  for (std::size_t at = 0; at < body.size(); at += kChunk) {
    const std::string chunk = body.substr(at, kChunk);
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
    text += size + chunk + "\r\n";
  }
  return text + "0\r\n\r\n";
}

std::string got(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
}

class StandStill : public testing::Test {
 protected:
  StandStill()
      : model_{.names = {"stories"},
               .tokenizer = desk_.tokenizer(),
               .chat_template = text::ChatTemplate::parse("story", kStoryTemplate,
                                                          text::special_texts(desk_.tokenizer()))
                                    .value(),
               .engine = desk_.engine(),
               .doorbell = desk_.served().doorbell,
               .fingerprint = "test",
               .shows_tree = true} {
    server_ = Server::listen(small_server(), [this](int signal) { on_signal_(signal); }).value();
    server_->open(model_);
    const std::string address = server_->address();
    port_ = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  ~StandStill() override { server_->stop(); }

  // Until the server closes the connection; nothing when it does not.
  std::optional<std::string> ask(const std::string& request) const {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience = {.tv_sec = kPatienceSeconds, .tv_usec = 0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::optional<std::string> answer;
    if (connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      answer.emplace();
      send(client, request.data(), request.size(), MSG_NOSIGNAL);
      char bytes[4096];
      ssize_t count = 0;
      while ((count = recv(client, bytes, sizeof bytes, 0)) > 0) {
        answer->append(bytes, static_cast<std::size_t>(count));
      }
      if (count < 0 && errno == EAGAIN) answer.reset();
    }
    close(client);
    return answer;
  }

  // Others are served, nothing runs, and all of both budgets is there.
  void expect_all_well() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    const auto is_busy = [&] {
      const engine::Snapshot now = desk_.engine().snapshot();
      return now.answers_running + now.requests_waiting > 0;
    };
    while (is_busy() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_FALSE(is_busy()) << "a request that nobody waits for goes on";
    const auto healthy = ask(got("/health"));
    ASSERT_TRUE(healthy.has_value()) << "the server answers nobody";
    EXPECT_THAT(*healthy, StartsWith("HTTP/1.1 200"));
  }

  StoryDesk desk_;
  ServedModel model_;
  std::function<void(int)> on_signal_ = [](int) {};
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

struct Asked {
  const char* name;
  std::string request;
};

std::vector<Asked> every_kind() {
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

// Memory that is not to be had is as good an exception as any, and every place can throw it: each
// allocation fails once, in the accept loop, in reading, routing, producing and sending.
TEST_F(StandStill, NoAllocationThatFailsLeavesAnyoneWaiting) {
  for (const Asked& asked : every_kind()) {
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
  on_signal_ = [&](int) {
    if (++calls == 1) throw std::runtime_error("keys: a folder is no file");
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  for (int wanted = 1; wanted <= 2; ++wanted) {
    kill(getpid(), SIGHUP);
    while (calls < wanted && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(calls, wanted);
  }
  expect_all_well();
}

// One thread serves connections: what waits for the engine must not wait on it.
TEST_F(StandStill, AnEngineThatIsBusyHoldsNoThreadOfConnections) {
  for (const std::string& request : {got("/cache/tree"), posted("/reset_prefix_cache", "{}")}) {
    std::promise<void> go_on;
    desk_.engine().post([held = go_on.get_future().share()](kv::Cache&) { held.wait(); });
    auto asked = std::async(std::launch::async, [&] { return ask(request); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // it has most likely arrived
    auto other = std::async(std::launch::async, [&] { return ask(got("/version")); });
    EXPECT_EQ(other.wait_for(std::chrono::seconds(5)), std::future_status::ready) << request;
    go_on.set_value();
    EXPECT_THAT(other.get().value_or(""), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(asked.get().value_or(""), StartsWith("HTTP/1.1 200")) << request;
  }
  expect_all_well();
}

// Seconds of processor time that threads of this name have had.
double cpu_seconds_of(const std::string& name) {
  double seconds = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::ifstream(task.path() / "comm") >> comm;
    if (comm != name) continue;
    double on_cpu_ns = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu_ns;
    seconds += on_cpu_ns * 1e-9;
  }
  return seconds;
}

// A template comes with a model's file, and may take ten million steps for a few words.
TEST_F(StandStill, ATemplateThatTakesLongDoesSoElsewhere) {
  constexpr const char* kLong =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
      "{% if messages[0].content == 'long' %}"
      "{% for i in range(2000) %}{% for j in range(300) %}{% if i == j + 5000 %}x{% endif %}"
      "{% endfor %}{% endfor %}{% endif %}";
  model_.chat_template =
      text::ChatTemplate::parse("long", kLong, text::special_texts(desk_.tokenizer())).value();
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
