#include "python/python_policy.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kv/evict/eviction_order.h"

namespace pagoda::python {

namespace nb = nanobind;

namespace {

// The cache makes its order through a plain function pointer: this says of which object. An object
// that replays something itself, with another policy, is the one again when that replay has ended.
thread_local PythonPolicy* making_policy = nullptr;

constexpr std::uint32_t kCallsBetweenSignals = 1024;

nb::object use_object(const kv::Use& use) {
  nb::dict made;
  made["now"] = use.now;
  made["tokens_before"] = use.tokens_before;
  made["blocks_found"] = use.request.blocks_found;
  made["blocks_fresh"] = use.request.blocks_fresh;
  made["goes_on"] = use.request.goes_on;
  return made;
}

}  // namespace

class PythonOrder final : public kv::EvictionOrder {
 public:
  PythonOrder(PythonPolicy& policy, std::uint32_t blocks) : policy_(policy), values_(blocks) {}

  void entered(kv::BlockId block, const kv::Use& use) override {
    values_[block.value()] = value("entered", block, use).value_or(0);
  }
  std::optional<kv::BlockId> used(kv::BlockId block, const kv::Use& use) override {
    std::int64_t& now = values_[block.value()];
    const std::int64_t next = value("used", block, use).value_or(now);
    if (next < now) {
      refuse("used() returned a smaller value than before: a use never lowers it");
    } else {
      now = next;
    }
    return std::nullopt;
  }
  void left(kv::BlockId block) override {
    call([&] { policy_.object_.attr("left")(block.value()); });
  }
  QueuePosition position(kv::BlockId block, const kv::BlockStats& /*stats*/) const override {
    return {.queue = 0, .score = -values_[block.value()]};
  }
  void check() const override {}

 private:
  template <class Function>
  void call(const Function& function) {
    if (policy_.raised_) return;
    try {
      if (++calls_ % kCallsBetweenSignals == 0 && PyErr_CheckSignals() != 0) {
        throw nb::python_error();
      }
      function();
    } catch (...) {
      policy_.raised_ = std::current_exception();
    }
  }
  std::optional<std::int64_t> value(const char* name, kv::BlockId block, const kv::Use& use) {
    std::optional<std::int64_t> given;
    call([&] {
      const nb::object answer = policy_.object_.attr(name)(block.value(), use_object(use));
      std::int64_t number = 0;
      if (!nb::try_cast(answer, number) || number == INT64_MIN) {
        throw nb::type_error("a policy's entered() and used() return an int of 64 bits");
      }
      given = number;
    });
    return given;
  }
  void refuse(const char* why) {
    call([&] { throw nb::value_error(why); });
  }

  PythonPolicy& policy_;
  std::vector<std::int64_t> values_;  // [block]
  std::uint32_t calls_ = 0;
};

PythonPolicy::PythonPolicy(nb::object asked)
    : object_(std::move(asked)), outer_(std::exchange(making_policy, this)) {
  policy_.name = "python";
  policy_.can_be_sampled = false;
  policy_.make_order = [](std::uint32_t blocks) -> std::unique_ptr<kv::EvictionOrder> {
    return std::make_unique<PythonOrder>(*making_policy, blocks);
  };
}

PythonPolicy::~PythonPolicy() { making_policy = outer_; }

}  // namespace pagoda::python
