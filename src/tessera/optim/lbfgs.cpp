#include "tessera/optim/lbfgs.h"

#include <cmath>

namespace tessera::optim {

using autograd::GradMode;

namespace {

// Where the cubic through two points with their slopes is lowest, within the bounds.
double cubic_minimum(double x1, double f1, double g1, double x2, double f2, double g2, double low,
                     double high) {
  double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2);
  double square = d1 * d1 - g1 * g2;
  if (square < 0) return (low + high) / 2.0;
  double d2 = std::sqrt(square);
  double at = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
                       : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2));
  return std::min(std::max(at, low), high);
}

double largest(const Tensor& t) { return t.abs().max().item(); }
double dot(const Tensor& a, const Tensor& b) { return a.dot(b).item(); }

}  // namespace

LBFGS::LBFGS(std::vector<Tensor> params, LBFGSOptions o)
    : Optimizer({ParamGroup(std::move(params))}, {{"lr", o.lr}}, {}), options_(std::move(o)) {
  check_option(options_.lr, "learning rate");
  TS_CHECK(options_.line_search_fn.empty() || options_.line_search_fn == "strong_wolfe",
           "only 'strong_wolfe' is supported");
}

void LBFGS::add_param_group(ParamGroup) {
  raise(ErrorKind::kValue, "LBFGS doesn't support per-parameter options (parameter groups)");
}

void LBFGS::step() { raise(ErrorKind::kType, "LBFGS.step() needs a closure"); }

Tensor LBFGS::flat_grad() const {
  std::vector<TensorBase> parts;
  for (const Tensor& p : params()) {
    Tensor grad = p.grad();
    parts.push_back(grad.defined() ? op::reshape(grad, Dims{-1})
                                   : op::zeros(Dims{p.numel()}, p.dtype(), p.device()));
  }
  return Tensor(op::cat(parts));
}

void LBFGS::move(double t, const Tensor& direction) {
  int64_t at = 0;
  for (const Tensor& p : params()) {
    op::add_(p, direction.slice(0, at, at + p.numel()).view(p.sizes()), t);
    at += p.numel();
  }
}

double LBFGS::evaluate(const Closure& closure, double t, Tensor& grad) {
  std::vector<Tensor> before;
  for (const Tensor& p : params()) before.push_back(p.clone());
  move(t, memory_.d);
  double loss;
  {
    GradMode on(true);
    loss = closure().item();
  }
  grad = flat_grad();
  for (size_t i = 0; i < before.size(); ++i) op::copy_(params()[i], before[i]);
  return loss;
}

