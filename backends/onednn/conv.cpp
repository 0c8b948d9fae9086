// Convolutions by oneDNN. Primitives are made once per geometry and kept; tensors are plain at our
// border and in oneDNN's own layouts inside, where that pays.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "table.h"

namespace tessera::onednn {

namespace {

using dnnl::memory;

struct Key {
  Conv c;
  bool operator==(const Key& o) const { return !std::memcmp(&c, &o.c, sizeof c); }
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    const char* p = reinterpret_cast<const char*>(&k.c);
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < sizeof k.c; ++i)
      h = (h ^ static_cast<unsigned char>(p[i])) * 1099511628211u;
    return h;
  }
};

// Note [Memory objects of oneDNN]
// Every memory object is made together with its primitive and only gets another address at a call:
// libdnnl 2 dereferences null where it has no memory for one.

// Scratch memory of a primitive.
struct Scratch {
  size_t bytes = 0;
  memory object;
};

// A tensor that goes in or out: plain memory, and oneDNN's where the layouts differ.
struct Port {
  bool same = true;
  memory plain;   // at the caller's address
  memory inside;  // in the layout of the primitive; has memory of its own unless `same`
  dnnl::reorder reorder;
  Scratch scratch;
};

struct Primitive {
  dnnl::primitive run;
  Scratch scratch;
  Port input, weight, output;
  memory bias;
};

// Statics of this file are never destroyed: a worker may be inside a convolution while the process
// exits, and libdnnl may be finalized before this library.
dnnl::engine& engine() {
  static dnnl::engine& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream& s = *new dnnl::stream(engine());
  return s;
}

// Note [Threads of oneDNN]
// oneDNN's threads are OpenMP's. A child of fork has none of the parent's, and OpenMP would wait
// for them for ever: there it gets one thread, which needs no team.
void (*g_set_threads)(int) = nullptr;
bool g_forked = false;
void find_openmp() {
  g_set_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (!g_set_threads) {
    void* lib = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (lib) g_set_threads = reinterpret_cast<void (*)(int)>(dlsym(lib, "omp_set_num_threads"));
  }
  pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
}

// Note [Scratch memory of oneDNN]
// Left to itself oneDNN keeps it by thread, and as large as what that thread has made: a primitive
// that another thread made would write beyond it. So it is ours: one piece, used under the lock.
dnnl::primitive_attr with_our_scratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}
Scratch make_scratch(const memory::desc& desc) {
  return {desc.get_size(), memory(desc, engine(), nullptr)};
}
// Gives it memory for one call.
const memory& with_memory(Scratch& s) {
  static auto& bytes = *new std::vector<char>;
  constexpr size_t kAlign = 4096;
  if (bytes.size() < s.bytes + kAlign) bytes = std::vector<char>(s.bytes + kAlign);
  auto at = (reinterpret_cast<uintptr_t>(bytes.data()) + kAlign - 1) / kAlign * kAlign;
  s.object.set_data_handle(reinterpret_cast<void*>(at));
  return s.object;
}

memory::dims dims_of(const Conv& c, int which) {
  memory::dims d;
  if (which == 1) {
    if (c.groups > 1) d = {c.groups, c.o / c.groups, c.c / c.groups};
    if (c.groups == 1) d = {c.o, c.c};
  } else {
    d = {c.n, which == 0 ? c.c : c.o};
  }
  const int64_t* sizes = which == 0 ? c.in : which == 1 ? c.kernel : c.out;
  for (int i = 0; i < 3; ++i) d.push_back(sizes[i]);
  return d;
}
memory::format_tag plain_tag(bool grouped) {
  return grouped ? memory::format_tag::abcdef : memory::format_tag::abcde;
}
memory::dims list(const int64_t* v, int64_t less = 0) {
  return {v[0] - less, v[1] - less, v[2] - less};
}

Port port(const memory::desc& plain, const memory::desc& wanted, bool incoming) {
  Port p;
  p.plain = memory(plain, engine(), nullptr);
  p.same = plain == wanted;
  if (!p.same) {
    p.inside = memory(wanted, engine());
    const memory::desc &from = incoming ? plain : wanted, &to = incoming ? wanted : plain;
    dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, with_our_scratch());
    p.reorder = dnnl::reorder(pd);
    p.scratch = make_scratch(pd.scratchpad_desc());
  }
  return p;
}

