#include "tessera/tensor/batch_scope.h"

namespace tessera {

std::atomic<int> g_batch_scopes{0};

namespace {
thread_local BatchScope* t_innermost = nullptr;
}

BatchScope::BatchScope(int64_t size, bool different)
    : size(size), different(different), outer_(t_innermost) {
  t_innermost = this;
  g_batch_scopes.fetch_add(1, std::memory_order_relaxed);
}

BatchScope::BatchScope() : BatchScope(0, false) {}

BatchScope::~BatchScope() {
  t_innermost = outer_;
  g_batch_scopes.fetch_sub(1, std::memory_order_relaxed);
}

BatchScope* BatchScope::innermost() { return t_innermost; }

void note_new_storage(const Storage& s) {
  if (!any_batch_scope()) [[likely]]
    return;
  for (BatchScope* scope = BatchScope::innermost(); scope; scope = scope->outer())
    scope->add_made(s);
}

}  // namespace tessera
