#pragma once
#include "tessera/driver/backend.h"

namespace tessera::vgpu {

Status event_create(int device, bool timing, EventHandle* out);
Status event_destroy(int device, EventHandle e);
Status event_record(int device, EventHandle e, StreamHandle s);
Status event_record_all(int device, EventHandle e);
Status event_query(int device, EventHandle e);
Status event_synchronize(int device, EventHandle e);
Status event_elapsed_ms(int device, EventHandle begin, EventHandle end, float* out);
Status stream_wait_event(int device, StreamHandle s, EventHandle e);

}  // namespace tessera::vgpu
