// Nested sequences of numbers, as torch.tensor() takes them: their shape, their dtype, their
// values.
#pragma once
#include "py.h"
#include "tessera/base/dims.h"
#include "tessera/base/dtype.h"

namespace tessera::python {

class DataReader {
 public:
  // Reads the shape off the first elements; the rest is checked by infer() and fill().
  explicit DataReader(PyObject* data);

  const Dims& sizes() const { return sizes_; }
  DType infer() const { return infer(data_, 0); }
  // Writes the values, row-major; raises for what the dtype cannot hold.
  void fill(char* at, DType dtype) const { fill(data_, 0, at, dtype); }

 private:
  DType infer(PyObject* data, size_t dim) const;
  char* fill(PyObject* data, size_t dim, char* at, DType dtype) const;
  template <class Work>
  void each(PyObject* data, size_t dim, Work&& work) const;

  PyObject* data_;  // borrowed
  Dims sizes_;
};

}  // namespace tessera::python