// A step along memory_.d that lowers the function enough and flattens its slope.
LBFGS::Found LBFGS::strong_wolfe(const Closure& closure, double t, double f, const Tensor& g,
                                 double gtd) {
  constexpr double c1 = 1e-4, c2 = 0.9, tolerance_change = 1e-9;
  constexpr int max_ls = 25;
  struct Point {
    double t, f;
    Tensor g;
    double gtd;
  };
  double d_norm = largest(memory_.d);
  auto at = [&](double where) {
    Point p{where, 0, {}, 0};
    p.f = evaluate(closure, where, p.g);
    p.gtd = dot(p.g, memory_.d);
    return p;
  };
  Point now = at(t), before{0, f, g.clone(), gtd};
  Point bracket[2] = {now, now};
  int64_t evaluations = 1;
  bool done = false;
  int steps = 0;
  // First a bracket in which such a step must be.
  for (; steps < max_ls; ++steps) {
    bool rises = now.f > f + c1 * now.t * gtd || (steps > 1 && now.f >= before.f);
    done = !rises && std::abs(now.gtd) <= -c2 * gtd;
    if (rises || done || now.gtd >= 0) {
      bracket[0] = done ? now : before;
      bracket[1] = now;
      break;
    }
    double next = cubic_minimum(before.t, before.f, before.gtd, now.t, now.f, now.gtd,
                                now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = now;
    now = at(next);
    ++evaluations;
  }
  if (steps == max_ls) {
    bracket[0] = {0, f, g, gtd};
    bracket[1] = now;
  }
  // Then narrower ones.
  bool stuck = false;
  int low = bracket[0].f <= bracket[1].f ? 0 : 1;
  while (!done && steps < max_ls) {
    if (std::abs(bracket[1].t - bracket[0].t) * d_norm < tolerance_change) break;
    double left = std::min(bracket[0].t, bracket[1].t);
    double right = std::max(bracket[0].t, bracket[1].t);
    double next = cubic_minimum(bracket[0].t, bracket[0].f, bracket[0].gtd, bracket[1].t,
                                bracket[1].f, bracket[1].gtd, left, right);
    // A point too near an end twice in a row is moved away from it.
    double eps = 0.1 * (right - left);
    if (std::min(right - next, next - left) < eps) {
      if (stuck || next >= right || next <= left) {
        next = std::abs(next - right) < std::abs(next - left) ? right - eps : left + eps;
        stuck = false;
      } else {
        stuck = true;
      }
    } else {
      stuck = false;
    }
    now = at(next);
    ++evaluations;
    ++steps;
    int high = 1 - low;
    if (now.f > f + c1 * now.t * gtd || now.f >= bracket[low].f) {
      bracket[high] = now;
      low = bracket[0].f <= bracket[1].f ? 0 : 1;
    } else {
      if (std::abs(now.gtd) <= -c2 * gtd)
        done = true;
      else if (now.gtd * (bracket[high].t - bracket[low].t) >= 0)
        bracket[high] = bracket[low];
      bracket[low] = now;
    }
  }
  return {bracket[low].f, bracket[low].g, bracket[low].t, evaluations};
}

// The next direction, from the history of steps and changes of the gradient.
void LBFGS::next_direction(const Tensor& grad) {
  if (memory_.n_iter == 1) {
    memory_.d = -grad;
    memory_.old_dirs.clear();
    memory_.old_stps.clear();
    memory_.ro.clear();
    memory_.h_diag = Tensor(op::full({}, 1.0, grad.dtype(), grad.device()));
    return;
  }
  Tensor y = grad - memory_.prev_flat_grad, s = memory_.d * memory_.t, ys = y.dot(s);
  if (ys.item() > 1e-10) {
    if (memory_.old_dirs.size() == static_cast<size_t>(options_.history_size))
      for (std::vector<Tensor>* list : {&memory_.old_dirs, &memory_.old_stps, &memory_.ro})
        list->erase(list->begin());
    memory_.old_dirs.push_back(y);
    memory_.old_stps.push_back(s);
    memory_.ro.push_back(1.0 / ys);
    memory_.h_diag = ys / y.dot(y);
  }
  std::vector<Tensor> al(memory_.old_dirs.size());
  Tensor q = -grad;
  for (size_t i = al.size(); i-- > 0;) {
    al[i] = memory_.old_stps[i].dot(q) * memory_.ro[i];
    q += memory_.old_dirs[i] * -al[i];
  }
  memory_.d = q * memory_.h_diag;
  for (size_t i = 0; i < al.size(); ++i)
    memory_.d += memory_.old_stps[i] * (al[i] - memory_.old_dirs[i].dot(memory_.d) * memory_.ro[i]);
}

Tensor LBFGS::step(const Closure& closure) {
  GradMode off(false);
  double lr = param_groups()[0]["lr"];
  int64_t max_eval = options_.max_eval.value_or(options_.max_iter * 5 / 4);
  Tensor first;
  {
    GradMode on(true);
    first = closure();
  }
  double loss = first.item();
  int64_t evaluations = 1;
  ++memory_.func_evals;
  Tensor grad = flat_grad();
  if (largest(grad) <= options_.tolerance_grad) return first;
  for (int64_t iteration = 1; iteration <= options_.max_iter; ++iteration) {
    ++memory_.n_iter;
    next_direction(grad);
    memory_.prev_flat_grad = grad.clone();
    memory_.prev_loss = loss;
    memory_.t = memory_.n_iter == 1 ? std::min(1.0, 1.0 / grad.abs().sum().item()) * lr : lr;
    double gtd = dot(grad, memory_.d);
    if (gtd > -options_.tolerance_change) break;
    int64_t calls = 0;
    bool flat = false;
    if (!options_.line_search_fn.empty()) {
      Found found = strong_wolfe(closure, memory_.t, loss, grad, gtd);
      loss = found.loss;
      grad = found.grad;
      memory_.t = found.t;
      calls = found.evaluations;
      move(memory_.t, memory_.d);
      flat = largest(grad) <= options_.tolerance_grad;
    } else {
      move(memory_.t, memory_.d);
      if (iteration != options_.max_iter) {
        {
          GradMode on(true);
          loss = closure().item();
        }
        grad = flat_grad();
        flat = largest(grad) <= options_.tolerance_grad;
        calls = 1;
      }
    }
    evaluations += calls;
    memory_.func_evals += calls;
    if (evaluations >= max_eval || flat ||
        largest(memory_.d * memory_.t) <= options_.tolerance_change ||
        std::abs(loss - memory_.prev_loss) < options_.tolerance_change)
      break;
  }
  return first;
}

// ---- state ------------------------------------------------------------------------------------

StateDict LBFGS::state_dict() const {
  StateDict out = Optimizer::state_dict();
  auto number = [&](const char* name, double v) {
    out.emplace_back(cat("state.0.", name), number_tensor(v));
  };
  number("func_evals", static_cast<double>(memory_.func_evals));
  number("n_iter", static_cast<double>(memory_.n_iter));
  if (!memory_.d.defined()) return out;
  number("t", memory_.t);
  number("prev_loss", memory_.prev_loss);
  out.emplace_back("state.0.d", memory_.d);
  out.emplace_back("state.0.prev_flat_grad", memory_.prev_flat_grad);
  out.emplace_back("state.0.H_diag", memory_.h_diag);
  for (size_t i = 0; i < memory_.old_dirs.size(); ++i) {
    out.emplace_back(cat("state.0.old_dirs.", i), memory_.old_dirs[i]);
    out.emplace_back(cat("state.0.old_stps.", i), memory_.old_stps[i]);
    out.emplace_back(cat("state.0.ro.", i), memory_.ro[i]);
  }
  return out;
}

void LBFGS::load_state_dict(const StateDict& given) {
  // All of it is read before any of it is taken over.
  Memory found;
  found.func_evals = static_cast<int64_t>(number_of(given, "state.0.func_evals"));
  found.n_iter = static_cast<int64_t>(number_of(given, "state.0.n_iter"));
  if (given.find("state.0.d")) {
    int64_t whole = 0;
    for (const Tensor& p : params()) whole += p.numel();
    auto take = [&](const std::string& name, int64_t numel) {
      const Tensor* t = given.find("state.0." + name);
      TS_CHECK_VALUE(t, "loaded state dict has no 'state.0.", name, "'");
      TS_CHECK_VALUE(t->numel() == numel, "loaded state dict: 'state.0.", name, "' has ",
                     t->numel(), " elements, not ", numel);
      return t->to(params()[0].device(), params()[0].dtype()).clone();
    };
    found.t = number_of(given, "state.0.t");
    found.prev_loss = number_of(given, "state.0.prev_loss");
    found.d = take("d", whole);
    found.prev_flat_grad = take("prev_flat_grad", whole);
    found.h_diag = take("H_diag", 1);
    for (size_t i = 0; given.find(cat("state.0.old_dirs.", i)); ++i) {
      found.old_dirs.push_back(take(cat("old_dirs.", i), whole));
      found.old_stps.push_back(take(cat("old_stps.", i), whole));
      found.ro.push_back(take(cat("ro.", i), 1));
    }
  }
  Optimizer::load_state_dict(given);
  memory_ = std::move(found);
}

}  // namespace tessera::optim