// What a primitive is made of. Version 2 describes the operation first, version 3 all at once.
template <class P, class... Given>
typename P::primitive_desc describe(const Given&... given) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), given..., with_our_scratch());
#else
  return typename P::primitive_desc(typename P::desc(given...), with_our_scratch(), engine());
#endif
}
template <class P, class... Given>
typename P::primitive_desc describe_backward(const dnnl::convolution_forward::primitive_desc& hint,
                                             const Given&... given) {
#if DNNL_VERSION_MAJOR >= 3
  return typename P::primitive_desc(engine(), given..., hint, with_our_scratch());
#else
  return typename P::primitive_desc(typename P::desc(given...), with_our_scratch(), engine(), hint);
#endif
}

Primitive make(const Conv& c) {
  constexpr auto f32 = memory::data_type::f32;
  constexpr auto any = memory::format_tag::any;
  constexpr auto alg = dnnl::algorithm::convolution_direct;
  bool grouped = c.groups > 1;
  memory::desc in(dims_of(c, 0), f32, any), w(dims_of(c, 1), f32, any),
      out(dims_of(c, 2), f32, any);
  memory::desc plain_in(dims_of(c, 0), f32, plain_tag(false)),
      plain_w(dims_of(c, 1), f32, plain_tag(grouped)),
      plain_out(dims_of(c, 2), f32, plain_tag(false));
  Primitive p;
  const memory::desc bias({c.o}, f32, memory::format_tag::a);
  p.bias = memory(bias, engine(), nullptr);
  memory::dims stride = list(c.stride), dilation = list(c.dilation, 1), left = list(c.padding);
  memory::dims right;
  for (int d = 0; d < 3; ++d)
    right.push_back((c.out[d] - 1) * c.stride[d] + (c.kernel[d] - 1) * c.dilation[d] + 1 - c.in[d] -
                    c.padding[d]);
  using Forward = dnnl::convolution_forward;
  constexpr auto prop = dnnl::prop_kind::forward_training;
  const Forward::primitive_desc hint =
      c.has_bias ? describe<Forward>(prop, alg, in, w, bias, out, stride, dilation, left, right)
                 : describe<Forward>(prop, alg, in, w, out, stride, dilation, left, right);
  if (c.kind == 0) {
    p.run = Forward(hint);
    p.scratch = make_scratch(hint.scratchpad_desc());
    p.input = port(plain_in, hint.src_desc(), true);
    p.weight = port(plain_w, hint.weights_desc(), true);
    p.output = port(plain_out, hint.dst_desc(), false);
  } else if (c.kind == 1) {
    using Data = dnnl::convolution_backward_data;
    const auto pd = describe_backward<Data>(hint, alg, in, w, out, stride, dilation, left, right);
    p.run = Data(pd);
    p.scratch = make_scratch(pd.scratchpad_desc());
    p.input = port(plain_in, pd.diff_src_desc(), false);
    p.weight = port(plain_w, pd.weights_desc(), true);
    p.output = port(plain_out, pd.diff_dst_desc(), true);
  } else {
    using Weights = dnnl::convolution_backward_weights;
    const auto pd =
        describe_backward<Weights>(hint, alg, in, w, out, stride, dilation, left, right);
    p.run = Weights(pd);
    p.scratch = make_scratch(pd.scratchpad_desc());
    p.input = port(plain_in, pd.src_desc(), true);
    p.weight = port(plain_w, pd.diff_weights_desc(), false);
    p.output = port(plain_out, pd.diff_dst_desc(), true);
  }
  return p;
}

// Throws std::bad_alloc where memory is about to run out: libdnnl does not survive that while it
// makes a primitive.
void check_headroom() {
  constexpr size_t kHeadroom = size_t{4} << 20;
  ::operator delete(::operator new(kHeadroom));  // not a new-expression, which may be elided
}

// The primitives used last.
class Cache {
 public:
  Primitive& get(const Conv& c) {
    Key key{c};
    auto it = places_.find(key);
    if (it != places_.end()) {
      all_.splice(all_.begin(), all_, it->second);
      return all_.front().second;
    }
    check_headroom();
    std::list<std::pair<Key, Primitive>> made;
    made.emplace_front(key, make(c));
    places_[key] = made.begin();
    all_.splice(all_.begin(), made);
    if (all_.size() > kMost) {
      places_.erase(all_.back().first);
      all_.pop_back();
    }
    return all_.front().second;
  }

