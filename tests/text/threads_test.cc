#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "test_data.h"
#include "text/vocabularies.h"

namespace pagoda::text {
namespace {

TEST(Threads, ManyEncodeAtOnceAndGetWhatOneGets) {
  const std::string text = read_file(test_data() + "/text/wikitext2-test.txt").substr(0, 300'000);
  for (const char* name : {"falcon", "llama-spm"}) {
    const auto tokenizer = load_tokenizer(vocabulary_path(name));
    ASSERT_NE(tokenizer, nullptr);
    constexpr std::size_t kThreads = 4;
    constexpr std::size_t kParts = 40;
    const std::size_t share = text.size() / kParts;
    std::vector<std::vector<std::vector<TokenId>>> found(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t part = 0; part < kParts; ++part) {
          const std::size_t at = (part + thread * 7) % kParts * share;
          found[thread].push_back(tokenizer->encode(text.substr(at, share), {}));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto fresh = load_tokenizer(vocabulary_path(name));
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      for (std::size_t part = 0; part < kParts; ++part) {
        const std::size_t at = (part + thread * 7) % kParts * share;
        EXPECT_EQ(found[thread][part], fresh->encode(text.substr(at, share), {}));
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::text
