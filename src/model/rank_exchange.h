// RankExchange puts together rows of floats whose columns several ranks have computed.
//
// A rank writes its columns of some rows, all ranks gather, and every row is read whole:
//
//   float* mine = exchange.begin(cut, rows);   // [rows, cut.count(rank)]
//   …
//   exchange.gather();
//   exchange.read_row(row, out);               // [cut.all()]
//
// Thread rule: as Decoder; read_row() is for tasks of its pool, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/large_array.h"
#include "kernels/ops.h"
#include "model/config.h"
#include "model/division.h"
#include "model/float_rows.h"
#include "model/matmul_runner.h"
#include "ranks/communicator.h"

namespace pagoda::model {

class RankExchange {
 public:
  // All must outlive the object. There is room for `floats` floats from the start, and for more
  // once they are asked for.
  RankExchange(ranks::Communicator& communicator, const kernels::KernelSet& kernels,
               MatmulRunner& runner, std::size_t floats);

  std::uint32_t rank() const { return communicator_.rank(); }
  // Returns the memory of this rank's columns of `rows` rows. The cut must stay until they are
  // read.
  float* begin(const Cut& cut, std::size_t rows);
  void gather();
  void gather_to_first();
  void read_row(std::size_t row, float* out) const;
  // Begins, copies this rank's columns there and gathers.
  void share(const Cut& cut, std::size_t rows, const float* mine, std::size_t stride);
  // Computes this rank's columns of x times the projection, of which it has the cut's rows, and
  // fills `to` with all; `accumulates` adds to what is there.
  void project(const Projection& projection, const std::byte* x, std::size_t rows, const Cut& cut,
               bool accumulates, FloatRows& to);
  // The same, but rank 0 alone fills `out`, [rows, cut.all()].
  void project_to_first(const Projection& projection, const std::byte* x, std::size_t rows,
                        const Cut& cut, float* out);
  // Norms rows that are as wide as `weight`, of which this rank has the cut's `columns`.
  void normalise(const Cut& cut, std::size_t rows, const std::vector<float>& weight, float epsilon,
                 float* columns);
  // On rank 0 a flag becomes 1 where it is on any rank.
  void merge_flags(std::vector<std::uint8_t>& flags);
  // All parts one after the other.
  const float* data() const { return data_.data(); }

  // Bytes that all ranks together have sent to each other.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  ranks::Communicator& communicator_;
  const kernels::KernelSet& kernels_;
  MatmulRunner& runner_;
  Cut flags_cut_;  // a column for each rank
  LargeArray<float> data_;
  std::vector<std::size_t> offsets_;  // of parts, in bytes
  const Cut* cut_ = nullptr;
  std::size_t rows_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// Returns the exchange of a decoder; nothing where one rank does all, whose communicator is
// nullptr.
std::optional<RankExchange> open_exchange(const Config& config, const Division& division,
                                          const kernels::KernelSet& kernels,
                                          ranks::Communicator* communicator, MatmulRunner& runner,
                                          std::size_t rows_max);

}  // namespace pagoda::model
