// Encodes a file several times on one thread and prints one JSON object: seconds of each run, the
// best MB/s, and a digest of the ids (FNV-1a over little-endian 32-bit ids) to compare with.
//
//   tokenizer_bench MODEL FILE [REPEATS]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "text/tokenizer.h"

namespace {

using pagoda::TokenId;

std::string digest_of(const std::vector<TokenId>& ids) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((id.value() >> shift) & 0xFFu)) * 0x100000001B3u;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

int fail(const std::string& message) {
  std::cerr << "error: " << message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fail("usage: tokenizer_bench MODEL FILE [REPEATS]");
  const int repeats = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  std::ifstream stream(argv[2], std::ios::binary);
  if (!stream) return fail(std::string("cannot read ") + argv[2]);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});

  const auto seconds_since = [](std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto file = pagoda::gguf::File::open(argv[1]);
  if (!file.ok()) return fail(file.error().message);
  const auto load_start = std::chrono::steady_clock::now();
  const auto tokenizer = pagoda::text::Tokenizer::load(file.value().metadata());
  const double load_seconds = seconds_since(load_start);
  if (!tokenizer.ok()) return fail(tokenizer.error().message);

  std::vector<TokenId> ids;
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ids = tokenizer.value()->encode(text, {});
    seconds.push_back(seconds_since(start));
  }
  const double best = *std::min_element(seconds.begin(), seconds.end());
  const nlohmann::json report = {
      {"bytes", text.size()},     {"tokens", ids.size()},
      {"digest", digest_of(ids)}, {"load_seconds", load_seconds},
      {"seconds", seconds},       {"mb_per_second", static_cast<double>(text.size()) / best * 1e-6},
  };
  std::cout << report.dump() << '\n';
  return 0;
}
