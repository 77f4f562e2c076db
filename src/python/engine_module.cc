// The bindings of models and requests. Everything that waits or computes does so without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "app/device_choice.h"
#include "app/kv_dtype.h"
#include "python/batch.h"
#include "python/bindings.h"
#include "python/local_model.h"
#include "server/api/chat_prompt.h"
#include "server/api_error.h"
#include "server/reading_memory.h"
#include "terminal/version.h"

namespace pagoda::python {
namespace {

using GilFree = nb::call_guard<nb::gil_scoped_release>;

std::shared_ptr<LocalModel> open_model(const LocalModelOptions& options) {
  auto opened = [&] {
    const nb::gil_scoped_release released;
    return LocalModel::open(options);
  }();
  if (!opened.ok()) raise(opened.error());
  return std::move(opened).value();
}

std::vector<std::uint32_t> encode(const LocalModel& model, const std::string& text,
                                  bool add_special_tokens) {
  std::vector<std::uint32_t> ids;
  for (const TokenId id : model.served().tokenizer.encode(
           text, {.special = true, .add_bos_eos = add_special_tokens})) {
    ids.push_back(id.value());
  }
  return ids;
}

nb::bytes decode(const LocalModel& model, const std::vector<std::uint32_t>& ids,
                 bool skip_special_tokens) {
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  const Result<std::string> text = model.served().tokenizer.decode(tokens, !skip_special_tokens);
  if (!text.ok()) raise(text.error());
  return nb::bytes(text.value().data(), text.value().size());
}

std::optional<std::uint32_t> id_of(const std::optional<TokenId>& token) {
  if (!token) return std::nullopt;
  return token->value();
}

// A token as the model's file has it; nothing outside the vocabulary.
std::optional<nb::bytes> token_text(const LocalModel& model, std::uint32_t id) {
  const text::Tokenizer& tokenizer = model.served().tokenizer;
  if (!tokenizer.contains(TokenId(id))) return std::nullopt;
  const std::string_view text = tokenizer.text_of(TokenId(id));
  return nb::bytes(text.data(), text.size());
}

std::vector<std::uint32_t> control_tokens(const LocalModel& model) {
  const text::Tokenizer& tokenizer = model.served().tokenizer;
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_control(TokenId(id))) ids.push_back(id);
  }
  return ids;
}

// The prompt of a chat's body, however long it is, as JSON: its text and its tokens.
std::string render(const LocalModel& model, const std::string& body) {
  server::ReadingMemory memory(nullptr);
  server::Json parsed = server::parse_json(body);
  constexpr std::uint64_t kAny = std::uint64_t{1} << 32;
  const auto prompt = server::read_chat_prompt(parsed, model.served(), {.memory = memory},
                                               {.room = {.wanted = kAny, .most = kAny}});
  if (!prompt) throw server::ApiError(400, "messages: are too long", "messages");
  server::Json ids = server::Json::array();
  for (const TokenId id : prompt->tokens.ids) ids.push_back(id.value());
  return server::dump_json({{"text", prompt->text.bytes()}, {"token_ids", std::move(ids)}});
}

nb::dict sampling_defaults(const LocalModel& model) {
  const engine::SamplingParams& params = model.served().sampling_defaults;
  nb::dict made;
  made["temperature"] = params.temperature;
  made["top_p"] = params.top_p;
  made["top_k"] = params.top_k;
  made["min_p"] = params.min_p;
  made["repetition_penalty"] = params.repetition_penalty;
  return made;
}

std::uint32_t add_request(RequestBatch& batch, const std::string& kind, const std::string& body,
                          bool fills_context) {
  return batch.add(kind == "chat"        ? BodyKind::kChat
                   : kind == "embedding" ? BodyKind::kEmbedding
                                         : BodyKind::kText,
                   body, fills_context);
}

