// The math of mixtures of experts on a Hopper GPU, beside ops.h, whose rules hold here too: which
// experts a row goes to, the products of many matrices at once, and what becomes of the results.
//
//   routing   kernels/routing.h, to the bit: route() with exp_fixed(), sums in the order of experts
//             and of choice.
//   products  GEMMs as in ops.h. A row's product with its expert does not depend on who else chose
//             it. Only experts that some row chose are read.
//   mixing    sum = 0; sum += weight * result for the chosen experts, first chosen first, then
//             sum += gate * shared result, gate = 1 / (1 + exp_fixed(-y)) or 1; each product
//             rounded, then added.
//
// The rows of one expert stand together in *slots*, from a multiple of eight on, as activations of
// their own (ops.h): those of a group with first slot s and columns c begin at value s *
// chunks_of(c) * 64.
#pragma once

#include "kernels/cuda/ops.h"
#include "kernels/routing.h"

namespace pagoda::kernels::cuda {

inline constexpr std::uint32_t kNoExpert = 0xFFFFFFFFu;
inline constexpr std::uint32_t kExpertsMax = 512;
inline constexpr std::uint32_t kChosenMax = 32;
inline constexpr std::uint32_t kExpertGroupsMax = 32;  // Router::groups

// The rows of one matrix in a product of many: `rows` of them, from slot `first_slot` on.
struct GemmGroup {
  std::uint32_t matrix;
  std::uint32_t first_slot;
  std::uint32_t rows;
};
// kLargeRows rows of the batch of a group with more than kSmallRows.
struct GemmTile {
  std::uint32_t group;
  std::uint32_t batch_tile;
};
inline constexpr std::uint32_t kSmallRows = 16;
inline constexpr std::uint32_t kLargeRows = 64;

// chosen[row][router.chosen]: route() of the row's logits, weights multiplied by those of the
// expert. Rows without a position choose nobody: kNoExpert.
struct RouteRows {
  Router router;
  const float* logits = nullptr;         // [rows, experts]
  const float* bias = nullptr;           // [experts], or none
  const float* weight_scales = nullptr;  // [experts], or none
  const BatchToken* batch_tokens = nullptr;
  std::uint32_t rows = 0;
  ChosenExpert* chosen = nullptr;
  // Set for a batch of one row, or null: outputs of launch_group_rows(), groups in the order of
  // choice.
  GemmGroup* groups = nullptr;
  std::uint32_t* counts = nullptr;
  std::uint32_t* slot_of_pair = nullptr;
};
void launch_route_rows(const RouteRows& job, StreamHandle stream);

// The most slots, groups and tiles that rows with `chosen` experts each can take.
constexpr std::size_t groups_most(std::size_t rows, const Router& router) {
  const std::size_t pairs = rows * router.chosen;
  return pairs < router.experts ? pairs : router.experts;
}
constexpr std::size_t slots_most(std::size_t rows, const Router& router) {
  return rows * router.chosen + 7 * groups_most(rows, router);
}
constexpr std::size_t tiles_most(std::size_t rows, const Router& router) {
  return rows * router.chosen / kLargeRows + groups_most(rows, router);
}

// Deals rows to slots: groups in the order of experts, a group's rows in any order, on which no
// result depends.
struct GroupRows {
  const ChosenExpert* chosen = nullptr;  // [pairs]
  std::uint32_t pairs = 0;               // rows * chosen
  std::uint32_t experts = 0;
  GemmGroup* groups = nullptr;             // [groups_most]
  GemmTile* tiles = nullptr;               // [tiles_most]
  std::uint32_t* counts = nullptr;         // [2]: groups, tiles
  std::uint32_t* group_of_pair = nullptr;  // [pairs]; of one without an expert kNoExpert
  std::uint32_t* slot_of_pair = nullptr;   // [pairs]
};
void launch_group_rows(const GroupRows& job, StreamHandle stream);

// Copies the activations of each pair's row into its slot.
struct GatherRows {
  const Bf16* x = nullptr;  // activations of `rows` rows
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t chosen = 0;  // of a row
  const GemmGroup* groups = nullptr;
  const std::uint32_t* group_of_pair = nullptr;
  const std::uint32_t* slot_of_pair = nullptr;
  Bf16* gathered = nullptr;
};
void launch_gather_rows(const GatherRows& job, StreamHandle stream);

// Products of several matrices of one shape, each with rows of its own.
struct GroupedGemm {
  // Describes matrix 0 and slot 0, where x, out and activations begin; `rows` is the most that a
  // group has.
  Gemm gemm;
  std::size_t weight_stride = 0;          // bytes from matrix to matrix
  std::size_t bias_stride = 0;            // floats, where there are biases
  const GemmGroup* groups = nullptr;      // on the device
  const GemmTile* tiles = nullptr;        // the same
  const std::uint32_t* counts = nullptr;  // the same: groups, tiles
  std::uint32_t groups_max = 0;
  std::uint32_t tiles_max = 0;
  bool shares_x = false;  // all groups multiply the rows at x: those of a batch of one row
  // Without groups every matrix has gemm.rows rows: group i is matrix i, its slots follow those of
  // group i - 1, and its outputs begin at column i * group_columns of the same rows.
  std::size_t group_columns = 0;
};
void launch_grouped_gemm(const GroupedGemm& job, StreamHandle stream);

// out[row] = the mix of the results of the row's experts, and of the shared one; or, with `adds`,
// out[row] += mix * scale.
struct MixExperts {
  const ChosenExpert* chosen = nullptr;
  std::uint32_t chosen_each = 0;
  const std::uint32_t* slot_of_pair = nullptr;
  const float* results = nullptr;       // [slots, width]
  const float* shared = nullptr;        // [rows, width], or none
  const float* shared_gates = nullptr;  // [rows], or none
  std::uint32_t rows = 0;
  std::uint32_t width = 0;
  bool adds = false;
  float scale = 1;
  float* out = nullptr;  // [rows, width]
};
void launch_mix_experts(const MixExperts& job, StreamHandle stream);

}  // namespace pagoda::kernels::cuda
