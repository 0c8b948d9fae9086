// The node behind torch.autograd.Function: backward is a Python function.
#include <nanobind/nanobind.h>

#include <unordered_map>
#include <unordered_set>

#include "methods.h"
#include "node_object.h"
#include "scaffolding.h"
#include "shared_object.h"
#include "tessera/autograd/node.h"

namespace tessera::python {

namespace nb = nanobind;
using autograd::Grads;

namespace {

class FunctionNode final : public autograd::Node {
 public:
  FunctionNode(PyObject* context, std::string name, PyObject* args)
      : context_(share_object(context)), name_(std::move(name)) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      autograd::Edge& edge = next.emplace_back();
      is_tensor_.push_back(is_tensor(item));
      if (!is_tensor_.back()) continue;
      const TensorBase& t = unwrap(item);
      if (is_differentiable(t.dtype())) edge = autograd::gradient_edge(t);
    }
  }

  const char* name() const override { return name_.c_str(); }
  autograd::ResultSpec result_spec(uint32_t output) const override {
    const Geometry& g = outputs_[output];
    return {&g.sizes, g.dtype, g.device};
  }

  void set_output(size_t i, const TensorBase& t) {
    if (outputs_.size() <= i) outputs_.resize(i + 1);
    if (t.defined()) outputs_[i] = {t.sizes(), t.dtype(), t.device()};
    num_outputs = static_cast<uint32_t>(outputs_.size());
  }

  // None stays None.
  void save(PyObject* tensors, const std::vector<TensorBase>& results) {
    std::unordered_map<const TensorImpl*, int> output_of;
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k].defined()) output_of[results[k].impl()] = static_cast<int>(k);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      PyObject* item = PyTuple_GET_ITEM(tensors, i);
      Kept& kept = saved_.emplace_back();
      if (item == Py_None) continue;
      const TensorBase& t = unwrap_checked(item, "save_for_backward()");
      if (auto it = output_of.find(t.impl()); it != output_of.end()) kept.output = it->second;
      kept.tensor = autograd::SavedTensor(t, kept.output >= 0);
    }
  }
  PyObject* saved_tensors() {
    check_alive();
    PyRef all(checked(PyTuple_New(static_cast<Py_ssize_t>(saved_.size()))));
    for (size_t i = 0; i < saved_.size(); ++i) {
      const Kept& k = saved_[i];
      TensorBase t;
      if (k.tensor.defined())
        t = k.tensor.unpack(this, name_.c_str(), static_cast<uint32_t>(std::max(k.output, 0)));
      PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), wrap(std::move(t)));
    }
    return all.release();
  }

  void release_saved() override {
    released_ = true;
    saved_.clear();
  }
  int64_t saved_bytes() const override {
    int64_t total = 0;
    for (const Kept& k : saved_) total += k.tensor.bytes();
    return total;
  }

  Grads apply(Grads&& grads) override {
    PyGILState_STATE state = PyGILState_Ensure();
    struct Release {
      PyGILState_STATE s;
      ~Release() { PyGILState_Release(s); }
    } release{state};
    if (!saved_.empty() || released_) check_alive();
    PyRef materialize(checked(PyObject_GetAttrString(context_.get(), "_materialize_grads")));
    bool zeros = PyObject_IsTrue(materialize.get()) == 1;
    PyRef given(checked(PyTuple_New(static_cast<Py_ssize_t>(outputs_.size()))));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      TensorBase g = i < grads.size() ? grads[i] : TensorBase();
      const Geometry& o = outputs_[i];
      if (!g.defined() && zeros) {
        g = new_empty(o.sizes, o.dtype, o.device);
        fill(g, Scalar(0));
      }
      PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), wrap(std::move(g)));
    }
    PyRef self(wrap_node(Ref<autograd::Node>::share(this)));
    PyRef result(checked(
        PyObject_CallMethod(context_.get(), "_run_backward", "OO", given.get(), self.get())));
    return read_result(result.get());
  }

 private:
  struct Kept {
    autograd::SavedTensor tensor;
    int output = -1;  // which result it is
  };

  void check_alive() const {
    TS_CHECK(!released_,
             "Trying to backward through the graph a second time (or directly access saved tensors "
             "after they have already been freed). Saved intermediate values of the graph are "
             "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "
             "need to backward through the graph a second time or if you need to access saved "
             "tensors after calling backward. (in ",
             name_, ")");
  }

  Grads read_result(PyObject* o) {
    PyRef items(PyTuple_Check(o) || PyList_Check(o) ? PyRef::borrow(o)
                                                    : PyRef(checked(PyTuple_Pack(1, o))));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    size_t wanted = is_tensor_.size();
    // More than there are inputs: allowed as long as the rest is None.
    for (Py_ssize_t i = static_cast<Py_ssize_t>(wanted); i < n; ++i)
      TS_CHECK(PySequence_Fast_GET_ITEM(items.get(), i) == Py_None, "function ", name_,
               " returned an incorrect number of gradients (expected ",
               static_cast<int64_t>(wanted), ", got ", static_cast<int64_t>(n), ")");
    TS_CHECK(static_cast<size_t>(n) >= wanted, "function ", name_,
             " returned an incorrect number of gradients (expected ", static_cast<int64_t>(wanted),
             ", got ", static_cast<int64_t>(n), ")");
    Grads out(wanted);
    for (size_t i = 0; i < wanted; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
      if (item == Py_None) continue;
      if (!is_tensor(item))
        throw raise_python(PyExc_TypeError,
                           "expected Variable or None (got %s) as gradient %zu of %s",
                           Py_TYPE(item)->tp_name, i, name_.c_str());
      TS_CHECK(is_tensor_[i], "function ", name_,
               " returned a gradient different from None "
               "at position ",
               static_cast<int64_t>(i + 1),
               ", but the corresponding forward input was not a Variable");
      if (next[i].node) out[i] = unwrap(item);
    }
    return out;
  }

  std::shared_ptr<PyObject> context_;
  std::string name_;
  std::vector<bool> is_tensor_;  // whether each input is a tensor
  std::vector<Geometry> outputs_;
  std::vector<Kept> saved_;
  bool released_ = false;
};

