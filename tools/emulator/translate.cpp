#include "translate.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

namespace emulator {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Translator {
 public:
  explicit Translator(const std::string& source) : s_(source) {}

  Translation run() {
    while (at_ < s_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    size_t end = skip_quiet(at_);
    if (end != at_) return copy_to(end);
    char c = s_[at_];
    if (is_word(c)) return word();
    if (c == '{') ++depth_;
    copy_to(at_ + 1);
    if (c != '}') return;
    --depth_;
    if (kernel_.empty() || depth_ != kernel_depth_) return;
    out_.text += " EMULATED_KERNEL(" + kernel_ + ", " + bounds_ + ")";
    kernel_.clear();
  }

  void word() {
    size_t end = end_of_word(at_);
    std::string_view w(s_.data() + at_, end - at_);
    for (const char* waits :
         {"__sync", "__shfl", "__ballot", "__any_s", "__all_s", "__match", "__active"})
      if (w.substr(0, std::strlen(waits)) == waits) out_.waits = true;
    if (w == "asm") return assembly(end);
    if (is_operator(w) && s_[end] == '<') return one_nan(end);
    if (w == "__global__") name_kernel(end);
    if (w == "extern" && dynamic_shared(end)) return;
    copy_to(end);
  }

  // "op12_add_f32": codegen's name for the body of an operator.
  static bool is_operator(std::string_view w) {
    size_t digits = w.find_first_not_of("0123456789", 2);
    return w.substr(0, 2) == "op" && digits != std::string_view::npos && digits > 2 &&
           w[digits] == '_';
  }
  // A call of it.
  void one_nan(size_t name_end) {
    out_.text += "emulated_result(";
    copy_to(past_bracket(s_.find('(', name_end)));
    out_.text += ")";
  }

  // Past a comment, a string or a character that begins at `i`; `i` where none does.
  size_t skip_quiet(size_t i) const {
    if (s_.compare(i, 2, "//") == 0) return std::min(s_.find('\n', i), s_.size());
    if (s_.compare(i, 2, "/*") == 0) return std::min(s_.find("*/", i + 2), s_.size() - 2) + 2;
    if (s_[i] != '"' && s_[i] != '\'') return i;
    size_t j = i + 1;
    while (j < s_.size() && s_[j] != s_[i]) j += s_[j] == '\\' ? 2 : 1;
    return std::min(j + 1, s_.size());
  }
  size_t skip_space(size_t i) const {
    while (i < s_.size() && std::isspace(static_cast<unsigned char>(s_[i]))) ++i;
    return i;
  }
  size_t end_of_word(size_t i) const {
    while (i < s_.size() && is_word(s_[i])) ++i;
    return i;
  }
  // Of the bracket that opens at `i`: past the one that closes it.
  size_t past_bracket(size_t i) const {
    int open = 0;
    while (i < s_.size()) {
      size_t quiet = skip_quiet(i);
      if (quiet != i) {
        i = quiet;
        continue;
      }
      open += std::strchr("([{", s_[i]) ? 1 : std::strchr(")]}", s_[i]) ? -1 : 0;
      ++i;
      if (open == 0) break;
    }
    return i;
  }

  void copy_to(size_t end) {
    out_.text.append(s_, at_, end - at_);
    at_ = end;
  }
  // What was replaced keeps its lines.
  void drop_to(size_t end) {
    out_.text.append(
        static_cast<size_t>(std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       s_.begin() + static_cast<std::ptrdiff_t>(end), '\n')),
        '\n');
    at_ = end;
  }

  // The name before the list of parameters; a body follows, or it is a declaration.
  void name_kernel(size_t i) {
    std::string name;
    bounds_ = "1024";
    for (;;) {
      i = skip_space(i);
      if (i >= s_.size()) return;
      if (s_[i] == '(') {
        size_t open = i;
        i = past_bracket(i);
        if (name == "__launch_bounds__") {
          bounds_ = s_.substr(open + 1, std::min(i - 1, s_.find(',', open)) - open - 1);
          continue;
        }
        if (s_[skip_space(i)] != '{') return;
        kernel_ = name;
        kernel_depth_ = depth_;
        return;
      }
      size_t end = end_of_word(i);
      name = s_.substr(i, end - i);
      i = std::max(end, i + 1);
    }
  }

  bool dynamic_shared(size_t i) {
    i = skip_space(i);
    size_t end = end_of_word(i);
    if (s_.compare(i, end - i, "__shared__") != 0) return false;
    size_t stop = s_.find(';', end), bracket = s_.find('[', end);
    if (stop == std::string::npos || bracket > stop) return false;
    size_t name_end = bracket;
    while (!is_word(s_[name_end - 1])) --name_end;
    size_t name = name_end;
    while (is_word(s_[name - 1])) --name;
    std::string type = s_.substr(end, name - end), of = s_.substr(name, name_end - name);
    if (size_t align = type.find("__align__"); align != std::string::npos)
      type.erase(align, type.find(')', align) + 1 - align);
    drop_to(stop + 1);
    out_.text += "\n#define " + of + " ((" + type + "*)emulator_state.dynamic_shared)\n";
    return true;
  }

  void assembly(size_t i) {
    for (;;) {
      i = skip_space(i);
      size_t end = end_of_word(i);
      if (end == i) break;
      i = end;  // volatile
    }
    size_t stop = past_bracket(i) - 1;
    ++i;
    std::string text;
    std::vector<std::string> operands;
    bool in_text = true;
    while (i < stop) {
      size_t quiet = skip_quiet(i);
      if (quiet != i) {
        if (in_text && s_[i] == '"') text += s_.substr(i + 1, quiet - i - 2) + " ";
        i = quiet;
      } else if (s_[i] == '(') {
        size_t end = past_bracket(i);
        operands.push_back(s_.substr(i, end - i));
        i = end;
      } else {
        if (s_[i] == ':') in_text = false;
        ++i;
      }
    }
    std::string name, list;
    for (char c : text)
      if (is_word(c))
        name += c;
      else if (!name.empty() && name.back() != '_')
        name += '_';
    while (!name.empty() && name.back() == '_') name.pop_back();
    for (const std::string& operand : operands) list += (list.empty() ? "" : ", ") + operand;
    drop_to(stop + 1);
    out_.text += "emulated_ptx::" + name + "(" + list + ")";
  }

  const std::string& s_;
  size_t at_ = 0;
  int depth_ = 0, kernel_depth_ = 0;
  std::string kernel_, bounds_;
  Translation out_;
};

}  // namespace

Translation translate(const std::string& source) { return Translator(source).run(); }

}  // namespace emulator
