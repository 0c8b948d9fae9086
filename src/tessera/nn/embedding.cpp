#include "tessera/nn/embedding.h"

#include "tessera/nn/init.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

namespace {

std::optional<int64_t> checked(std::optional<int64_t> at, int64_t rows, const char* text) {
  if (!at) return at;
  TS_CHECK_VALUE(*at < rows && *at >= -rows, text);
  return *at < 0 ? *at + rows : *at;
}

void draw(const Tensor& weight, std::optional<int64_t> padding_idx) {
  init::normal_(weight);
  if (!padding_idx) return;
  autograd::GradMode off(false);
  op::fill_(weight[*padding_idx], 0);
}

template <class Options>
std::string norms(const Options& o) {
  std::string text;
  if (o.max_norm) text += ", max_norm=" + py(*o.max_norm);
  if (o.norm_type != 2) text += ", norm_type=" + py(o.norm_type);
  if (o.scale_grad_by_freq) text += ", scale_grad_by_freq=True";
  return text;
}

}  // namespace

Embedding::Embedding(int64_t rows, int64_t columns, const EmbeddingOptions& o)
    : num_embeddings(rows), embedding_dim(columns), options(o) {
  options.padding_idx = checked(o.padding_idx, rows, "Padding_idx must be within num_embeddings");
  register_parameter("weight", empty({rows, columns}, o.dtype, o.device));
  reset_parameters();
}

Embedding::Embedding(const Tensor& table, bool freeze, const EmbeddingOptions& o)
    : num_embeddings(table.size(0)), embedding_dim(table.size(1)), options(o) {
  options.padding_idx =
      checked(o.padding_idx, num_embeddings, "Padding_idx must be within num_embeddings");
  register_parameter("weight", table.detach(), !freeze);
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, bool freeze,
                                     const EmbeddingOptions& o) {
  TS_CHECK_VALUE(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
  return Embedding(embeddings, freeze, o);
}

void Embedding::reset_parameters() { draw(weight(), options.padding_idx); }

Tensor Embedding::forward(const Tensor& input) {
  return embedding(input, weight(), options.padding_idx, options.max_norm, options.norm_type,
                   options.scale_grad_by_freq, options.sparse);
}

std::string Embedding::extra_repr() const {
  std::string text = cat(num_embeddings, ", ", embedding_dim);
  if (options.padding_idx) text += cat(", padding_idx=", *options.padding_idx);
  return text + norms(options) + (options.sparse ? ", sparse=True" : "");
}

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t columns, const EmbeddingBagOptions& o)
    : num_embeddings(rows), embedding_dim(columns), options(o) {
  options.padding_idx = checked(o.padding_idx, rows, "padding_idx must be within num_embeddings");
  register_parameter("weight", empty({rows, columns}, o.dtype, o.device));
  reset_parameters();
}

void EmbeddingBag::reset_parameters() { draw(weight(), options.padding_idx); }

Tensor EmbeddingBag::forward(const Tensor& input, const Tensor& offsets,
                             const Tensor& per_sample_weights) {
  return embedding_bag(input, weight(), offsets, options.max_norm, options.norm_type,
                       options.scale_grad_by_freq, options.mode, options.sparse, per_sample_weights,
                       options.include_last_offset, options.padding_idx);
}

std::string EmbeddingBag::extra_repr() const {
  std::string text = cat(num_embeddings, ", ", embedding_dim) + norms(options) +
                     ", mode=" + py_quoted(options.mode);
  if (options.padding_idx) text += cat(", padding_idx=", *options.padding_idx);
  return text;
}

}  // namespace tessera::nn
