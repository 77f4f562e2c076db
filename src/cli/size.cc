// pagoda size: KV memory arithmetic. Flags in, one report out.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/kv_size.h"
#include "app/loaded_model.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/kv_format_flag.h"
#include "cli/options.h"
#include "cli/token_count.h"
#include "gguf/file.h"
#include "inspect/size_report.h"

namespace pagoda::cli {
namespace {

constexpr const char* kSizeExamples = R"(Examples:
  pagoda size
      64 sequences of 8,192 tokens of an 8B-class model in bf16: 64.00 GiB
  pagoda size --num-layers 80 --batch-size 1 --sequence-length 131072 --tp-size 8
  pagoda size --dtype int4 --json
      payload, and the real size with scales
  pagoda size --compare-heads
      the same model with MHA, GQA, MQA and MLA
  pagoda size --tokens 35 --block-size 16
      3 blocks, 13 slots unused
  pagoda size --model SmolLM2-135M-Instruct.Q4_1.gguf --batch-size 1
  pagoda size --table)";

constexpr const char* kBlockSizeDefault = "16";

// The command's options as typed. A value that came from the environment gives way to a flag it
// does not go with; two typed flags that do not go together are an error.
class Flags {
 public:
  // It is asked for by the first of its names.
  void add(const CommandSpec& command, const std::string& names, const char* kind,
           const char* help) {
    const std::string name = names.substr(0, names.find(','));
    flags_.insert_or_assign(name, command.add_option(names, texts_[name], help).type_name(kind));
  }
  void add_model(const CommandSpec& command) {
    constexpr const char* kHelp =
        "take layers, heads and windows from this model: a GGUF file, a folder or a name";
    flags_.insert_or_assign("--model",
                            command.add_option("-m,--model,MODEL", texts_["--model"], kHelp));
  }
  void add_switch(const CommandSpec& command, const std::string& name, const std::string& help) {
    flags_.insert_or_assign(name, command.add_flag(name, help));
  }

  bool given(const std::string& name) const { return flags_.at(name).count() > 0; }
  bool is_from_environment(const std::string& name) const {
    return flags_.at(name).is_from_environment();
  }
  bool on(const std::string& name) const { return flags_.at(name).is_on(); }
  std::string text(const std::string& name, const std::string& fallback) const {
    return given(name) ? texts_.at(name) : fallback;
  }

  Result<std::int64_t> number(const std::string& name, const std::string& fallback) const {
    const std::string digits = text(name, fallback);
    const std::optional<std::uint64_t> value = parse_token_count(digits);
    if (!value || *value < 1 || *value > INT64_MAX) {
      return invalid(
          fmt::format("{}: '{}' is not a whole number from 1 to {}", name, digits, INT64_MAX));
    }
    return static_cast<std::int64_t>(*value);
  }

  // Fails when one of `others` was typed beside `name`; drops those the environment gave.
  Status refuse_beside(const std::string& name, std::initializer_list<const char*> others) {
    for (const char* const other : others) {
      if (!given(other)) continue;
      if (!is_from_environment(other)) {
        return invalid(fmt::format("{} cannot be combined with {}", other, name));
      }
      flags_.at(other).clear();
    }
    return ok_status();
  }

