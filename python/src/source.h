// Tells the core how to find the line of Python an operator was called on.
#pragma once

namespace tessera::python {

// Lines of files under `folder`, with its slash, are passed over for those of whoever called them.
void init_source(const char* folder);

// Does the program drop the result of the call it is in, as a statement `x.to("cuda")` does? Asked
// once for each place of the program: false from the second time on.
bool drops_result_first();

}  // namespace tessera::python
