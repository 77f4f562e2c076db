// ToyWatch ends each sequence of a request where its text ends: with the second coming of a token.
#pragma once

#include <vector>

#include "engine/output_watch.h"

namespace pagoda::sim {

class ToyWatch final : public engine::OutputWatch {
 public:
  ToyWatch(TokenId last, std::uint32_t sequences) : last_(last), came_(sequences) {}

  bool ends_with(std::uint32_t sequence, TokenId token) override {
    return token == last_ && ++came_[sequence] == 2;
  }

 private:
  TokenId last_;
  std::vector<std::uint32_t> came_;  // [sequence]
};

// Returns how many tokens of an output are there once a watch has ended it.
inline std::size_t tokens_watched(const std::vector<TokenId>& output, TokenId last) {
  ToyWatch watch(last, 1);
  for (std::size_t i = 0; i < output.size(); ++i) {
    if (watch.ends_with(0, output[i])) return i + 1;
  }
  return output.size();
}

}  // namespace pagoda::sim