 private:
  std::map<std::string, std::string> texts_;
  std::map<std::string, Flag> flags_;
};

Result<app::KvFormat> read_format(const Flags& flags, const std::string& fallback) {
  if (flags.given(kElementBytesFlag)) {
    return kv_format_of_bytes(flags.text(kElementBytesFlag, ""));
  }
  return kv_format_named("--dtype", flags.text("--dtype", fallback));
}

// Reads the model's KV layout; a fault of the file is a failure, not a wrong flag.
Result<app::KvModel> open_model(const std::string& path) {
  const auto failed = [](const Error& error) {
    return Error{ErrorCode::kCorrupt, fmt::format("--model: {}", error.message)};
  };
  const Result<gguf::File> file = app::open_model_file(path);
  if (!file.ok()) return failed(file.error());
  Result<app::KvModel> model = app::read_kv_model(file.value());
  if (!model.ok()) return failed(model.error());
  return model;
}

Result<inspect::SizeReport> one_size(const Flags& flags) {
  inspect::SizeQuestion question;
  app::KvSizeQuery& query = question.query;
  if (flags.given("--model")) {
    question.model = flags.text("--model", "");
    ASSIGN_OR_RETURN(app::KvModel model, open_model(question.model));
    query.groups = std::move(model.groups);
    question.context_length = model.context_length;
  } else {
    app::KvLayers group;
    ASSIGN_OR_RETURN(group.layers, flags.number("--num-layers", "32"));
    ASSIGN_OR_RETURN(group.kv_heads, flags.number("--num-kv-heads", "8"));
    ASSIGN_OR_RETURN(group.key_dim, flags.number("--head-dim", "128"));
    group.value_dim = group.key_dim;
    query.groups = {group};
  }
  ASSIGN_OR_RETURN(query.format, read_format(flags, "bf16"));
  const std::int64_t context = question.context_length;
  ASSIGN_OR_RETURN(
      query.sequence_length,
      flags.number("--sequence-length", fmt::format("{}", context == 0 ? 8192 : context)));
  ASSIGN_OR_RETURN(query.batch_size, flags.number("--batch-size", "64"));
  ASSIGN_OR_RETURN(query.ranks, flags.number("--tp-size", "1"));
  if (flags.given("--tokens") || flags.given("--block-size")) {
    inspect::BlockQuestion& blocks = question.blocks.emplace();
    ASSIGN_OR_RETURN(blocks.block_size, flags.number("--block-size", kBlockSizeDefault));
    ASSIGN_OR_RETURN(blocks.tokens,
                     flags.number("--tokens", fmt::format("{}", query.sequence_length)));
  }
  return inspect::size_report(question);
}

Result<inspect::SizeReport> compare_heads(const Flags& flags) {
  inspect::HeadCounts counts;
  ASSIGN_OR_RETURN(counts.layers, flags.number("--num-layers", "32"));
  ASSIGN_OR_RETURN(counts.heads, flags.number("--num-heads", "32"));
  ASSIGN_OR_RETURN(counts.kv_heads, flags.number("--num-kv-heads", "8"));
  ASSIGN_OR_RETURN(counts.head_dim, flags.number("--head-dim", "128"));
  app::KvSizeQuery query;
  ASSIGN_OR_RETURN(query.format, read_format(flags, "bf16"));
  ASSIGN_OR_RETURN(query.sequence_length, flags.number("--sequence-length", "8192"));
  ASSIGN_OR_RETURN(query.batch_size, flags.number("--batch-size", "16"));
  ASSIGN_OR_RETURN(query.ranks, flags.number("--tp-size", "1"));
  return inspect::compare_heads(counts, query);
}

// Two flags name the format: what was typed stands above the environment.
Status choose_format_flag(Flags& flags) {
  if (!flags.given(kElementBytesFlag) || !flags.given("--dtype")) return ok_status();
  return flags.is_from_environment(kElementBytesFlag)
             ? flags.refuse_beside("--dtype", {kElementBytesFlag})
             : flags.refuse_beside(kElementBytesFlag, {"--dtype"});
}

Result<inspect::SizeReport> answer(Flags& flags) {
  if (flags.on("--table")) {
    RETURN_IF_ERROR(flags.refuse_beside(
        "--table", {"--compare-heads", "--model", "--batch-size", "--sequence-length",
                    "--num-layers", "--num-kv-heads", "--num-heads", "--head-dim", "--dtype",
                    kElementBytesFlag, "--tp-size", "--tokens", "--block-size"}));
    return inspect::known_sizes();
  }
  RETURN_IF_ERROR(choose_format_flag(flags));
  const bool names_heads = flags.given("--num-heads") && !flags.is_from_environment("--num-heads");
  if (flags.on("--compare-heads") || names_heads) {
    RETURN_IF_ERROR(
        flags.refuse_beside(flags.on("--compare-heads") ? "--compare-heads" : "--num-heads",
                            {"--model", "--tokens", "--block-size"}));
    return compare_heads(flags);
  }
  for (const char* const shape : {"--num-layers", "--num-kv-heads", "--head-dim"}) {
    if (!flags.given("--model") || !flags.given(shape)) continue;
    if (flags.is_from_environment("--model")) {
      RETURN_IF_ERROR(flags.refuse_beside(shape, {"--model"}));
    } else {
      RETURN_IF_ERROR(flags.refuse_beside("--model", {shape}));
    }
  }
  return one_size(flags);
}

}  // namespace

void add_size_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("size", "KV memory arithmetic: bytes per token, totals, blocks, ranks");
  command.footer(kSizeExamples);
  const auto flags = std::make_shared<Flags>();
  flags->add(command, "--batch-size,--requests,--max-num-seqs", "N",
             "sequences (64; 16 with --compare-heads)");
  flags->add(command, "--sequence-length,-c,--context,--max-model-len", "N",
             "tokens of each (8192; with --model its context); 8k is 8000, 8K is 8192");
  flags->add(command, "--num-layers", "N", "layers (32)");
  flags->add(command, "--num-kv-heads", "N", "KV heads of a layer (8)");
  flags->add(command, "--head-dim", "N", "values of a head's key, and of its value (128)");
  flags->add(command, "--dtype,--kv,--kv-cache-dtype", "TYPE", kKvFormatHelp);
  flags->add(command, kElementBytesFlag, "N", kElementBytesHelp);
  flags->add(command, "--tp-size,--tensor-parallel-size", "N",
             "tensor-parallel ranks the KV heads divide over (1)");
  flags->add(command, "--num-heads,--query-heads", "N",
             "query heads (32): compares heads, as --compare-heads does");
  flags->add(command, "--tokens", "N", "also: blocks for a sequence of so many tokens");
  flags->add(command, "--block-size", "N", "tokens of a block (16)");
  flags->add_model(command);
  flags->add_switch(command, "--compare-heads", "MHA, GQA, MQA and MLA side by side");
  flags->add_switch(command, "--table", "7B, 13B, 70B and 405B at 2K, 8K, 32K and 128K tokens");
  flags->add_switch(command, "--json", "one JSON value on stdout");
  command.callback([flags, &exit_status] {
    const Result<inspect::SizeReport> report = answer(*flags);
    if (!report.ok()) {
      print_error(report.error().message);
      const ErrorCode code = report.error().code;
      const bool asked_wrong =
          code == ErrorCode::kInvalidArgument || code == ErrorCode::kOutOfRange;
      exit_status = asked_wrong ? 2 : 1;
      return;
    }
    const inspect::SizeReport& result = report.value();
    fmt::print("{}", flags->on("--json") ? result.json + "\n" : result.text);
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
