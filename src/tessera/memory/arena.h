// The address space of one pool: reserved once, mapped page by page.
#pragma once
#include <vector>

#include "tessera/memory/block.h"

namespace tessera::memory {

struct Arena {
  // What lies on one page of addresses. Handles may span several pages: they are mapped and
  // unmapped whole.
  struct Page {
    PageHandle handle = 0;
    uint32_t first = 0;  // where its handle begins
    uint32_t count = 0;  // pages of its handle; 0: nothing is mapped here
  };

  char* base = nullptr;
  size_t reserved = 0;  // bytes of addresses
  size_t page_bytes = 0;
  StreamPool* pool = nullptr;
  bool small = false;
  Block* first = nullptr;  // blocks cover the addresses up to `top` without a gap
  Block* last = nullptr;
  size_t top = 0;
  std::vector<Page> pages;  // of the addresses below top

  char* address(size_t page) const { return base + page * page_bytes; }
};

}  // namespace tessera::memory
