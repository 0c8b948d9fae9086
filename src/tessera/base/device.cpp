#include "tessera/base/device.h"

#include <charconv>

namespace tessera {

void append(std::string& out, Device d) {
  if (d.is_cpu()) {
    out += "cpu";
    return;
  }
  if (d.is_meta()) {
    out += "meta";
    return;
  }
  out += "cuda";
  if (d.index >= 0) {
    out += ':';
    detail::append(out, int{d.index});
  }
}

Device parse_device(const std::string& text) {
  auto colon = text.find(':');
  std::string kind = text.substr(0, colon);
  int index = -1;
  if (colon != std::string::npos) {
    const char* begin = text.data() + colon + 1;
    const char* end = text.data() + text.size();
    auto [p, ec] = std::from_chars(begin, end, index);
    bool padded = end - begin > 1 && *begin == '0';
    TS_CHECK(ec == std::errc() && p == end && !padded && index >= 0 && index < 1024,
             "Invalid device string: '", text, "'");
  }
  if (kind == "cpu") {
    TS_CHECK(index <= 0, "Invalid device string: '", text, "': there is one CPU device, cpu:0");
    return Device{DeviceType::kCPU, 0};
  }
  if (kind == "meta") return Device{DeviceType::kMeta, 0};
  if (kind == "cuda") return Device{DeviceType::kCUDA, static_cast<int16_t>(index)};
  raise(ErrorKind::kRuntime,
        cat("Expected one of cpu, cuda, meta device type at start of device string: ", kind));
}

}  // namespace tessera
