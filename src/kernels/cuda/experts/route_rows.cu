#include "kernels/cuda/exp_on_device.cuh"
#include "kernels/cuda/expert_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx/ptx.cuh"

namespace pagoda::kernels::cuda {
namespace {

constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kEach = kExpertsMax / 32;  // experts of a lane: i, i + 32, …

// An index and its value; of equal values the lowest index comes first.
struct Candidate {
  float value;
  std::uint32_t index;

  __device__ __forceinline__ bool is_before(const Candidate& other) const {
    return value > other.value || (value == other.value && index < other.index);
  }
};

__device__ __forceinline__ Candidate first_of_warp(Candidate own) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Candidate other = {__shfl_xor_sync(~0u, own.value, step),
                             __shfl_xor_sync(~0u, own.index, step)};
    if (other.is_before(own)) own = other;
  }
  return own;
}

__device__ __forceinline__ float lowest_score() { return __int_as_float(0xFF800000); }

// A warp keeps the scores of its row in shared memory.
struct RowScores {
  float scores[kExpertsMax];
  float eligible[kExpertsMax];  // what experts are chosen by
  ChosenExpert chosen[kChosenMax];
};

// One warp and its row; the steps of kernels::route().
struct RowRouter {
  const RouteRows& job;
  RowScores& row;
  std::uint32_t lane;

  __device__ __forceinline__ std::uint32_t experts() const { return job.router.experts; }

  // The sum of all scores, in the order of experts.
  __device__ __forceinline__ float sum_of_scores() const {
    float sum = 0;
    if (lane == 0) {
#pragma unroll 8
      for (std::uint32_t i = 0; i < experts(); ++i) sum += row.scores[i];
    }
    return __shfl_sync(~0u, sum, 0);
  }

  __device__ __forceinline__ void score(const float* logits) {
    float highest = lowest_score();
    for (std::uint32_t i = lane; i < experts(); i += 32) highest = fmaxf(highest, logits[i]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
    }
    for (std::uint32_t i = lane; i < experts(); i += 32) {
      const float logit = logits[i];
      if (job.router.score == RouterScore::kSoftmax) {
        row.scores[i] = exp_on_device(logit - highest);
      } else if (job.router.score == RouterScore::kSigmoid) {
        row.scores[i] = __fdiv_rn(1.0f, 1.0f + exp_on_device(-logit));
      } else {
        row.scores[i] = logit;
      }
    }
    __syncwarp();
    if (job.router.score != RouterScore::kSoftmax) return;
    const float sum = sum_of_scores();
    for (std::uint32_t i = lane; i < experts(); i += 32) {
      row.scores[i] = __fdiv_rn(row.scores[i], sum);
    }
    __syncwarp();
  }

  // Returns whether every score is a number.
  __device__ __forceinline__ bool find_eligible() {
    bool all = true;
    for (std::uint32_t i = lane; i < experts(); i += 32) {
      const float score = row.scores[i];
      const float chosen_by = score + (job.bias != nullptr ? job.bias[i] : 0.0f);
      row.eligible[i] = chosen_by == chosen_by ? chosen_by : lowest_score();
      all = all && score == score;
    }
    __syncwarp();
    return __all_sync(~0u, all);
  }

  // A lane's group: the sum of its best scores, highest first.
  __device__ __forceinline__ float group_score(std::uint32_t group, std::uint32_t size) const {
    const float* const members = row.eligible + group * size;
    Candidate last = {0, 0};
    float sum = 0;
    for (std::uint32_t n = 0; n < min(job.router.group_best, size); ++n) {
      Candidate best = {lowest_score(), size};
      for (std::uint32_t i = 0; i < size; ++i) {
        const Candidate own = {members[i], i};
        if ((n == 0 || last.is_before(own)) && own.is_before(best)) best = own;
      }
      sum += best.value;
      last = best;
    }
    return sum;
  }

  // Makes experts outside the best groups the last to be chosen.
  __device__ __forceinline__ void keep_best_groups() {
    const std::uint32_t size = experts() / job.router.groups;
    const bool there = lane < job.router.groups;
    const float sum = there ? group_score(lane, size) : lowest_score();
    const float score = sum == sum ? sum : lowest_score();
    bool taken = !there;
    for (std::uint32_t n = 0; n < job.router.groups_chosen; ++n) {
      const Candidate best = first_of_warp(taken ? Candidate{lowest_score(), kExpertsMax + lane}
                                                 : Candidate{score, lane});
      if (best.index == lane) taken = true;
    }
    const std::uint32_t kept = __ballot_sync(~0u, taken && there);
    for (std::uint32_t i = lane; i < experts(); i += 32) {
      if ((kept >> (i / size) & 1u) == 0) row.eligible[i] = lowest_score();
    }
    __syncwarp();
  }

