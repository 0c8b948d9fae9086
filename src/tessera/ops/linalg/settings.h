// What a program allows matrix products on an accelerator: torch.backends.cuda.matmul's settings.
#pragma once

namespace tessera::linalg {

// May products of float32 be computed in TensorFloat-32? The first int of the kernel "matmul".
bool allow_tf32();
void set_allow_tf32(bool on);

}  // namespace tessera::linalg
