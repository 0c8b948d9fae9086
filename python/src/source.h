// Tells the core how to find the line of Python an operator was called on.
#pragma once

namespace tessera::python {

// Lines of files under `folder`, with its slash, are passed over for those of whoever called them.
void init_source(const char* folder);

}  // namespace tessera::python
