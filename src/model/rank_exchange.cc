#include "model/rank_exchange.h"

#include <algorithm>

namespace pagoda::model {

RankExchange::RankExchange(ranks::Communicator& communicator, const kernels::KernelSet& kernels,
                           MatmulRunner& runner, std::size_t floats)
    : communicator_(communicator),
      kernels_(kernels),
      runner_(runner),
      flags_cut_(cut_evenly(communicator.ranks(), communicator.ranks())),
      data_(floats),
      offsets_(communicator.ranks() + 1) {}

float* RankExchange::begin(const Cut& cut, std::size_t rows) {
  cut_ = &cut;
  rows_ = rows;
  for (std::size_t rank = 0; rank < offsets_.size(); ++rank) {
    offsets_[rank] = rows * cut.begin(rank) * sizeof(float);
  }
  if (data_.size() < rows * cut.all()) data_.resize(rows * cut.all());
  return data_.data() + rows * cut.begin(rank());
}

void RankExchange::gather() {
  bytes_sent_ += offsets_.back() * (communicator_.ranks() - 1);
  communicator_.gather(reinterpret_cast<std::byte*>(data_.data()), offsets_);
}

void RankExchange::gather_to_first() {
  bytes_sent_ += offsets_.back() - offsets_[1];
  communicator_.gather_to_first(reinterpret_cast<std::byte*>(data_.data()), offsets_);
}

void RankExchange::read_row(std::size_t row, float* out) const {
  for (std::size_t rank = 0; rank + 1 < offsets_.size(); ++rank) {
    const std::size_t count = cut_->count(rank);
    std::copy_n(data_.data() + rows_ * cut_->begin(rank) + row * count, count,
                out + cut_->begin(rank));
  }
}

void RankExchange::share(const Cut& cut, std::size_t rows, const float* mine, std::size_t stride) {
  float* const to = begin(cut, rows);
  const std::size_t count = cut.count(rank());
  runner_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      std::copy_n(mine + row * stride, count, to + row * count);
    }
  });
  gather();
}

void RankExchange::project(const Projection& projection, const std::byte* x, std::size_t rows,
                           const Cut& cut, bool accumulates, FloatRows& to) {
  const std::size_t columns = cut.count(rank());
  float* const mine = begin(cut, rows);
  for (std::size_t row = 0; accumulates && row < rows; ++row) {
    std::copy_n(to.row(row) + cut.begin(rank()), columns, mine + row * columns);
  }
  const Product product = {&projection, x, rows, mine, columns, accumulates};
  runner_.run({&product, 1});
  gather();
  runner_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) read_row(row, to.row(row));
  });
}

void RankExchange::project_to_first(const Projection& projection, const std::byte* x,
                                    std::size_t rows, const Cut& cut, float* out) {
  const Product product = {&projection, x, rows, begin(cut, rows), cut.count(rank())};
  runner_.run({&product, 1});
  gather_to_first();
  if (rank() != 0) return;
  runner_.for_rows(rows, [&](WorkRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row) {
      read_row(row, out + row * cut.all());
    }
  });
}

void RankExchange::normalise(const Cut& cut, std::size_t rows, const std::vector<float>& weight,
                             float epsilon, float* columns) {
  const std::size_t count = cut.count(rank());
  share(cut, rows, columns, count);
  runner_.for_rows(rows, [&](WorkRange range) {
    auto* const whole = reinterpret_cast<float*>(runner_.scratch(range.thread));
    for (std::size_t row = range.begin; row < range.end; ++row) {
      read_row(row, whole);
      kernels_.rms_norm(whole, weight.data(), epsilon, cut.all(), whole);
      std::copy_n(whole + cut.begin(rank()), count, columns + row * count);
    }
  });
}

void RankExchange::merge_flags(std::vector<std::uint8_t>& flags) {
  std::copy(flags.begin(), flags.end(), begin(flags_cut_, flags.size()));
  gather_to_first();
  if (rank() != 0) return;
  for (std::size_t i = 0; i < flags.size() * communicator_.ranks(); ++i) {
    if (data_[i] != 0) flags[i % flags.size()] = 1;
  }
}

// There is room for what ranks exchange of rows_max rows, and for logits of as many as a runner
// asks for at once.
std::optional<RankExchange> open_exchange(const Config& config, const Division& division,
                                          const kernels::KernelSet& kernels,
                                          ranks::Communicator* communicator, MatmulRunner& runner,
                                          std::size_t rows_max) {
  if (communicator == nullptr) return std::nullopt;
  constexpr std::size_t kLogitRows = 64;
  std::size_t widest = std::size_t{std::max(1u, config.experts.router.chosen)} * config.width;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    const LayerDivision& cuts = division.layer(layer);
    widest = std::max({widest, cuts.mixed.all(), cuts.hidden.all()});
  }
  return std::optional<RankExchange>(
      std::in_place, *communicator, kernels, runner,
      std::max(rows_max * widest, std::min(rows_max, kLogitRows) * config.vocabulary));
}

}  // namespace pagoda::model
