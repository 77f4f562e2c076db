#include "loadgen/workload.h"

#include "base/random.h"
#include "loadgen/random_streams.h"

namespace pagoda::loadgen {
namespace {

// One request after another, each by its number alone.
class Independent : public Workload {
 public:
  explicit Independent(const WorkloadOptions& options)
      : options_(options), arrivals_(options.arrivals) {}

  std::optional<PlannedRequest> next() final {
    if (made_ == options_.count) return std::nullopt;
    PlannedRequest planned = make(made_++);
    planned.scheduled_ns = arrivals_.next_ns();
    return planned;
  }
  std::uint64_t count() const final { return options_.count; }

 protected:
  std::uint64_t seed() const { return options_.seed; }

 private:
  virtual PlannedRequest make(std::uint64_t index) const = 0;

  WorkloadOptions options_;
  Arrivals arrivals_;
  std::uint64_t made_ = 0;
};

class RandomWorkload final : public Independent {
 public:
  RandomWorkload(const WorkloadOptions& options, const RandomText& text)
      : Independent(options), text_(text) {}

 private:
  PlannedRequest make(std::uint64_t index) const override {
    const std::uint32_t tokens = text_.input.draw(seed(), kInputLengthStream, index);
    return {.prompt = {{.symbols = random_symbols(seed(), part_stream(index), tokens)}},
            .output_tokens = text_.output.draw(seed(), kOutputLengthStream, index)};
  }

  RandomText text_;
};

class PrefixWorkload final : public Independent {
 public:
  PrefixWorkload(const WorkloadOptions& options, const SharedPrefixes& prefixes)
      : Independent(options), prefixes_(prefixes) {}

 private:
  PlannedRequest make(std::uint64_t index) const override {
    const std::uint64_t group = random_bits(seed(), kPrefixChoiceStream, index) % prefixes_.groups;
    const std::uint32_t tokens = prefixes_.input.draw(seed(), kInputLengthStream, index);
    return {.prompt = {{.symbols =
                            random_symbols(seed(), prefix_stream(group), prefixes_.prefix_tokens)},
                       {.symbols = random_symbols(seed(), part_stream(index), tokens)}},
            .output_tokens = prefixes_.output.draw(seed(), kOutputLengthStream, index)};
  }

  SharedPrefixes prefixes_;
};

class FixedWorkload final : public Independent {
 public:
  FixedWorkload(const WorkloadOptions& options, const FixedPrompt& prompt)
      : Independent(options), prompt_(prompt) {}

 private:
  PlannedRequest make(std::uint64_t /*index*/) const override {
    return {.prompt = {{.symbols = {}, .text = prompt_.text}},
            .output_tokens = prompt_.output_tokens};
  }

  FixedPrompt prompt_;
};

}  // namespace

std::unique_ptr<Workload> make_workload(const WorkloadOptions& options, const RandomText& text) {
  return std::make_unique<RandomWorkload>(options, text);
}

std::unique_ptr<Workload> make_workload(const WorkloadOptions& options,
                                        const SharedPrefixes& prefixes) {
  return std::make_unique<PrefixWorkload>(options, prefixes);
}

std::unique_ptr<Workload> make_workload(const WorkloadOptions& options, const FixedPrompt& prompt) {
  return std::make_unique<FixedWorkload>(options, prompt);
}

}  // namespace pagoda::loadgen