  __device__ __forceinline__ void choose() {
    std::uint32_t taken = 0;  // bit j: expert lane + 32 * j
    for (std::uint32_t n = 0; n < job.router.chosen; ++n) {
      Candidate own = {lowest_score(), kExpertsMax + lane};
#pragma unroll
      for (std::uint32_t j = 0; j < kEach; ++j) {
        const std::uint32_t i = lane + 32 * j;
        if (i >= experts()) break;
        const Candidate next = {row.eligible[i], i};
        if ((taken >> j & 1u) == 0 && next.is_before(own)) own = next;
      }
      const Candidate best = first_of_warp(own);
      if (best.index % 32 == lane && best.index < experts()) taken |= 1u << (best.index / 32);
      if (lane == 0) row.chosen[n] = {best.index, row.scores[best.index]};
    }
    __syncwarp();
  }

  // Lane 0 turns scores of the chosen ones into weights.
  __device__ __forceinline__ void weigh(bool is_number) {
    const Router& router = job.router;
    ChosenExpert* const chosen = row.chosen;
    const bool of_chosen = router.score == RouterScore::kSoftmaxOfChosen;
    if (of_chosen) {
      const float highest = chosen[0].weight;
      for (std::uint32_t i = 0; i < router.chosen; ++i) {
        chosen[i].weight = exp_on_device(chosen[i].weight - highest);
      }
    }
    if (router.is_normalised || of_chosen) {
      float sum = 0;
      for (std::uint32_t i = 0; i < router.chosen; ++i) sum += chosen[i].weight;
      sum = sum < kSmallestWeightSum ? kSmallestWeightSum : sum;
      for (std::uint32_t i = 0; i < router.chosen; ++i) {
        chosen[i].weight = __fdiv_rn(chosen[i].weight, sum);
      }
    }
    for (std::uint32_t i = 0; i < router.chosen; ++i) {
      float weight = chosen[i].weight * router.weight_scale;
      if (!is_number) weight = __int_as_float(0x7FC00000);
      if (job.weight_scales != nullptr) weight *= job.weight_scales[chosen[i].expert];
      chosen[i].weight = weight;
    }
  }
};

// Deals the only row of a batch: every expert has a group of its own.
__device__ __forceinline__ void group_one_row(const RouteRows& job, const ChosenExpert* chosen,
                                              std::uint32_t count) {
  const std::uint32_t lane = threadIdx.x % 32;
  if (job.groups == nullptr) return;
  if (lane < count) {
    job.groups[lane] = {chosen[lane].expert, 8 * lane, 1};
    job.slot_of_pair[lane] = 8 * lane;
  }
  if (lane < 2) job.counts[lane] = lane == 0 ? count : 0;  // groups, tiles
}

__global__ void __launch_bounds__(kWarps * 32) route_rows(RouteRows job) {
  __shared__ RowScores rows[kWarps];
  pdl_trigger();
  pdl_wait();
  const std::uint32_t index = blockIdx.x * kWarps + threadIdx.x / 32;
  const std::uint32_t lane = threadIdx.x % 32;
  if (index >= job.rows) return;
  ChosenExpert* const out = job.chosen + std::size_t{index} * job.router.chosen;
  if (job.batch_tokens != nullptr && job.batch_tokens[index].position == kNoPosition) {
    for (std::uint32_t i = lane; i < job.router.chosen; i += 32) out[i] = {kNoExpert, 0.0f};
    return group_one_row(job, nullptr, 0);
  }
  RowRouter router = {job, rows[threadIdx.x / 32], lane};
  router.score(job.logits + std::size_t{index} * job.router.experts);
  const bool is_number = router.find_eligible();
  if (job.router.groups_chosen < job.router.groups) router.keep_best_groups();
  router.choose();
  if (lane == 0) router.weigh(is_number);
  __syncwarp();
  for (std::uint32_t i = lane; i < job.router.chosen; i += 32) out[i] = router.row.chosen[i];
  group_one_row(job, router.row.chosen, job.router.chosen);
}

}  // namespace

void launch_route_rows(const RouteRows& job, StreamHandle stream) {
  launch_kernel(route_rows, dim3((job.rows + kWarps - 1) / kWarps), kWarps * 32, 0, stream, job);
}

}  // namespace pagoda::kernels::cuda
