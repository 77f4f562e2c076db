#include "model/logit_fixture.h"
#include "test_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

namespace pagoda::model {
namespace {

class FixtureReader {
 public:
  explicit FixtureReader(const std::string& name) : name_(name) {
    std::ifstream file(test_data() + "/logits/" + name, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }

  template <class T>
  std::vector<T> take(std::size_t count) {
    static_assert(sizeof(T) == 4);
    if (bytes_.size() - at_ < count * 4) fail("is too short");
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + at_, count * 4);
    at_ += count * 4;
    return values;
  }
  std::uint32_t number() { return take<std::uint32_t>(1).front(); }
  std::vector<TokenId> tokens(std::size_t count) {
    std::vector<TokenId> ids;
    for (const std::uint32_t id : take<std::uint32_t>(count)) ids.push_back(TokenId(id));
    return ids;
  }
  void expect_magic(const char* magic) {
    const auto word = take<std::uint32_t>(1);
    if (std::memcmp(word.data(), magic, 4) != 0) fail("has another magic");
  }
  void expect_end() {
    if (at_ != bytes_.size()) fail("is too long");
  }

 private:
  [[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "fixture %s %s\n", name_.c_str(), what);
    std::exit(1);
  }
  std::string name_;
  std::vector<char> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

FullLogits read_full_logits(const std::string& name) {
  FixtureReader reader(name);
  reader.expect_magic("PGFL");
  const std::uint32_t tokens = reader.number();
  const std::uint32_t vocabulary = reader.number();
  FullLogits full = {reader.tokens(tokens), {}};
  full.logits = reader.take<float>(std::size_t{tokens} * vocabulary);
  reader.expect_end();
  return full;
}

std::vector<double> kl_of_rows(const FullLogits& oracle, const std::vector<float>& ours) {
  const std::size_t vocabulary = oracle.logits.size() / oracle.tokens.size();
  const auto log_sum = [&](const std::vector<float>& logits, std::size_t at) {
    double sum = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) sum += std::exp(double{logits[at + i]});
    return std::log(sum);
  };
  std::vector<double> rows;
  for (std::size_t at = 0; at < oracle.logits.size(); at += vocabulary) {
    const double true_sum = log_sum(oracle.logits, at);
    const double our_sum = log_sum(ours, at);
    double kl = 0;
    for (std::size_t i = 0; i < vocabulary; ++i) {
      const double p = oracle.logits[at + i] - true_sum;
      kl += std::exp(p) * (p - (ours[at + i] - our_sum));
    }
    rows.push_back(kl);
  }
  return rows;
}

double mean_kl(const FullLogits& oracle, const std::vector<float>& ours) {
  const std::vector<double> rows = kl_of_rows(oracle, ours);
  return std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(rows.size());
}

LogitDigest read_logit_digest(const std::string& name) {
  FixtureReader reader(name);
  reader.expect_magic("PGLF");
  reader.number();  // version
  const std::uint32_t windows = reader.number();
  const std::uint32_t tokens = reader.number();
  const std::uint32_t top = reader.number();
  const std::uint32_t buckets = reader.number();
  reader.number();  // vocabulary
  LogitDigest digest;
  for (std::uint32_t w = 0; w < windows; ++w) digest.windows.push_back(reader.tokens(tokens));
  digest.positions.resize(windows);
  for (auto& window : digest.positions) {
    for (std::uint32_t p = 0; p + 1 < tokens; ++p) {
      auto ids = reader.take<std::uint32_t>(top);
      auto log_probability = reader.take<float>(top);
      window.push_back({std::move(ids), std::move(log_probability), reader.take<float>(buckets)});
    }
  }
  reader.expect_end();
  return digest;
}

Agreement compare(const LogitDigest::Position& oracle, const float* logits,
                  std::size_t vocabulary) {
  const float* const best = std::max_element(logits, logits + vocabulary);
  double total = 0;
  for (std::size_t id = 0; id < vocabulary; ++id) total += std::exp(double{logits[id]} - *best);
  const double log_total = std::log(total) + *best;

  std::vector<double> tail(oracle.tail.size(), 0.0);
  for (std::size_t id = 0; id < vocabulary; ++id) {
    tail[id % tail.size()] += std::exp(double{logits[id]} - log_total);
  }
  double kl = 0;
  for (std::size_t i = 0; i < oracle.top.size(); ++i) {
    const double log_q = double{logits[oracle.top[i]]} - log_total;
    kl += std::exp(double{oracle.log_probability[i]}) * (oracle.log_probability[i] - log_q);
    tail[oracle.top[i] % tail.size()] -= std::exp(log_q);
  }
  double tail_mass = 0;
  for (std::size_t b = 0; b < tail.size(); ++b) {
    const double p = oracle.tail[b];
    if (p > 0 && tail[b] > 0) kl += p * std::log(p / tail[b]);
    tail_mass += p;
  }
  return {static_cast<std::uint32_t>(best - logits) == oracle.top.front(), kl / (1 - tail_mass)};
}

}  // namespace pagoda::model
