#include "visible.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tessera::vgpu {

namespace {

std::vector<std::string> entries(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string entry = text.substr(begin, end - begin);
    entry.erase(0, entry.find_first_not_of(" \t"));
    entry.erase(entry.find_last_not_of(" \t") + 1);
    out.push_back(std::move(entry));
    begin = end + 1;
  }
  return out;
}

std::string uuid_text(int number) {
  uint8_t id[16];
  device_uuid(number, id);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[id[i] >> 4];
    text += "0123456789abcdef"[id[i] & 15];
  }
  return text;
}

// -1 where an entry names no device, or more than one.
int named(const std::string& entry, int count, bool by_uuid) {
  if (!by_uuid) {
    char* end = nullptr;
    long n = std::strtol(entry.c_str(), &end, 10);
    return end == entry.c_str() || n < 0 || n >= count ? -1 : static_cast<int>(n);
  }
  if (entry.compare(0, 4, "GPU-") != 0) return -1;
  int found = -1;
  for (int i = 0; i < count; ++i) {
    if (uuid_text(i).compare(0, entry.size(), entry) != 0) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

}  // namespace

void device_uuid(int number, uint8_t out[16]) {
  std::memset(out, 0, 16);
  std::memcpy(out, "virtual-gpu", 11);
  out[15] = static_cast<uint8_t>(number);
}

std::vector<int> visible_devices(const char* text, int count) {
  std::vector<int> out;
  if (!text) {
    for (int i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  // The first entry says how devices are named.
  const std::vector<std::string> all = entries(text);
  const bool by_uuid = all[0].compare(0, 4, "GPU-") == 0;
  for (const std::string& entry : all) {
    int device = named(entry, count, by_uuid);
    if (device < 0) break;
    if (std::find(out.begin(), out.end(), device) != out.end()) return {};
    out.push_back(device);
  }
  return out;
}

}  // namespace tessera::vgpu
