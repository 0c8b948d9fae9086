// Reads JSON as far as a header needs it: strings, counts, objects and lists, value by value.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::files {

class JsonCursor {
 public:
  // `base` is where the text begins in the file: for messages.
  JsonCursor(std::string_view text, const std::string& file, uint64_t base)
      : text_(text), file_(file), base_(base) {}

  // Takes the character if it is next.
  bool take(char c);
  void expect(char c);
  std::string string();
  uint64_t count();  // a whole number from 0 on
  void skip_value(int depth = 0);
  // Only white space is left.
  void expect_end();
  uint64_t at() const { return at_; }
  [[noreturn]] void refuse_at(uint64_t at, std::string_view why) const;

 private:
  void skip_space();
  void escape(std::string& out);
  uint32_t hex4();
  [[noreturn]] void bad(std::string_view why) const { refuse_at(at_, why); }

  std::string_view text_;
  const std::string& file_;
  uint64_t base_;
  uint64_t at_ = 0;
};

// Text as JSON has it, with its quotes.
std::string json_quoted(std::string_view text);
// UTF-8 without overlong forms; surrogates pass where they are asked for, as Python's pickles have
// them.
bool is_utf8(std::string_view text, bool surrogates = false);

}  // namespace tessera::files
