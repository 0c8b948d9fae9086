#include "tessera/save/json_cursor.h"

#include "tessera/save/errors.h"

namespace tessera::files {

namespace {

void put_utf8(std::string& out, uint32_t v) {
  if (v < 0x80) {
    out += static_cast<char>(v);
  } else if (v < 0x800) {
    out += static_cast<char>(0xc0 | (v >> 6));
    out += static_cast<char>(0x80 | (v & 0x3f));
  } else if (v < 0x10000) {
    out += static_cast<char>(0xe0 | (v >> 12));
    out += static_cast<char>(0x80 | ((v >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (v & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (v >> 18));
    out += static_cast<char>(0x80 | ((v >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((v >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (v & 0x3f));
  }
}

}  // namespace

bool is_utf8(std::string_view text, bool surrogates) {
  for (size_t i = 0; i < text.size();) {
    auto c = static_cast<uint8_t>(text[i++]);
    if (c < 0x80) continue;
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || text.size() - i < more) return false;
    uint32_t v = c & (0x3f >> more);
    for (size_t k = 0; k < more; ++k) {
      auto next = static_cast<uint8_t>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      v = (v << 6) | (next & 0x3f);
    }
    constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (v < least[more] || v > 0x10ffff) return false;
    if (!surrogates && v >= 0xd800 && v < 0xe000) return false;
  }
  return true;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      constexpr char digits[] = "0123456789abcdef";
      out += "\\u00";
      out += digits[(c >> 4) & 15];
      out += digits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

void JsonCursor::refuse_at(uint64_t at, std::string_view why) const {
  refuse(Refused::What::kFormat, file_, "safetensors header", base_ + at, why);
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

bool JsonCursor::take(char c) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c) {
  if (!take(c)) bad(cat("'", c, "' was expected"));
}

void JsonCursor::expect_end() {
  skip_space();
  if (at_ != text_.size()) bad("something follows the header's object");
}

uint32_t JsonCursor::hex4() {
  uint32_t v = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    char c = at_ < text_.size() ? text_[at_] : '?';
    if (c >= '0' && c <= '9')
      v = v * 16 + static_cast<uint32_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      v = v * 16 + static_cast<uint32_t>(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      v = v * 16 + static_cast<uint32_t>(c - 'A' + 10);
    else
      bad("\\u needs four hexadecimal digits");
  }
  return v;
}

void JsonCursor::escape(std::string& out) {
  constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
  if (at_ >= text_.size()) bad("a string without an end");
  char c = text_[at_++];
  size_t found = from.find(c);
  if (found != from.npos) {
    out += to[found];
    return;
  }
  if (c != 'u') bad("an unknown escape");
  uint32_t v = hex4();
  if (v >= 0xd800 && v < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) bad("half a surrogate pair");
    v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
  }
  if (v >= 0xd800 && v < 0xe000) bad("half a surrogate pair");
  put_utf8(out, v);
}

std::string JsonCursor::string() {
  expect('"');
  std::string out;
  for (;;) {
    // Characters up to the next that means something else.
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<uint8_t>(text_[at_]) >= 0x20)
      ++at_;
    out.append(text_, begin, at_ - begin);
    if (at_ >= text_.size()) bad("a string without an end");
    char c = text_[at_++];
    if (c == '"') return out;
    if (static_cast<uint8_t>(c) < 0x20) bad("a control character in a string");
    escape(out);
  }
}

uint64_t JsonCursor::count() {
  skip_space();
  uint64_t begin = at_, v = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    if (__builtin_mul_overflow(v, uint64_t{10}, &v) ||
        __builtin_add_overflow(v, static_cast<uint64_t>(text_[at_] - '0'), &v))
      bad("a number that leaves 64 bits");
  }
  bool leading = at_ - begin > 1 && text_[begin] == '0';
  char next = at_ < text_.size() ? text_[at_] : ' ';
  if (at_ == begin || leading || next == '.' || next == 'e' || next == 'E')
    refuse_at(begin, "a whole number from 0 on was expected");
  return v;
}

void JsonCursor::skip_value(int depth) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) bad("nested too deep");
  skip_space();
  char c = at_ < text_.size() ? text_[at_] : ' ';
  if (c == '"') {
    string();
  } else if (c == '{' || c == '[') {
    char close = c == '{' ? '}' : ']';
    ++at_;
    if (take(close)) return;
    do {
      if (c == '{') {
        string();
        expect(':');
      }
      skip_value(depth + 1);
    } while (take(','));
    expect(close);
  } else {
    uint64_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+' || text_[at_] == '.' ||
                                  (text_[at_] >= '0' && text_[at_] <= '9') ||
                                  (text_[at_] >= 'a' && text_[at_] <= 'z') || text_[at_] == 'E'))
      ++at_;
    if (at_ == begin) bad("a value was expected");
  }
}

}  // namespace tessera::files
