#include "traces/export/picture_format.h"

namespace stagewright::formats {

extern const FormatInfo png;
const FormatInfo png = pictureFormat("png", "PNG picture", ".png");

} // namespace stagewright::formats
