#include "model/rank_exchange.h"

#include <algorithm>

namespace pagoda::model {

RankExchange::RankExchange(ranks::Communicator& communicator, MatmulRunner& runner,
                           std::size_t floats)
    : communicator_(communicator),
      runner_(runner),
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

}  // namespace pagoda::model