void bind_options(nb::module_& module) {
  nb::class_<LocalModelOptions>(module, "Options")
      .def(nb::init<>())
      .def_rw("model", &LocalModelOptions::model)
      .def_rw("revision", &LocalModelOptions::revision)
      .def_rw("tokenizer", &LocalModelOptions::tokenizer)
      .def_rw("chat_template", &LocalModelOptions::chat_template)
      .def_rw("device", &LocalModelOptions::device)
      .def_rw("kv_cache_dtype", &LocalModelOptions::kv_cache_dtype)
      .def_rw("kv_cache_memory_bytes", &LocalModelOptions::kv_cache_memory_bytes)
      .def_rw("kv_eviction", &LocalModelOptions::kv_eviction)
      .def_rw("dtype", &LocalModelOptions::dtype)
      .def_rw("quantization", &LocalModelOptions::quantization)
      .def_rw("speculative_config", &LocalModelOptions::speculative_config)
      .def_rw("num_gpu_blocks_override", &LocalModelOptions::num_gpu_blocks_override)
      .def_rw("gpu_memory_utilization", &LocalModelOptions::gpu_memory_utilization)
      .def_rw("max_model_len", &LocalModelOptions::max_model_len)
      .def_rw("block_size", &LocalModelOptions::block_size)
      .def_rw("max_num_seqs", &LocalModelOptions::max_num_seqs)
      .def_rw("max_num_batched_tokens", &LocalModelOptions::max_num_batched_tokens)
      .def_rw("threads", &LocalModelOptions::threads)
      .def_rw("enable_prefix_caching", &LocalModelOptions::enable_prefix_caching);
}

void bind_model(nb::module_& module) {
  nb::class_<LocalModel>(module, "Model")
      .def_static("open", open_model)
      .def_prop_ro("name", [](const LocalModel& model) { return model.served().name(); })
      .def_prop_ro("max_model_len",
                   [](const LocalModel& model) { return model.served().context_tokens(); })
      .def_prop_ro("device", [](const LocalModel& model) { return model.backend().device_name(); })
      .def_prop_ro(
          "is_on_gpu",
          [](const LocalModel& model) { return model.backend().weights_digest().has_value(); })
      .def_prop_ro("kv_cache_bytes",
                   [](const LocalModel& model) { return model.backend().kv_bytes(); })
      .def_prop_ro("kv_cache_tokens",
                   [](const LocalModel& model) { return model.backend().kv_tokens(); })
      .def_prop_ro("kv_cache_dtype",
                   [](const LocalModel& model) {
                     return app::kv_choice_name({}, model.backend().page_layout());
                   })
      .def_prop_ro("sequences_running",
                   [](LocalModel& model) { return model.engine().snapshot().sequences_running; })
      .def_prop_ro("bos_token_id",
                   [](const LocalModel& model) { return id_of(model.served().tokenizer.bos()); })
      .def_prop_ro("eos_token_id",
                   [](const LocalModel& model) { return id_of(model.served().tokenizer.eos()); })
      .def_prop_ro("vocab_size",
                   [](const LocalModel& model) { return model.served().tokenizer.size(); })
      .def_prop_ro("has_chat_template",
                   [](const LocalModel& model) { return model.served().chat_template.has_value(); })
      .def_prop_ro("sampling_defaults", sampling_defaults)
      .def("token_text", token_text)
      .def("control_tokens", control_tokens)
      .def("render", render, GilFree())
      .def("encode", encode)
      .def("decode", decode)
      .def("reset_prefix_cache", [](LocalModel& model) { model.engine().reset(std::nullopt); });
}

void bind_batch(nb::module_& module) {
  nb::class_<RequestBatch>(module, "Batch")
      .def(nb::init<std::shared_ptr<LocalModel>>())
      .def("add", add_request, GilFree())
      .def(
          "wait",
          [](RequestBatch& batch, std::int32_t milliseconds) {
            return server::dump_json(batch.wait(milliseconds));
          },
          GilFree())
      .def("fileno", &RequestBatch::descriptor)
      .def_prop_ro("unfinished", &RequestBatch::unfinished)
      .def("cancel", &RequestBatch::cancel, GilFree());
}

void translate_api_error(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const server::ApiError& error) {
    PyErr_SetString(error.status < 500 ? PyExc_ValueError : PyExc_RuntimeError, error.what());
  }
}

}  // namespace

void raise(const Error& error) {
  PyObject* kind = PyExc_RuntimeError;
  if (error.code == ErrorCode::kNotFound) kind = PyExc_FileNotFoundError;
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kOutOfRange) {
    kind = PyExc_ValueError;
  }
  PyErr_SetString(kind, error.message.c_str());
  throw nb::python_error();
}

}  // namespace pagoda::python

NB_MODULE(_pagoda, module) {
  using namespace pagoda;
  // At the interpreter's end objects of a script may live still; the system takes their memory.
  nanobind::set_leak_warnings(false);
  nanobind::register_exception_translator(python::translate_api_error);
  module.attr("__version__") = terminal::kVersion;
  module.def("shows_nvidia_gpu", [] { return app::shows_nvidia_gpu(); });
  python::bind_options(module);
  python::bind_model(module);
  python::bind_batch(module);
  python::bind_kv(module);
}
