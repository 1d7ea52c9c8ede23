// A document as HTML: headings, definition lists of figures, tables, plots as inline SVG, sentences, marks. Every text is
// escaped; the page around it has the styles (html_report.h).
#pragma once

#include <functional>
#include <string>

#include "traces/report/document/document.h"

namespace stagewright {

// timeline: the picture for Marks without a place; without it they are left out.
std::string documentHtml(const document::Document& document,
                         const std::function<std::string(const document::Marks&)>& timeline = {});

} // namespace stagewright
