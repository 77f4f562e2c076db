// The feed-forward half of a decoder layer: a gated network for all rows of the batch, or a mixture
// of experts.
//
// Rows of an expert stand together, from a multiple of kernels::kActivationBlock on, in *slots*.
// The result of a row depends on the row and its experts alone, never on who else chose them, and
// its experts' results are added in the order in which the router ranks them.
//
// Each of several ranks computes some columns of the network that all rows use, and some experts.
//
// Thread rule: as Decoder.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/routing.h"
#include "model/config.h"
#include "model/division.h"
#include "model/float_rows.h"
#include "model/matmul_runner.h"
#include "model/rank_exchange.h"
#include "model/weights.h"

namespace pagoda::model {

class FeedForward {
 public:
  // All must outlive the object. `exchange` is nullptr where one rank does all. `rows_max` rows at
  // most are computed at once.
  FeedForward(const Config& config, const Division& division, const kernels::KernelSet& kernels,
              ThreadPool& pool, MatmulRunner& matmuls, RankExchange* exchange,
              std::size_t rows_max);

  // The joined gates and ups of `rows` rows, packed: what the down projection multiplies. `x` is
  // packed activations of the rows. The result is good until the next call.
  const std::byte* hidden(std::uint32_t layer, const FeedForwardWeights& network,
                          const std::byte* x, std::size_t rows);

  // Packed activations of the same rows, as each part sees them.
  struct Inputs {
    const std::byte* router;
    const std::byte* experts;
    const std::byte* shared;
  };
  // Computes all that a layer with experts adds: out[row] = the sum of its experts' results by
  // weight, and of the shared expert's.
  void mix_experts(std::uint32_t layer, const LayerWeights& weights, const Inputs& x,
                   std::size_t rows, FloatRows& out);

  // Returns the bytes of activations.
  std::size_t workspace_bytes() const {
    return gate_.bytes() + up_.bytes() + hidden_.size() + logits_.bytes() + gathered_.size() +
           results_.bytes();
  }

 private:
  // Rows that one network computes.
  struct Group {
    const FeedForwardWeights* network;
    const std::byte* x;
    std::size_t rows;
    std::size_t first_slot;
    const Cut* hidden;         // its columns are divided over ranks; or nullptr
    std::size_t first_result;  // in results of experts
  };

  void route_rows(const ExpertWeights& weights, const std::byte* x, std::size_t rows);
  // Gives every row a slot of each of its experts, and copies its activations there.
  void gather(const Cut& hidden, const LayerWeights& weights, const Inputs& x, std::size_t rows);
  std::size_t list_experts(const ExpertWeights& weights, std::size_t slot);
  bool is_own(std::size_t expert) const {
    return expert - division_.experts().begin(division_.rank()) <
           division_.experts().count(division_.rank());
  }
  // Fills hidden_ with the joined gates and ups of all groups.
  void gate_and_up(std::span<const Group> groups);
  void pack_hidden(const Group& group, WorkRange range);
  // Fills the results of all groups.
  void project_down(const LayerWeights& weights, const Inputs& x, std::size_t rows);
  void project_down_divided(const LayerWeights& weights, const Inputs& x, std::size_t rows);
  void add_shared_gate(const LayerWeights& weights, const Inputs& x, std::size_t rows);
  void add_up(const LayerWeights& layer, std::size_t rows, FloatRows& out);
  std::size_t hidden_of(const Group& group) const { return group.network->gate.weight.rows; }
  // The result of an expert for a row, by its number in result_of_.
  const float* result(std::size_t number) const {
    return exchange_ == nullptr ? results_.row(shared_rows_ + number)
                                : exchange_->data() + number * config_.width;
  }
  std::byte* hidden_block(std::size_t slot);

  const Config& config_;
  const kernels::KernelSet& kernels_;
  MatmulRunner& matmuls_;
  const Division& division_;
  RankExchange* exchange_;
  std::size_t slots_max_;
  FloatRows gate_;                      // [slots, widest hidden width]
  FloatRows up_;                        // [slots, widest hidden width]
  LargeArray<std::byte> hidden_;        // packed activations of every slot
  std::size_t hidden_block_bytes_ = 0;  // of kernels::kActivationBlock slots

  // Only layers with experts use the following.
  FloatRows logits_;                              // [rows, experts]
  FloatRows shared_gates_;                        // [rows, 1]
  std::vector<kernels::RoutingScratch> routing_;  // [threads]
  std::vector<kernels::ChosenExpert> chosen_;     // [rows, router.chosen]
  std::vector<std::uint32_t> slot_of_;            // [rows, router.chosen]
  std::vector<std::uint32_t> result_of_;          // [rows, router.chosen]
  std::vector<std::uint32_t> next_slot_;          // [experts]
  std::vector<std::uint32_t> next_result_;        // [experts]
  std::size_t shared_rows_ = 0;                   // of results_, before those of experts
  Cut results_cut_;                               // results of experts, in floats, by rank
  std::vector<Group> groups_;
  std::vector<Product> products_;
  LargeArray<std::byte> gathered_;  // packed activations of experts' slots
  // [rows of the shared expert and of all chosen, width]; of several ranks the former alone.
  FloatRows results_;
};

}  // namespace pagoda::model