 private:
  static constexpr size_t kMost = 512;
  std::list<std::pair<Key, Primitive>> all_;
  std::unordered_map<Key, std::list<std::pair<Key, Primitive>>::iterator, KeyHash> places_;
};

// Runs a primitive. Not by execute(), which allocates.
template <size_t N>
void execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t (&args)[N], size_t count = N) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream().get(), static_cast<int>(count), args),
      "could not execute a primitive");
}

void move(Port& p, const memory& from, const memory& to) {
  execute(p.reorder, {{DNNL_ARG_FROM, from.get()},
                      {DNNL_ARG_TO, to.get()},
                      {DNNL_ARG_SCRATCHPAD, with_memory(p.scratch).get()}});
}
dnnl_memory_t bring_in(Port& p, const float* data) {
  p.plain.set_data_handle(const_cast<float*>(data));
  if (p.same) return p.plain.get();
  move(p, p.plain, p.inside);
  return p.inside.get();
}
dnnl_memory_t place_for(Port& p, float* data) {
  if (!p.same) return p.inside.get();
  p.plain.set_data_handle(data);
  return p.plain.get();
}
void bring_out(Port& p, float* data) {
  if (p.same) return;
  p.plain.set_data_handle(data);
  move(p, p.inside, p.plain);
}

Outcome conv(const Conv* c, const float* input, const float* weight, const float* bias,
             const float* output, float* result) {
  static std::mutex mutex;
  static Cache& cache = *new Cache;
  std::lock_guard lock(mutex);
  try {
    static const bool once = [] {
      find_openmp();
      return true;
    }();
    (void)once;
    if (g_set_threads) g_set_threads(g_forked ? 1 : c->threads);
    Primitive& p = cache.get(*c);
    if (c->kind == 0) {
      if (c->has_bias) p.bias.set_data_handle(const_cast<float*>(bias));
      const auto in = bring_in(p.input, input), w = bring_in(p.weight, weight);
      execute(p.run,
              {{DNNL_ARG_SRC, in},
               {DNNL_ARG_WEIGHTS, w},
               {DNNL_ARG_DST, place_for(p.output, result)},
               {DNNL_ARG_SCRATCHPAD, with_memory(p.scratch).get()},
               {DNNL_ARG_BIAS, p.bias.get()}},
              c->has_bias ? 5 : 4);
      bring_out(p.output, result);
    } else if (c->kind == 1) {
      const auto out = bring_in(p.output, output), w = bring_in(p.weight, weight);
      execute(p.run, {{DNNL_ARG_DIFF_DST, out},
                      {DNNL_ARG_WEIGHTS, w},
                      {DNNL_ARG_DIFF_SRC, place_for(p.input, result)},
                      {DNNL_ARG_SCRATCHPAD, with_memory(p.scratch).get()}});
      bring_out(p.input, result);
    } else {
      const auto out = bring_in(p.output, output), in = bring_in(p.input, input);
      execute(p.run, {{DNNL_ARG_DIFF_DST, out},
                      {DNNL_ARG_SRC, in},
                      {DNNL_ARG_DIFF_WEIGHTS, place_for(p.weight, result)},
                      {DNNL_ARG_SCRATCHPAD, with_memory(p.scratch).get()}});
      bring_out(p.weight, result);
    }
    stream().wait();
    return Outcome::kDone;
  } catch (const dnnl::error& e) {
    return e.status == dnnl_out_of_memory ? Outcome::kNoMemory : Outcome::kUnsupported;
  } catch (const std::bad_alloc&) {
    return Outcome::kNoMemory;
  } catch (...) {
    return Outcome::kUnsupported;
  }
}

const char* release() {
  static char text[32];
  static const bool written = [] {
    const dnnl::version_t& v = *dnnl::version();
    return std::snprintf(text, sizeof text, "%d.%d.%d", v.major, v.minor, v.patch) > 0;
  }();
  return written ? text : "";
}

constexpr Table kTable{kVersion, conv, release};

}  // namespace
}  // namespace tessera::onednn

const tessera::onednn::Table* tessera_onednn_table() { return &tessera::onednn::kTable; }
