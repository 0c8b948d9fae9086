// Address space and pages: what the caching allocator grows its segments with.
#pragma once
#include "context.h"

namespace tessera::cuda {

Status page_size_on(Device& d, size_t* out);
Status reserve_addresses_on(Device& d, size_t bytes, void** out);
Status release_addresses_on(Device& d, void* p, size_t bytes);
Status create_pages_on(Device& d, size_t bytes, PageHandle* out);
Status destroy_pages_on(Device& d, PageHandle pages);
Status map_pages_on(Device& d, void* at, PageHandle pages, size_t bytes);
Status enable_pages_on(Device& d, void* at, size_t bytes);
Status unmap_pages_on(Device& d, void* at, size_t bytes);

}  // namespace tessera::cuda
