// Users who go on asking: each turn has the whole history before it, the server's own words
// included, as chat clients send it.
#include <cmath>
#include <vector>

#include "base/random.h"
#include "loadgen/random_streams.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {
namespace {

class ConversationWorkload final : public Workload {
 public:
  ConversationWorkload(const WorkloadOptions& options, const Conversations& conversations)
      : options_(options), conversations_(conversations), arrivals_(options.arrivals) {}

  std::optional<PlannedRequest> next() override {
    if (turns_asked_.size() == options_.count) return std::nullopt;
    const auto user = static_cast<std::uint32_t>(turns_asked_.size());
    turns_asked_.push_back(0);
    PlannedRequest planned = {.scheduled_ns = arrivals_.next_ns(), .prompt = {}, .user = user};
    add_turn(planned);
    return planned;
  }

  std::optional<PlannedRequest> follow(const PlannedRequest& asked, const std::string& answer,
                                       std::int64_t now_ns) override {
    const std::uint32_t turn = turns_asked_[asked.user];
    if (turn == conversations_.turns) return std::nullopt;
    const double unit = random_unit(options_.seed, kThinkStream, number(asked.user, turn));
    const double think_s = -std::log1p(-unit) * conversations_.think_s;
    PlannedRequest planned = {.scheduled_ns = now_ns + static_cast<std::int64_t>(think_s * 1e9),
                              .prompt = asked.prompt,
                              .user = asked.user};
    // A server may answer nothing at all; the conversation goes on.
    planned.prompt.push_back(
        {.symbols = {}, .text = answer.empty() ? " " : answer, .from_server = true});
    add_turn(planned);
    return planned;
  }

  std::uint64_t count() const override { return options_.count * conversations_.turns; }

 private:
  std::uint64_t number(std::uint32_t user, std::uint32_t turn) const {
    return std::uint64_t{user} * conversations_.turns + turn;
  }

  void add_turn(PlannedRequest& planned) {
    const std::uint64_t index = number(planned.user, turns_asked_[planned.user]++);
    const std::uint32_t tokens =
        conversations_.input.draw(options_.seed, kInputLengthStream, index);
    planned.prompt.push_back(
        {.symbols = random_symbols(options_.seed, part_stream(index), tokens)});
    planned.output_tokens = conversations_.output.draw(options_.seed, kOutputLengthStream, index);
  }

  WorkloadOptions options_;
  Conversations conversations_;
  Arrivals arrivals_;
  std::vector<std::uint32_t> turns_asked_;  // [user]
};

}  // namespace

std::unique_ptr<Workload> make_workload(const WorkloadOptions& options,
                                        const Conversations& conversations) {
  return std::make_unique<ConversationWorkload>(options, conversations);
}

}  // namespace pagoda::loadgen
