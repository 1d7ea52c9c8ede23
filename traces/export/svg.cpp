#include "traces/export/picture_format.h"

namespace stagewright::formats {

extern const FormatInfo svg;
const FormatInfo svg = pictureFormat("svg", "SVG picture", ".svg");

} // namespace stagewright::formats
