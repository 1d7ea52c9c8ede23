#include "traces/export/picture_format.h"

namespace stagewright::formats {

extern const FormatInfo pdf;
const FormatInfo pdf = pictureFormat("pdf", "PDF picture", ".pdf");

} // namespace stagewright::formats
