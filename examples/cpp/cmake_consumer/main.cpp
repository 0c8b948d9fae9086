#include <tessera/tessera.h>

#include <iostream>

int main() {
  using namespace tessera;
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}, {}, best_device(), true);
  sum(softmax(x.matmul(x), -1) * x).backward();
  std::cout << x.grad().cpu() << "\n";
}
