#pragma once

namespace tessera {

// Has a cuda device been resolved in this process? Counting them does not make it so.
bool accelerator_used();

}  // namespace tessera
