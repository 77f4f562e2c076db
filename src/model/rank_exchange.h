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
#include <span>
#include <vector>

#include "base/large_array.h"
#include "model/division.h"
#include "model/matmul_runner.h"
#include "ranks/communicator.h"

namespace pagoda::model {

class RankExchange {
 public:
  // Both must outlive the object. There is room for `floats` floats from the start, and for more
  // once they are asked for.
  RankExchange(ranks::Communicator& communicator, MatmulRunner& runner, std::size_t floats);

  std::uint32_t rank() const { return communicator_.rank(); }
  // Returns the memory of this rank's columns of `rows` rows. The cut must stay until they are
  // read.
  float* begin(const Cut& cut, std::size_t rows);
  void gather();
  void gather_to_first();
  void read_row(std::size_t row, float* out) const;
  // Begins, copies this rank's columns there and gathers.
  void share(const Cut& cut, std::size_t rows, const float* mine, std::size_t stride);
  // All parts one after the other.
  const float* data() const { return data_.data(); }

  // Bytes that all ranks together have sent to each other.
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  ranks::Communicator& communicator_;
  MatmulRunner& runner_;
  LargeArray<float> data_;
  std::vector<std::size_t> offsets_;  // of parts, in bytes
  const Cut* cut_ = nullptr;
  std::size_t rows_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace pagoda::model