// Makes the node of one call of a Function and hangs it onto its results.
//   results: tuple; dirty, fixed: tuples of tensors written in place / without gradient
PyObject* attach(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *context, *name, *inputs, *results, *dirty, *fixed, *saved;
    if (!PyArg_UnpackTuple(args, "_attach_function", 7, 7, &context, &name, &inputs, &results,
                           &dirty, &fixed, &saved))
      throw PythonError{};
    auto node = Ref<FunctionNode>::adopt(new FunctionNode(context, PyUnicode_AsUTF8(name), inputs));
    auto tensors_of = [](PyObject* tuple) {
      std::unordered_set<const TensorImpl*> all;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
        if (is_tensor(PyTuple_GET_ITEM(tuple, i)))
          all.insert(unwrap(PyTuple_GET_ITEM(tuple, i)).impl());
      return all;
    };
    const auto all_dirty = tensors_of(dirty), all_fixed = tensors_of(fixed);
    std::vector<TensorBase> out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); ++i) {
      PyObject* item = PyTuple_GET_ITEM(results, i);
      out.push_back(is_tensor(item) ? unwrap(item) : TensorBase());
      node->set_output(static_cast<size_t>(i), out.back());
    }
    node->save(saved, out);
    for (size_t i = 0; i < out.size(); ++i) {
      const TensorBase& t = out[i];
      if (!t.defined() || all_fixed.contains(t.impl()) || !is_differentiable(t.dtype())) continue;
      if (all_dirty.contains(t.impl())) {
        TS_CHECK(!autograd::is_leaf(t) || !t.requires_grad(),
                 "a leaf Variable that requires grad has been used in an in-place operation.");
        autograd::rebase_history(t, Ref<autograd::Node>::share(node.get()));
      } else {
        autograd::set_history(t, Ref<autograd::Node>::share(node.get()), static_cast<uint32_t>(i));
      }
    }
    return wrap_node(Ref<autograd::Node>::share(node.get()));
  });
}

PyObject* saved_of(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Ref<autograd::Node> n = unwrap_node(o);
    auto* f = dynamic_cast<FunctionNode*>(n.get());
    if (!f) throw raise_python(PyExc_TypeError, "not the node of a Function");
    return f->saved_tensors();
  });
}

PyMethodDef functions[] = {
    {"_attach_function", attach, METH_VARARGS, nullptr},
    {"_saved_of", saved_of, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_function_node(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
